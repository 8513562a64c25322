"""How much an answer hangs on each part of a model."""

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.diverging import diverging_scale
from bert_tf.plots.theme import CATEGORIES, apply_theme, escape


def effects_map(effects, unit, dark=False, heads=None, first=1):
    """The effect of every head, feed-forward block and layer, layers downwards.

    Args:
        effects: float [L, N + 2]: the heads, the feed-forward block, the layer; or [L, N + 1] without the layer.
            Positive: it speaks for the answer. NaN: there is nothing, and the cell stays empty.
        unit: what the numbers are.
        dark: for a dark page. heads: N; None for two less than there are columns.
        first: number of the first layer and of the first head.
    """
    layers, columns = effects.shape
    heads = columns - 2 if heads is None else heads
    names = [*map(str, range(first, first + heads)), "FF", "layer"][:columns]
    scaled = by_kind(effects, heads)
    figure = go.Figure(
        go.Heatmap(
            z=scaled,
            x=names,
            y=list(map(str, range(first, first + layers))),
            customdata=effects,
            colorscale=diverging_scale(dark),
            zmin=-1,
            zmax=1,
            hovertemplate="layer %{y}, %{x}: %{customdata:.4f} " + unit + "<extra></extra>",
            colorbar={
                "thickness": 8,
                "outlinewidth": 0,
                "tickvals": [-1, 0, 1],
                "ticktext": ["against", "none", "for"],
            },
            xgap=2,
            ygap=2,
        )
    )
    figure.layout.yaxis = dict(autorange="reversed", title="layer", type="category", showgrid=False, ticks="")
    figure.layout.xaxis = dict(title="head", side="top", type="category", showgrid=False, ticks="")
    return apply_theme(figure, dark, height=130 + 30 * layers)


def by_kind(effects, heads=None):
    """Effects as `effects_map` takes them from -1 to 1: heads, feed-forward blocks and layers each by their own
    strongest."""
    scaled = np.array(effects, np.float64)
    heads = scaled.shape[1] - 2 if heads is None else heads
    for kind in (slice(0, heads), *(slice(column, column + 1) for column in range(heads, scaled.shape[1]))):
        scaled[:, kind] /= max(float(np.nanmax(np.abs(scaled[:, kind]), initial=0)), 1e-9)
    return scaled


def ranked_bars(names, values, unit, dark=False):
    """Named effects as horizontal bars, in the order given.

    Args:
        names: what each is.
        values: floats; bars to the right are blue, to the left orange.
        unit: what the numbers are, for the axis.
        dark: for a dark page.
    """
    # The zero-width space tells one "the" from another: Plotly puts equal names on one line.
    labels = [escape(name) + "\u200b" * names[:index].count(name) for index, name in enumerate(names)]
    blue = CATEGORIES[4] if dark else CATEGORIES[0]
    figure = go.Figure(
        go.Bar(
            x=[float(value) for value in values],
            y=labels,
            orientation="h",
            marker_color=[blue if value >= 0 else CATEGORIES[1] for value in values],
            hovertemplate="%{y}: %{x:.4f}<extra></extra>",
        )
    )
    figure.layout.yaxis = dict(autorange="reversed", type="category", ticks="", showgrid=False)
    # A long title is wider than a narrow figure.
    figure.layout.xaxis = dict(title=unit.replace(", ", ",<br>") if len(unit) > 40 else unit, zeroline=True)
    return apply_theme(figure, dark, height=90 + 22 * len(labels))


def replaced_bars(tokens, scores, replaced=None, dark=False):
    """The probability of every token to have been put there by a generator; those that were are orange.

    Args:
        tokens: T strings. scores: float [T]. replaced: bool [T], or None where nothing is known.
        dark: for a dark page.
    """
    figure = ranked_bars(list(tokens), scores, "probability to have been put there", dark)
    if replaced is not None:
        usual = figure.data[0].marker.color[0]
        figure.data[0].marker.color = [CATEGORIES[1] if one else usual for one in replaced]
    return figure.update_xaxes(range=[0, 1.04], tickformat=".0%")


def spread(values, name, dark=False):
    """How many of some numbers lie where, as a histogram.

    Args:
        values: floats. name: what they are.
        dark: for a dark page.
    """
    figure = go.Figure(
        go.Histogram(
            x=[float(value) for value in values],
            nbinsx=30,
            marker_color=CATEGORIES[4] if dark else CATEGORIES[0],
            hovertemplate="%{x}: %{y}<extra></extra>",
        )
    )
    figure.layout.xaxis = dict(title=name)
    figure.layout.yaxis = dict(title="how many")
    return apply_theme(figure, dark, height=360)
