"""The margins and the colour bar of a figure, computed before it is drawn.

Plotly can do this too: it draws the figure, measures every label, and draws it again with enough space. On the pages,
which draw up to four figures for each click, that takes half of the drawing time.
"""

from __future__ import annotations

import numbers
import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.plots.description import plain, written

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Pixels beside the labels of an axis, of its title below them, and of a title without labels.
_TICKS, _TITLE, _ALONE = 18, 34, 44
_SIZE = 12  # default font size of the labels
_FREE = 0.2  # share of the colour scale at each end that the mark of that end takes
_LONGEST = 180  # pixels of a label; longer labels are left to the browser, which knows the figure's width
_NARROW, _WIDE = set("fijlrtI.,:;!|'()[]{}/\\\"` -"), set("mwMWQO@%#&—…")


def fix_margins(figure: go.Figure) -> None:
    """Set the margins that the labels of the axes need, where they are known before drawing.

    These are left to the browser: three-dimensional plots, plots side by side, an axis at the top or at the right,
    slanted labels or labels that Plotly may rotate, very long labels, and labels that are neither text nor numbers.

    Args:
        figure: plotly.graph_objects.Figure after `apply_theme`. Its layout is changed.
    """
    # Each property of a Plotly object takes tens of microseconds: the axes are read once, as dicts.
    x_axes, y_axes = (
        {axis.plotly_name: axis.to_plotly_json() for axis in axes}
        for axes in (figure.select_xaxes(), figure.select_yaxes())
    )
    if not all("xaxis" in trace for trace in figure.data) or any(
        axis.get("domain") and axis["domain"][0] > 0 for axis in x_axes.values()
    ):
        return
    margin = {"b": 0, "l": 0, "r": 0, **figure.layout.margin.to_plotly_json()}
    for letter, axes, edge, side in (("x", x_axes, "b", "bottom"), ("y", y_axes, "l", "left")):
        sizes = [
            _axis_size(figure, name, axis, letter) if axis.get("side", side) == side else None
            for name, axis in axes.items()
        ]
        known_sizes = [size for size in sizes if size is not None]
        if len(known_sizes) < len(sizes):
            continue
        for name in axes:
            figure.layout[name].automargin = False
        margin[edge] = max([margin[edge], *known_sizes])
        if letter == "x":
            # Half of the first and of the last label may lie outside the axis.
            overhang = max([0, *(_overhang(figure, name, axis) for name, axis in axes.items())])
            margin["l"], margin["r"] = max(margin["l"], overhang), max(margin["r"], overhang)
    figure.layout.margin = margin


def detach_colorbar(figure: go.Figure) -> dict[str, Any] | None:
    """Remove the colour bar from a figure and return its contents.

    Args:
        figure: plotly.graph_objects.Figure. The colour bar is that of a heatmap or of points with ``colorbar`` set.

    Returns:
        dict with "stops" [(share, colour)], "marks" [(share, text)] and "name" str; None if the figure does not have
        exactly one colour bar.
    """
    coloured = [(trace, "z") for trace in figure.data if trace.type == "heatmap"]
    coloured += [(trace.marker, "c") for trace in figure.data if trace.type in ("scatter", "scatter3d")]
    bars = [(trace, letter) for trace, letter in coloured if trace.colorbar.to_plotly_json()]
    if len(bars) != 1 or not bars[0][0].colorscale or bars[0][0].reversescale:
        return None
    ((trace, letter),) = bars
    low_key, high_key = f"{letter}min", f"{letter}max"
    values = np.asarray(trace["z" if letter == "z" else "color"], np.float64)
    values = values[np.isfinite(values)]
    low = trace[low_key] if trace[low_key] is not None else values.min(initial=np.inf)
    high = trace[high_key] if trace[high_key] is not None else values.max(initial=-np.inf)
    if not np.isfinite([low, high]).all() or low >= high:
        return None
    trace.showscale = False
    # Plotly ignores one end without the other.
    trace[low_key], trace[high_key] = float(low), float(high)
    bar, form = trace.colorbar, trace.colorbar.tickformat or ".3~g"
    ticks = bar.tickvals
    if ticks is None:
        # A mark at 0 that is closer to an end would overlap the mark of that end.
        ticks = (low, 0.0, high) if _FREE < -low / (high - low) < 1 - _FREE else (low, high)
    names = bar.ticktext if bar.ticktext is not None else [written(value, form) if value else "0" for value in ticks]
    marks = [((value - low) / (high - low), name) for value, name in zip(ticks, names)]
    return {
        "stops": [(share, colour) for share, colour in trace.colorscale],
        "marks": [(float(share), name) for share, name in marks if 0 <= share <= 1],
        "name": plain(bar.title.text or ""),
    }


