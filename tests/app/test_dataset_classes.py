"""Data asked for classes: the page against the model itself and scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score

import bert_tf
from bert_tf.explain import read_rows
from tests.app.page_reading import (
    column,
    near,
    offered,
    page_text,
    param,
    run_until_done,
)
from tests.app.test_representation_pages import array, figure
from ui.shell.limits import ROOT

pytestmark = pytest.mark.usefixtures("with_tasks")

WORDS = ("the cat sat", "a dog ran", "it was good", "money in the bank", "the river ended", "she has a carrot")
LABELS = ("good", "bad", "good", "bad", "good", "odd")
FILE = "text,label\n" + "".join(f"{text},{label}\n" for text, label in zip(WORDS, LABELS))


@pytest.fixture
def uploaded(open_app):
    """A function that opens Data with a file of the visitor's."""

    def open_file(data, name="theirs.csv", **link):
        app = open_app(page="dataset", **{"dataset.file": "upload", "dataset.ask": "classes", **link})
        app.file_uploader(key="w_dataset_upload").upload(name, data.encode(), "text/csv").run()
        return run_until_done(app)

    return open_file


def predictions_of(name, task_home, texts):
    return bert_tf.load(task_home / name).task.predict(list(texts))


def test_classes_are_compared_with_the_labels_of_the_file(uploaded, task_home, saved):
    app = uploaded(FILE, model="classes")
    offered(app, saved, ("rows", "confusion", "class-curve"))
    actual = predictions_of("classes", task_home, WORDS)
    table = app.dataframe[0].value
    assert list(table["predicted"]) == [one["label"] for one in actual] and list(table["label"]) == list(LABELS)
    assert list(table["sure"]) == pytest.approx([100 * one["probability"] for one in actual], abs=0.01)
    near(column(saved["rows"], "predicted_probability"), [one["probability"] for one in actual])
    assert saved["rows"]["json"]["rows"][0]["task_prediction"]["label"] == actual[0]["label"]
    true, predicted = LABELS[:5], [one["label"] for one in actual[:5]]
    assert {one.label: one.value for one in app.metric} == {
        "Accuracy": f"{accuracy_score(true, predicted):.3f}",
        "Macro F1": f"{f1_score(true, predicted, labels=['bad', 'good'], average='macro', zero_division=0):.3f}",
    }
    counts = confusion_matrix(true, predicted, labels=["bad", "good"])
    np.testing.assert_array_equal(saved["confusion"]["npz"]["counts"], counts)
    assert [row[1:] for row in saved["confusion"]["rows"]] == [[str(one) for one in row] for row in counts.tolist()]
    np.testing.assert_allclose(array(figure(app, 0)[0]["z"]), counts / counts.sum(axis=1, keepdims=True), atol=1e-6)
    assert "1 row has a label that is none of the model's: odd" in page_text(app)


@pytest.mark.parametrize("threshold", ["-0.5", "5"])
def test_a_threshold_that_no_slider_has_is_the_default(threshold, uploaded):
    app = uploaded(FILE, model="classes", **{"dataset.threshold": threshold})
    assert not app.exception and app.slider(key="w_dataset_threshold").value == 0.5


def test_the_rows_with_a_wrong_class_can_be_picked_out(uploaded, task_home):
    app = uploaded(FILE, model="classes")
    app.button_group(key="w_dataset_show").set_value("misjudged").run()
    predicted = [one["label"] for one in predictions_of("classes", task_home, WORDS[:5])]
    wrong = [text for text, true, label in zip(WORDS, LABELS, predicted) if true != label]
    assert list(run_until_done(app).dataframe[0].value["a"]) == wrong and param(app, "dataset.show") == "misjudged"


def test_without_labels_the_classes_are_counted(open_app, task_home):
    app = run_until_done(open_app(page="dataset", model="classes", **{"dataset.ask": "classes"}))
    data = (ROOT / "assets" / "samples" / "sentences.txt").read_text("utf-8")
    predicted = [one["label"] for one in predictions_of("classes", task_home, data.splitlines())]
    assert f"{predicted[0]} {predicted.count(predicted[0])}" in page_text(app) and not app.metric
    assert "label" not in app.dataframe[0].value


