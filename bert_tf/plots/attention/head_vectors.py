"""One head's query and keys as strips of components.

Dimension legend: T tokens, D head size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.diverging import diverging_scale
from bert_tf.plots.theme import CATEGORIES, apply_theme, unique_labels

if TYPE_CHECKING:
    from bert_tf.explain.attention.head_vectors import NeuronView


def neuron_strips(neuron: NeuronView, dark: bool = False) -> go.Figure:
    """How the attention of one token is computed: the keys, their products with its query, the softmax.

    Args:
        neuron: NeuronView.
        dark: bool. Whether the page is dark.
    """
    keys, products = neuron.keys, neuron.keys * neuron.queries[neuron.position]
    names = unique_labels(neuron.tokens)
    figure = make_subplots(
        rows=1,
        cols=3,
        shared_yaxes=True,
        column_widths=[0.4, 0.4, 0.2],
        horizontal_spacing=0.03,
        subplot_titles=("key", "query × key", "softmax"),
    )
    for column, values in ((1, keys), (2, products)):
        most = float(np.abs(values).max(initial=1e-9))
        figure.add_trace(
            go.Heatmap(
                z=values.astype(np.float32),
                y=names,
                x=list(range(1, keys.shape[1] + 1)),
                colorscale=diverging_scale(dark),
                zmin=-most,
                zmax=most,
                showscale=False,
                hovertemplate="%{y}, component %{x}: %{z:.3f}<extra></extra>",
            ),
            row=1,
            col=column,
        )
    figure.add_trace(
        go.Bar(
            x=neuron.weights,
            y=names,
            orientation="h",
            marker_color=CATEGORIES[0],
            showlegend=False,
            customdata=["not read" if np.isnan(score) else f"sum / √d {score:.2f}" for score in neuron.scores],
            hovertemplate="%{y}: %{x:.1%}, %{customdata}<extra></extra>",
        ),
        row=1,
        col=3,
    )
    figure.update_yaxes(autorange="reversed", type="category", ticks="", showgrid=False)
    figure.update_xaxes(showgrid=False, ticks="")
    figure.update_xaxes(tickformat=".0%", row=1, col=3)
    return apply_theme(figure, dark, int(np.clip(110 + 20 * len(names), 260, 1400)))
