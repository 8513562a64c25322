"""Factors of activations as a figure. Dimension legend: K factors, T tokens."""

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.interventions.ablation import ranked_bars
from bert_tf.plots.theme import apply_theme, colourscale, escape

#: Tokens that a page draws at once, and names that an axis has.
MAX_TOKENS = 64


def weight_map(factors, dark=False):
    """How strongly each factor of a ``Factors`` is there at each token that was looked at."""
    tokens = [factors.tokens[position] for position in factors.positions]
    return factor_map(factors.weights, tokens, dark)


def unit_bars(found, dark=False):
    """The weights of a ``FactorUnits``; layers and units are counted from 1."""
    names = [f"layer {one.layer + 1}, unit {one.unit + 1:,}" for one in found.units]
    return ranked_bars(names, [one.weight for one in found.units], "weight", dark)


def factor_map(weights, tokens, dark=False, start=0, most=None):
    """How strongly each factor is there at each token, each coloured by its own strongest of all tokens.

    Args:
        weights: float [K, T], at least 0. tokens: T texts. dark: for a dark page.
        start: the first token that is drawn, from 0. most: how many are drawn at most; None for all.
    """
    weights = np.asarray(weights, np.float32)
    shown = weights[:, start:][:, :most]
    places = list(range(start, start + shown.shape[1]))
    figure = go.Figure(
        go.Heatmap(
            z=np.round(shown / np.maximum(weights.max(axis=1, keepdims=True), 1e-9), 4),
            customdata=[
                [[escape(token), round(float(weight), 3)] for token, weight in zip(tokens[start:], line)]
                for line in shown
            ],
            x=places,
            y=list(range(1, len(weights) + 1)),
            zmin=0,
            zmax=1,
            colorscale=colourscale(dark),
            hovertemplate="factor %{y}, %{customdata[0]}: %{customdata[1]:.2f}<extra></extra>",
            colorbar={
                "thickness": 8,
                "outlinewidth": 0,
                "tickvals": [0, 1],
                "ticktext": ["0", "its strongest"],
            },
            ygap=2,
        )
    )
    figure.layout.yaxis = dict(autorange="reversed", title="factor", type="category", showgrid=False, ticks="")
    named = places[:: -(-len(places) // MAX_TOKENS)]
    figure.layout.xaxis = dict(
        tickvals=named,
        ticktext=[escape(tokens[place]) for place in named],
        tickangle=-90,
        tickfont={"size": 11},
        showgrid=False,
        ticks="",
    )
    return apply_theme(figure, dark, height=150 + 24 * len(weights))
