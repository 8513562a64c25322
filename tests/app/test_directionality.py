"""The page of the three readers, driven without a browser; what it shows is compared with the library's answers."""

import shutil

import pytest

from bert_tf.explain import predict_span
from tests.app.conftest import use_models_in
from tests.app.family_models import GOLDEN_FOLDERS
from tests.app.page_reading import (
    column,
    component,
    component_protos,
    components,
    near,
    offered,
    page_text,
    press,
    run_until_done,
)

TEXT = "The cat sat on the mat in Paris."
START, END = TEXT.index("mat"), TEXT.index("mat") + 3
NAMES = {"left_to_right": "tiny-left-to-right", "two_one_way": "tiny-two-one-way", "bidirectional": "tiny-both-ways"}
LIMITS = '[models]\ndefault = "tiny-cased"\nwarm = false\n'


@pytest.fixture(scope="module")
def readers_home(tmp_path_factory, explorer_home, tiny_folder):
    """A models folder with the three readers, of one vocabulary, and another model."""
    from bert_tf import checkpoints
    from tests.layers.test_causal import APART, LEFT, make_reader

    home = tmp_path_factory.mktemp("readers")
    for name, kind in (("left_to_right", LEFT), ("two_one_way", APART)):
        reader = make_reader(kind)
        checkpoints.save(home / NAMES[name], reader.config, reader.tokenizer, reader.model)
    shutil.copytree(tiny_folder, home / NAMES["bidirectional"])
    shutil.copytree(explorer_home / "tiny-cased", home / "tiny-cased")
    (home / "explorer.toml").write_text(LIMITS)
    return home


@pytest.fixture
def readers(readers_home, monkeypatch):
    return use_models_in(readers_home, monkeypatch)


def test_each_reader_s_predictions_and_what_it_saw_stand_side_by_side(readers, open_app):
    import bert_tf

    app = run_until_done(open_app(page="directionality", a=TEXT, mask="a5"))
    bars, texts = components(app, "bars"), components(app, "spans")
    asked = [*(NAMES[way] for way in ("left_to_right", "two_one_way", "bidirectional")), "tiny-cased"]
    assert len(bars) == len(texts) == 4
    for name, drawn, text in zip(asked, bars, texts):
        reading = predict_span(bert_tf.load(readers / name), TEXT, START, END, 5)
        (card,) = drawn["cards"]
        assert [one["text"] for one in card["predictions"]] == [one.token for one in reading.answer.predictions]
        assert [one["p"] for one in card["predictions"]] == pytest.approx(
            [one.probability for one in reading.answer.predictions], rel=1e-4
        )
        assert "".join(part["text"] for part in text["parts"]) == TEXT.replace("mat", "____")
        visible_spans = [part["text"] for part in text["parts"] if "read" in part.get("tip", "")]
        assert visible_spans == [word for start, end, _ in reading.visible_spans for word in TEXT[start:end].split()]
    assert "How likely “mat” is to each" in page_text(app)


def test_the_lines_ask_the_same_readers(readers, open_app, capsys):
    app = run_until_done(open_app(page="directionality", a=TEXT, mask="a5", top="3"))
    exec(app.code[0].value, {})
    page_text = [line for line in capsys.readouterr().out.splitlines() if line.startswith("tiny-")]
    for line, drawn in zip(page_text, components(app, "bars"), strict=True):
        on_page = [(one["text"], round(one["p"], 3)) for one in drawn["cards"][0]["predictions"]]
        assert line.endswith(str(on_page))


def test_a_pressed_word_takes_the_place_of_the_hidden_one(readers, open_app):
    app = run_until_done(open_app(page="directionality", a=TEXT, mask="a5,a1"))
    chips = components(app, "chips")[0]["chips"]
    assert [chip["was"] for chip in chips if chip["masked"]] == ["cat"]


def test_a_word_that_is_pressed_twice_at_once_is_as_before(readers, open_app):
    app = run_until_done(open_app(page="directionality", a=TEXT, mask="a5"))
    press(app, component_protos(app, "chips")[0], [1, "toggle", "a1"], [2, "toggle", "a1"])
    assert not any(chip["masked"] for chip in component(app, "chips")["chips"])


def test_a_typed_mask_is_asked_and_has_no_original(readers, open_app):
    app = run_until_done(open_app(page="directionality", a="The cat sat on the [MASK] in Paris, [MASK]."))
    assert all(card["title"] == "[MASK]" for drawn in components(app, "bars") for card in drawn["cards"])
    assert "The first [MASK] is predicted" in page_text(app) and "How likely" not in page_text(app)


def test_a_press_beside_a_typed_mask_hides_nothing_says_why_and_is_drawn_anew(readers, open_app):
    app = run_until_done(open_app(page="directionality", a="The [MASK] sat there"))
    before = component_protos(app, "chips")[0]
    press(app, before, [1, "toggle", "a2"])
    after = component_protos(app, "chips")[0]
    assert not any(chip["masked"] for chip in component(app, "chips")["chips"])
    assert "Delete it to hide another word" in app.toast[0].value
    assert after.json != before.json  # the browser has painted the word: it draws only data that are not equal


def test_without_a_hidden_word_the_page_says_what_to_press(readers, open_app):
    app = run_until_done(open_app(page="directionality", a=TEXT))
    assert "Press a word above to hide it" in page_text(app) and not components(app, "bars")


def test_a_hidden_word_past_the_end_of_what_they_read_is_told(readers, open_app):
    for text, mask in (("cat " * 600 + "[MASK]", ""), ("cat " * 600, "a590")):
        app = run_until_done(open_app(page="directionality", a=text, mask=mask))
        assert "The three readers: the model reads" in app.warning[0].value
        assert "The hidden word is in the part that is left out" in page_text(app)
    assert "nothing in the text that the model can read" in page_text(open_app(page="directionality", a="\u200b"))


