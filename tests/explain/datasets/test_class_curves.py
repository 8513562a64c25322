"""One class against the rest at every threshold: counted by hand, the areas as scikit-learn has them."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from bert_tf.errors import InputError
from bert_tf.explain import class_curve, curve_labels, score_rows
from bert_tf.explain.datasets.row_predictions import RowResult
from bert_tf.explain.datasets.text_rows import TextRow
from bert_tf.plots.datasets.class_curves import precision_recall_figure, roc_figure
from tests.explain.datasets.test_dataset import FILMS
from tests.explain.test_class_target import made


def by_hand(probabilities, is_positive, threshold):
    taken = [one >= threshold for one in probabilities]
    right = sum(a and b for a, b in zip(taken, is_positive))
    others = len(is_positive) - sum(is_positive)
    return right / sum(taken), right / sum(is_positive), (sum(taken) - right) / others


def test_every_threshold_is_as_counted_by_hand():
    bert = made(pooling="mean")
    actual = score_rows(bert, FILMS, ("classes",))
    known = [one for one in actual if one.row.label in ("good", "bad", "so")]
    assert set(curve_labels(bert, actual)) == {"good", "bad", "so"}
    for label in ("good", "so"):
        curve = class_curve(bert, actual, label)
        probabilities = [one.task_prediction["probabilities"][label] for one in known]
        is_positive = [one.row.label == label for one in known]
        assert curve.thresholds.tolist() == sorted(set(probabilities)) and curve.is_positive.tolist() == is_positive
        for place, threshold in enumerate(curve.thresholds):
            wanted, at = by_hand(probabilities, is_positive, threshold), curve.at(threshold)
            messages = curve.precision[place], curve.recall[place], curve.false_positive_rate[place]
            assert messages == pytest.approx(wanted) == (at.precision, at.recall, at.false_positive_rate)
            assert curve.f1[place] == pytest.approx(at.f1)
            total = at.true_positives + at.false_positives + at.false_negatives + at.true_negatives
            assert total == len(known)
        assert curve.average_precision == pytest.approx(average_precision_score(is_positive, probabilities))
        assert curve.auc == pytest.approx(roc_auc_score(is_positive, probabilities))
        assert curve.at(curve.best).f1 == pytest.approx(curve.f1.max())
    nothing = class_curve(bert, actual).at(1.1)
    assert nothing.precision is None and (nothing.recall, nothing.f1) == (0, 0)
    assert class_curve(bert, actual).label == curve_labels(bert, actual)[-1] == bert.task.settings.labels[-1]


def test_probabilities_that_are_almost_equal_are_different_thresholds():
    bert = made(pooling="mean", labels=("bad", "good"))
    logits = [{"logits": np.array([0.0, value])} for value in (20.0, 21.0, 22.0, -20.0)]
    rows = SimpleNamespace(owner=np.arange(4), notes=[None] * 4)
    predictions = bert.task.task_type.decode(logits, rows, [None] * 4, bert.task.settings)
    results = [
        RowResult(TextRow(number, "a", label=label), task_prediction=prediction)
        for number, (label, prediction) in enumerate(zip(("bad", "good", "good", "bad"), predictions))
    ]
    curve = class_curve(bert, results, "good")
    assert len(curve.thresholds) == 4 and curve.auc == curve.average_precision == 1


def test_the_last_point_of_a_curve_is_above_all_thresholds():
    bert = made(pooling="mean")
    curve = class_curve(bert, score_rows(bert, FILMS, ("classes",)), "good")
    for draw in (precision_recall_figure, roc_figure):
        points, marked = draw(curve, curve.at(0.5)).data[:2]
        assert points.customdata[0] == f"{curve.thresholds[0]:.1%} and more" and points.customdata[-1] == "above all"
        assert len(points.customdata) == len(points.x) and list(marked.customdata) == ["50.0% and more"]


def test_several_classes_a_row_and_what_has_no_curve(tiny_bert):
    bert = made(pooling="mean", multi_label=True)
    texts = ("it was good", "a bad film", "so good", "a film")
    rows = [
        TextRow(number, text, label=label)
        for number, (text, label) in enumerate(zip(texts, ("so|good", "bad", "so", "x")))
    ]
    actual = score_rows(bert, rows, ("classes",))
    curve = class_curve(bert, actual, "so")
    assert curve.is_positive.tolist() == [True, False, True]
    np.testing.assert_allclose(curve.probabilities, [one.task_prediction["probabilities"]["so"] for one in actual[:3]])
    alone = score_rows(bert, rows[:1], ("classes",))
    assert curve_labels(bert, alone) == ()
    for results, label, sentence in (
        (alone, "so", "'so' has not both"),
        (alone, None, "the file has not both"),
        (actual, "odd", "no class 'odd'"),
    ):
        with pytest.raises(InputError, match=sentence):
            class_curve(bert, results, label)
    for other in (tiny_bert, made(pooling="mean", labels=(), regression=True)):
        assert curve_labels(other, ()) == ()
        with pytest.raises(InputError, match="it has no classes"):
            class_curve(other, ())
