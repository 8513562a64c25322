"""Values on their way through a model, and the sizes of models beside each other.

Dimension legend: T tokens, U units of a vector.
"""

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.attention.heatmaps import heatmap
from bert_tf.plots.attention.pooled_maps import Selection
from bert_tf.plots.interventions.ablation import ranked_bars
from bert_tf.plots.theme import CATEGORIES, apply_theme, escape

MOST_UNITS, MAX_TOKENS = 64, 48
# From blue over the page's ground to orange: told apart by every kind of colour vision.
_LIGHT = [[0, "#0b4f8a"], [0.5, "#f7f7f7"], [1, "#b35806"]]
_DARK = [[0, "#7db8f0"], [0.5, "#1b2028"], [1, "#f2a65a"]]


def activations(values, tokens, dark=False, token=0, unit=0, units=None):
    """Each token's vector as a heatmap, or the part of it that a window shows.

    Args:
        values: float [T, U], of which at most `MAX_TOKENS` rows and `MOST_UNITS` columns are drawn.
        tokens: T texts. dark: for a dark page. token, unit: the first row and column of the window, from 0.
        units: U names of the columns; None for their numbers from 1.
    Returns:
        A Plotly figure; its colours run to the 99th percentile of all values, so that single outliers do not
        wash out the rest and two windows have the same colours.
    """
    values = np.asarray(values, np.float32)
    reach = float(np.percentile(np.abs(values), 99)) or 1.0
    shown = values[token : token + MAX_TOKENS, unit : unit + MOST_UNITS]
    # Labels of an axis must differ, tokens need not.
    labels = [
        f"{escape(text)}<span style='font-size:1px'> {index}</span>"
        for index, text in enumerate(tokens[token : token + len(shown)])
    ]
    columns = np.arange(unit + 1, unit + 1 + shown.shape[1])
    if units is not None:
        columns = [escape(name) for name in units[unit : unit + shown.shape[1]]]
    figure = go.Figure(
        go.Heatmap(
            z=np.round(shown, 4),
            y=labels,
            x=columns,
            zmin=-reach,
            zmax=reach,
            colorscale=_DARK if dark else _LIGHT,
            colorbar={"thickness": 10, "outlinewidth": 0},
            hovertemplate=("unit " if units is None else "") + "%{x}<br>%{y}<br>%{z:.3f}<extra></extra>",
        )
    )
    figure.layout.yaxis = dict(autorange="reversed", type="category", ticks="", tickfont={"size": 11})
    named = {"title": {"text": "unit", "font": {"size": 12}}} if units is None else {"type": "category"}
    figure.layout.xaxis = dict(**named, showgrid=False, zeroline=False)
    return apply_theme(figure, dark, height=int(min(110 + 17 * len(shown), 640)))


def sizes(rows, dark=False):
    """Parameters of several models by part as stacked bars.

    Args:
        rows: list of (name, dict part -> parameters), as `parameter_counts` gives them, without "total".
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
    # Above the bars, however many lines it takes on a narrow page.
    legend = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0, "traceorder": "normal"}
    figure.layout.barmode, figure.layout.legend = "stack", legend
    figure.layout.yaxis = dict(autorange="reversed", type="category")
    figure.layout.xaxis = dict(title="parameters", tickformat="~s")
    return apply_theme(figure, dark, height=120 + 34 * len(rows))


def parameters_of_parts(model, dark=False):
    """Parameters of every part of a model as bars; model: a `ModelParts`."""
    return _part_bars(model, [part.parameters for part in model.parts], "parameters", dark)


def flops_of_parts(model, dark=False):
    """Floating point operations of every part of a model as bars; model: a `ModelParts`."""
    return _part_bars(model, [part.flops for part in model.parts], "operations", dark)


def _part_bars(model, values, unit, dark):
    figure = ranked_bars([part.title for part in model.parts], values, unit, dark)
    return figure.update_xaxes(tickformat="~s")


def parameters_of_sizes(model_sizes, dark=False):
    """Parameters of every size by part as stacked bars; model_sizes: a `ModelSizes`."""
    without_total = [
        (size.name, {part: count for part, count in size.parameters.items() if part != "total"})
        for size in model_sizes.sizes
    ]
    return sizes(without_total, dark)


def layer_values(layer_activations, dark=False):
    """One of the values in a layer: the units of every token, or the mean of the heads' attention maps.

    Args:
        layer_activations: a `LayerActivations`. dark: for a dark page.
    """
    values, tokens = layer_activations.values, layer_activations.tokens
    if layer_activations.name == "attentions":
        every = tuple(range(len(tokens)))
        return heatmap(layer_activations, values.mean(axis=0), Selection(every, every), dark=dark)
    if values.ndim == 3:  # [N, T, U]: the heads' units side by side
        values = values.transpose(1, 0, 2).reshape(values.shape[1], -1)
    return activations(values, tokens, dark)
