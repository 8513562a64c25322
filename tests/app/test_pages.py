"""Every page, driven without a browser."""

import shutil

import pytest

from tests.app.page_reading import (
    component,
    components,
    control,
    page_text,
    param,
    run_until_done,
    use,
    walk,
)
from ui.samples.examples import FIRST

#: Pages that read the visitor's text and have no chips of its tokens.
TEXT_PAGES_WITHOUT_CHIPS = (
    "model_view",
    "neuron",
    "attention_methods",
    "head_profiles",
    "walk_through",
    "architecture",
    "layer_similarity",
)
PAIR = {"a": "The bunny ate the carrot.", "b": "It was good."}


def no_trouble(app):
    assert not app.exception and not app.error, page_text(app)


@pytest.mark.parametrize("page", ["predict", "all_heads", "side_by_side", "models"])
def test_a_page_opens_without_trouble_on_an_empty_link(open_app, page):
    app = open_app(page=page)
    no_trouble(app)
    assert app.title


def test_the_front_page_shows_an_example_with_its_predictions(open_app):
    app = open_app()
    no_trouble(app)
    assert [app.text_area(key=f"w_text_{name}").value for name in "ab"] == [FIRST.a, FIRST.b]
    cards = component(app, "bars")["cards"]
    assert [card["title"] for card in cards] == ["law"] and len(cards[0]["predictions"]) == 5
    assert component(app, "gauge") and component(app, "lines")["framed"]


@pytest.mark.parametrize(
    "page, text",
    [
        ("counterfactuals", "They sat on the bank of the river and watched the boats."),
        ("directionality", "He is a member of the House of Representatives."),
        ("time_lapse", "He was born in London."),
        ("task_predictions", "A warm, funny film, and one of the finest of the year."),
        ("all_heads", FIRST.a),
    ],
)
def test_a_page_opens_with_its_own_example(open_app, page, text):
    assert param(open_app(page=page), "a") == text
    assert param(open_app(page=page, a="The cat sat."), "a") == "The cat sat."


def test_an_example_follows_the_page_but_a_typed_text_stays(open_app):
    app = open_app(page="guide")
    app.button(key="w_link_1_counterfactuals").click().run()
    assert param(app, "a").startswith("They sat on the bank") and param(app, "mask") == "a4"
    typed = open_app(page="guide", a="Shanghai is a city in China.", mask="a0")
    typed.button(key="w_link_1_counterfactuals").click().run()
    assert param(typed, "a").startswith("Shanghai") and param(typed, "mask") == "a0"


def test_typed_texts_are_read_and_scored(open_app):
    app = open_app()
    app.text_area(key="w_text_a").set_value(PAIR["a"]).run()
    app.text_area(key="w_text_b").set_value(PAIR["b"]).run()
    no_trouble(app)
    assert 0 <= component(app, "gauge")["is_next"] <= 1
    assert "carrot" in "".join(chip["text"].strip("#") for chip in component(app, "chips")["chips"])
    assert param(app, "a") == PAIR["a"] and param(app, "b") == PAIR["b"]


def test_a_link_to_a_page_that_is_not_here_says_so_until_another_is_opened(open_app):
    app = open_app(page="lessons*", a="the cat sat.")
    (note,) = app.warning
    assert note.value == "The link asks for the page “lessons\\*”, which is not here. Predict is used."
    app.query_params["page"] = "all_heads"
    assert not app.run().warning
    app.query_params["page"] = "predict"
    assert not app.run().warning
    assert not open_app(page="attention", a="the cat sat.").warning  # an old name


def test_a_link_reopens_masks_model_and_numbers(open_app):
    app = open_app(**PAIR, mask="a1,b2", model="tiny-uncased", top="3")
    no_trouble(app)
    cards = component(app, "bars")["cards"]
    assert "good" in [card["title"] for card in cards]
    assert all(len(card["predictions"]) == 3 for card in cards)
    assert app.selectbox(key="w_model").value == "tiny-uncased"


def test_a_whole_word_is_masked_in_all_its_pieces_or_one_alone(open_app):
    whole = component(open_app(a="The unbelievable story", mask="a1"), "chips")["chips"]
    piece = component(open_app(a="The unbelievable story", mask="a1.1", words="0"), "chips")["chips"]
    assert [chip["masked"] for chip in whole[2:4]] == [True, True]
    assert [chip["masked"] for chip in piece[2:4]] == [False, True]
    assert piece[2]["spot"] == "a1.0" and piece[3]["spot"] == "a1.1"