def test_a_chosen_model_that_reads_less_leaves_the_others_their_answers(readers_home, tmp_path, monkeypatch, open_app):
    home = use_models_in(shutil.copytree(readers_home, tmp_path / "home"), monkeypatch)
    shutil.copytree(GOLDEN_FOLDERS / "albert", home / "albert")
    app = run_until_done(open_app(page="directionality", a="the license of the work " * 9, mask="a40", model="albert"))
    assert len(components(app, "bars")) == 3 and not app.error
    assert "albert is left out" in page_text(app)


def test_half_the_context_is_told_of_each_reader_in_its_own_words(readers, open_app):
    output = {
        "left_to_right": "therefore gives the same as the full text",
        "two_one_way": "one of the two has no words to read",
        "bidirectional": "BERT is trained to use both sides",
    }
    for way, name in NAMES.items():
        app = run_until_done(open_app(page="counterfactuals", model=name, a=TEXT, mask="a5"))
        assert [words in page_text(app) for words in output.values()] == [other == way for other in output], page_text(
            app
        )
        (drawn,) = components(app, "bars")
        whole, before, after = ([one["p"] for one in card["predictions"]] for card in drawn["cards"])
        assert (before == pytest.approx(whole, rel=1e-4)) == (way == "left_to_right") and after != pytest.approx(
            whole, rel=1e-4
        )


def test_the_three_are_of_one_shape_where_such_are_here(monkeypatch):
    from types import SimpleNamespace

    from bert_tf import BertConfig
    from ui.session import directional_models as readers

    def info(name, kind, hidden=32, layers=2, vocabulary=100):
        config = BertConfig(
            model_type=kind,
            vocab_size=vocabulary,
            hidden_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=4,
            intermediate_size=64,
        )
        return SimpleNamespace(name=name, config=config, heads=("mlm",))

    left, apart, both = ("left-to-right", "two-one-way", "bert")
    deep, foreign = info("a-deep", left, layers=3), info("b-foreign", left, vocabulary=99)
    own = [info("left_to_right", left), info("two_one_way", apart, hidden=64), info("bidirectional", both)]
    wider = [info("a-wide", apart, hidden=128), info("a-both", both, layers=4)]
    names = {"left_to_right": "left_to_right", "two_one_way": "two_one_way", "bidirectional": "bidirectional"}
    for here, expected in (
        ([deep, foreign, *wider, *own], names),
        ([*wider, own[0], own[2]], {**names, "two_one_way": "a-wide"}),
        ([foreign, own[1], own[2]], {"left_to_right": "b-foreign"}),
        ([own[1], own[2], wider[1]], {"two_one_way": "two_one_way", "bidirectional": "bidirectional"}),
        ([own[2]], {}),
    ):
        monkeypatch.setattr(readers.model_store, "installed", lambda here=here: here)
        assert readers.comparable_models() == expected


def test_without_the_readers_the_page_says_so(open_app):
    app = run_until_done(open_app(page="directionality", a=TEXT, mask="a5"))
    assert "not all of them are installed here" in page_text(app) and not components(app, "bars")


def test_the_readers_answers_are_saved(readers, open_app, saved):
    import bert_tf

    offered(run_until_done(open_app(page="directionality", a=TEXT, b="It ran.", mask="a5")), saved, ("one-way",))
    reading = predict_span(bert_tf.load(readers / NAMES["left_to_right"]), TEXT, START, END, 5)
    near(column(saved["one-way"], "probability")[:5], [one.probability for one in reading.answer.predictions])
    assert TEXT in saved["one-way"]["shown"] and "It ran." not in saved["one-way"]["shown"]
    assert saved["one-way"]["npz"]["prediction"][:5].tolist() == [one.token for one in reading.answer.predictions]


@pytest.mark.parametrize("way, differ", [("left_to_right", False), ("two_one_way", True)])
def test_the_map_of_a_file_s_rows_offers_first_tokens_that_differ(readers, open_app, way, differ):
    link = {"dataset.look": "map", "dataset.ask": "masks", "dataset.vector": "first"}
    app = run_until_done(open_app(page="dataset", model=NAMES[way], **link))
    keys = [one.key for one in app.button_group]
    assert "w_dataset_way" in keys and ("w_dataset_vector" in keys) == differ
    assert len(app.get("plotly_chart")) == 1
    # The mean is the default, which the code leaves out.
    assert ("row_vectors(bert, rows, pooling='first')" in app.code[0].value) == differ
    assert ("row_vectors(bert, rows)" in app.code[0].value) != differ


def test_a_word_of_several_pieces_is_told_of_for_every_model_that_splits_it(readers, open_app):
    import bert_tf

    text = "The bunnys sat on the mat."
    app = run_until_done(open_app(page="directionality", a=text, b="They slept.", mask="a1"))
    names = (*(NAMES[way] for way in ("left_to_right", "two_one_way", "bidirectional")), "tiny-cased")
    readings = [predict_span(bert_tf.load(readers / name), text, 4, 10) for name in names]
    split = [reading.answer.original is None for reading in readings]
    assert True in split
    cards = [drawn["cards"][0] for drawn in components(app, "bars")]
    assert [card["foot"] == "The original is several word pieces here." for card in cards] == split
    assert all(card["title"] == "bunnys" for card in cards)
    output = page_text(app).replace("\\", "")
    assert "“bunnys” is several word pieces for" in output and "Text A alone is read here" in output
    assert all(name in output for name in ("Left to right", "Two one-way readers", "Both ways: BERT", "tiny-cased"))
