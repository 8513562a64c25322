"""Figures of the logit lens.

Dimension legend: L layers, P positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.representations.vectors import curves
from bert_tf.plots.theme import CATEGORIES, COLOUR_BAR, apply_theme, colourscale, escape

if TYPE_CHECKING:
    from bert_tf.explain.representations.logit_lens import ClassLogitLens, LogitLens

# More curves than colours cannot be distinguished.
_MOST_CLASSES = 6


def state_names(count: int) -> list[str]:
    """Short names of ``count`` hidden states: "emb." for the embeddings, then the layers from 1."""
    return ["emb.", *map(str, range(1, count))]


def lens_map(lens: LogitLens, dark: bool = False) -> go.Figure:
    """The likeliest token after every layer at every position, coloured by its probability.

    Args:
        lens: LogitLens. The predictions.
        dark: bool. Whether the page is dark.
    """
    tokens = lens.position_tokens
    names = state_names(lens.probabilities.shape[1])
    figure = go.Figure(
        go.Heatmap(
            z=lens.probabilities[:, :, 0],
            text=[[escape(best[0]) for best in row] for row in lens.predicted_tokens],
            texttemplate="%{text}",
            x=names,
            y=list(range(len(tokens))),
            customdata=[[escape(token)] * len(names) for token in tokens],
            zmin=0,
            zmax=1,
            colorscale=colourscale(dark),
            colorbar={**COLOUR_BAR, "tickformat": ".0%", "title": {"text": "probability"}},
            hovertemplate="%{customdata}, after layer %{x}<br>%{text} %{z:.1%}<extra></extra>",
        )
    )
    # Several rows may be [MASK]: the position tells them apart.
    labels = [f"{position}: {escape(token)}" for position, token in zip(lens.positions, tokens)]
    figure.layout.yaxis = dict(
        autorange="reversed", tickvals=list(range(len(tokens))), ticktext=labels, showgrid=False, ticks=""
    )
    figure.layout.xaxis = dict(title="after layer", type="category", side="top", showgrid=False, ticks="")
    return apply_theme(figure, dark, height=110 + 26 * len(tokens))


def answer_curve(lens: LogitLens, row: int = 0, dark: bool = False) -> go.Figure:
    """The rank and the probability of an answer after every layer.

    Args:
        lens: LogitLens. The predictions.
        row: int. The index of the position in ``lens.positions``.
        dark: bool. Whether the page is dark.
    """
    names = state_names(lens.probabilities.shape[1])
    ranks, probabilities = lens.answer_ranks[row], lens.answer_probabilities[row]
    ticks = [1, 2, 5, 10, 20, 50, 100] if ranks.max() <= 100 else [10**power for power in range(6)]
    rank_colour = CATEGORIES[4] if dark else CATEGORIES[0]
    panels = [
        ("", ranks, rank_colour, "circle", "rank %{y:,}"),
        ("2", probabilities, CATEGORIES[1], "diamond", "%{y:.2%}"),
    ]
    figure = go.Figure(
        [
            go.Scatter(
                x=names,
                y=values.tolist(),
                xaxis=f"x{panel}",
                yaxis=f"y{panel}",
                mode="lines+markers",
                showlegend=False,
                line={"color": colour},
                marker={"symbol": symbol, "size": 7},
                hovertemplate=f"after layer %{{x}}: {value_format}<extra></extra>",
            )
            for panel, values, colour, symbol, value_format in panels
        ],
        {
            "xaxis": {"type": "category", "matches": "x2", "anchor": "y", "showticklabels": False},
            "xaxis2": {"type": "category", "anchor": "y2", "title": {"text": "after layer"}},
            "yaxis": {
                "title": {"text": "rank"},
                "type": "log",
                "autorange": "reversed",
                "tickvals": ticks,
                "ticktext": [f"{tick:,}" for tick in ticks],
                "domain": [0.49, 1.0],
                "anchor": "x",
            },
            "yaxis2": {
                "title": {"text": "probability"},
                "range": [0, 1.05],
                "tickformat": ".0%",
                "domain": [0.0, 0.41],
                "anchor": "x2",
            },
        },
    )
    return apply_theme(figure, dark, height=340)


def class_curves(lens: ClassLogitLens, dark: bool = False) -> go.Figure:
    """The probability of each class, or the value of a regression, after every layer.

    Of more than six classes it shows the six with the highest probability after any layer.

    Args:
        lens: ClassLogitLens. The predictions.
        dark: bool. Whether the page is dark.
    """
    strongest = sorted(np.argsort(-lens.values.max(axis=0), kind="stable")[:_MOST_CLASSES])
    series = {lens.labels[index]: lens.values[:, index] for index in strongest}
    unit = "score" if lens.regression else "probability"
    return curves(series, state_names(len(lens.values)), "after layer", unit, dark, percent=not lens.regression)