@pytest.mark.parametrize("page", ["predict", "all_heads", "side_by_side", "logit_lens", "head_profiles"])
def test_a_text_b_with_nothing_to_read_counts_as_none_and_is_said(open_app, page):
    says = "Text B holds nothing that the model can read, so it counts as empty."
    app = open_app(page=page, a=PAIR["a"], b=" \u200b\ufeff", mask="a1")
    no_trouble(app)
    assert page_text(app).count(says) == 1 and "text_b" not in page_text(app)
    alone = open_app(page=page, a=PAIR["a"], b="", mask="a1")
    assert says not in page_text(alone)
    for name in ("bars", "chips", "lines"):
        assert component(app, name) == component(alone, name)


def test_a_text_b_with_nothing_to_read_is_said_on_layer_likeness(open_app):
    says = "Text B holds nothing that the model can read, so it counts as empty."
    app = run_until_done(
        open_app(page="layer_similarity", a=PAIR["a"], b="\u200b", **{"layer_similarity.source": "view"})
    )
    assert page_text(app).count(says) == 1
    assert says not in page_text(
        run_until_done(open_app(page="layer_similarity", **PAIR, **{"layer_similarity.source": "view"}))
    )
    assert says not in page_text(run_until_done(open_app(page="layer_similarity", b="\u200b")))  # the texts of a file


def test_a_second_text_with_nothing_to_read_is_said_on_compare(open_app):
    second = {"side_by_side.what": "texts", "side_by_side.a": "It was good.", "side_by_side.b": "\u200b"}
    app = open_app(page="side_by_side", **PAIR, **second)
    no_trouble(app)
    assert "The second text B holds nothing that the model can read, so it counts as empty." in page_text(app)
    app = open_app(
        page="side_by_side", **PAIR, **{**second, "side_by_side.a": "\u200b", "side_by_side.b": "It was good."}
    )
    no_trouble(app)
    assert "There is nothing in the second text A that the model can read." in page_text(app)


def test_a_typed_mask_is_predicted(open_app):
    app = open_app(a="Paris is a [MASK].")
    assert component(app, "bars")["cards"][0]["title"] == "[MASK]"
    assert "typed" in [chip["kind"] for chip in component(app, "chips")["chips"]]


def test_joint_filling_numbers_its_steps_and_offers_to_fill_all(open_app):
    app = open_app(a="The bunny ate the carrot.", mask="a1,a2", fill="joint")
    notes = [card["note"] for card in component(app, "bars")["cards"]]
    assert notes[0] == "filled 1st" and notes[1] == "filled 2nd"
    app.button(key="w_fill_all").click().run()
    no_trouble(app)
    assert app.text_area(key="w_text_a").value != "The bunny ate the carrot."
    assert param(app, "mask") is None


def test_swapping_turns_the_pair_and_its_masks_round(open_app):
    app = open_app(**PAIR, mask="b2")
    use(app, "swap")
    no_trouble(app)
    assert app.text_area(key="w_text_a").value == PAIR["b"]
    assert param(app, "mask") == "a2"


def test_an_example_can_be_picked(open_app):
    app = open_app()
    app.button_group(key="w_example").set_value("River bank").run()
    assert "bank" in app.text_area(key="w_text_a").value
    assert component(app, "bars")["cards"][0]["title"] == "bank"


@pytest.mark.parametrize("page", ["predict", "all_heads", "side_by_side"])
@pytest.mark.parametrize(
    "text, says",
    [
        ("   ", "Text A is empty"),
        ("\u200b\u0000\u0007", "nothing in text A"),
        ("word " * 2000, "10,000 characters; this explorer takes at most 5,000"),
    ],
)
def test_texts_that_cannot_be_read_are_answered_with_a_sentence(open_app, page, text, says):
    app = open_app(page=page)
    app.text_area(key="w_text_a").set_value(text).run()
    assert says in page_text(app)
    assert not app.exception


