"""What a page settles of a figure before it is drawn: its margins, and its colour scale beside it.

Plotly can do both: it draws the figure, measures every label, and draws it once more with the room they need. On the
pages, where up to four figures are drawn anew at each press, that is half of all that drawing takes.
"""

import numbers
import unicodedata

import numpy as np

from bert_tf.plots.description import plain, written

_TICKS, _TITLE, _ALONE = 18, 34, 44  # pixels beside the labels of an axis, of its title below them, and without any
_SIZE = 12  # of the labels' font, where none is said
_FREE = 0.2  # share of the colour scale beside each end that the end's own mark needs
_LONGEST = 180  # pixels of a label; more is left to the browser, which knows the figure's width
_NARROW, _WIDE = set("fijlrtI.,:;!|'()[]{}/\\\"` -"), set("mwMWQO@%#&—…")


def fix_margins(figure):
    """Writes down the margins that the labels need, where they are known before drawing.

    Args: figure: dressed.

    Left to the browser are plots in space or beside each other, an axis at the top or at the right, labels that are
    slanted or may be turned, very long ones, and those that are neither text nor numbers.
    """
    across, up = list(figure.select_xaxes()), list(figure.select_yaxes())
    if not all("xaxis" in trace for trace in figure.data) or any(axis.domain and axis.domain[0] > 0 for axis in across):
        return
    margin = figure.layout.margin
    for letter, axes, edge, side in (("x", across, "b", "bottom"), ("y", up, "l", "left")):
        needed = [_needed(figure, axis, letter) if (axis.side or side) == side else None for axis in axes]
        if None in needed:
            continue
        for axis in axes:
            axis.automargin = False
        margin[edge] = max([margin[edge] or 0, *needed])
        if letter == "x":
            # The first and the last label may stand half beyond the axis.
            half = max([0, *(_half(figure, axis) for axis in axes)])
            margin.l, margin.r = max(margin.l or 0, half), max(margin.r or 0, half)


def detach_colorbar(figure):
    """Takes the colour bar out of a figure that has one, and tells what stands on it.

    Args: figure: its colour bar is a heatmap's own or that of points, with ``colorbar`` set.

    Returns: None without one, or else dict with "stops" [(share, colour)], "marks" [(share, text)] and "name" str.
    """
    coloured = [(trace, "z") for trace in figure.data if trace.type == "heatmap"]
    coloured += [(trace.marker, "c") for trace in figure.data if trace.type in ("scatter", "scatter3d")]
    bars = [(trace, letter) for trace, letter in coloured if trace.colorbar.to_plotly_json()]
    if len(bars) != 1 or not bars[0][0].colorscale or bars[0][0].reversescale:
        return None
    ((trace, letter),) = bars
    least, most = f"{letter}min", f"{letter}max"
    values = np.asarray(trace["z" if letter == "z" else "color"], np.float64)
    values = values[np.isfinite(values)]
    low = trace[least] if trace[least] is not None else values.min(initial=np.inf)
    high = trace[most] if trace[most] is not None else values.max(initial=-np.inf)
    if not np.isfinite([low, high]).all() or low >= high:
        return None
    trace.showscale = False
    # One without the other counts for nothing.
    trace[least], trace[most] = float(low), float(high)
    bar, form = trace.colorbar, trace.colorbar.tickformat or ".3~g"
    at = bar.tickvals
    if at is None:
        # Nearer to an end it would lie over that end's mark.
        at = (low, 0.0, high) if _FREE < -low / (high - low) < 1 - _FREE else (low, high)
    names = bar.ticktext if bar.ticktext is not None else [written(value, form) if value else "0" for value in at]
    marks = [((value - low) / (high - low), name) for value, name in zip(at, names)]
    return {
        "stops": [(share, colour) for share, colour in trace.colorscale],
        "marks": [(float(share), name) for share, name in marks if 0 <= share <= 1],
        "name": plain(bar.title.text or ""),
    }


def _needed(figure, axis, letter):
    """Pixels that an axis takes at its edge; None where only the browser can tell."""
    if axis.visible is False:
        return 0
    if axis.showticklabels is False:
        return _ALONE if axis.title.text else 0
    width, size = _widest(figure, axis, letter), axis.tickfont.size or _SIZE
    if width is None or width > _LONGEST:
        return None
    room = _TICKS + (_TITLE if axis.title.text else 0)
    if letter == "y" or axis.tickangle in (-90, 90):
        return round(width) + room
    # Numbers and short labels take no more room where the browser turns them.
    short = axis.tickangle is None and width < 2.5 * size
    return size + room + 4 if axis.tickangle == 0 or short else None


def _half(figure, axis):
    """Pixels by which a label of an axis below may stand out to the left and to the right."""
    if axis.visible is False or axis.showticklabels is False:
        return 0
    return _SIZE if axis.tickangle in (-90, 90) else round(_widest(figure, axis, "x") / 2) + 4


def _widest(figure, axis, letter):
    """Pixels of an axis's widest label; None where that cannot be told."""
    labels = _labels(figure, axis, letter)
    if labels is None:
        return None
    return max((_width(label) for label in labels), default=0) * (axis.tickfont.size or _SIZE)


def _labels(figure, axis, letter):
    """The labels of an axis: those that are given, or one number such as the browser will choose; None of other
    kinds."""
    if axis.ticktext is not None:
        return [plain(text) for text in axis.ticktext]
    if axis.tickvals is not None:
        return [plain(value) for value in axis.tickvals]
    name = (axis.plotly_name or letter).replace("axis", "")
    drawn = [trace for trace in figure.data if f"{letter}axis" in trace and (trace[f"{letter}axis"] or letter) == name]
    found = [value for trace in drawn if trace[letter] is not None for value in trace[letter]]
    if axis.type == "category" or any(isinstance(value, str) for value in found):
        return [plain(value) for value in found]
    if "%" in (axis.tickformat or ""):
        return ["100%"]
    found = [value for value in found if value is not None]
    if not all(isinstance(value, numbers.Real) for value in found):
        return None
    greatest = max(map(abs, found), default=1)
    return ["0.0000" if greatest < 0.01 else "-0.5"]


def _width(label):
    """How wide a label is, about, in sizes of its font."""
    wide = 0.0
    for letter in label:
        if unicodedata.combining(letter) or letter == "\u200b":
            continue
        if unicodedata.east_asian_width(letter) in "WF" or ord(letter) > 0x1F000:
            wide += 1.2
        else:
            wide += 0.3 if letter in _NARROW else 0.85 if letter in _WIDE else 0.62 if letter.isupper() else 0.52
    return wide
