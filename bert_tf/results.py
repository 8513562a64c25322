"""The base class of results: each result writes its own JSON record, its own table and its own figures.

The command line's JSON, the pages' CSV, JSON and NPZ, the saved HTML and the notebook all come from the methods here.
Layers, heads and positions count from 0.
"""

from __future__ import annotations

import dataclasses
import math
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas
    import plotly.graph_objects as go


# Rows of a table, and characters of a cell, that a terminal or a notebook shows; `to_dict` and `to_frame` hold all.
_SHOWN_ROWS, _SHOWN_CHARACTERS = 60, 60


class Result:
    """Base of the frozen dataclasses that analyses return.

    A subclass names the functions that draw it, as ``class Flow(Result, figures={"map": "package.module:function"})``;
    each is called as ``function(result, dark=False)`` and is imported when the figure is first drawn. A notebook shows
    the first figure. A field with ``metadata={"export": False}`` is not exported. A field with
    ``metadata={"export": "arrays"}`` is a large array that only `to_arrays` exports.

    Example:
        @dataclasses.dataclass(frozen=True)
        class Length(Result):
            tokens: int

        Length(7).to_dict()  # {"tokens": 7}
    """

    _class_figures: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, figures: dict[str, str] | None = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        if figures is not None:
            cls._class_figures = figures

    @property
    def figures(self) -> dict[str, str]:
        """Name -> "module:function" of each figure. A subclass whose figures depend on its fields overrides this."""
        return self._class_figures

    def to_dict(self) -> dict[str, Any]:
        """The fields by name as plain JSON values: arrays and tuples become lists, NaN becomes None."""
        return {field.name: plain(getattr(self, field.name)) for field in _exported(self)}

    def to_frame(self) -> pandas.DataFrame:
        """The numbers as one table.

        Returns:
            pandas.DataFrame.
        Raises:
            TypeError: the result has no table.
        """
        raise TypeError(f"{type(self).__name__} has no table.")

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The fields that are arrays, by name: dict str -> `numpy.ndarray`."""
        values = ((field.name, getattr(self, field.name)) for field in _exported(self, arrays=True))
        return {name: value for name, value in values if isinstance(value, np.ndarray)}

    def to_text(self) -> str:
        """The table for a terminal: at most its first 60 rows."""
        return frame_text(self.to_frame())

    def figure(self, name: str | None = None, dark: bool = False) -> go.Figure:
        """One of the result's figures.

        Args:
            name: str or None. A key of `figures`; None for the first.
            dark: bool. Whether the figure is drawn for a dark page.

        Returns:
            plotly.graph_objects.Figure.

        Raises:
            ValueError: there is no figure of this name.
        """
        name = next(iter(self.figures), None) if name is None else name
        if name not in self.figures:
            known = ", ".join(self.figures) or "none"
            raise ValueError(f"{type(self).__name__} has no figure {name!r}; it has: {known}.")
        module, function = self.figures[name].split(":")
        return getattr(import_module(module), function)(self, dark=dark)

    def _repr_html_(self):
        if self.figures:
            return self.figure().to_html(include_plotlyjs="cdn", full_html=False)
        return _shown(self.to_frame()).to_html(index=False, na_rep="")


def frame(columns: dict[str, Any] | list[dict[str, Any]]) -> pandas.DataFrame:
    """A table of columns.

    Args:
        columns: dict str -> sequence or single value. Sequences are equally long; a single value fills its column. Or
            a list of dicts str -> value, one for each row; a key that a row lacks is empty there.

    Returns:
        pandas.DataFrame. A column of whole numbers with gaps has the dtype Int64: as floats, 3 would be written "3.0".
    """
    import pandas

    table = pandas.DataFrame(columns)
    for name in table.select_dtypes("float"):
        values = [row.get(name) for row in columns] if isinstance(columns, list) else columns[name]
        if isinstance(values, (list, tuple)):
            cells = [
                None if isinstance(value, (float, np.floating)) and math.isnan(value) else value for value in values
            ]
            present = [cell for cell in cells if cell is not None]
            if present and all(isinstance(cell, (int, np.integer)) for cell in present):
                table[name] = pandas.array(cells, dtype="Int64")
    return table


def with_named(columns: dict[str, Any], named: Iterable[tuple[str, Any]], kind: str) -> dict[str, Any]:
    """Columns for `frame`, and after them some whose names are a visitor's or a model's, such as its labels.

    Args:
        columns: dict str -> sequence. The columns of every such table.
        named: pairs of a name and its column.
        kind: str. What has these names, as "label". It stands before a name that is taken: "label token".

    Returns:
        dict str -> sequence.
    """
    table = dict(columns)
    for name, values in named:
        while name in table:
            name = f"{kind} {name}"
        table[name] = values
    return table


def frame_text(table: pandas.DataFrame) -> str:
    """A pandas table as lines for a terminal: at most its first 60 rows."""
    if table.empty:
        return "The table has no rows."
    text = _shown(table).to_string(
        index=False, na_rep="-", float_format="{:.4g}".format, max_colwidth=_SHOWN_CHARACTERS
    )
    rows_left = len(table) - _SHOWN_ROWS
    return text if rows_left <= 0 else f"{text}\n{rows_left:,} more rows: --json prints all."


def _shown(table):
    """The first rows of a table, in which pandas finds all gaps: it would write "<NA>" in Int64, "None" in objects.

    An empty text is a gap too.
    """
    shown = table.head(_SHOWN_ROWS).copy()
    for name, cells in table.head(_SHOWN_ROWS).items():
        if cells.dtype.kind == "O" or cells.dtype == "Int64":  # texts are of kind "O", whether objects or strings
            is_empty = np.array([isinstance(value, str) and not value for value in cells], bool)
            shown[name] = cells.astype(object).mask(cells.isna() | is_empty, math.nan)
    return shown


def plain(value: Any) -> Any:
    """A value for `json.dumps`: results and dataclasses as dicts, arrays as lists, NaN and infinity as None.

    Floats are rounded to seven decimals; those below 0.1 keep seven significant digits.
    """
    if isinstance(value, Result):
        return value.to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in _exported(value)}
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (float, np.floating)):
        return _rounded(float(value)) if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def _rounded(number):
    return round(number, 7) if abs(number) >= 0.1 else float(f"{number:.7g}")


def _exported(value, arrays=False):
    wanted = (True, "arrays") if arrays else (True,)
    return [field for field in dataclasses.fields(value) if field.metadata.get("export", True) in wanted]