@pytest.mark.parametrize(
    "text", ["👩‍👩‍👧 🎉 emoji", "שלום عليكم", "<script>alert(1)</script> <b>bold</b>", "a\tb\r\nc", "漢字"]
)
def test_unusual_texts_are_read(open_app, text):
    for page in ("predict", "all_heads"):
        app = open_app(page=page, a=text, mask="a0")
        no_trouble(app)


def test_what_is_cut_off_is_said(open_app):
    app = open_app(a="word " * 900)
    assert "390 tokens of text A at the end are left out" in page_text(app)
    assert component(app, "chips")["chips"][-1]["text"] == "[SEP]"


def test_too_many_masks_are_refused_with_their_number(open_app):
    app = open_app(a="[MASK] " * 9)
    assert "There are 9 masks; at most 6" in page_text(app)
    assert "There are 9 masks; at most 6" in page_text(open_app(a="[MASK] " * 9, mask="a1,a2"))
    assert component(app, "bars") is None


def test_a_model_that_is_not_there_is_named_and_the_default_used(open_app):
    for name in ("../../etc", "/etc/passwd", "no-such-model"):
        app = open_app(model=name)
        assert not app.exception and "which is not installed here" in page_text(app)
        assert app.selectbox(key="w_model").value == "tiny-cased"
        assert param(app, "model") == "tiny-cased"
        # It stays while the page runs again by itself, and goes with the page.
        assert "which is not installed here" in page_text(app.run())
        app.query_params["page"] = "guide"
        assert "which is not installed here" not in page_text(app.run())


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_a_model_can_compute_with_fewer_digits(open_app, precision):
    app = open_app(**PAIR, mask="a1", precision=precision)
    no_trouble(app)
    assert component(app, "bars")["cards"] and precision in page_text(app)


def test_attention_opens_the_head_of_a_link_and_follows_the_pickers(open_app):
    app = open_app(page="all_heads", **PAIR, layer="2", head="3")
    no_trouble(app)
    assert "Layer 2, head 3" in page_text(app)
    app.slider(key="w_layer").set_value(3).run()
    assert "Layer 3, head 3" in page_text(app) and param(app, "layer") == "3"
    assert [one["layer"] for one in component(app, "heads")["heads"]] == [2]


def test_attention_shows_only_the_tokens_of_the_filter(open_app):
    lines = component(open_app(page="all_heads", **PAIR, show="ab", special="0"), "lines")
    assert "".join(lines["left"]).replace("#", "") == "Thebunnyatethecarrot."
    assert lines["right"] == ["It", "was", "good", "."]


def test_a_layer_the_model_does_not_have_becomes_its_last(open_app):
    app = open_app(page="all_heads", layer="99", head="99", model="tiny-uncased")
    no_trouble(app)
    assert "Layer 2, head 2" in page_text(app)


def test_512_tokens_of_attention_stay_under_a_megabyte(open_app):
    app = open_app(page="all_heads", a="The bunny ate a carrot today . " * 90)
    no_trouble(app)
    sizes = [element.proto.ByteSize() for element in walk(app._tree.root) if getattr(element, "proto", None)]
    assert sum(sizes) < 1_000_000
    assert len(component(app, "lines")["left"]) == 512
    app = open_app(page="all_heads", a="The bunny ate a carrot today . " * 90, **{"all_heads.as": "map"})
    app.slider(key="w_start").set_value(101).run()
    assert param(app, "from") == "101"


def test_two_models_are_compared_side_by_side(open_app):
    app = open_app(page="side_by_side", **PAIR, mask="a1")
    no_trouble(app)
    assert app.selectbox(key="w_side_by_side_other").value == "tiny-uncased"
    assert len(app.dataframe) == 1 and len(app.table) == 1
    text = app.table[0].value.to_string()
    for row in ("Layers × heads", "Parameters", "Weights in memory", "Time for this text"):
        assert row in text
    assert any("bert-base-uncased" in button.label for button in app.button)


def test_downloads_are_not_offered_where_they_are_not_allowed(open_app, explorer_home, tmp_path, monkeypatch):
    from ui.session import state

    text = (explorer_home / "explorer.toml").read_text().replace("warm = false", "warm = false\ndownload = false")
    (tmp_path / "closed.toml").write_text(text)
    monkeypatch.setenv("BERT_TF_EXPLORER", str(tmp_path / "closed.toml"))
    state.limits.clear()
    for page in ("side_by_side", "models"):
        app = open_app(page=page)
        no_trouble(app)
        assert not [button for button in app.button if "Get " in button.label]


