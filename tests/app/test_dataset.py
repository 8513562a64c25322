"""Whole files: the data page and the agreement of two models, compared with the library's numbers."""

import dataclasses
import urllib.parse

import numpy as np
import pytest

import bert_tf
from bert_tf.explain import agreement, layer_similarity, read_rows, score_rows, summarise_rows
from tests.app.page_reading import (
    PATIENCE,
    column,
    near,
    offered,
    page_text,
    param,
    run_until_done,
)
from tests.app.test_representation_pages import array, figure
from ui.shell.limits import ROOT
from ui.shell.open_row import row_view
from ui.shell.view import MaskPosition, View
from ui.widgets.file_input import SAMPLES


@pytest.fixture(scope="module")
def cased(explorer_home):
    return bert_tf.load(explorer_home / "tiny-cased")


@pytest.fixture(scope="module")
def uncased(explorer_home):
    return bert_tf.load(explorer_home / "tiny-uncased")


def sample(name):
    kind = {"txt": "text", "csv": "table", "jsonl": "jsonl"}[name.rpartition(".")[2]]
    return read_rows((ROOT / "assets" / "samples" / name).read_bytes(), kind)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_are_read_without_a_problem(name):
    actual = sample(name)
    assert not actual.problems and 10 <= len(actual.rows) <= 40
    assert name != "pairs.jsonl" or all(row.text_b for row in actual.rows)
    assert name != "facts.csv" or all("[MASK]" in row.text_a for row in actual.rows)


def test_a_sample_is_asked_at_once_and_its_numbers_are_the_librarys(open_app, cased):
    app = run_until_done(open_app(page="dataset", top="3", **{"dataset.hide": "last"}))
    actual = score_rows(cased, sample("sentences.txt").rows, ("masks",), "last", 3)
    table = app.dataframe[0].value
    assert [*table.columns[:6]] == ["row", "hidden", "prediction", "share", "rank", "a"]
    assert list(table["prediction"]) == [one.masks[0].predictions[0].token for one in actual]
    assert list(table["rank"]) == [one.masks[0].original_rank for one in actual]
    summary = summarise_rows(actual)
    assert app.metric[0].value == f"{100 * summary.first:.1f}%"
    assert "problem" not in table and "next" not in table


def test_pairs_get_their_next_sentence_scores(open_app, cased):
    app = run_until_done(open_app(page="dataset", **{"dataset.file": "pairs.jsonl", "dataset.ask": "next"}))
    actual = score_rows(cased, sample("pairs.jsonl").rows, ("next",), "given")
    assert list(app.dataframe[0].value["next"]) == pytest.approx([100 * one.is_next for one in actual], abs=1e-2)
    assert "hidden" not in app.dataframe[0].value


def test_perplexity_begins_when_asked_for_and_can_be_filtered(open_app, cased):
    app = open_app(page="dataset", **{"dataset.file": "pairs.jsonl", "dataset.ask": "perplexity"})
    assert not app.dataframe and "one forward pass for each token" in page_text(app)
    app.button(key="w_dataset_run").click().run()
    app = run_until_done(app)
    table = app.dataframe[0].value
    wanted = score_rows(cased, sample("pairs.jsonl").rows[:1], ("perplexity",))[0]
    assert table["perplexity"][0] == pytest.approx(wanted.perplexity, rel=1e-3)
    app.text_input(key="w_dataset_words").set_value("VOLCANO").run()
    assert len(run_until_done(app).dataframe[0].value) == 2 and param(app, "dataset.words") == "VOLCANO"
    app.text_input(key="w_dataset_words").set_value("nowhere to be found").run()
    assert "No row is left" in page_text(app)


def test_columns_of_a_table_can_be_chosen(open_app):
    app = run_until_done(
        open_app(page="dataset", **{"dataset.file": "facts.csv", "dataset.first": "answer", "dataset.hide": "last"})
    )
    assert list(app.dataframe[0].value["a"][:2]) == ["Paris", "Rome"]
    app = run_until_done(open_app(page="dataset", **{"dataset.file": "facts.csv", "dataset.first": "no such"}))
    assert "[MASK]" in app.dataframe[0].value["a"][0]


