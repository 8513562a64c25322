"""Figures of the factors of activations. Dimension legend: K factors, T tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.ranked_bars import ranked_bars
from bert_tf.plots.theme import COLOUR_BAR, apply_theme, colourscale, escape

if TYPE_CHECKING:
    from bert_tf.explain.representations.factors import Factors, FactorUnits

#: The most tokens that a page draws at once, and the most labels on an axis.
MAX_TOKENS = 64


def weight_map(factors: Factors, dark: bool = False) -> go.Figure:
    """The weight of each factor of a ``Factors`` at each of its tokens."""
    tokens = [factors.tokens[position] for position in factors.positions]
    return factor_map(factors.weights, tokens, dark)


def unit_bars(result: FactorUnits, dark: bool = False) -> go.Figure:
    """The weights of a ``FactorUnits``. The labels count layers and units from 1."""
    names = [f"layer {unit.layer + 1}, unit {unit.unit + 1}" for unit in result.units]
    return ranked_bars(names, [unit.weight for unit in result.units], "weight", dark)


def factor_map(
    weights: np.ndarray, tokens: Sequence[str], dark: bool = False, start: int = 0, most: int | None = None
) -> go.Figure:
    """The weight of each factor at each token.

    The colours of a factor are scaled by its greatest weight over all tokens.

    Args:
        weights: np.ndarray. float [K, T], at least 0.
        tokens: sequence of str. T tokens.
        dark: bool. Whether the page is dark.
        start: int. The first token that is drawn, from 0.
        most: int. The most tokens that are drawn; None for all.
    """
    weights = np.asarray(weights, np.float32)
    drawn = weights[:, start:][:, :most]
    places = list(range(start, start + drawn.shape[1]))
    figure = go.Figure(
        go.Heatmap(
            z=np.round(drawn / np.maximum(weights.max(axis=1, keepdims=True), 1e-9), 4),
            customdata=[
                [[escape(token), round(float(weight), 3)] for token, weight in zip(tokens[start:], line)]
                for line in drawn
            ],
            x=places,
            y=list(range(1, len(weights) + 1)),
            zmin=0,
            zmax=1,
            colorscale=colourscale(dark),
            hovertemplate="factor %{y}, %{customdata[0]}: %{customdata[1]:.2f}<extra></extra>",
            colorbar={
                **COLOUR_BAR,
                "tickvals": [0, 1],
                "ticktext": ["0", "its strongest"],
            },
            ygap=2,
        )
    )
    figure.layout.yaxis = dict(autorange="reversed", title="factor", type="category", showgrid=False, ticks="")
    labelled = places[:: -(-len(places) // MAX_TOKENS)]
    figure.layout.xaxis = dict(
        tickvals=labelled,
        ticktext=[escape(tokens[place]) for place in labelled],
        tickangle=-90,
        tickfont={"size": 11},
        showgrid=False,
        ticks="",
    )
    return apply_theme(figure, dark, height=150 + 24 * len(weights))