def _axis_size(figure: go.Figure, name: str, axis: dict[str, Any], letter: str) -> int | None:
    """Pixels that an axis needs at its edge; None if only the browser can measure them."""
    if axis.get("visible") is False:
        return 0
    has_title, angle = bool(axis.get("title", {}).get("text")), axis.get("tickangle")
    if axis.get("showticklabels") is False:
        return _ALONE if has_title else 0
    width, size = _widest(figure, name, axis, letter), _size(axis)
    if width is None or width > _LONGEST:
        return None
    space = _TICKS + (_TITLE if has_title else 0)
    if letter == "y" or angle in (-90, 90):
        return round(width) + space
    # Numbers and short labels need no more space if the browser rotates them.
    is_short = angle is None and width < 2.5 * size
    return size + space + 4 if angle == 0 or is_short else None


def _overhang(figure: go.Figure, name: str, axis: dict[str, Any]) -> int:
    """Pixels by which a label of a bottom axis may lie outside the axis, to the left and to the right."""
    if axis.get("visible") is False or axis.get("showticklabels") is False:
        return 0
    if axis.get("tickangle") in (-90, 90):
        return _SIZE
    return round((_widest(figure, name, axis, "x") or 0) / 2) + 4


def _size(axis):
    return axis.get("tickfont", {}).get("size") or _SIZE


def _widest(figure: go.Figure, name: str, axis: dict[str, Any], letter: str) -> float | None:
    """Pixels of an axis's widest label; None if the labels are unknown."""
    labels = _labels(figure, name, axis, letter)
    if labels is None:
        return None
    return max((_width(label) for label in labels), default=0) * _size(axis)


def _labels(figure: go.Figure, name: str, axis: dict[str, Any], letter: str) -> list[str] | None:
    """The labels of an axis: its tick texts, its categories, or for numbers one label of the expected width; None for
    values of other types."""
    for texts in (axis.get("ticktext"), axis.get("tickvals")):
        if texts is not None:
            return [plain(text) for text in texts]
    short = name.replace("axis", "")
    traces = [
        trace for trace in figure.data if f"{letter}axis" in trace and (trace[f"{letter}axis"] or letter) == short
    ]
    values = [value for trace in traces if trace[letter] is not None for value in trace[letter]]
    if axis.get("type") == "category" or any(isinstance(value, str) for value in values):
        return [plain(value) for value in values]
    if "%" in (axis.get("tickformat") or ""):
        return ["100%"]
    values = [value for value in values if value is not None]
    if not all(isinstance(value, numbers.Real) for value in values):
        return None
    largest = max(map(abs, values), default=1)
    return ["0.0000" if largest < 0.01 else "-0.5"]


def is_wide(letter: str) -> bool:
    """Whether a letter is as wide as it is high, as Chinese characters and emoji are."""
    return unicodedata.east_asian_width(letter) in "WF" or ord(letter) > 0x1F000


def _width(label: str) -> float:
    """The approximate width of a label, in multiples of its font size."""
    width = 0.0
    for letter in label:
        if unicodedata.combining(letter) or letter == "\u200b":
            continue
        if is_wide(letter):
            width += 1.2
        else:
            width += 0.3 if letter in _NARROW else 0.85 if letter in _WIDE else 0.62 if letter.isupper() else 0.52
    return width
