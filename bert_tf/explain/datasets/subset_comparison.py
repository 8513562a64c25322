"""The summaries of several subsets of a file's rows, side by side."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from bert_tf.explain.datasets.row_predictions import RowSummary
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class SubsetComparison(Result, figures={"rows": "bert_tf.plots.datasets.subset_comparison:subset_sizes"}):
    """The summaries of several subsets.

    Attributes:
        subsets: dict name -> `Subset`.
    """

    subsets: dict

    def to_frame(self) -> pandas.DataFrame:
        """A row for each subset; columns of scores or shares that no subset has are left out."""
        scores = [{} if subset.classes is None else subset.classes.scores for subset in self.subsets.values()]
        columns = {name: [score.get(name) for score in scores] for name in dict.fromkeys(sum(map(list, scores), []))}
        for name in (field.name for field in fields(RowSummary) if field.name != "rows"):
            columns[name] = [getattr(subset.summary, name) for subset in self.subsets.values()]
        columns = {name: values for name, values in columns.items() if any(value is not None for value in values)}
        counts = [subset.summary.rows for subset in self.subsets.values()]
        return frame({"subset": list(self.subsets), "rows": counts, **columns})
