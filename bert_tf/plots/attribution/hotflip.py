"""The effect of replaced words on a prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from bert_tf.plots.ranked_bars import ranked_bars
from bert_tf.plots.theme import CATEGORIES, LEGEND_ABOVE, apply_theme

if TYPE_CHECKING:
    from bert_tf.explain.attribution.hotflip import HotFlip

_LONGEST_LIST = 15


def flip_bars(hotflip: HotFlip, dark: bool = False) -> go.Figure:
    """The change of the target's log-probability by each flip that was tried, the strongest first: as the model reads
    it, and as the gradient estimates it.

    Args:
        hotflip: HotFlip.
        dark: bool. Whether the page is dark.
    """
    flips = hotflip.tried[:_LONGEST_LIST]
    names = [f"{flip.word.text} → {flip.new}" for flip in flips]
    figure = ranked_bars(names, [flip.change for flip in flips], "change of the log-probability, nats", dark)
    (measured,) = figure.data
    hover = "%{y}: %{x:.4f}<extra>%{fullData.name}</extra>"
    measured.update(
        name="read by the model", marker_color=CATEGORIES[4] if dark else CATEGORIES[0], hovertemplate=hover
    )
    estimated = go.Bar(
        x=[flip.estimate for flip in flips],
        y=measured.y,
        orientation="h",
        name="by the gradient",
        marker_color=CATEGORIES[1],
        hovertemplate=hover,
    )
    figure.add_trace(estimated)
    figure.layout.legend = {**LEGEND_ABOVE, "traceorder": "normal"}
    figure.layout.showlegend, figure.layout.barmode = True, "group"
    return apply_theme(figure, dark, height=130 + 32 * len(measured.y))
