"""How well a classifier tells one class from the rest, at every threshold of its probability.

Computed by scikit-learn. Sources: Fawcett 2006, "An introduction to ROC analysis"; Davis and Goadrich 2006, "The
relationship between precision-recall and ROC curves". Dimension legend: W rows, N thresholds.
"""

from dataclasses import dataclass
from typing import Optional

import numpy as np

from bert_tf.errors import InputError
from bert_tf.explain.attribution.target import classifier_settings
from bert_tf.explain.datasets.row_predictions import compared
from bert_tf.results import Result, frame


@dataclass(frozen=True)
class ThresholdMetrics:
    """Taking for a class all rows of at least some probability of it.

    Attributes:
        threshold: that probability.
        true_positives, false_positives, false_negatives, true_negatives: how many rows.
    """

    threshold: float
    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def precision(self) -> Optional[float]:
        """The share of what was taken that has the class; None where nothing was taken."""
        taken = self.true_positives + self.false_positives
        return self.true_positives / taken if taken else None

    @property
    def recall(self) -> float:
        """The share of what has the class that was taken."""
        return self.true_positives / (self.true_positives + self.false_negatives)

    @property
    def false_positive_rate(self) -> float:
        """The share of what lacks the class that was taken."""
        return self.false_positives / (self.false_positives + self.true_negatives)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall, 0 where nothing was taken."""
        twice = 2 * self.true_positives
        return twice / (twice + self.false_positives + self.false_negatives)


_PLOTS = "bert_tf.plots.datasets.class_curves"


@dataclass(frozen=True, eq=False)
class ClassCurve(
    Result,
    figures={"precision-and-recall": f"{_PLOTS}:precision_over_recall", "roc": f"{_PLOTS}:roc"},
):
    """One class against the rest.

    Attributes:
        label: the class.
        probabilities: float64 [W], of the class. is_positive: bool [W], whether the row has it by the file.
        thresholds: float64 [N], the probabilities that there are, ascending.
        precision, recall, false_positive_rate: float64 [N], as of the `ThresholdMetrics` at each threshold.
        average_precision: the mean precision over the steps of recall. auc: the area under the ROC curve.
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
    def f1(self):
        """float64 [N]."""
        return 2 * self.precision * self.recall / np.maximum(self.precision + self.recall, 1e-12)

    def to_dict(self):
        """The fields as plain JSON values, and "best", the threshold of the highest F1."""
        return {**super().to_dict(), "best": self.best}

    def to_frame(self):
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
    def best(self):
        """The threshold of the highest F1, of several the highest of them."""
        return float(self.thresholds[np.flatnonzero(self.f1 >= self.f1.max() - 1e-12)[-1]])

    def at(self, threshold):
        """The `ThresholdMetrics` at a threshold."""
        taken = self.probabilities >= threshold
        counts = (
            taken & self.is_positive,
            taken & ~self.is_positive,
            ~taken & self.is_positive,
            ~taken & ~self.is_positive,
        )
        return ThresholdMetrics(float(threshold), *(int(one.sum()) for one in counts))


def curve_labels(bert, results):
    """The classes that `class_curve` takes, in the task's order: those that some of the compared rows have and some
    lack."""
    settings = classifier_settings(bert)
    if settings is None or settings.regression:
        return ()
    found, _ = compared(settings, results)
    counts = {label: sum(label in _classes(target) for _, target in found) for label in settings.labels}
    return tuple(label for label, count in counts.items() if 0 < count < len(found))


def class_curve(bert, results, label=None):
    """How well one class is told from the rest.

    Args:
        bert: the model that was asked. results: `RowResult`s with classes asked for. label: one of `curve_labels`; None
            for the last of them, which of two is the one that a "yes" means.
    Returns:
        `ClassCurve` of the rows whose label the model knows.
    Raises:
        InputError: the model has no classes, or none of that name, or all of the rows have it, or none.
    """
    check_class(bert, label)
    labels = curve_labels(bert, results)
    if label not in labels and (label is not None or not labels):
        which = "it" if label is None else repr(label)
        raise InputError(
            f"A curve takes labelled rows that have a class and rows that lack it; {which:.40} has not both."
        )
    label = labels[-1] if label is None else label
    found, _ = compared(classifier_settings(bert), results)
    probabilities = np.array([one.task_prediction["probabilities"][label] for one, _ in found], np.float64)
    is_positive = np.array([label in _classes(target) for _, target in found])
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


def check_class(bert, label):
    """Raises InputError where a model has no classes, or none of that name (None: whichever)."""
    settings = classifier_settings(bert)
    if settings is None or settings.regression:
        raise InputError(f"{bert.name} was not fine-tuned to classify texts; it has no classes.")
    if label is not None and label not in settings.labels:
        raise InputError(f"{bert.name} has no class {label!r:.40}; it has {', '.join(settings.labels):.120}.")


def _classes(target):
    """The classes of a target of `compared`."""
    return (target,) if isinstance(target, str) else target
