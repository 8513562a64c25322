"""Figures in words and as tables, for readers who cannot see them or cannot hover with a pointer.

Words and tables come from the Plotly figure itself; a point is described by its hover template.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_ROWS, MOST_COLUMNS = 400, 130
_LISTED = 6  # a figure with at most this many bars is described bar by bar
_PLACEHOLDER = re.compile(r"%\{([\w.]+)(?:\[(\d+)\])?(?::([^}]*))?\}")
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_EMPTY = "–"  # NaN: a cell of a map or a place of a curve without a value
_KINDS = ("heatmap", "bar", "scatter", "scatter3d")


def description(figure: go.Figure) -> str:
    """Describe a figure in a few sentences: its size, its largest and its smallest values.

    Args:
        figure: plotly.graph_objects.Figure with traces of the kinds Heatmap, Bar, Scatter and Scatter3d.
    """
    traces = _labelled_traces(figure)
    if traces and all(labelled.is_cloud for labelled in traces):
        return _cloud(traces)
    kinds: dict[str, Callable[[_LabelledTrace], str]] = {"heatmap": _heatmap, "bar": _bars}
    return " ".join(filter(None, (kinds.get(labelled.trace.type, _line)(labelled) for labelled in traces)))


def table(figure: go.Figure) -> tuple[list[str], list[list[str]], tuple[int, int]]:
    """A figure as a table.

    Args:
        figure: plotly.graph_objects.Figure, as of `description`.

    Returns:
        (header, rows, (rows left out, columns left out)), where header and rows hold strings. A single heatmap becomes
        a matrix, any other figure has a row for each point. Rows and columns beyond ``MOST_ROWS`` and
        ``MOST_COLUMNS`` are left out.
    """
    traces = _labelled_traces(figure)
    if len(traces) == 1 and traces[0].trace.type == "heatmap":
        return _matrix(traces[0])
    points = [(labelled, index) for labelled in traces for index in labelled.indices()]
    has_series = len({labelled.name for labelled in traces}) > 1
    rows = [[*([labelled.name] if has_series else []), labelled.point(index)] for labelled, index in points[:MOST_ROWS]]
    return ["Series", "Point"] if has_series else ["Point"], rows, (len(points) - len(rows), 0)


def plain(label: object) -> str:
    """A Plotly label, which may contain a subset of HTML, as plain text."""
    text = re.sub(r"<span[^>]*font-size:1px.*?</span>", "", str(label))
    text = re.sub(r":?<br>", lambda match: ": " if match.group()[0] == ":" else ", ", text).replace("\u200b", "")
    return html.unescape(re.sub(r"</?\w[^>]*>", "", text)).strip()


def written(value: float, form: str) -> str:
    """A number in a d3 format, which is Python's format with two additions: "~" removes trailing zeros, "s" adds a
    prefix (k, M, G, T). NaN is a dash."""
    value = float(value)
    if math.isnan(value):
        return _EMPTY
    if form.endswith("s"):
        size, prefix = next(((size, prefix) for size, prefix in _PREFIXES if abs(value) >= size), (1, ""))
        return f"{value / size:.3g}{prefix}"
    if form == ",":
        return f"{value:,.10g}"
    text = format(value, form.replace("~", ""))
    return re.sub(r"\.?0+(?=$|e)", "", text) if "~" in form and "." in text else text


@dataclass(frozen=True, eq=False)
class _LabelledTrace:
    """A trace with the tick labels of its axes.

    Attributes:
        trace: a Plotly trace.
        labels: "x" and "y" -> dict from value to tick label, empty where the values are their own labels.
    """

    trace: Any
    labels: dict[str, dict]

    @property
    def name(self) -> str:
        return plain(self.trace.name or "")

    @property
    def is_cloud(self) -> bool:
        return self.trace.type.startswith("scatter") and "lines" not in (self.trace.mode or "")

    def numbers(self) -> np.ndarray:
        """The plotted values as float64: z of a heatmap, the lengths of bars, y of lines."""
        trace = self.trace
        is_horizontal = trace.type == "bar" and trace.orientation == "h"
        values = trace["z" if trace.type == "heatmap" else "x" if is_horizontal else "y"]
        return np.asarray([] if values is None else values, np.float64)

    def indices(self) -> Sequence:
        """Indices of all points; (row, column) of a heatmap."""
        return list(np.ndindex(self.numbers().shape)) if self.trace.type == "heatmap" else range(len(self.trace.y))

    def point(self, index: Any) -> str:
        """The text of a point, from the hover template."""
        default = "%{y}, %{x}: %{z:.4g}" if self.trace.type == "heatmap" else "%{x}: %{y:.4g}"
        template = re.sub(r"<extra>.*?</extra>", "", self.trace.hovertemplate or default)
        return plain(_PLACEHOLDER.sub(lambda match: self.filled(index, *match.groups()), template))

    def filled(self, index: Any, name: str, part: str | None, form: str | None) -> str:
        """The value of the placeholder "%{name[part]:form}" at a point."""
        if name == "fullData.name":
            return str(self.trace.name)
        value = self._at(index, name)
        if part is not None:
            value = value[int(part)]
        if name in self.labels:
            value = self.labels[name].get(value, value)
        if value is None:
            return "not known"
        return written(value, form) if form and not isinstance(value, str) else str(value)

    def _at(self, index: Any, name: str) -> Any:
        values = self.trace[name]
        if self.trace.type != "heatmap":
            return values[index]
        if name in ("x", "y"):
            number = index["yx".index(name)]
            return number if values is None else values[number]
        return values[index[0]][index[1]]


def _labelled_traces(figure: go.Figure) -> list[_LabelledTrace]:
    """The traces that can be described: of the known kinds, and with hover texts."""
    return [
        _LabelledTrace(trace, {name: _labels(figure, trace, name) for name in "xy"})
        for trace in figure.data
        if trace.hoverinfo != "skip" and trace.type in _KINDS
    ]


def _labels(figure: go.Figure, trace: Any, name: str) -> dict:
    if trace.type == "scatter3d":
        return {}
    axis = figure.layout[f"{name}axis{(trace[f'{name}axis'] or name)[1:]}"]
    return dict(zip(axis.tickvals, axis.ticktext)) if axis.ticktext else {}


def _cloud(traces: Sequence[_LabelledTrace]) -> str:
    counts = [(labelled.name, len(labelled.trace.x)) for labelled in traces]
    groups = ", ".join(f"{name} {number}" for name, number in counts if name)
    text = f"{sum(number for _, number in counts)} points{': ' if groups else ''}{groups}."
    for bar in (labelled.trace.marker.colorbar for labelled in traces):
        if bar.title.text and bar.ticktext:
            text += f" {plain(bar.title.text)}: from {bar.ticktext[0]} to {bar.ticktext[-1]}."
    return text


def _heatmap(labelled: _LabelledTrace) -> str:
    values = labelled.numbers()
    known = np.isfinite(values)
    if values.ndim != 2 or not known.any():
        return ""
    rows, columns = values.shape
    if rows > 1 and _is_symmetric(labelled.trace, values):
        # A similarity matrix: the diagonal is trivial, and every pair occurs twice.
        known &= np.tri(rows, k=-1, dtype=bool)
    order = np.argsort(np.where(known, -values, np.inf), axis=None, kind="stable")[: int(known.sum())]
    highest, lowest = ([divmod(int(index), columns) for index in part] for part in (order[:3], order[3:][-1:]))
    sentences = (
        f"{rows} rows by {columns} columns.",
        _sentence("Highest", labelled, highest),
        _sentence("Lowest", labelled, lowest),
    )
    return " ".join(filter(None, sentences))


def _is_symmetric(trace: Any, values: np.ndarray) -> bool:
    if trace.x is None or trace.y is None:
        return False
    return list(trace.x) == list(trace.y) and np.allclose(values, values.T, atol=1e-5, equal_nan=True)


def _bars(labelled: _LabelledTrace) -> str:
    values = labelled.numbers()
    if len(values) <= _LISTED:
        return _sentence(labelled.name, labelled, range(len(values)))
    order = np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")
    start = f"{labelled.name}, " if labelled.name else ""
    return _sentence(f"{start}{len(values)} bars, the longest", labelled, order[:3].tolist())


def _line(labelled: _LabelledTrace) -> str:
    values = labelled.numbers()
    known = np.flatnonzero(np.isfinite(values)).tolist()
    if not known:
        return ""
    names_of_points = {known[0]: "from", known[-1]: "to"}
    names_of_points.setdefault(known[int(np.argmax(values[known]))], "highest")
    names_of_points.setdefault(known[int(np.argmin(values[known]))], "lowest")
    points = "; ".join(f"{name} {labelled.point(index)}" for index, name in names_of_points.items())
    return f"{labelled.name + ': ' if labelled.name else ''}{points}."


def _sentence(start: str, labelled: _LabelledTrace, indices: Iterable) -> str:
    points = "; ".join(labelled.point(index) for index in indices)
    return f"{start + ': ' if start else ''}{points}." if points else ""


def _matrix(labelled: _LabelledTrace) -> tuple[list[str], list[list[str]], tuple[int, int]]:
    trace, (rows, columns) = labelled.trace, labelled.numbers().shape
    num_rows, num_columns = min(rows, MOST_ROWS), min(columns, MOST_COLUMNS)
    # A cell shows the first number of the hover template.
    number = next((match for match in _PLACEHOLDER.finditer(trace.hovertemplate or "") if match.group(3)), None)
    name, part, form = number.groups() if number else ("z", None, ".4g")
    cells = trace[name] if part is None else np.asarray(trace[name])[..., int(part)]
    side = [plain(labelled.filled((row, 0), "y", None, None)) for row in range(num_rows)]
    if trace.text is not None and all(isinstance(text, str) for text in trace.text):
        side = [plain(text) for text in trace.text[:num_rows]]  # the text of a row says more than its name
    top = [plain(labelled.filled((0, column), "x", None, None)) for column in range(num_columns)]
    body = [[label, *(written(value, form) for value in line[:num_columns])] for label, line in zip(side, cells)]
    return ["", *top], body, (rows - num_rows, columns - num_columns)