def test_the_lines_classify_and_score_as_the_page(uploaded, tmp_path, monkeypatch, task_home, capsys):
    app = uploaded(FILE, model="classes")
    (tmp_path / "theirs.csv").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(app.code[0].value, names)
    rows = app.session_state["_jobs"]["dataset"].result
    assert [(one.row, one.predicted, one.is_correct) for one in names["results"]] == [
        (one.row, one.predicted, one.is_correct) for one in rows
    ]
    assert f"'accuracy': {float(app.metric[0].value):.1f}" in capsys.readouterr().out


def test_what_cannot_be_asked_is_said(open_app):
    app = run_until_done(open_app(page="dataset", model="plain"))
    assert "plain was not fine-tuned to classify" in page_text(app) and "choose classes" in page_text(app)
    app = open_app(page="dataset", model="pairs", **{"dataset.ask": "classes"})
    assert not app.dataframe and "no row here has a text B" in page_text(app)
    link = {"dataset.file": "pairs.jsonl", "dataset.ask": "classes"}
    app = run_until_done(open_app(page="dataset", model="classes", **link))
    assert "classifies single texts: in a pair it reads text A alone" in page_text(app)
    assert "problem" not in app.dataframe[0].value


def test_pairs_and_numbers_are_judged_too(open_app, uploaded, task_home):
    app = run_until_done(
        open_app(page="dataset", model="pairs", **{"dataset.file": "pairs.jsonl", "dataset.ask": "classes"})
    )
    rows = read_rows((ROOT / "assets" / "samples" / "pairs.jsonl").read_bytes(), "jsonl").rows
    actual = predictions_of("pairs", task_home, [(row.text_a, row.text_b) for row in rows])
    assert list(app.dataframe[0].value["predicted"]) == [one["label"] for one in actual]
    numbers = "".join(f"{text},{place}\n" for place, text in enumerate(WORDS))
    app = uploaded(f"text,label\n{numbers}", model="score")
    values = [one["value"] for one in predictions_of("score", task_home, WORDS)]
    assert list(app.dataframe[0].value["predicted"]) == pytest.approx(values, abs=1e-4)
    assert app.metric[0].value == f"{np.corrcoef(values, range(6))[0, 1]:.3f}" and "Undefined" not in page_text(app)


def test_a_correlation_that_is_undefined_says_why(uploaded):
    app = uploaded("text,label\n" + "".join(f"{text},1\n" for text in WORDS), model="score")
    assert {one.label: one.value for one in app.metric} == {"Pearson": "–", "Spearman": "–"}
    assert "Undefined (nan): pearson and spearman, because all targets" in page_text(app)


def test_the_map_is_of_what_the_classifier_has_read(open_app, task_home, saved):
    link = {"dataset.file": "pairs.jsonl", "dataset.ask": "classes", "dataset.look": "map"}
    app = run_until_done(open_app(page="dataset", model="classes", **link))
    judge = bert_tf.load(task_home / "classes")
    rows = read_rows((ROOT / "assets" / "samples" / "pairs.jsonl").read_bytes(), "jsonl").rows
    (name,) = [one for one in saved if one.startswith("row-map")]
    states = [judge.trace(row.text_a).hidden_states[-1].mean(axis=0) for row in rows]
    near(saved[name]["npz"]["vectors"], states, 1e-3)
    assert "A point is text A of a row" in page_text(app)
    names = {}
    exec(app.code[0].value, names)
    near(names["vectors"], states, 1e-3)


def test_a_row_opens_as_its_classifier_has_read_it(task_home):
    from ui.shell.catalogue import pages
    from ui.shell.open_row import row_view
    from ui.shell.view import View

    row = read_rows("one two").rows[0]
    view = View(model="pairs", settings=(("task_predictions.model", "classes"),))
    from_row = pages()["task_predictions"].from_row
    assert from_row(row_view(view, row, ())).setting("task_predictions.model") == "pairs"
    assert from_row(row_view(View(model="plain"), row, ())).setting("task_predictions.model") is None
