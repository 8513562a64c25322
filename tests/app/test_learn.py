"""Architecture and Guide, driven without a browser."""

import re

import pytest

from bert_tf.config import BertConfig
from pages.learn.lessons import GUIDE, PARTS, part
from tests.app.conftest import ROOT
from tests.app.page_reading import (
    component,
    page_text,
    param,
    run_until_done,
)
from ui.shell.catalogue import pages


def no_trouble(app):
    assert not app.exception and not app.error, page_text(app)


def test_the_boxes_are_those_of_the_loaded_model(open_app):
    app = open_app(page="architecture", a="The bunny ate the carrot.", mask="a1")
    no_trouble(app)
    data = component(app, "tower")
    names = [box["name"] for box in data["boxes"]]
    assert names[0] == "embeddings" and {"pooler", "mlm", "nsp"} == set(data["heads"])
    assert data["chosen"] == "attention" and data["layers"] == 3 and data["tokens"][0] == "[CLS]"
    assert sum(box["share"] for box in data["boxes"]) == pytest.approx(1)


@pytest.mark.parametrize("box", [box for box in PARTS if box not in ("sop", "replaced")])
def test_every_box_opens_with_its_explanation(open_app, explorer_home, box):
    lesson = part(box, BertConfig.from_json(explorer_home / "tiny-cased" / "config.json"))
    app = open_app(page="architecture", a="The bunny ate.", b="It was good.", mask="a1", **{"architecture.open": box})
    no_trouble(app)
    assert lesson.text in page_text(app) and lesson.source in page_text(app)


@pytest.mark.parametrize(
    "name, pooled",
    [
        ("bert", "it was used for next-sentence prediction alone"),
        ("albert", "it was used for sentence-order prediction alone"),
        ("roberta", "In pre-training it was not used; for"),
    ],
)
def test_what_the_pooled_vector_was_for_is_said_by_the_member_s_heads(name, pooled):
    output = part("pooler", BertConfig(model_type=name, vocab_size=40)).text
    assert pooled in output and output.endswith("trained further with the rest of the model.")


@pytest.mark.parametrize(
    "name, sees",
    [
        ("left-to-right", "the keys of the tokens before it and of itself"),
        (
            "two-one-way",
            "the keys of the tokens before it in the first half of the heads, after it in the second, and of itself",
        ),
    ],
)
def test_what_a_one_way_reader_sees_and_learnt_is_said(name, sees):
    config = BertConfig(model_type=name, vocab_size=40)
    assert sees in part("attention", config).text and sees not in part("attention", BertConfig(vocab_size=40)).text
    output = part("mlm", config).text
    assert (
        output.endswith("It learnt to predict the word beside the part it has read.")
        and "masked position" not in output
    )


@pytest.mark.parametrize("name", ["bert", "left-to-right"])
def test_a_head_for_words_with_a_table_of_its_own_is_said_to_have_one(name):
    config = BertConfig(model_type=name, vocab_size=40)
    assert "the same table is used for the input and for the prediction" in part("mlm", config).text
    output = part("mlm", config.replace(tie_word_embeddings=False)).text
    assert "a token table of the head's own**: another table is used for the input. I" in output


@pytest.mark.parametrize(
    "segments, says",
    [
        (0, "no table for text A and text B"),
        (1, "one that all tokens share: this model has a single segment"),
        (2, "one for **which text** it belongs to (A or B)"),
    ],
)
def test_the_table_of_segments_is_as_large_as_it_is_said_to_be(segments, says):
    output = part("embeddings", BertConfig(vocab_size=40, type_vocab_size=segments)).text
    assert says in output and ("which text" in output) == (segments == 2)
    assert output.startswith("Every token becomes a vector: ") and "The sum is normalised." in output


@pytest.mark.parametrize("values", ["queries", "attentions", "attention", "nonsense"])
def test_values_of_a_link_are_shown(open_app, values):
    link = {"architecture.open": "attention", "architecture.values": values, "architecture.layer": "99"}
    app = open_app(page="architecture", a="The bunny ate.", **link)
    no_trouble(app)
    assert "Self-attention, layer 3" in page_text(app)


