"""Figures in words and as tables: for those who do not see them, or have no pointer to hover with.

Both are read off the Plotly figure itself, and a point is said as hovering over it says it.
"""

import html
import re
from dataclasses import dataclass

import numpy as np

MOST_ROWS, MOST_COLUMNS = 400, 130
_LISTED = 6  # bars that are all said
_PLACE = re.compile(r"%\{([\w.]+)(?:\[(\d+)\])?(?::([^}]*))?\}")
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_KINDS = ("heatmap", "bar", "scatter", "scatter3d")


def description(figure):
    """What a figure shows, with its main numbers.

    Args:
        figure: of Plotly, with traces of the kinds Heatmap, Bar, Scatter and Scatter3d.

    Returns:
        str, a few sentences: how much there is, its greatest and its least.
    """
    drawn = _drawn(figure)
    if drawn and all(one.is_cloud for one in drawn):
        return _cloud(drawn)
    kinds = {"heatmap": _heatmap, "bar": _bars}
    return " ".join(filter(None, (kinds.get(one.trace.type, _line)(one) for one in drawn)))


def table(figure):
    """What a figure shows as a table.

    Returns:
        (header, rows, (rows, columns)): strings; a matrix for a single heatmap, otherwise a row for each point;
        the last are how many rows and columns are left out, beyond ``MOST_ROWS`` and ``MOST_COLUMNS``.
    """
    drawn = _drawn(figure)
    if len(drawn) == 1 and drawn[0].trace.type == "heatmap":
        return _matrix(drawn[0])
    points = [(one, place) for one in drawn for place in one.places()]
    named = len({one.name for one in drawn}) > 1
    rows = [[*([one.name] if named else []), one.point(place)] for one, place in points[:MOST_ROWS]]
    return ["Series", "Point"] if named else ["Point"], rows, (len(points) - len(rows), 0)


def plain(label):
    """A label of Plotly's, which reads a small part of HTML, as text."""
    text = re.sub(r"<span[^>]*font-size:1px.*?</span>", "", str(label))
    text = re.sub(r":?<br>", lambda found: ": " if found.group()[0] == ":" else ", ", text).replace("\u200b", "")
    return html.unescape(re.sub(r"</?\w[^>]*>", "", text)).strip()


def written(value, form):
    """A number in d3's format ``form``, which is Python's but for "~" (no zeros at the end) and "s" (k, M, G, T)."""
    value = float(value)
    if form.endswith("s"):
        size, prefix = next((one for one in _PREFIXES if abs(value) >= one[0]), (1, ""))
        return f"{value / size:.3g}{prefix}"
    if form == ",":
        return f"{value:,.10g}"
    text = format(value, form.replace("~", ""))
    return re.sub(r"\.?0+(?=$|e)", "", text) if "~" in form and "." in text else text


@dataclass(frozen=True, eq=False)
class _Drawn:
    """A trace with the names along its axes: dicts from value to text, empty where the values stand for themselves."""

    trace: object
    labels: dict

    @property
    def name(self):
        return plain(self.trace.name or "")

    @property
    def is_cloud(self):
        return self.trace.type.startswith("scatter") and "lines" not in (self.trace.mode or "")

    def numbers(self):
        """The values that the figure is about, as float64."""
        trace = self.trace
        lying = trace.type == "bar" and trace.orientation == "h"
        values = trace["z" if trace.type == "heatmap" else "x" if lying else "y"]
        return np.asarray([] if values is None else values, np.float64)

    def places(self):
        """Indices of all points; (row, column) of a heatmap."""
        return list(np.ndindex(self.numbers().shape)) if self.trace.type == "heatmap" else range(len(self.trace.y))

    def point(self, place):
        """One point in words."""
        usual = "%{y}, %{x}: %{z:.4g}" if self.trace.type == "heatmap" else "%{x}: %{y:.4g}"
        template = re.sub(r"<extra>.*?</extra>", "", self.trace.hovertemplate or usual)
        return plain(_PLACE.sub(lambda found: self.filled(place, *found.groups()), template))

    def filled(self, place, name, part, form):
        """What stands for "%{name[part]:form}" at a point."""
        if name == "fullData.name":
            return str(self.trace.name)
        value = self._at(place, name)
        if part is not None:
            value = value[int(part)]
        if name in self.labels:
            value = self.labels[name].get(value, value)
        if value is None:
            return "not known"
        return written(value, form) if form and not isinstance(value, str) else str(value)

    def _at(self, place, name):
        values = self.trace[name]
        if self.trace.type != "heatmap":
            return values[place]
        if name in ("x", "y"):
            index = place["yx".index(name)]
            return index if values is None else values[index]
        return values[place[0]][place[1]]


