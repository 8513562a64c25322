"""The confusion matrix of a classifier on the labelled rows of a file.

Dimension legend: K classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.results import Result, frame, with_named

if TYPE_CHECKING:
    import pandas

    from bert_tf.explain.datasets.row_predictions import ClassSummary


@dataclass(frozen=True, eq=False)
class ConfusionMatrix(Result, figures={"confusion": "bert_tf.plots.datasets.confusion:confusion"}):
    """How often each true class was predicted as each class.

    Attributes:
        labels: tuple of str. The K classes.
        counts: int array [K, K]. Rows: the true class, columns: the predicted class.
        scores: dict metric -> float, as in `ClassSummary`.
    """

    labels: tuple
    counts: np.ndarray
    scores: dict

    @classmethod
    def of(cls, classes: ClassSummary) -> ConfusionMatrix:
        """The matrix of a `ClassSummary` that has one."""
        assert classes.confusion is not None
        labels, counts = classes.confusion
        return cls(tuple(labels), np.array(counts), classes.scores)

    def to_frame(self) -> pandas.DataFrame:
        """A row for each true class, a column for each predicted class."""
        return frame(with_named({"true_label": self.labels}, zip(self.labels, self.counts.T), "class"))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The labels and the counts."""
        return {"labels": np.array(self.labels), "counts": self.counts}
