"""Attention as heatmaps.

Dimension legend: L layers, N heads, T tokens.
"""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.attention.pooled_maps import block_starts, pooled, tiles
from bert_tf.plots.theme import apply_theme, colourscale, escape, unique_labels

_SCALE = {"thickness": 8, "outlinewidth": 0, "len": 0.9, "tickformat": ".2f", "xpad": 4}
_LABEL = 12  # pixels a label needs of its axis
_AROUND = 90  # pixels of a figure's height that its labels on top take


def heatmap(trace, weights, selection, most=128, dark=False, title=None, height=None, least=0.0):
    """One attention map between the tokens of a selection.

    Args:
        trace: has ``tokens``.
        weights: float [T, T], row: the token that looks, column: the one looked at.
        selection: ``Selection`` of what to show.
        most: rows and columns at most; more tokens are pooled into blocks by their greatest weight.
        dark: for a dark page.
        title: text above the figure.
        height: in pixels; None chooses it by the number of rows.
        least: weights below it are left empty.

    Returns:
        plotly.graph_objects.Figure, its numbers in float32.
    """
    shown = pooled(weights, selection, most)
    rows, columns = (unique_labels(block_names(trace, side, most)) for side in (selection.rows, selection.columns))
    figure = go.Figure(
        go.Heatmap(
            z=np.where(shown < least, np.float32("nan"), shown),
            x=columns,
            y=rows,
            colorscale=colourscale(dark),
            zmin=0,
            zmax=float(max(shown.max(initial=0), 1e-6)),
            hovertemplate="%{y} looks at %{x}<br>%{z:.3f}<extra></extra>",
            hoverongaps=False,
            colorbar=_SCALE,
        )
    )
    height = height or int(np.clip(110 + 22 * len(rows), 340, 880))
    every = _labelled(len(rows), height), _labelled(len(columns), height)
    common = {"ticks": "", "type": "category", "showgrid": False}
    figure.layout.yaxis = dict(autorange="reversed", tickvals=rows[:: every[0]], tickfont={"size": 11}, **common)
    figure.layout.xaxis = dict(tickvals=columns[:: every[1]], tickangle=-90, tickfont={"size": 11}, **common)
    apply_theme(figure, dark, height)
    if title:
        figure.update_layout(title={"text": escape(title), "font": {"size": 15}}, margin={"t": 60})
    return figure


def heatmaps(trace, maps, selection, names, dark=False, least=0.0):
    """Several heads' maps below each other, all on one scale.

    Args:
        trace: has ``tokens``. maps: float [K, T, T]. selection: ``Selection`` of what to show.
        names: K titles. dark: for a dark page. least: weights below it are left empty.
    """
    figure = make_subplots(
        rows=len(maps),
        cols=1,
        subplot_titles=[escape(name) for name in names],
        vertical_spacing=0.28 / len(maps),
    )
    for row, weights in enumerate(maps, 1):
        one = heatmap(trace, weights, selection, 64, dark, least=least)
        figure.add_trace(one.data[0].update(coloraxis="coloraxis"), row, 1)
        figure.update_xaxes(one.layout.xaxis.to_plotly_json(), row=row, col=1)
        figure.update_yaxes(one.layout.yaxis.to_plotly_json(), row=row, col=1)
    strongest = max(float(pooled(maps, selection, 64).max(initial=0)), 1e-6)
    scale = {"colorscale": colourscale(dark), "cmin": 0, "cmax": strongest, "colorbar": _SCALE}
    apply_theme(figure, dark, height=len(maps) * one.layout.height)
    return figure.update_layout(coloraxis=scale, margin={"t": 60})


def overview(trace, selection, dark=False, least=0.0):
    """All heads of a trace as one figure of small maps, layers downwards, heads across.

    Args:
        trace: has ``attentions`` float [L, N, T, T].
        selection: ``Selection`` of what to show.
        dark: for a dark page.
        least: weights below it are left empty.
    """
    small = tiles(trace.attentions, selection, most_bytes=120_000, least=least)
    layers, heads, rows, columns = small.values.shape
    gap = 1
    sheet = np.full((layers, rows + gap, heads, columns + gap), np.nan, np.float32)
    sheet[:, :rows, :, :columns] = small.values.transpose(0, 2, 1, 3) / 255
    sheet = sheet.reshape(layers * (rows + gap), heads * (columns + gap))
    figure = go.Figure(go.Heatmap(z=sheet, colorscale=colourscale(dark), showscale=False, hoverinfo="skip"))
    figure.update_yaxes(
        autorange="reversed",
        title="layer",
        showgrid=False,
        ticks="",
        tickvals=[(index + 0.5) * (rows + gap) for index in range(layers)],
        ticktext=[str(index + 1) for index in range(layers)],
    )
    figure.update_xaxes(
        side="top",
        title="head",
        showgrid=False,
        ticks="",
        tickvals=[(index + 0.5) * (columns + gap) for index in range(heads)],
        ticktext=[str(index + 1) for index in range(heads)],
    )
    return apply_theme(figure, dark, height=120 + 56 * layers)


def block_names(trace, places, most):
    """The tokens at ``places``; of more than ``most`` the first of each block that ``pooled`` makes of them."""
    starts = block_starts(len(places), most) if len(places) > most else range(len(places))
    return [trace.tokens[places[start]] for start in starts]


def _labelled(count, pixels):
    """Every how many tokens one is named, so that labels do not lie over each other."""
    return max(1, -(-count * _LABEL // max(pixels - _AROUND, _LABEL)))
