"""Figures of vectors: the parts of a sum, points in a plane or in space, cosines.

Dimension legend: T tokens, P parts, W points, K dimensions, L layers.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.diverging import diverging_scale
from bert_tf.plots.theme import CATEGORIES, COLOUR_BAR, LEGEND_ABOVE, apply_theme, colourscale, escape, head_colours

if TYPE_CHECKING:
    from bert_tf.explain.representations.input_embeddings import EmbeddingParts, PositionSimilarity
    from bert_tf.explain.representations.vectors import VectorSimilarity

_SYMBOLS = ("circle", "diamond", "square", "x", "cross", "circle-open")
_GREY = "#8a92a0"
_MAX_POSITIONS = 128  # in a map; with more positions it skips some at equal steps
_COSINES = {**COLOUR_BAR, "len": 0.9, "tickformat": ".2f", "xpad": 4, "title": {"text": "cosine"}}


def part_shares(
    tokens: Sequence[str], parts: Sequence | np.ndarray, names: Sequence[str], dark: bool = False
) -> go.Figure:
    """The parts of each token's sum, as stacked bars that add up to 100% of its length.

    Args:
        tokens: sequence of str. T tokens.
        parts: np.ndarray. float [P, T], the share of each part, at most 3 parts. A part that points against the sum has
            a share below 0.
        names: sequence of str. The names of the parts.
        dark: bool. Whether the page is dark.
    """
    figure = go.Figure()
    for name, shares, colour in zip(names, parts, (CATEGORIES[0], CATEGORIES[1], CATEGORIES[2])):
        figure.add_trace(
            go.Bar(
                x=[float(share) for share in shares],
                y=list(range(len(tokens))),
                name=name,
                orientation="h",
                marker={"color": colour, "line": {"width": 0}},
                customdata=[escape(token) for token in tokens],
                hovertemplate="%{customdata}: %{x:.1%}<extra>" + name + "</extra>",
            )
        )
    figure.layout.yaxis = dict(
        autorange="reversed",
        tickvals=list(range(len(tokens))),
        ticktext=[escape(token) for token in tokens],
        showgrid=False,
    )
    figure.layout.xaxis = dict(tickformat=".0%", title="share of the sum's length")
    figure.update_layout(barmode="relative", bargap=0.25, legend=LEGEND_ABOVE)
    return apply_theme(figure, dark, height=130 + 24 * len(tokens))


def share_bars(parts: EmbeddingParts, dark: bool = False) -> go.Figure:
    """The parts of each token's input embedding, from an ``EmbeddingParts``."""
    return part_shares(parts.tokens, parts.shares, parts.parts, dark)


def similarity_map(similarity: VectorSimilarity, dark: bool = False) -> go.Figure:
    """The cosines of a ``VectorSimilarity``. If it has texts, the colour scale spans its cosines."""
    texts = similarity.texts or None
    return cosine_map(similarity.cosines, similarity.labels, texts, dark, spread=texts is not None)