def test_two_visitors_do_not_see_each_others_texts(open_app):
    first = open_app(page="all_heads", a="A secret of the first visitor.")
    second = open_app(page="all_heads")
    assert "secret" in str(component(first, "chips"))
    assert "secret" not in str(component(second, "chips")) and "secret" not in str(second.session_state)


def _runtime_error(*_, **__):
    raise RuntimeError("inner detail")


@pytest.mark.parametrize("place", ["session.model_store.SharedModel.encode", "shell.sidebar.draw"])
@pytest.mark.parametrize("broken", [_runtime_error, lambda *_, **__: int("inner detail")])
def test_a_fault_of_the_program_is_a_sentence_and_logged_and_not_a_trace(open_app, monkeypatch, caplog, place, broken):
    monkeypatch.setattr(f"ui.{place}", broken)
    app = open_app()
    assert "Something went wrong" in page_text(app) and "inner detail" not in page_text(app) and not app.exception
    assert any("inner detail" in str(record.exc_info) for record in caplog.records)


def test_a_folder_that_cannot_be_read_is_told_on_the_models_page_alone(open_app, monkeypatch, explorer_home, tmp_path):
    from ui.session import model_store, state

    for name in ("tiny-cased", "tiny-bad", "My [BERT]"):
        shutil.copytree(explorer_home / "tiny-cased", tmp_path / name)
    (tmp_path / "tiny-bad" / "config.json").write_text('{"hidden_act": ["gelu"]}')
    (tmp_path / "explorer.toml").write_text('[models]\ndefault = "tiny-cased"\nwarm = false\n')
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    monkeypatch.setenv("BERT_TF_EXPLORER", str(tmp_path / "explorer.toml"))
    state.limits.clear()
    model_store.catalogue.clear()
    app = open_app(page="models")
    no_trouble(app)
    assert any("hidden" in warning.value for warning in app.warning) and any(
        "rename" in one.value for one in app.warning
    )
    assert "My \\[BERT\\]" in [header.value for header in app.header]
    assert not {"tiny-bad", "My [BERT]"} & set(app.selectbox(key="w_model").options)


def test_out_of_the_box_the_embedded_model_answers(open_app, monkeypatch, tmp_path):
    from ui.session import model_store, state

    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    monkeypatch.delenv("BERT_TF_EXPLORER")
    monkeypatch.setattr(model_store.SharedModel, "warm", lambda self: None)
    state.limits.clear()
    model_store.catalogue.clear()
    app = open_app(a="Shanghai is a city in China.", mask="a5")
    no_trouble(app)
    assert app.selectbox(key="w_model").value == "bert-base-cased-embedded"
    assert "China" in [one["text"] for one in component(app, "bars")["cards"][0]["predictions"]]


def test_an_edit_keeps_the_masks_of_the_words_that_it_keeps(open_app):
    app = open_app(a="The bunny ate the carrot.", mask="a1,a4")
    app.text_area(key="w_text_a").set_value("Look , the bunny ate a turnip.").run()
    assert param(app, "mask") == "a3"


def test_undo_and_redo_go_back_and_forth_over_texts_and_masks(open_app):
    app = open_app(a="The bunny ate the carrot.", mask="a1")
    assert control(app, "undo")["disabled"] and control(app, "redo")["disabled"]
    app.text_area(key="w_text_a").set_value("It was good.").run()
    use(app, "undo")
    assert (param(app, "a"), param(app, "mask")) == ("The bunny ate the carrot.", "a1")
    use(app, "redo")
    assert (param(app, "a"), param(app, "mask")) == ("It was good.", None)
    use(app, "undo")
    app.text_area(key="w_text_b").set_value("So it was.").run()
    assert control(app, "redo")["disabled"]  # a new act takes the place of what was undone


@pytest.mark.parametrize("page", TEXT_PAGES_WITHOUT_CHIPS)
def test_a_page_without_chips_has_undo_beside_its_texts(open_app, page):
    app = open_app(page=page, a="The bunny ate the carrot.", **{"layer_similarity.source": "view"})
    app.text_area(key="w_text_a").set_value("It was good.").run()
    use(app, "undo")
    assert app.text_area(key="w_text_a").value == param(app, "a") == "The bunny ate the carrot."
    use(app, "redo")
    assert param(app, "a") == "It was good."


