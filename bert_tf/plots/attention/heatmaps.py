"""Attention as heatmaps.

Dimension legend: L layers, N heads, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.attention.pooled_maps import Selection, block_starts, pooled, tiles
from bert_tf.plots.theme import COLOUR_BAR, apply_theme, colourscale, escape, titled, unique_labels

if TYPE_CHECKING:
    from bert_tf.inference.trace import Trace

_SCALE = {**COLOUR_BAR, "len": 0.9, "tickformat": ".2f", "xpad": 4, "title": {"text": "weight"}}
_LABEL = 12  # pixels of an axis for one label
_AROUND = 90  # pixels of a figure's height for the labels on top


class WithTokens(Protocol):
    """A `Trace`, or a result with the tokens of an input."""

    @property
    def tokens(self) -> Sequence[str]:
        """The tokens, one for each position."""


def heatmap(
    trace: WithTokens,
    weights: np.ndarray,
    selection: Selection,
    most: int = 128,
    dark: bool = False,
    title: str | None = None,
    height: int | None = None,
    least: float = 0.0,
) -> go.Figure:
    """One attention map between the tokens of a selection.

    Args:
        trace: Trace, or another object with tokens. Its ``tokens`` name rows and columns.
        weights: float [T, T]. Row: the token that attends; column: the token that it attends to.
        selection: Selection. The tokens of the map.
        most: int. Largest number of rows and of columns; more tokens are pooled into blocks by their greatest weight.
        dark: bool. Whether the page is dark.
        title: str or None. Text above the figure.
        height: int or None. In pixels; None chooses it by the number of rows.
        least: float. Cells with smaller weights stay empty.

    Returns:
        plotly.graph_objects.Figure, its numbers in float32.
    """
    values = pooled(weights, selection, most)
    rows, columns = (unique_labels(block_names(trace, side, most)) for side in (selection.rows, selection.columns))
    figure = go.Figure(
        go.Heatmap(
            z=np.where(values < least, np.float32("nan"), values),
            x=columns,
            y=rows,
            colorscale=colourscale(dark),
            zmin=0,
            zmax=float(max(values.max(initial=0), 1e-6)),
            hovertemplate="from %{y} to %{x}<br>%{z:.3f}<extra></extra>",
            hoverongaps=False,
            colorbar=_SCALE,
        ),
        {"template": {}},  # without it Plotly copies its default template, which the theme replaces
    )
    height = height or int(np.clip(110 + 22 * len(rows), 340, 880))
    row_step, column_step = label_step(len(rows), height), label_step(len(columns), height)
    common = {"ticks": "", "type": "category", "showgrid": False, "tickfont": {"size": 11}}
    apply_theme(
        figure,
        dark,
        height,
        yaxis=dict(autorange="reversed", tickvals=rows[::row_step], **common),
        xaxis=dict(tickvals=columns[::column_step], tickangle=-90, **common),
    )
    return titled(figure, title) if title else figure


def heatmaps(
    trace: WithTokens,
    maps: np.ndarray,
    selection: Selection,
    names: Sequence[str],
    dark: bool = False,
    least: float = 0.0,
) -> go.Figure:
    """The maps of several heads below each other, with one colour scale.

    Args:
        trace: Trace, or another object with tokens. Its ``tokens`` name rows and columns.
        maps: float [K, T, T].
        selection: Selection. The tokens of the maps.
        names: sequence of K strings. Titles of the maps.
        dark: bool. Whether the page is dark.
        least: float. Cells with smaller weights stay empty.
    """
    figure = make_subplots(
        rows=len(maps),
        cols=1,
        subplot_titles=[escape(name) for name in names],
        vertical_spacing=0.28 / len(maps),
    )
    for row, weights in enumerate(maps, 1):
        panel = heatmap(trace, weights, selection, 64, dark, least=least)
        figure.add_trace(panel.data[0].update(coloraxis="coloraxis"), row, 1)
        figure.update_xaxes(panel.layout.xaxis.to_plotly_json(), row=row, col=1)
        figure.update_yaxes(panel.layout.yaxis.to_plotly_json(), row=row, col=1)
    strongest = max(float(pooled(maps, selection, 64).max(initial=0)), 1e-6)
    scale = {"colorscale": colourscale(dark), "cmin": 0, "cmax": strongest, "colorbar": _SCALE}
    apply_theme(figure, dark, height=len(maps) * panel.layout.height)
    return figure.update_layout(coloraxis=scale, margin={"t": 60})


def overview(trace: Trace, selection: Selection, dark: bool = False, least: float = 0.0) -> go.Figure:
    """All heads of a trace as one figure of small maps, layers downwards, heads across.

    Args:
        trace: Trace. A trace with attention maps, float [L, N, T, T].
        selection: Selection. The tokens of the maps.
        dark: bool. Whether the page is dark.
        least: float. Smaller weights count as 0.
    """
    small = tiles(np.asarray(trace.attentions), selection, most_bytes=120_000, least=least)
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


def block_names(trace: WithTokens, places: Sequence[int], most: int) -> list[str]:
    """The tokens at some positions; of more than ``most`` positions the first token of each block of ``pooled``."""
    starts = block_starts(len(places), most).tolist() if len(places) > most else range(len(places))
    return [trace.tokens[places[start]] for start in starts]


def label_step(count: int, pixels: int) -> int:
    """The step between tokens with a label, so that labels do not overlap."""
    return max(1, -(-count * _LABEL // max(pixels - _AROUND, _LABEL)))