def test_long_texts_are_looked_at_through_a_window(open_app):
    text = "one two three four " * 20
    app = open_app(page="architecture", a=text, **{"architecture.open": "embeddings", "architecture.token": "30"})
    no_trouble(app)
    assert app.slider(key="w_architecture_token").value == 30 and "tokens 30 to 77 of 82" in page_text(app)
    app.slider(key="w_architecture_token").set_value(35).run()
    assert "tokens 35 to 82 of 82" in page_text(app)
    # A short text fits, and so do the sixteen units: nothing to slide.
    assert not open_app(page="architecture", a="The bunny ate.").slider


def test_every_size_stands_beside_the_loaded_model(open_app):
    from bert_tf.config import BertConfig
    from bert_tf.flops import flops_by_part
    from bert_tf.parameters import parameter_counts

    app = open_app(page="architecture", a="The bunny ate.", mask="a1")
    table = app.dataframe[1].value.set_index("Size")
    assert list(table.index) == ["tiny", "mini", "small", "medium", "base", "large", "tiny-cased (loaded)"]
    config, tokens = BertConfig.base(vocab_size=28996), component(app, "tower")["tokens"]
    base, spent = table.loc["base"], flops_by_part(config, len(tokens), tokens.count("[MASK]"))
    assert base["Parameters"] == parameter_counts(config, ("pooler", "mlm", "nsp"))["total"] == 108_932_934
    total = sum(spent[part] for part in ("embeddings", "attention", "feed_forward", "pooler", "mlm", "nsp"))
    assert base["GFLOP"] == pytest.approx(total / 1e9)
    assert base["Attention %"] == pytest.approx(100 * spent["attention"] / total)


@pytest.mark.parametrize("box", ["attention", "attention_norm", "mlm"])
def test_the_open_box_stands_beside_itself_in_every_size(open_app, explorer_home, box):
    import bert_tf
    from bert_tf.config import BertConfig
    from bert_tf.explain.models.architecture import parts
    from bert_tf.flops import flops_by_part
    from bert_tf.models import build_pretraining_model

    app = open_app(page="architecture", a="The bunny ate.", mask="a1", **{"architecture.open": box})
    no_trouble(app)
    tokens = component(app, "tower")["tokens"]
    tokens, masks = len(tokens), tokens.count("[MASK]")
    table = app.dataframe[0].value.set_index("Size")
    assert list(table.index) == ["tiny", "mini", "small", "medium", "base", "large", "tiny-cased (loaded)"]
    real = {name: build_pretraining_model(BertConfig.named(name, vocab_size=28996)) for name in ("tiny", "mini")}
    real["tiny-cased (loaded)"] = bert_tf.load(explorer_home / "tiny-cased").model
    for name, model in real.items():
        boxes = parts(model, tokens, masks)
        wanted = next(part for part in boxes if part.name == box)
        spent = flops_by_part(model.bert_config, tokens, masks)
        assert table.loc[name, "Parameters"] == wanted.parameters
        assert table.loc[name, "Work %"] == pytest.approx(
            100 * spent.get(box, 0) / sum(spent[part.name] for part in boxes if part.name in spent)
        )
        gives = {"mlm": f"P {masks} × V 28,996"}.get(box, f"T {tokens} × H {model.bert_config.hidden_size}")
        assert table.loc[name, "Output"] == gives


def test_a_head_stands_beside_the_sizes_that_have_it(open_app):
    app = open_app(page="architecture", a="The bunny ate.", **{"architecture.open": "pooler"})
    no_trouble(app)
    assert list(app.dataframe[0].value["Parameters"][-3:]) == [768 * 769, 1024 * 1025, 16 * 17]


def test_without_a_mask_or_a_second_text_the_heads_say_what_to_do(open_app):
    for box, says in (("mlm", "Nothing is hidden"), ("nsp", "There is only one text")):
        app = open_app(page="architecture", a="The bunny ate.", **{"architecture.open": box})
        no_trouble(app)
        assert says in page_text(app)


def test_the_guide_leads_to_pages_that_there_are(open_app):
    app = open_app(page="guide", a="The bunny ate.")
    no_trouble(app)
    assert [*(heading for heading, _ in GUIDE), "To cite"] == [one.value for one in app.header]
    links = {button.key.split("_", 3)[3] for button in app.button if button.key.startswith("w_link_")}
    wanted = {name for _, lesson in GUIDE for name in lesson.pages}
    assert links == wanted <= set(pages())


