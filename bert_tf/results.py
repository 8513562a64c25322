"""Results that describe themselves: one JSON schema, one table and one figure each, for every way out.

The command line's JSON, the pages' CSV, JSON and NPZ, the saved HTML and the notebook all come from the methods here.
Layers, heads and positions count from 0.
"""

import dataclasses
import math
from importlib import import_module

import numpy as np

# Rows of a table, and characters of a cell, that a terminal or a notebook shows; `to_dict` and `to_frame` hold all.
_SHOWN_ROWS, _SHOWN_CHARACTERS = 60, 60


class Result:
    """Base of the frozen dataclasses that analyses return.

    A subclass names the functions that draw it, as ``class Flow(Result, figures={"map": "package.module:function"})``;
    each is called as ``function(result, dark=False)`` and imported when it is first drawn. The first is the figure that
    a notebook shows. A field that is no part of the record has ``metadata={"export": False}``.
    """

    #: Name -> "module:function" of each figure.
    figures: dict = {}

    def __init_subclass__(cls, figures=None, **others):
        super().__init_subclass__(**others)
        if figures is not None:
            cls.figures = figures

    def to_dict(self):
        """The fields as plain JSON values, under their names: arrays and tuples become lists, NaN becomes None."""
        return {field.name: plain(getattr(self, field.name)) for field in _exported(self)}

    def to_frame(self):
        """The numbers as one table.

        Returns: pandas.DataFrame.
        """
        raise TypeError(f"{type(self).__name__} has no table.")

    def to_arrays(self):
        """The arrays among the fields, under their names: dict of `numpy.ndarray`."""
        values = ((field.name, getattr(self, field.name)) for field in _exported(self))
        return {name: value for name, value in values if isinstance(value, np.ndarray)}

    def to_text(self):
        """The table for a terminal, its first rows where it is long."""
        return frame_text(self.to_frame())

    def figure(self, name=None, dark=False):
        """One of the result's figures.

        Args:
            name: a key of `figures`; None for the first. dark: for a dark page.

        Returns: plotly.graph_objects.Figure.

        Raises: ValueError if there is no such figure.
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
        return self.to_frame().head(_SHOWN_ROWS).to_html(index=False, na_rep="")


def frame(columns):
    """A table from a dict of name -> values, equally long or single.

    Returns: pandas.DataFrame.
    """
    import pandas

    return pandas.DataFrame(columns)


def frame_text(table):
    """A pandas table as lines for a terminal, its first rows where it is long."""
    text = table.head(_SHOWN_ROWS).to_string(
        index=False, na_rep="-", float_format="{:.4g}".format, max_colwidth=_SHOWN_CHARACTERS
    )
    left = len(table) - _SHOWN_ROWS
    return text if left <= 0 else f"{text}\n{left:,} more rows: --json prints all."


def plain(value):
    """A value as `json.dumps` takes it: results and dataclasses as dicts, arrays as lists, NaN and infinity as None."""
    if isinstance(value, Result):
        return value.to_dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in _exported(value)}
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): plain(one) for key, one in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, (set, frozenset)):
        return sorted(plain(one) for one in value)
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (float, np.floating)):
        return round(float(value), 7) if math.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value


def _exported(value):
    return [field for field in dataclasses.fields(value) if field.metadata.get("export", True)]