def position_similarity_map(similarity: PositionSimilarity, dark: bool = False) -> go.Figure:
    """The cosines of a ``PositionSimilarity``; with many positions it skips some at equal steps."""
    positions = similarity.positions
    every = -(-len(positions) // _MAX_POSITIONS)
    step = every * int(positions[1] - positions[0]) if len(positions) > 1 else 1
    return position_map(similarity.cosines[::every, ::every], step, dark)


def distance_curve(similarity: PositionSimilarity, dark: bool = False) -> go.Figure:
    """The mean cosine of two positions by their distance, from a ``PositionSimilarity``."""
    means = similarity.mean_by_distance
    return curves({"mean cosine": means}, range(len(means)), "positions apart", "mean cosine", dark, height=430)


def cosine_map(
    values: np.ndarray,
    names: Iterable[str] | None = None,
    tips: Iterable[str] | None = None,
    dark: bool = False,
    height: int | None = None,
    spread: bool = False,
) -> go.Figure:
    """The cosines between vectors as a square map, orange below 0 and blue above.

    Args:
        values: np.ndarray. float [W, W].
        names: sequence of str. The labels of rows and columns; None for their numbers.
        tips: sequence of str. The hover text of each vector; None for the names.
        dark: bool. Whether the page is dark.
        height: int. In pixels; None computes it.
        spread: bool. Whether the colour scale spans the cosines of different vectors instead of -1 to 1. This is useful
            for hidden states, which all have similar directions.
    """
    count = len(values)
    labels: list = [escape(name) for name in names] if names is not None else list(range(count))
    tips = [wrapped(tip) for tip in tips] if tips is not None else labels
    low, high = -1.0, 1.0
    if spread and count > 1:
        others = np.asarray(values)[~np.eye(count, dtype=bool)]
        low, high = float(others.min()), float(others.max())
    figure = go.Figure(
        go.Heatmap(
            z=np.asarray(values, np.float32),
            x=list(range(count)),
            y=list(range(count)),
            zmin=low,
            zmax=max(high, low + 1e-6),
            colorscale=diverging_scale(dark),
            text=tips if count <= 40 else None,
            customdata=[[f"{tips[row]}<br>{tips[column]}" for column in range(count)] for row in range(count)]
            if count <= 40
            else None,
            hovertemplate=("%{customdata}" if count <= 40 else "%{y} and %{x}") + "<br>cosine %{z:.3f}<extra></extra>",
            colorbar=_COSINES,
        )
    )
    every = max(1, -(-count // 40))
    common = {
        "tickvals": list(range(0, count, every)),
        "ticktext": labels[::every],
        "showgrid": False,
        "ticks": "",
    }
    figure.layout.xaxis = dict(tickangle=-90, tickfont={"size": 11}, **common)
    figure.layout.yaxis = dict(autorange="reversed", tickfont={"size": 11}, **common)
    return apply_theme(figure, dark, height or int(np.clip(120 + 22 * count, 320, 620)))


def position_map(values: np.ndarray, step: int, dark: bool = False) -> go.Figure:
    """The cosines between every ``step``-th row of a table of position embeddings.

    Args:
        values: np.ndarray. float [W, W], for the rows 0, step, 2 step and so on.
        step: int. The distance between neighbouring rows.
        dark: bool. Whether the page is dark.
    """
    places = [step * index for index in range(len(values))]
    figure = go.Figure(
        go.Heatmap(
            z=np.asarray(values, np.float32),
            x=places,
            y=places,
            zmin=-1,
            zmax=1,
            colorscale=diverging_scale(dark),
            hovertemplate="positions %{y} and %{x}<br>cosine %{z:.3f}<extra></extra>",
            colorbar=_COSINES,
        )
    )
    figure.layout.yaxis = dict(autorange="reversed", title="position", showgrid=False, ticks="")
    figure.layout.xaxis = dict(title="position", showgrid=False, ticks="")
    return apply_theme(figure, dark, height=430)


def nearest_map(
    cosines: Sequence | np.ndarray,
    words: Sequence[Sequence[str]],
    tokens: Sequence[str],
    names: Sequence[str],
    dark: bool = False,
) -> go.Figure:
    """The nearest word to each vector of each token, coloured by its cosine.

    Args:
        cosines: np.ndarray. float [T, W].
        words: nested sequence of str. [T][W].
        tokens: sequence of str. T tokens.
        names: sequence of str. The names of the W vectors.
        dark: bool. Whether the page is dark.
    """
    figure = go.Figure(
        go.Heatmap(
            z=np.asarray(cosines, np.float32),
            text=[[escape(word) for word in line] for line in words],
            texttemplate="%{text}",
            x=list(names),
            y=list(range(len(tokens))),
            zmin=0,
            zmax=1,
            colorscale=colourscale(dark),
            colorbar={**COLOUR_BAR, "title": {"text": "cosine"}},
            hovertemplate="%{x}: %{text}, cosine %{z:.3f}<extra></extra>",
        )
    )
    labels = {"tickvals": list(range(len(tokens))), "ticktext": [escape(token) for token in tokens]}
    figure.layout.yaxis = dict(autorange="reversed", showgrid=False, ticks="", **labels)
    figure.layout.xaxis = dict(title="after layer", type="category", side="top", showgrid=False, ticks="")
    return apply_theme(figure, dark, height=110 + 26 * len(tokens))


def curves(
    values: Mapping[str, Any],
    names: Iterable,
    axis: str,
    title: str,
    dark: bool = False,
    height: int = 300,
    percent: bool = False,
) -> go.Figure:
    """Several series over one axis, such as one number for each layer.

    Args:
        values: dict. From names to series, float [W].
        names: sequence. The labels of the W points on the axis.
        axis: str. The title of the axis.
        title: str. The name of the numbers.
        dark: bool. Whether the page is dark.
        height: int. In pixels.
        percent: bool. Whether the numbers are shares.
    """
    figure = go.Figure()
    form, colours = ".1%" if percent else ".3f", head_colours(dark)
    for index, (name, series) in enumerate(values.items()):
        figure.add_trace(
            go.Scatter(
                x=list(names),
                y=[float(value) for value in series],
                name=escape(name),
                mode="lines+markers" if len(series) < 60 else "lines",
                line={"color": colours[index % 6], "dash": ("solid", "dot", "dash")[index % 3]},
                marker={"symbol": _SYMBOLS[index % 6], "size": 7},
                hovertemplate=f"%{{x}}: %{{y:{form}}}<extra>{escape(name)}</extra>",
            )
        )
    figure.layout.xaxis = dict(title=axis, showgrid=False)
    figure.layout.yaxis = dict(title=title, **({"tickformat": ".0%", "range": [0, 1.04]} if percent else {}))
    figure.layout.showlegend = len(values) > 1
    figure.layout.legend = LEGEND_ABOVE
    return apply_theme(figure, dark, height=height)


def component_titles(shares: Sequence[float] | np.ndarray | None, count: int = 2) -> tuple[str, ...]:
    """Axis titles with the share of the variance along each component; ``count`` empty titles for None."""
    if shares is None:
        return ("",) * count
    return tuple(f"component {number}: {share:.1%}" for number, share in enumerate(shares, 1))


def points(
    coordinates: np.ndarray,
    tips: Sequence[str],
    groups: Sequence[str] | None = None,
    axes: Sequence[str] = ("", "", ""),
    dark: bool = False,
    height: int = 460,
) -> go.Figure:
    """Vectors as points in a plane or in space; each group has its colour and symbol.

    Args:
        coordinates: np.ndarray. float [W, K], K 2 or 3.
        tips: sequence of str. The hover text of each point.
        groups: sequence of str. W names of groups; None for one group.
        axes: sequence of str. The titles of the axes.
        dark: bool. Whether the page is dark.
        height: int. In pixels.
    """
    names: list[str | None] = [None] if groups is None else list(dict.fromkeys(groups))
    figure = go.Figure()
    space, colours = coordinates.shape[1] == 3, head_colours(dark)
    for index, name in enumerate(names):
        rows = [row for row in range(len(tips)) if groups is None or groups[row] == name]
        position = dict(zip("xyz", coordinates[rows].T.astype(np.float32).tolist()))
        marker = {
            "color": colours[index % 6] if name != "" else _GREY,
            "symbol": _SYMBOLS[index % 6],
            "size": 5 if space else 11,
            "line": {"width": 1, "color": "#171b22" if dark else "#ffffff"},
        }
        common = {
            "mode": "markers",
            "name": escape(name or "no sense given") if name is not None else "",
            "marker": marker,
            "text": [wrapped(tips[row]) for row in rows],
            "hovertemplate": "%{text}<extra></extra>",
        }
        figure.add_trace(go.Scatter3d(**position, **common) if space else go.Scatter(**position, **common))
    figure.update_layout(showlegend=groups is not None, legend=LEGEND_ABOVE)
    name_axes(figure, axes, space)
    return apply_theme(figure, dark, height)


def name_axes(figure: go.Figure, axes: Sequence[str], space: bool) -> None:
    """Give the axes of a figure of points their titles, without numbers; ``space``: whether it has three axes."""
    if space:
        style = {"showticklabels": False, "showbackground": False, "gridcolor": "#8a92a066", "zeroline": False}
        scene = {f"{axis}axis": {"title": {"text": title}, **style} for axis, title in zip("xyz", axes)}
        # The camera is a little farther away than Plotly's default, which cuts off the titles.
        figure.layout.scene = {**scene, "aspectmode": "cube", "camera": {"eye": {"x": 1.5, "y": 1.5, "z": 1.3}}}
        figure.layout.legend.itemsizing = "constant"
    else:
        figure.layout.xaxis = dict(title=axes[0], showticklabels=False, zeroline=False)
        figure.layout.yaxis = dict(title=axes[1], showticklabels=False, zeroline=False)


def wrapped(text: str) -> str:
    """A text as at most four lines for a hover text."""
    return "<br>".join(escape(line) for line in textwrap.wrap(text, 60)[:4])
