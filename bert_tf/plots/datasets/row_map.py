"""The rows of a file as points in two or three dimensions, coloured by one of their attributes.

Dimension legend: W rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.representations.vectors import component_titles, name_axes, wrapped
from bert_tf.plots.theme import COLOUR_BAR, LEGEND_ABOVE, apply_theme, escape, evenly_spaced, head_colours, ramp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bert_tf.explain.datasets.dataset import RowMap


#: Name in `row_attributes` -> title on screen.
TITLES = {
    "label": "Label in the file",
    "predicted": "Predicted class",
    "right": "Class right or wrong",
    "predicted_probability": "Probability of the class",
    "first_prediction": "First prediction right or wrong",
    "hidden_probability": "Probability of the hidden word",
    "is_next": "P(IsNext)",
    "in_order": "P(in order)",
    "suspected": "Tokens that look replaced",
    "perplexity": "Pseudo-perplexity",
    "tokens": "Tokens",
}
#: The attributes that are probabilities, from 0 to 1.
PROBABILITY_ATTRIBUTES = ("predicted_probability", "hidden_probability", "is_next", "in_order")
_SYMBOLS = ("circle", "diamond", "square", "x", "cross", "triangle-up")
# Plotly has other symbols in three dimensions.
_SOLIDS = ("circle", "diamond", "square", "x", "cross", "square-open")
_UNKNOWN, _OTHERS = "not known", "others"
_GREY = "#8a92a0"


def groups_of(values: Sequence[Any]) -> list[tuple[str, list[int]]]:
    """The groups of rows that share a colour and a symbol; each is one trace of the figure.

    Args:
        values: sequence of str, float or None. The attribute of each row; None where it is unknown.
    Returns:
        list of (name, indices of its rows): the most frequent names in alphabetical order, at most six including
        "others"; with numbers one group "" of all rows; last the group "not known".
    """
    known = [index for index, value in enumerate(values) if value is not None]
    unknown = [index for index, value in enumerate(values) if value is None]
    if any(isinstance(values[index], float) for index in known):
        groups = {"": known}
    else:
        by_name: dict[str, list[int]] = {}
        for index in known:
            by_name.setdefault(values[index], []).append(index)
        names = sorted(by_name, key=lambda name: (-len(by_name[name]), name))
        names = names if len(names) <= len(_SYMBOLS) else names[: len(_SYMBOLS) - 1]
        groups = {name: by_name[name] for name in sorted(names)}
        rest = [index for index in known if values[index] not in groups]
        groups |= {_OTHERS: sorted(groups.get(_OTHERS, []) + rest)} if rest else {}
    return [*groups.items(), *([(_UNKNOWN, unknown)] if unknown else [])]


def drawn_rows(values: Sequence[Any], visible: Sequence[int] | None = None) -> list[tuple[int, str, list[int]]]:
    """The groups of `groups_of` with the visible rows only.

    Args:
        values: as in `groups_of`.
        visible: sequence of int or None. The indices of the visible rows; None for all.
    Returns:
        list of (index of the colour and symbol, name, indices of the visible rows), without empty groups.
    """
    visible_indices = set(range(len(values)) if visible is None else visible)
    groups = [
        (style, name, [index for index in rows if index in visible_indices])
        for style, (name, rows) in enumerate(groups_of(values))
    ]
    return [(style, name, rows) for style, name, rows in groups if rows]


def row_scatter(
    coordinates: np.ndarray,
    tips: Sequence[str],
    name: str,
    values: Sequence[Any],
    axes: Sequence[str] = ("", "", ""),
    visible: Sequence[int] | None = None,
    chosen: int | None = None,
    near: Sequence[int] = (),
    dark: bool = False,
) -> go.Figure:
    """Rows as points; a category has a colour and a symbol, a number a colour on a scale.

    Args:
        coordinates: float [W, K], with K 2 or 3.
        tips: sequence of W str. The tooltip of each row.
        name: str. The attribute, a key of `TITLES`.
        values: sequence of W values. The attribute of each row, as in `groups_of`.
        axes: sequence of str. The titles of the axes.
        visible: sequence of int or None. The indices of the rows to draw, in the colours they have among all rows; None
            for all.
        chosen: int or None. The index of the row with a thick ring.
        near: sequence of int. The indices of the rows with a thin ring.
        dark: bool. Whether the figure is drawn for a dark page.
    """
    figure, coordinates = go.Figure(), np.asarray(coordinates, float)
    space = coordinates.shape[1] == 3
    numbers = [_scaled(name, value) for value in values if isinstance(value, float)]
    for style, group, rows in drawn_rows(values, visible):
        if numbers and group != _UNKNOWN:
            marker = _scale(name, [values[index] for index in rows], numbers, dark)
        else:
            is_rest = group in (_UNKNOWN, _OTHERS)
            symbol = (_SOLIDS if space else _SYMBOLS)[style % 6]
            marker = {"color": _GREY if is_rest else head_colours(dark)[style], "symbol": symbol}
            marker |= {"symbol": "circle-open"} if group == _UNKNOWN else {}
        edge = {"width": 1, "color": _GREY if numbers else "#171b22" if dark else "#ffffff"}
        # By default Streamlit fades all points but the selected one, which would hide their colours.
        opaque: dict[str, Any] = {"marker": {"opacity": 1}}
        selection = {} if space else {"selected": opaque, "unselected": opaque}
        figure.add_trace(
            _points(
                coordinates[rows],
                name=escape(group),
                marker={"size": 5 if space else 11, "line": edge, **marker},
                **selection,
                text=[wrapped(tips[index]) for index in rows],
                customdata=[f"{TITLES[name]}: {_formatted(name, values[index])}" for index in rows],
                hovertemplate="%{text}<br>%{customdata}<extra></extra>",
            )
        )
    rings = [(chosen, 21, 3.0)] if chosen is not None else []
    for index, size, width in rings + [(neighbour, 17, 1.5) for neighbour in near]:
        figure.add_trace(_ring(coordinates[index], size, width, dark))
    figure.update_layout(showlegend=not numbers, legend=LEGEND_ABOVE)
    name_axes(figure, axes, space)
    return apply_theme(figure, dark, 460)


def _points(coordinates, **settings):
    """A trace of points, float [W, K]."""
    kind = go.Scatter3d if coordinates.shape[1] == 3 else go.Scatter
    return kind(**dict(zip("xyz", coordinates.T.tolist())), mode="markers", **settings)


def _scale(name, values, all_values, dark):
    """Markers with colours on a scale that spans the values of all rows."""
    low, high = (0.0, 1.0) if name in PROBABILITY_ATTRIBUTES else (min(all_values), max(all_values))
    ends = [_formatted(name, math.exp(end) if name == "perplexity" else end) for end in (low, high)]
    # The palest colours would not be visible on the page's background.
    stops = ramp(dark)[2:]
    return {
        "color": [_scaled(name, value) for value in values],
        "cmin": low,
        "cmax": high if high > low else low + 1,
        "colorscale": evenly_spaced(stops),
        "colorbar": {
            **COLOUR_BAR,
            "title": {"text": TITLES[name]},
            "tickvals": [low, high] if high > low else [low],
            "ticktext": ends if high > low else ends[:1],
        },
    }


def _scaled(name, value):
    """The position of a number on its scale: logarithmic for pseudo-perplexities."""
    return math.log(value) if name == "perplexity" else value


def _formatted(name, value):
    if value is None or isinstance(value, str):
        return escape(value or _UNKNOWN)
    return f"{value:.1%}" if name in PROBABILITY_ATTRIBUTES else f"{value:,.4g}"


def _ring(place, size, width, dark):
    space = len(place) == 3
    return _points(
        place[None],
        marker={
            "symbol": "circle-open",
            "size": 0.6 * size if space else size,
            "line": {"width": width},
            "color": "#e4e7ec" if dark else "#1d2330",
        },
        hoverinfo="skip",
        showlegend=False,
    )


def map_of_rows(row_map: RowMap, dark: bool = False) -> go.Figure:
    """The points of a `RowMap`; the chosen row and the rows nearest to it have rings."""
    numbers = list(row_map.rows)
    chosen = None if row_map.near is None else numbers.index(row_map.near)
    near = [numbers.index(number) for number, _ in row_map.nearest or ()]
    tips = [f"{number}: {text}" for number, text in zip(numbers, row_map.texts)]
    axes = component_titles(row_map.explained_variance, 3)
    values = list(row_map.values)
    return row_scatter(row_map.coordinates, tips, row_map.attribute, values, axes, None, chosen, near, dark)
