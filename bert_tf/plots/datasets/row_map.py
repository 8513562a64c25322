"""The rows of a file as points in the plane or in space, coloured by what is known of them.

Dimension legend: W rows.
"""

import math

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.representations.vectors import component_titles, name_axes, wrapped
from bert_tf.plots.theme import apply_theme, escape, head_colours, ramp

#: What is known of rows, as `row_attributes` names it, in words.
TITLES = {
    "label": "Label in the file",
    "predicted": "Class found",
    "right": "Class right or wrong",
    "predicted_probability": "Probability of the class",
    "first_guess": "First prediction right or wrong",
    "hidden_probability": "Probability of the hidden word",
    "is_next": "P(IsNext)",
    "in_order": "P(in order)",
    "suspected": "Tokens that look replaced",
    "perplexity": "Pseudo-perplexity",
    "tokens": "Tokens",
}
#: Those that are shares, from 0 to 1.
PROBABILITY_ATTRIBUTES = ("predicted_probability", "hidden_probability", "is_next", "in_order")
_SYMBOLS = ("circle", "diamond", "square", "x", "cross", "triangle-up")
# In space there are other shapes.
_SOLIDS = ("circle", "diamond", "square", "x", "cross", "square-open")
_UNKNOWN, _OTHERS = "not known", "others"
_GREY = "#8a92a0"


def groups_of(values):
    """The traces that rows are drawn in.

    Args:
        values: of each row: str, float, or None where it is not known.
    Returns:
        list of (name, indices of its rows): the commonest names in the order of the alphabet, at most six with
        "others", of numbers all as ""; at last those "not known".
    """
    known = [index for index, value in enumerate(values) if value is not None]
    unknown = [index for index, value in enumerate(values) if value is None]
    if any(isinstance(values[index], float) for index in known):
        groups = {"": known}
    else:
        by_name = {}
        for index in known:
            by_name.setdefault(values[index], []).append(index)
        kept = sorted(by_name, key=lambda name: (-len(by_name[name]), name))
        kept = kept if len(kept) <= len(_SYMBOLS) else kept[: len(_SYMBOLS) - 1]
        groups = {name: by_name[name] for name in sorted(kept)}
        rest = [index for index in known if values[index] not in groups]
        groups |= {_OTHERS: sorted(groups.get(_OTHERS, []) + rest)} if rest else {}
    return [*groups.items(), *([(_UNKNOWN, unknown)] if unknown else [])]


def drawn_rows(values, shown=None):
    """As `groups_of`, with those rows only that are shown: a list of (number of its look, name, indices) a trace."""
    shown = set(range(len(values)) if shown is None else shown)
    groups = [
        (look, name, [index for index in rows if index in shown]) for look, (name, rows) in enumerate(groups_of(values))
    ]
    return [one for one in groups if one[2]]


def row_scatter(coordinates, tips, name, values, axes=("", "", ""), shown=None, chosen=None, near=(), dark=False):
    """Rows as points in the plane or in space; a name has a colour and a shape, a number a colour on a scale.

    Args:
        coordinates: float [W, K], K 2 or 3. tips: what is said of each row.
        name: what the values are, as `TITLES` has it. values: of each row, as `groups_of` takes them.
        axes: titles of the axes. shown: indices of the rows that are drawn, each as it would be among all; None for
            all. chosen: index of the row with a ring, or None. near: of those with a thin ring. dark: for a dark page.
    """
    figure, coordinates = go.Figure(), np.asarray(coordinates, float)
    space = coordinates.shape[1] == 3
    numbers = [_scaled(name, value) for value in values if isinstance(value, float)]
    for look, group, rows in drawn_rows(values, shown):
        if numbers and group != _UNKNOWN:
            marker = _scale(name, [values[index] for index in rows], numbers, dark)
        else:
            is_rest = group in (_UNKNOWN, _OTHERS)
            symbol = (_SOLIDS if space else _SYMBOLS)[look % 6]
            marker = {"color": _GREY if is_rest else head_colours(dark)[look], "symbol": symbol}
            marker |= {"symbol": "circle-open"} if group == _UNKNOWN else {}
        edge = {"width": 1, "color": _GREY if numbers else "#171b22" if dark else "#ffffff"}
        # Streamlit marks a pressed point by fading the others, whose colours mean something.
        pressed = {} if space else {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}}
        figure.add_trace(
            _points(
                coordinates[rows],
                name=escape(group),
                marker={"size": 5 if space else 11, "line": edge, **marker},
                **pressed,
                text=[wrapped(tips[index]) for index in rows],
                customdata=[f"{TITLES[name]}: {_written(name, values[index])}" for index in rows],
                hovertemplate="%{text}<br>%{customdata}<extra></extra>",
            )
        )
    for index, size, width in ([(chosen, 21, 3)] if chosen is not None else []) + [(one, 17, 1.5) for one in near]:
        figure.add_trace(_ring(coordinates[index], size, width, dark))
    figure.update_layout(showlegend=not numbers, legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0})
    name_axes(figure, axes, space)
    return apply_theme(figure, dark, 460)


def _points(coordinates, **look):
    """A trace of points [W, K]."""
    kind = go.Scatter3d if coordinates.shape[1] == 3 else go.Scatter
    return kind(**dict(zip("xyz", coordinates.T.tolist())), mode="markers", **look)


def _scale(name, values, every, dark):
    """Markers on a scale that spans the values of all rows."""
    low, high = (0.0, 1.0) if name in PROBABILITY_ATTRIBUTES else (min(every), max(every))
    ends = [_written(name, math.exp(end) if name == "perplexity" else end) for end in (low, high)]
    # The palest colours would be lost on the page's ground.
    stops = ramp(dark)[2:]
    return {
        "color": [_scaled(name, value) for value in values],
        "cmin": low,
        "cmax": high if high > low else low + 1,
        "colorscale": [[index / (len(stops) - 1), colour] for index, colour in enumerate(stops)],
        "colorbar": {
            "thickness": 8,
            "outlinewidth": 0,
            "title": {"text": TITLES[name]},
            "tickvals": [low, high] if high > low else [low],
            "ticktext": ends if high > low else ends[:1],
        },
    }


def _scaled(name, value):
    """Where a number stands on its scale: pseudo-perplexities differ by factors."""
    return math.log(value) if name == "perplexity" else value


def _written(name, value):
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


def map_of_rows(row_map, dark=False):
    """The rows as points, the one asked about and those near it with rings; row_map: a `RowMap`."""
    numbers = list(row_map.rows)
    chosen = None if row_map.near is None else numbers.index(row_map.near)
    near = [numbers.index(number) for number, _ in row_map.nearest or ()]
    tips = [f"{number}: {text}" for number, text in zip(numbers, row_map.texts)]
    axes = component_titles(row_map.explained_variance, 3)
    values = list(row_map.values)
    return row_scatter(row_map.coordinates, tips, row_map.attribute, values, axes, None, chosen, near, dark)
