"""Vectors as figures: parts of a sum, points in the plane or in space, how alike they are.

Dimension legend: T tokens, W points, K dimensions, L layers.
"""

import textwrap

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.diverging import diverging_scale
from bert_tf.plots.theme import CATEGORIES, apply_theme, colourscale, escape, head_colours

_SYMBOLS = ("circle", "diamond", "square", "x", "cross", "circle-open")
_GREY = "#8a92a0"
_MAX_POSITIONS = 128  # that a map draws; of more every few


def part_shares(tokens, parts, names, dark=False):
    """What each token's sum is made of, as bars that end at 100% of its length.

    Args:
        tokens: T strings.
        parts: float [3, T], the share of each part; one that points against the sum is below 0.
        names: of the parts.
        dark: for a dark page.
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
    figure.update_layout(
        barmode="relative", bargap=0.25, legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0}
    )
    return apply_theme(figure, dark, height=130 + 24 * len(tokens))


def share_bars(parts, dark=False):
    """What each token's sum is made of, of an ``EmbeddingParts``."""
    return part_shares(parts.tokens, parts.shares, parts.parts, dark)


def similarity_map(similarity, dark=False):
    """The cosines of a ``VectorSimilarity``; where there are texts, the colours span the cosines."""
    texts = similarity.texts or None
    return cosine_map(similarity.cosines, similarity.labels, texts, dark, spread=texts is not None)


def position_similarity_map(similarity, dark=False):
    """The cosines of a ``PositionSimilarity``, of many positions every few."""
    positions = similarity.positions
    every = -(-len(positions) // _MAX_POSITIONS)
    step = every * int(positions[1] - positions[0]) if len(positions) > 1 else 1
    return position_map(similarity.cosines[::every, ::every], step, dark)


def distance_curve(similarity, dark=False):
    """The mean cosine of two positions by how far apart they are, of a ``PositionSimilarity``."""
    means = similarity.mean_by_distance
    return curves({"mean cosine": means}, range(len(means)), "positions apart", "mean cosine", dark, height=430)


def cosine_map(values, names=None, tips=None, dark=False, height=None, spread=False):
    """Cosines of vectors with each other as a square map, orange below 0 and blue above.

    Args:
        values: float [W, W].
        names: of the rows and columns; None for their numbers.
        tips: what is said of each when it is pointed at; None for the names.
        dark: for a dark page.
        height: in pixels; None chooses it.
        spread: whether the colours span the cosines of different vectors instead of -1 to 1: hidden states
            all point much the same way.
    """
    count = len(values)
    names = [escape(name) for name in names] if names is not None else list(range(count))
    tips = [wrapped(tip) for tip in tips] if tips is not None else names
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
            colorbar={"thickness": 8, "outlinewidth": 0, "len": 0.9, "tickformat": ".2f", "xpad": 4},
        )
    )
    every = max(1, -(-count // 40))
    common = {
        "tickvals": list(range(0, count, every)),
        "ticktext": names[::every],
        "showgrid": False,
        "ticks": "",
    }
    figure.layout.xaxis = dict(tickangle=-90, tickfont={"size": 11}, **common)
    figure.layout.yaxis = dict(autorange="reversed", tickfont={"size": 11}, **common)
    return apply_theme(figure, dark, height or int(np.clip(120 + 22 * count, 320, 620)))


def position_map(values, step, dark=False):
    """Cosines of a position table's rows, every ``step``-th of them.

    Args:
        values: float [W, W], of the rows 0, step, 2 step and so on.
        step: how far apart they are.
        dark: for a dark page.
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
            colorbar={"thickness": 8, "outlinewidth": 0, "len": 0.9, "tickformat": ".1f", "xpad": 4},
        )
    )
    figure.layout.yaxis = dict(autorange="reversed", title="position", showgrid=False, ticks="")
    figure.layout.xaxis = dict(title="position", showgrid=False, ticks="")
    return apply_theme(figure, dark, height=430)


def nearest_map(cosines, words, tokens, names, dark=False):
    """The nearest word to each vector of each token, on the colour of its cosine.

    Args:
        cosines: float [T, W]. words: [T][W] strings. tokens: T strings. names: of the W vectors.
        dark: for a dark page.
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
            colorbar={"thickness": 8, "outlinewidth": 0},
            hovertemplate="%{x}: %{text}, cosine %{z:.3f}<extra></extra>",
        )
    )
    labels = {"tickvals": list(range(len(tokens))), "ticktext": [escape(token) for token in tokens]}
    figure.layout.yaxis = dict(autorange="reversed", showgrid=False, ticks="", **labels)
    figure.layout.xaxis = dict(title="after layer", type="category", side="top", showgrid=False, ticks="")
    return apply_theme(figure, dark, height=110 + 26 * len(tokens))


