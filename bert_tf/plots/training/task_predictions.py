"""Figures of fine-tuned models' predictions: the probabilities of classes and of an answer's start and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.numbers import percent
from bert_tf.plots.theme import CATEGORIES, apply_theme, escape, head_colours

if TYPE_CHECKING:
    from collections.abc import Sequence


_MAX_NAMES = 24  # tokens named below the curves


def probabilities(names: Sequence[str], values: Sequence[float] | np.ndarray, dark: bool = False) -> go.Figure:
    """Named probabilities as horizontal bars, in the order of the arguments.

    Args:
        names: sequence of str.
        values: sequence of float. One probability per name.
        dark: bool. Whether the figure is drawn for a dark page.
    """
    figure = go.Figure(
        go.Bar(
            x=list(values),
            y=[escape(name) for name in names],
            orientation="h",
            marker_color=CATEGORIES[0],
            text=[escape(percent(value)) for value in values],
            textposition="auto",
            textangle=0,
            hovertemplate="%{y}: %{x:.4f}<extra></extra>",
        )
    )
    figure.layout.yaxis = dict(autorange="reversed", type="category", ticks="")
    figure.layout.xaxis = dict(title="probability", range=[0, 1.04], tickformat=".0%")
    return apply_theme(figure, dark, height=124 + 34 * len(values))


def answer_curves(pieces: Sequence[str], start: Sequence[float], end: Sequence[float], dark: bool = False) -> go.Figure:
    """The probabilities that the answer begins and ends at each token of a passage.

    Args:
        pieces: sequence of str. The tokens.
        start, end: sequence of float. The probabilities of each token to begin and to end the answer.
        dark: bool. Whether the figure is drawn for a dark page.
    """
    figure = go.Figure()
    places = list(range(len(pieces)))
    for name, values, colour in zip(("begins", "ends"), (start, end), head_colours(dark)):
        figure.add_trace(
            go.Scatter(
                x=places,
                y=list(values),
                name=name,
                mode="lines",
                line={"color": colour, "width": 2, "shape": "hvh"},
                customdata=[escape(piece) for piece in pieces],
                hovertemplate="%{customdata}: " + name + " with %{y:.3f}<extra></extra>",
            )
        )
    named = _named_places(start, end)
    figure.layout.xaxis = dict(
        tickvals=named,
        ticktext=[escape(pieces[place]) for place in named],
        tickangle=-60,
        showgrid=False,
        title="pieces of the passage" if len(named) < len(pieces) else None,
    )
    figure.layout.yaxis = dict(rangemode="tozero", tickformat=".0%")
    figure.layout.legend = {"orientation": "h", "y": 1.15, "x": 0}
    return apply_theme(figure, dark, height=300)


def _named_places(start, end):
    """The places whose tokens are named: those with the highest probabilities, so far apart that no names overlap."""
    highest = np.maximum(start, end)
    min_distance = -(-len(highest) // _MAX_NAMES)
    named: list[int] = []
    for place in np.argsort(-highest, kind="stable").tolist():
        if all(abs(place - other) >= min_distance for other in named):
            named.append(place)
    return sorted(named)
