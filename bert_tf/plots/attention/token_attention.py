"""One token's attention by several methods side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.theme import CATEGORIES, apply_theme, escape, unique_labels

if TYPE_CHECKING:
    from bert_tf.explain.attention.token_attention import TokenAttention


def method_bars(attention: TokenAttention, dark: bool = False) -> go.Figure:
    """A panel of bars for each method, a bar for each token.

    Args:
        attention: TokenAttention.
        dark: bool. Whether the page is dark.
    """
    names, columns = unique_labels(attention.tokens), attention.methods
    figure = make_subplots(
        rows=1,
        cols=len(columns),
        shared_yaxes=True,
        subplot_titles=[escape(name) for name in columns],
        horizontal_spacing=0.02,
    )
    for column, values in enumerate(columns.values(), 1):
        figure.add_trace(
            go.Bar(
                x=[float(value) for value in values],
                y=names,
                orientation="h",
                showlegend=False,
                marker_color=[CATEGORIES[1] if value < 0 else CATEGORIES[0] for value in values],
                hovertemplate="%{y}: %{x:.1%}<extra></extra>",
            ),
            row=1,
            col=column,
        )
    figure.update_yaxes(autorange="reversed", type="category", ticks="")
    figure.update_xaxes(tickformat=".0%", nticks=4)
    return apply_theme(figure, dark, max(260, 110 + 20 * len(names)))
