"""Parts that several figures share: heatmap traces, panels of bars, sliders, axes.

Dimension legend: T tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.attention.pooled_maps import block_starts
from bert_tf.plots.theme import CATEGORIES, COLOUR_BAR, colourscale, escape, unique_labels

_MOST = 128  # rows and columns of a map; more tokens are pooled into blocks by their maximum


def value_map(values: np.ndarray, columns: Sequence[str], rows: Sequence[str], dark: bool, hover: str) -> go.Heatmap:
    """A heatmap trace of values with names of columns and rows; ``hover`` is the hover template of a cell."""
    return go.Heatmap(
        z=values,
        x=columns,
        y=rows,
        colorscale=colourscale(dark),
        colorbar=COLOUR_BAR,
        hovertemplate=f"{hover}<extra></extra>",
    )


def answer_panels(
    panels: Sequence[tuple[str, Sequence[dict[str, Any]], Sequence[dict[str, Any]]]],
    names: Sequence[str],
    more: Iterable[str] = (),
) -> go.Figure:
    """Predictions of two sources, such as two models, side by side as bars, one panel for each mask or pair.

    Args:
        panels: sequence of (title, predictions of the first source, predictions of the second); each prediction is a
            dict with "token" and "probability".
        names: two strings. Names of the sources.
        more: iterable of strings. Titles of empty panels below, for other traces.
    """
    titles = [*(escape(title) for title, _, _ in panels), *more]
    figure = make_subplots(rows=max(len(titles), 1), cols=1, subplot_titles=titles)
    for row, (_, first, second) in enumerate(panels, 1):
        for name, predictions, colour in zip(names, (first, second), CATEGORIES):
            bars = go.Bar(
                x=[escape(prediction["token"]) for prediction in predictions],
                y=[prediction["probability"] for prediction in predictions],
                name=escape(name),
                marker_color=colour,
                showlegend=row == 1,
                hovertemplate="%{x}: %{y:.2%}<extra></extra>",
            )
            figure.add_trace(bars, row=row, col=1)
        figure.update_xaxes(row=row, col=1, type="category")
        # The "probability" of a regression is its value, which may lie outside 0 to 1.
        if all(0 <= prediction["probability"] <= 1 for prediction in (*first, *second)):
            figure.update_yaxes(row=row, col=1, range=[0, 1], tickformat=".0%")
    return figure


def trace_slider(steps: Sequence[str], label: str, active: int) -> dict[str, Any]:
    """A Plotly slider that shows one of the figure's traces at a time.

    Args:
        steps: sequence of strings. Names of the traces.
        label: str. Text before the name, such as "layer".
        active: int. Index of the trace that is visible at first.
    """
    slider_steps = [
        {"label": name, "method": "restyle", "args": [{"visible": [other == index for other in range(len(steps))]}]}
        for index, name in enumerate(steps)
    ]
    return {"active": active, "currentvalue": {"prefix": f"{label} "}, "steps": slider_steps}


def token_axes(figure: go.Figure) -> None:
    """Set up the axes of a map between tokens, with the first token at the top left."""
    figure.update_yaxes(autorange="reversed", type="category", ticks="", showgrid=False)
    figure.update_xaxes(tickangle=-90, type="category", ticks="", showgrid=False)


def pooled(values: np.ndarray, tokens: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """A map [T, T] pooled to at most ``_MOST`` rows and columns, and the names of its rows."""
    if len(tokens) <= _MOST:
        return values, unique_labels(tokens)
    starts = block_starts(len(tokens), _MOST)
    blocks = np.maximum.reduceat(np.maximum.reduceat(values, starts, axis=0), starts, axis=1)
    return blocks, unique_labels(tokens[start] for start in starts)
