"""Bars ranked by their size: words, heads, layers or rows, the strongest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.theme import CATEGORIES, apply_theme, escape

if TYPE_CHECKING:
    pass


#: The number of parts in a figure of the strongest parts.
LONGEST_LIST = 15


def ranked_bars(names: Sequence[str], values: Sequence[float] | np.ndarray, unit: str, dark: bool = False) -> go.Figure:
    """Named effects as horizontal bars, in the given order.

    Args:
        names: sequence of str. The name of each bar.
        values: sequence of float. Bars to the right are blue, bars to the left orange.
        unit: str. The unit of the numbers, for the axis.
        dark: bool. Whether the page is dark.
    """
    # Plotly draws equal names on one line: zero-width spaces make them different.
    labels = [escape(name) + "\u200b" * names[:index].count(name) for index, name in enumerate(names)]
    blue = CATEGORIES[4] if dark else CATEGORIES[0]
    figure = go.Figure(
        go.Bar(
            x=[float(value) for value in values],
            y=labels,
            orientation="h",
            marker_color=[blue if value >= 0 else CATEGORIES[1] for value in values],
            hovertemplate="%{y}: %{x:.4f}<extra></extra>",
        )
    )
    figure.layout.yaxis = dict(autorange="reversed", type="category", ticks="", showgrid=False)
    # A long title is wider than a narrow figure.
    figure.layout.xaxis = dict(title=unit.replace(", ", ",<br>") if len(unit) > 40 else unit, zeroline=True)
    return apply_theme(figure, dark, height=90 + 22 * len(labels))