def _drawn(figure):
    """The traces that have something to say."""
    return [
        _Drawn(trace, {name: _labels(figure, trace, name) for name in "xy"})
        for trace in figure.data
        if trace.hoverinfo != "skip" and trace.type in _KINDS
    ]


def _labels(figure, trace, name):
    if trace.type == "scatter3d":
        return {}
    axis = figure.layout[f"{name}axis{(trace[f'{name}axis'] or name)[1:]}"]
    return dict(zip(axis.tickvals, axis.ticktext)) if axis.ticktext else {}


def _cloud(drawn):
    counts = [(one.name, len(one.trace.x)) for one in drawn]
    groups = ", ".join(f"{name} {number}" for name, number in counts if name)
    said = f"{sum(number for _, number in counts)} points{': ' if groups else ''}{groups}."
    for bar in (one.trace.marker.colorbar for one in drawn):
        if bar.title.text and bar.ticktext:
            said += f" {plain(bar.title.text)}: from {bar.ticktext[0]} to {bar.ticktext[-1]}."
    return said


def _heatmap(one):
    values = one.numbers()
    known = np.isfinite(values)
    if values.ndim != 2 or not known.any():
        return ""
    rows, columns = values.shape
    if rows > 1 and _mirrors_itself(one.trace, values):
        # Everything is most like itself, and each pair stands there twice.
        known &= np.tri(rows, k=-1, dtype=bool)
    order = np.argsort(np.where(known, -values, np.inf), axis=None, kind="stable")[: int(known.sum())]
    highest, lowest = ([divmod(int(at), columns) for at in part] for part in (order[:3], order[3:][-1:]))
    said = (f"{rows} rows by {columns} columns.", _sentence("Highest", one, highest), _sentence("Lowest", one, lowest))
    return " ".join(filter(None, said))


def _mirrors_itself(trace, values):
    same = trace.x is not None and list(trace.x) == list(trace.y)
    return same and np.allclose(values, values.T, atol=1e-5, equal_nan=True)


def _bars(one):
    values = one.numbers()
    if len(values) <= _LISTED:
        return _sentence(one.name, one, range(len(values)))
    order = np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")
    start = f"{one.name}, " if one.name else ""
    return _sentence(f"{start}{len(values)} bars, the longest", one, order[:3].tolist())


def _line(one):
    values = one.numbers()
    known = np.flatnonzero(np.isfinite(values)).tolist()
    if not known:
        return ""
    told = {known[0]: "from", known[-1]: "to"}
    for name, choose in (("highest", np.argmax), ("lowest", np.argmin)):
        told.setdefault(known[int(choose(values[known]))], name)
    said = "; ".join(f"{name} {one.point(place)}" for place, name in told.items())
    return f"{one.name + ': ' if one.name else ''}{said}."


def _sentence(start, one, places):
    said = "; ".join(one.point(place) for place in places)
    return f"{start + ': ' if start else ''}{said}." if said else ""


def _matrix(one):
    trace, (rows, columns) = one.trace, one.numbers().shape
    shown = min(rows, MOST_ROWS), min(columns, MOST_COLUMNS)
    # What stands in a cell is the first number that hovering writes.
    number = next((found for found in _PLACE.finditer(trace.hovertemplate or "") if found.group(3)), None)
    name, part, form = number.groups() if number else ("z", None, ".4g")
    cells = trace[name] if part is None else np.asarray(trace[name])[..., int(part)]
    side = [plain(one.filled((row, 0), "y", None, None)) for row in range(shown[0])]
    if trace.text is not None and all(isinstance(text, str) for text in trace.text):
        side = [plain(text) for text in trace.text[: shown[0]]]  # a text for each row says more than its name
    top = [plain(one.filled((0, column), "x", None, None)) for column in range(shown[1])]
    body = [[name, *(written(value, form) for value in line[: shown[1]])] for name, line in zip(side, cells)]
    return ["", *top], body, (rows - shown[0], columns - shown[1])
