"""The sizes of several subsets of a file's rows, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.ranked_bars import ranked_bars

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.datasets.subset_comparison import SubsetComparison


def subset_sizes(comparison: SubsetComparison, dark: bool = False) -> go.Figure:
    """The number of rows of each subset as bars."""
    sizes = [subset.summary.rows for subset in comparison.subsets.values()]
    return ranked_bars(list(comparison.subsets), sizes, "rows", dark)
