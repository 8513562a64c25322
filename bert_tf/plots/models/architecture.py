"""Figures of a model's activations, of its parts and of the sizes of its architecture.

Dimension legend: T tokens, U units of a vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.attention.heatmaps import heatmap
from bert_tf.plots.attention.pooled_maps import Selection
from bert_tf.plots.diverging import diverging_scale
from bert_tf.plots.ranked_bars import ranked_bars
from bert_tf.plots.theme import CATEGORIES, LEGEND_ABOVE, apply_theme, escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bert_tf.explain.models.architecture import LayerActivations, ModelParts, ModelSizes


MOST_UNITS, MAX_TOKENS = 64, 48


def activations(
    values: np.ndarray,
    tokens: Sequence[str],
    dark: bool = False,
    token: int = 0,
    unit: int = 0,
    units: Sequence[str] | None = None,
) -> go.Figure:
    """The tokens' vectors as a heatmap, or a window of it: blue above zero, orange below.

    Args:
        values: float [T, U]. At most `MAX_TOKENS` rows and `MOST_UNITS` columns are drawn.
        tokens: sequence of T str.
        dark: bool. Whether the figure is drawn for a dark page.
        token, unit: int. The first row and column of the window, from 0.
        units: sequence of U str or None. The names of the columns; None numbers them from 1.
    Returns:
        Plotly figure. Its colour scale ends at the 99th percentile of all values, so that single outliers do not
        wash out the rest and all windows have the same colours.
    """
    values = np.asarray(values, np.float32)
    limit = float(np.percentile(np.abs(values), 99)) or 1.0
    window = values[token : token + MAX_TOKENS, unit : unit + MOST_UNITS]
    # Labels of an axis must be unique, but tokens may repeat.
    labels = [
        f"{escape(text)}<span style='font-size:1px'> {index}</span>"
        for index, text in enumerate(tokens[token : token + len(window)])
    ]
    columns: Any = np.arange(unit + 1, unit + 1 + window.shape[1])
    if units is not None:
        columns = [escape(name) for name in units[unit : unit + window.shape[1]]]
    figure = go.Figure(
        go.Heatmap(
            z=np.round(window, 4),
            y=labels,
            x=columns,
            zmin=-limit,
            zmax=limit,
            colorscale=diverging_scale(dark),
            colorbar={"thickness": 10, "outlinewidth": 0, "title": {"text": "value"}},
            hovertemplate=("unit " if units is None else "") + "%{x}<br>%{y}<br>%{z:.3f}<extra></extra>",
        )
    )
    figure.layout.yaxis = dict(autorange="reversed", type="category", ticks="", tickfont={"size": 11})
    axis: dict[str, Any] = {"title": {"text": "unit", "font": {"size": 12}}} if units is None else {"type": "category"}
    figure.layout.xaxis = dict(**axis, showgrid=False, zeroline=False)
    return apply_theme(figure, dark, height=int(min(110 + 17 * len(window), 640)))


def sizes(rows: Sequence[tuple[str, dict[str, int]]], dark: bool = False) -> go.Figure:
    """The parameters of several models by part, as stacked bars.

    Args:
        rows: sequence of (name, dict part -> number of parameters), as from `parameter_counts` without "total".
        dark: bool. Whether the figure is drawn for a dark page.
    """
    figure = go.Figure()
    names = [escape(name) for name, _ in rows]
    parts = list(dict.fromkeys(part for _, counts in rows for part in counts))
    for part, colour in zip(parts, (*CATEGORIES, "#8a92a0")):
        figure.add_trace(
            go.Bar(
                y=names,
                x=[counts.get(part, 0) for _, counts in rows],
                name=part,
                orientation="h",
                marker_color=colour,
                hovertemplate="%{y}, " + part + ": %{x:,}<extra></extra>",
            )
        )
    # The legend stays above the bars when it takes several lines on a narrow page.
    legend = {**LEGEND_ABOVE, "traceorder": "normal"}
    figure.layout.barmode, figure.layout.legend = "stack", legend
    figure.layout.yaxis = dict(autorange="reversed", type="category")
    figure.layout.xaxis = dict(title="parameters", tickformat="~s")
    return apply_theme(figure, dark, height=120 + 34 * len(rows))


def parameters_of_parts(model: ModelParts, dark: bool = False) -> go.Figure:
    """The parameters of every part of a `ModelParts`, as bars."""
    return _part_bars(model, [part.parameters for part in model.parts], "parameters", dark)


def flops_of_parts(model: ModelParts, dark: bool = False) -> go.Figure:
    """The floating point operations of every part of a `ModelParts`, as bars."""
    return _part_bars(model, [part.flops for part in model.parts], "operations", dark)


def _part_bars(model, values, unit, dark):
    figure = ranked_bars([part.title for part in model.parts], values, unit, dark)
    return figure.update_xaxes(tickformat="~s")


def parameters_of_sizes(model_sizes: ModelSizes, dark: bool = False) -> go.Figure:
    """The parameters of every size of a `ModelSizes` by part, as stacked bars."""
    titles = {part.name: part.title.lower() for size in model_sizes.sizes for part in size.parts}
    without_total = [
        (size.name, {titles.get(part, part): count for part, count in size.parameters.items() if part != "total"})
        for size in model_sizes.sizes
    ]
    return sizes(without_total, dark)


def layer_values(layer_activations: LayerActivations, dark: bool = False) -> go.Figure:
    """The activations of a layer: the units of every token, or the mean attention map of the heads.

    Args:
        layer_activations: `LayerActivations`.
        dark: bool. Whether the figure is drawn for a dark page.
    """
    values, tokens = layer_activations.values, layer_activations.tokens
    if layer_activations.name == "attentions":
        positions = tuple(range(len(tokens)))
        return heatmap(layer_activations, values.mean(axis=0), Selection(positions, positions), dark=dark)
    if values.ndim == 3:  # [N, T, U]: the heads' units side by side
        values = values.transpose(1, 0, 2).reshape(values.shape[1], -1)
    return activations(values, tokens, dark)
