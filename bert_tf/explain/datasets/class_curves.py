"""Precision, recall and ROC of one class against the rest, at every threshold of its probability.

Computed by scikit-learn. Sources: Fawcett 2006, "An introduction to ROC analysis"; Davis and Goadrich 2006, "The
relationship between precision-recall and ROC curves". Dimension legend: W rows, N thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from bert_tf.errors import InputError
from bert_tf.explain.attribution.target import classifier_settings
from bert_tf.explain.datasets.row_predictions import compared
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas

    from bert_tf.explain.datasets.row_predictions import RowResult
    from bert_tf.inference.bert import Bert


@dataclass(frozen=True)
class ThresholdMetrics:
    """The metrics of a class when every row with at least a threshold probability is predicted positive.

    Attributes:
        threshold: float. The probability.
        true_positives, false_positives, false_negatives, true_negatives: int. Numbers of rows.
    """

    threshold: float
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def precision(self) -> Optional[float]:
        """True positives over predicted positives; None without predicted positives."""
        predicted = self.true_positives + self.false_positives
        return self.true_positives / predicted if predicted else None

    @property
    def recall(self) -> float:
        """True positives over all rows that have the class."""
        return self.true_positives / (self.true_positives + self.false_negatives)

    @property
    def false_positive_rate(self) -> float:
        """False positives over all rows that lack the class."""
        return self.false_positives / (self.false_positives + self.true_negatives)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 without predicted positives."""
        twice = 2 * self.true_positives
        return twice / (twice + self.false_positives + self.false_negatives)


_PLOTS = "bert_tf.plots.datasets.class_curves"


@dataclass(frozen=True, eq=False)
class ClassCurve(
    Result,
    figures={"precision-and-recall": f"{_PLOTS}:precision_over_recall", "roc": f"{_PLOTS}:roc"},
):
    """The curves of one class against the rest.

    Attributes:
        label: str. The class.
        probabilities: float64 [W]. The probability of the class in each row.
        is_positive: bool [W]. Whether the file labels the row with the class.
        thresholds: float64 [N]. The distinct probabilities, ascending.
        precision, recall, false_positive_rate: float64 [N]. As in the `ThresholdMetrics` at each threshold.
        average_precision: float. The mean precision over the steps of recall.
        auc: float. The area under the ROC curve.
    """

    label: str
    probabilities: np.ndarray
    is_positive: np.ndarray
    thresholds: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    false_positive_rate: np.ndarray
    average_precision: float
    auc: float

    @property
    def f1(self) -> np.ndarray:
        """The F1 at each threshold, float64 [N]."""
        return 2 * self.precision * self.recall / np.maximum(self.precision + self.recall, 1e-12)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values, and "best", the threshold with the highest F1."""
        return {**super().to_dict(), "best": self.best}

    def to_frame(self) -> pandas.DataFrame:
        """A row for each threshold."""
        return frame(
            {
                "threshold": self.thresholds,
                "precision": self.precision,
                "recall": self.recall,
                "f1": self.f1,
                "false_positive_rate": self.false_positive_rate,
            }
        )

    @property
    def best(self) -> float:
        """The threshold with the highest F1; the highest of several."""
        return float(self.thresholds[np.flatnonzero(self.f1 >= self.f1.max() - 1e-12)[-1]])

    def at(self, threshold: float) -> ThresholdMetrics:
        """The `ThresholdMetrics` at a threshold."""
        predicted = self.probabilities >= threshold
        cells = (
            predicted & self.is_positive,
            predicted & ~self.is_positive,
            ~predicted & self.is_positive,
            ~predicted & ~self.is_positive,
        )
        return ThresholdMetrics(float(threshold), *(int(cell.sum()) for cell in cells))


def curve_labels(bert: Bert, results: Sequence[RowResult]) -> tuple[str, ...]:
    """The classes that `class_curve` accepts, in the task's order: some labelled rows have the class and some lack it.

    Args:
        bert: `Bert`. The model that made the results.
        results: sequence of `RowResult`.
    """
    settings = classifier_settings(bert)
    if settings is None or settings.regression:
        return ()
    labelled, _ = compared(settings, results)
    counts = {label: sum(label in _classes(target) for _, target in labelled) for label in settings.labels}
    return tuple(label for label, count in counts.items() if 0 < count < len(labelled))


def class_curve(bert: Bert, results: Sequence[RowResult], label: str | None = None) -> ClassCurve:
    """The precision, recall and ROC curves of one class against the rest.

    Args:
        bert: `Bert`. The model that made the results.
        results: sequence of `RowResult` with task predictions.
        label: str or None. One of `curve_labels`; None for the last, of two classes usually the positive one.
    Returns:
        `ClassCurve` of the rows whose label the model has.
    Raises:
        InputError: the model has no classes or none of that name, or all labelled rows have the class, or none has it.
    """
    check_class(bert, label)
    labels = curve_labels(bert, results)
    if label not in labels and (label is not None or not labels):
        subject = "the file" if label is None else repr(label)
        raise InputError(f"A curve needs labelled rows with a class and rows without it; {subject:.40} has not both.")
    label = labels[-1] if label is None else label
    labelled, _ = compared(classifier_settings(bert), results)
    predictions = [result.task_prediction or {} for result, _ in labelled]
    probabilities = np.array([prediction["probabilities"][label] for prediction in predictions], np.float64)
    is_positive = np.array([label in _classes(target) for _, target in labelled])
    from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

    precision, recall, thresholds = precision_recall_curve(is_positive, probabilities)
    false_positives, _, _ = roc_curve(is_positive, probabilities, drop_intermediate=False)
    return ClassCurve(
        label=label,
        probabilities=probabilities,
        is_positive=is_positive,
        thresholds=thresholds,
        precision=precision[:-1],
        recall=recall[:-1],
        false_positive_rate=false_positives[:0:-1],
        average_precision=float(average_precision_score(is_positive, probabilities)),
        auc=float(roc_auc_score(is_positive, probabilities)),
    )


def check_class(bert: Bert, label: str | None) -> None:
    """Raise InputError if a model has no classes, or no class `label` (None: any)."""
    settings = classifier_settings(bert)
    if settings is None or settings.regression:
        raise InputError(f"{bert.name} was not fine-tuned to classify texts; it has no classes.")
    if label is not None and label not in settings.labels:
        raise InputError(f"{bert.name} has no class {label!r:.40}; it has {', '.join(settings.labels):.120}.")


def _classes(target):
    """The classes of a target that `compared` returns."""
    return (target,) if isinstance(target, str) else target
