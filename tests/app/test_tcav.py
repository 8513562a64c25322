"""The page about concepts: its numbers are the library's, and what cannot be asked is said."""

import time

import numpy as np
import pytest

import bert_tf
from bert_tf.explain import concept_test
from pages.explain.tcav import open_layer
from tests.app.page_reading import (
    column,
    job_runs,
    near,
    offered,
    page_text,
    param,
    run_until_done,
)
from tests.app.test_dataset import sample
from tests.app.test_representation_pages import array, figure
from ui.samples.concepts import NAMES, OTHERS, sentences

LAST = {"page": "tcav", "tcav.of": "word", "tcav.hide": "last", "tcav.file": "sentences.txt"}


def ran(app):
    names = {}
    exec(app.code[0].value, names)
    return names["result"]


def test_the_samples_are_sentences_enough_and_each_is_its_own():
    others = sentences(OTHERS)
    for name in NAMES:
        own = sentences(name)
        assert 15 <= len(set(own)) == len(own) <= 25 and 2 * len(own) <= len(others)
        assert len(set(own) & set(others)) <= 1


def test_scores_rows_files_and_lines_are_the_librarys(open_app, saved, explorer_home):
    app = run_until_done(open_app(**LAST, **{"tcav.concept": "negation", "tcav.word": "table", "tcav.layer": "2"}))
    offered(app, saved, ("concept-scores", "concept-rows-2"))
    rows, bert = sample("sentences.txt").rows, bert_tf.load(explorer_home / "tiny-cased")
    actual = concept_test(bert, rows, sentences("negation"), sentences(OTHERS), "word", "table", "last")
    np.testing.assert_allclose(ran(app).slopes, actual.slopes, atol=1e-4)
    drawn, chance = figure(app, 0)
    near(array(drawn["y"]), actual.scores.mean(axis=1), 0.02)
    near(array(chance["error_y"]["array"]), actual.random_scores.std(axis=1, ddof=1), 0.05)
    filled = [symbol == "circle" for symbol in drawn["marker"]["symbol"]]
    assert filled == actual.is_significant.tolist()
    near(array(figure(app, 1)[0]["y"]), actual.accuracies.mean(axis=1), 0.02)
    order = sorted(range(len(rows)), key=lambda one: -actual.slopes[2, one])
    near(list(app.dataframe[2].value["slope"]), actual.slopes[2, order], 1e-3)
    assert set(app.dataframe[2].value["row"]) == {row.number for row in rows}
    menu = saved["concept-scores"]
    near(column(menu, "accuracy"), actual.accuracies.mean(axis=1), 0.02)
    near(menu["npz"]["slopes"], actual.slopes, 1e-3)
    near(column(menu, "random_score"), actual.random_scores.mean(axis=1), 0.02)
    near(menu["json"]["p_values"], actual.p_values, 1e-3)
    assert len(menu["rows"]) == 4 and menu["json"]["concept"] == "negation"
    near(sorted(column(saved["concept-rows-2"], "slope")), sorted(actual.slopes[2]), 1e-3)
    assert f"After layer 2 the concept supports **table** in {100 * actual.scores[2].mean():.1f}%" in page_text(app)
    app.slider(key="w_tcav_layer").set_value(1).run()
    assert param(app, "tcav.layer") == "1" and "After layer 1 the concept" in page_text(app)


def test_the_slider_opens_on_the_last_significant_layer():
    assert open_layer(np.array([True, False, True, False])) == 2
    assert open_layer(np.array([False, False, False])) == 2


def test_own_sentences_pairs_and_what_is_missing(open_app):
    app = run_until_done(open_app(page="tcav", **{"tcav.concept": "own", "tcav.of": "next"}))
    assert "Type at least 6 sentences with the concept" in page_text(app) and not app.code
    own = [f"A {one} is here." for one in ("dog", "cat", "cow", "pig", "hen", "fox", "bee")]
    app.text_area(key="w_tcav_own").set_value("\n".join(own)).run()
    app.button_group(key="w_tcav_file").set_value("pairs.jsonl").run()
    app.button_group(key="w_tcav_follows").set_value("NotNext").run()
    actual = ran(run_until_done(app))
    assert (actual.target.label, actual.sentences, len(actual.places)) == ("NotNext", 7, 16)
    assert param(app, "tcav.own") == "\n".join(own)
    app.text_area(key="w_tcav_others").set_value("\n".join(own)).run()
    assert "Type at least 6 sentences with the concept" in page_text(app)
    app = run_until_done(open_app(**LAST, **{"tcav.word": "unbelievableness"}))
    assert "is no token of this model's vocabulary" in page_text(app).replace("\\", "") and not app.code
    # A file without pairs has no such answer: said, and not an error of the server's.
    app = open_app(page="tcav", **{"tcav.of": "next", "tcav.file": "sentences.txt"})
    while job_runs(app):
        time.sleep(0.02)
    app.run()
    assert "No row is a pair of texts" in page_text(app)


@pytest.mark.usefixtures("with_tasks")
def test_classes_and_values_are_asked_about(open_app):
    app = run_until_done(open_app(page="tcav", model="classes"))
    assert app.selectbox(key="w_tcav_label").value == "good"
    actual = ran(app)
    assert actual.target.label == "good" and actual.target.is_class
    app.selectbox(key="w_tcav_label").set_value("bad").run()
    bad = ran(run_until_done(app))
    np.testing.assert_allclose(bad.slopes, -actual.slopes, atol=1e-4)
    app = run_until_done(open_app(page="tcav", model="score"))
    assert "supports the value in" in page_text(app) and "Slope, of the value" in str(app.dataframe[2].proto.columns)


def test_one_label_alone_is_asked_about(open_app, explorer_home):
    link = {"page": "tcav", "tcav.of": "word", "tcav.word": "table", "tcav.hide": "last"}
    app = run_until_done(open_app(**link))
    choice = app.selectbox(key="w_tcav_labelled")
    assert choice.options == ["All", "Those labelled “negative”", "Those labelled “positive”"]
    choice.set_value("negative").run()
    app = run_until_done(app)
    rows = [row for row in sample("reviews.csv").rows if row.label == "negative"]
    actual = concept_test(
        bert_tf.load(explorer_home / "tiny-cased"),
        rows,
        sentences("positive"),
        sentences(OTHERS),
        "word",
        "table",
        "last",
    )
    job_result = app.session_state["_jobs"]["tcav"].result
    np.testing.assert_allclose(job_result.slopes, actual.slopes, atol=1e-4)
    np.testing.assert_allclose(ran(app).slopes, actual.slopes, atol=1e-4)
    assert set(app.dataframe[2].value["row"]) == {row.number for row in rows}
    assert param(app, "tcav.labelled") == "negative" and "left out" not in page_text(app)
    app = run_until_done(open_app(**link, **{"tcav.labelled": "none", "tcav.file": "sentences.txt"}))
    assert not [one for one in app.selectbox if one.key == "w_tcav_labelled"] and app.code