def curves(values, names, axis, title, dark=False, height=300, percent=False):
    """A few series over one axis, such as a number per layer.

    Args:
        values: dict from name to float [W].
        names: of the W places along the axis.
        axis: what they are. title: what the numbers are.
        dark: for a dark page. height: in pixels. percent: whether they are shares.
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
    figure.layout.legend = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0}
    return apply_theme(figure, dark, height=height)


def component_titles(shares, count=2):
    """Titles of the axes: the share of the variance along each component; `count` empty ones for None."""
    if shares is None:
        return ("",) * count
    return tuple(f"component {number}: {share:.1%}" for number, share in enumerate(shares, 1))


def points(coordinates, tips, groups=None, axes=("", "", ""), dark=False, height=460):
    """Vectors as points in the plane or in space; each group has a colour and a shape.

    Args:
        coordinates: float [W, K], K 2 or 3.
        tips: what is said of each point.
        groups: W names, or None for one group.
        axes: titles of the axes.
        dark: for a dark page. height: in pixels.
    """
    names = list(dict.fromkeys(groups)) if groups is not None else [None]
    figure = go.Figure()
    space, colours = coordinates.shape[1] == 3, head_colours(dark)
    for index, name in enumerate(names):
        rows = [row for row in range(len(tips)) if groups is None or groups[row] == name]
        place = dict(zip("xyz", coordinates[rows].T.astype(np.float32).tolist()))
        look = {
            "color": colours[index % 6] if name != "" else _GREY,
            "symbol": _SYMBOLS[index % 6],
            "size": 5 if space else 11,
            "line": {"width": 1, "color": "#171b22" if dark else "#ffffff"},
        }
        common = {
            "mode": "markers",
            "name": escape(name or "no sense given") if name is not None else "",
            "marker": look,
            "text": [wrapped(tips[row]) for row in rows],
            "hovertemplate": "%{text}<extra></extra>",
        }
        figure.add_trace(go.Scatter3d(**place, **common) if space else go.Scatter(**place, **common))
    figure.update_layout(
        showlegend=groups is not None, legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0}
    )
    name_axes(figure, axes, space)
    return apply_theme(figure, dark, height)


def name_axes(figure, axes, space):
    """Give the axes of points their titles and no numbers; space: whether there are three."""
    if space:
        look = {"showticklabels": False, "showbackground": False, "gridcolor": "#8a92a066", "zeroline": False}
        scene = {f"{axis}axis": {"title": {"text": title}, **look} for axis, title in zip("xyz", axes)}
        # From a little farther than usual, or the titles are cut off.
        figure.layout.scene = {**scene, "aspectmode": "cube", "camera": {"eye": {"x": 1.5, "y": 1.5, "z": 1.3}}}
        figure.layout.legend.itemsizing = "constant"
    else:
        figure.layout.xaxis = dict(title=axes[0], showticklabels=False, zeroline=False)
        figure.layout.yaxis = dict(title=axes[1], showticklabels=False, zeroline=False)


def wrapped(text):
    """A text as it is said of a point: a few lines of it."""
    return "<br>".join(escape(line) for line in textwrap.wrap(text, 60)[:4])
