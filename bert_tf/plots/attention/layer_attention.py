"""Attention between tokens as a map for each layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.panels import pooled, token_axes, trace_slider, value_map
from bert_tf.plots.theme import apply_theme

if TYPE_CHECKING:
    from bert_tf.explain.attention.layer_attention import LayerAttention


def layer_maps(attention: LayerAttention, dark: bool = False) -> go.Figure:
    """A map for each layer; a slider chooses the layer, at first the last one.

    Args:
        attention: LayerAttention.
        dark: bool. Whether the page is dark.
    """
    figure, layers = go.Figure(), len(attention.maps)
    for layer, values in enumerate(attention.maps):
        values, names = pooled(np.asarray(values, np.float32), attention.tokens)
        figure.add_trace(value_map(values, names, names, dark, "%{y} attends to %{x}<br>%{z:.3f}"))
        figure.data[-1].visible = layer == layers - 1
    token_axes(figure)
    steps = [str(number) for number in range(1, layers + 1)]
    figure.update_layout(sliders=[trace_slider(steps, "layer", layers - 1)])
    return apply_theme(figure, dark, int(np.clip(220 + 20 * len(names), 460, 1100)))