def test_nothing_chosen_and_nothing_given_say_what_to_do(open_app):
    app = run_until_done(open_app(page="dataset", **{"dataset.ask": "none"}))
    assert "Choose at least one kind of prediction" in page_text(app)
    app = run_until_done(open_app(page="dataset", **{"dataset.file": "upload"}))
    assert "Choose a file" in page_text(app)
    run_until_done(open_app(page="dataset", **{"dataset.file": "zzz", "dataset.hide": "q", "dataset.show": "q"}))


def test_a_row_opens_with_its_words_hidden():
    (row,) = read_rows("one two\tthree").rows
    actual = row_view(View(a="x", start=5), row, (("a", 1, -1), ("b", 0, 2)))
    assert (actual.a, actual.b, actual.start) == ("one two", "three", 0)
    assert actual.masks == (MaskPosition("a", 1), MaskPosition("b", 0, 2))


def test_two_models_agree_as_far_as_the_library_says(open_app, cased, uncased):
    app = run_until_done(open_app(page="agreement", **{"agreement.file": "pairs.jsonl"}))
    actual = agreement(cased, uncased, sample("pairs.jsonl").rows)
    table = app.dataframe[0].value
    assert list(table["row"]) == [one.row.number for one in actual.rows]
    assert list(table["divergence_bits"]) == pytest.approx([one.divergence for one in actual.rows], abs=1e-4)
    assert list(table["prediction_a"]) == [
        one.masks[0].predictions_a[0].token if one.masks else None for one in actual.rows
    ]
    assert app.metric[1].value == f"{actual.divergence:.3f} bits"
    assert app.metric[2].label == "Same next-sentence prediction"


def test_typed_lines_are_compared_too(open_app):
    app = open_app(page="agreement", **{"agreement.file": "typed"})
    assert "Type texts" in page_text(app)
    app.text_area(key="w_agreement_lines").set_value("The cat sat.\nThe [MASK] ran.").run()
    assert len(run_until_done(app).dataframe[0].value) == 2 and param(app, "agreement.lines").startswith("The cat")


def test_layer_likeness_is_the_librarys(open_app, cased, uncased):
    app = run_until_done(open_app(page="layer_similarity"))
    texts = [row.text_a for row in sample("sentences.txt").rows]
    wanted = layer_similarity(*([bert.trace(text) for text in texts] for bert in (cased, uncased)))
    bars = figure(app, 0)[0]
    assert wanted.shape == (4, 3)
    assert array(bars["z"]) == pytest.approx(wanted, abs=1e-3)
    assert "Over 2" in page_text(app)


def test_layer_likeness_names_a_row_that_cannot_be_read(open_app):
    lines = "The bunny ate the carrot.\n\u200b\nA dog slept in the park."
    link = {"layer_similarity.file": "typed", "layer_similarity.lines": lines, "with": "tiny-uncased"}
    app = run_until_done(open_app(page="layer_similarity", **link))
    assert not app.error and "1 row could not be read; the first, 2: Text A contains no token" in page_text(app)


def test_layer_likeness_of_the_view_and_of_a_text_that_is_too_short(open_app, cased):
    app = run_until_done(
        open_app(
            page="layer_similarity",
            a="The bunny ate the carrot.",
            **{"layer_similarity.source": "view", "with": "tiny-uncased"},
        )
    )
    assert array(figure(app, 0)[0]["z"]).shape == (4, 3) and not app.warning
    app = open_app(page="layer_similarity", a="Hello.", **{"layer_similarity.source": "view"})
    for _ in range(100):
        if app.error:
            break
        app.run()
    assert "CKA needs at least 4 words" in page_text(app) and not app.exception


def test_layer_likeness_of_a_text_that_the_models_cut_says_so(open_app):
    link = {"layer_similarity.source": "view", "with": "tiny-uncased"}
    app = open_app(page="layer_similarity", a="a " * 900, **link)
    assert [one.value for one in app.warning] == [
        f"tiny\\-{name}: the model reads 512 tokens at once: 390 tokens of text A at the end are left out."
        for name in ("cased", "uncased")
    ]