@pytest.mark.parametrize("name", ["bert-base-cased-embedded", "bert-small-uncased-embedded"])
def test_the_embedded_models_cut_the_guide_s_word_as_it_says(name):
    from bert_tf.tokenizers import Tokenizer

    word, pieces = re.search(r"\*(\w+)\* becomes ([\w#+ ]+)\.", GUIDE[0][1].text).groups()
    tokens = Tokenizer.from_folder(ROOT / "assets" / "models" / name).encode(word).tokens
    assert tokens == ("[CLS]", *pieces.split(" + "), "[SEP]") and len(tokens) > 3


def test_the_guide_says_how_to_cite_as_the_citation_file_does(open_app):
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    program = open_app(page="guide").code[0].value
    for key in ("title", "version"):
        assert re.search(rf'^{key}: "?(.+?)"?$', citation, re.M)[1] in program
    assert re.search(r'title: "(BERT: Pre.+)"', citation)[1] in program


def test_a_link_of_the_guide_keeps_the_texts(open_app):
    app = open_app(page="guide", a="The bunny ate.")
    next(button for button in app.button if button.key.endswith("_predict")).click().run()
    no_trouble(app)
    assert app.text_area(key="w_text_a").value == "The bunny ate."


def test_the_family_is_told_with_its_published_counts(open_app):
    app = open_app(page="architectures")
    no_trouble(app)
    table = app.dataframe[0].value
    rows = {row["Model"]: row for _, row in table.iterrows()}
    assert rows["BERT base"]["Parameters"] == 110_106_428 and rows["BERT large"]["Parameters"] == 336_226_108
    assert rows["ELECTRA base"]["Parameters"] == 109_483_009
    assert rows["ELECTRA base-generator"]["Parameters"] == 33_740_602
    assert rows["ALBERT base"]["Learns from"] == "hidden words and sentence order"
    assert "all layers share their weights" in rows["ALBERT base"]["Changed from BERT"]
    assert (table["Embeddings"] + table["Encoder"] + table["Output heads"] == table["Parameters"]).all()
    assert "ms here" not in table


def test_the_family_s_speed_comes_from_a_job(open_app, monkeypatch):
    from pages.learn import architectures

    monkeypatch.setattr(architectures, "measure_speed", lambda rows, progress: [0.25] * len(rows))
    app = open_app(page="architectures")
    app.toggle(key="w_architectures_speed").set_value(True).run()
    no_trouble(app)
    table = app.dataframe[0].value
    assert list(table["ms here"]) == [250.0] * len(table)
    assert any("median of five passes" in caption.value for caption in app.caption)
    assert param(app, "architectures.speed") == "1"
    again = open_app(page="architectures", **{"architectures.speed": "1"})
    no_trouble(again)
    assert again.toggle(key="w_architectures_speed").value and "ms here" in again.dataframe[0].value
    assert (
        "measure_speed" in again.code[0].value and "measure_speed" not in open_app(page="architectures").code[0].value
    )


def test_runs_of_the_page_do_not_reset_keras_though_no_model_was_loaded(open_app, monkeypatch):
    import keras
    from streamlit.runtime.scriptrunner import script_runner

    from pages.learn import architectures

    measured, resets = [], []

    def measure(rows, progress):
        measured.append(rows)
        return [0.25] * len(rows)

    monkeypatch.setattr(architectures, "measure_speed", measure)
    monkeypatch.setattr(keras.backend, "clear_session", lambda: resets.append(True))
    # As on a fresh server, where Streamlit resets Keras after each run of a page.
    monkeypatch.setattr(script_runner, "_clean_problem_modules", lambda: keras.backend.clear_session())
    app = open_app(page="architectures")
    before = len(resets)
    assert before
    run_until_done(open_app(page="architectures", **{"architectures.speed": "1"}))
    assert measured
    assert len(resets) <= before + 1  # the first run may end before the job begins
    count = len(resets)
    app.run()
    assert len(resets) == count


def test_the_heads_of_other_members_have_their_explanations():
    from bert_tf.model_outputs import ALL_HEADS

    assert set(ALL_HEADS) <= set(PARTS)