@pytest.mark.parametrize("page", ("predict", "saliency", "walk_through"))
def test_a_cleared_text_can_be_brought_back(open_app, page):
    app = open_app(page=page, a="The bunny ate the carrot.", mask="a1")
    app.text_area(key="w_text_a").set_value("").run()
    use(app, "undo")
    assert (param(app, "a"), param(app, "mask")) == ("The bunny ate the carrot.", "a1")


def test_the_controls_of_predict_change_the_view(open_app):
    app = open_app(**PAIR, mask="a1,a2")
    assert control(app, "top_k")["options"] == ["Top 3", "Top 5", "Top 10", "Top 20"]
    use(app, "top_k", 2)
    assert param(app, "top") == "10" and len(component(app, "bars")["cards"][0]["predictions"]) == 10
    use(app, "fill", 1)
    assert param(app, "fill") == "joint" and component(app, "bars")["cards"][0]["note"] == "filled 1st"
    use(app, "layer", 2)
    use(app, "head", 2)
    assert (param(app, "layer"), param(app, "head")) == ("3", "2")
    use(app, "head", 0)
    assert param(app, "predict.mean") == "1" and {head["layer"] for head in component(app, "lines")["framed"]} == {2}
    use(app, "whole", False)
    assert param(app, "words") == "0" and not control(app, "whole")["on"]
    use(app, "all_heads")
    assert (param(app, "page"), param(app, "layer")) == ("all_heads", "3")
    no_trouble(app)


@pytest.mark.parametrize(
    ("name", "value"), [("layer", 3), ("layer", -1), ("layer", "1"), ("layer", True), ("whole", 0), ("whole", None)]
)
def test_a_value_that_no_control_offers_changes_nothing(open_app, name, value):
    app = open_app(**PAIR, mask="a1", layer="3", head="3")
    before = dict(app.query_params)
    use(app, name, value)
    assert dict(app.query_params) == before
    no_trouble(app)


def test_a_button_that_is_disabled_does_nothing(open_app):
    app = open_app(**PAIR, mask="a1")
    use(app, "redo")
    assert param(app, "mask") == "a1"
    no_trouble(app)


def test_one_mask_has_no_order_of_filling(open_app):
    assert control(open_app(**PAIR, mask="a0"), "fill") is None


def test_another_b_is_the_bunny_first_and_then_any_example(open_app):
    app = open_app()
    use(app, "another_b")
    assert "bunny" in param(app, "b") and param(app, "a") == FIRST.a
    # A word of text B was hidden: so is one of the new text, and it is one token of the vocabulary.
    assert param(app, "mask") == "b2" and [card["title"] for card in component(app, "bars")["cards"]] == ["ate"]
    seen = {param(app, "b")}
    for _ in range(4):
        before = param(app, "b")
        use(app, "another_b")
        assert param(app, "b") not in (before, FIRST.a, "")
        seen.add(param(app, "b"))
    assert len(seen) > 1
    no_trouble(app)


def test_one_switch_shows_the_same_three_things_of_a_second_model(open_app):
    app = open_app(**PAIR, mask="a1")
    assert len(components(app, "gauge")) == len(components(app, "lines")) == len(components(app, "bars")) == 1
    app.toggle(key="w_predict_compare").set_value(True).run()
    no_trouble(app)
    assert len(components(app, "gauge")) == len(components(app, "lines")) == len(components(app, "bars")) == 2
    assert param(app, "predict.compare") == "1" and param(app, "with") not in (None, param(app, "model"))
    app.toggle(key="w_predict_compare").set_value(False).run()
    assert len(components(app, "gauge")) == 1


def test_a_view_without_texts_opens_without_texts_again(open_app):
    app = open_app(page="all_heads")
    assert app.text_area(key="w_text_a").value  # a first visit begins with an example
    for name in "ab":
        app.text_area(key=f"w_text_{name}").set_value("").run()
    again = open_app(**{key: param(app, key) for key in app.query_params})
    assert [again.text_area(key=f"w_text_{name}").value for name in "ab"] == ["", ""]
    assert "Text A is empty" in page_text(again)