def test_a_likeness_of_zero_has_no_sign(open_app, monkeypatch):
    from bert_tf.explain.representations import layer_similarity

    monkeypatch.setattr(layer_similarity, "linear_cka", lambda *_, **__: np.full((4, 3), -0.001))
    assert "of tiny-uncased: 0.00." in page_text(run_until_done(open_app(page="layer_similarity"))).replace("\\", "")


def test_rows_open_where_the_page_has_what_it_needs(open_app, monkeypatch):
    from bert_tf.explain.datasets.text_rows import TextRow
    from ui.session import directional_models, runs, task_models
    from ui.shell.catalogue import pages

    def offered(**here):
        for module, name in (
            (task_models, "names"),
            (task_models, "pairs"),
            (runs, "snapshots"),
            (directional_models, "comparable_models"),
        ):
            monkeypatch.setattr(module, name, lambda actual=here.get(name, {}): actual)
        return [name for name, page in pages().items() if page.opens_rows and page.is_available()]

    always = offered()
    assert not set(always) & {"task_predictions", "time_lapse", "fine_tuning_changes", "directionality"}
    more = offered(names={"one": 1}, snapshots={"mini/step-0": 1})
    assert [name for name in more if name not in always] == ["task_predictions", "time_lapse"]
    more = offered(pairs={"one": "two"}, comparable_models=dict.fromkeys(directional_models.DIRECTIONS, "x"))
    assert [name for name in more if name not in always] == ["fine_tuning_changes", "directionality"]
    view = pages()["layer_similarity"].from_row(row_view(View(), TextRow(1, "one two"), ()))
    assert (view.setting("layer_similarity.source"), view.a) == ("view", "one two")
    view, target = View(settings=(("side_by_side.one", "mini/step-0"),), model="m", other="n"), pages()["side_by_side"]
    assert target.from_row(dataclasses.replace(view, page="agreement")).setting("side_by_side.one") is None
    assert target.from_row(view).setting("side_by_side.one") == "mini/step-0"


def _a_row():
    import streamlit as st

    from bert_tf.explain.datasets.text_rows import TextRow
    from ui.session import state
    from ui.shell import open_row

    state.open_view()
    open_row.open_row("w_open", TextRow(1, st.query_params["a"]), ())


@pytest.mark.parametrize("text, fits", [("猫" * 400, True), ("猫" * 450, False)])
def test_a_row_too_long_for_a_link_opens_here_alone(environment, text, fits):
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_function(_a_row, default_timeout=PATIENCE)
    app.query_params["a"] = text
    (link,) = app.run().get("link_button")
    assert link.proto.disabled is not fits and ("too long for a link" in link.proto.help) is not fits
    assert fits == (urllib.parse.quote_plus(text) in link.proto.url)
    app.button(key="w_open_go").click().run()
    assert app.session_state["_view"].a == text


def test_the_rows_of_a_file_are_saved(open_app, saved, cased):
    offered(run_until_done(open_app(page="dataset", top="3", **{"dataset.hide": "last"})), saved, ("rows",))
    masks = [one.masks[0] for one in score_rows(cased, sample("sentences.txt").rows, ("masks",), "last", 3)]
    assert column(saved["rows"], "original_rank") == [mask.original_rank for mask in masks]
    near(saved["rows"]["figures"]["Answers"].data[0].x, [mask.original_probability for mask in masks])


def test_the_rows_two_models_differ_on_are_saved(open_app, saved, cased, uncased):
    app = run_until_done(open_app(page="agreement", **{"with": "tiny-uncased", "agreement.hide": "last"}))
    offered(app, saved, ("agreement",))
    actual = agreement(cased, uncased, sample("sentences.txt").rows, "last", 5)
    near(column(saved["agreement"], "divergence_bits"), [one.divergence for one in actual.rows])


@pytest.mark.usefixtures("with_tasks")
def test_a_model_that_labels_words_is_said_to_have_a_page_of_its_own(open_app, monkeypatch):
    # As the shipped tagger, which has no pre-training heads.
    monkeypatch.setattr("bert_tf.analyses.heads_of", lambda bert: frozenset())
    app = open_app(page="dataset", model="tags")
    assert "no replaced-token head and no head of a text classifier" in app.warning[0].value
    assert any("It was fine-tuned to label every word" in note.value for note in app.info)
