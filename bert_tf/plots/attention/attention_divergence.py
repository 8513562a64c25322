"""How much the attention of each head differs between two models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from bert_tf.plots.theme import COLOUR_BAR, apply_theme, colourscale

if TYPE_CHECKING:
    from bert_tf.explain.attention.attention_divergence import AttentionDivergence


def divergence_map(divergence: AttentionDivergence, dark: bool = False) -> go.Figure:
    """The divergence of each head in bits as a map, layers downwards, heads across.

    Args:
        divergence: AttentionDivergence.
        dark: bool. Whether the page is dark.
    """
    values = divergence.divergences
    layers, heads = values.shape
    figure = go.Figure(
        go.Heatmap(
            z=values,
            x=[str(head + 1) for head in range(heads)],
            y=[str(layer + 1) for layer in range(layers)],
            colorscale=colourscale(dark),
            zmin=0,
            hovertemplate="layer %{y}, head %{x}: %{z:.4f} bits<extra></extra>",
            colorbar={**COLOUR_BAR, "title": {"text": "bits"}},
            xgap=2,
            ygap=2,
        )
    )
    figure.layout.yaxis = dict(autorange="reversed", title="layer", type="category", showgrid=False, ticks="")
    figure.layout.xaxis = dict(title="head", side="top", type="category", showgrid=False, ticks="")
    return apply_theme(figure, dark, height=130 + 28 * layers)
