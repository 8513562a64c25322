"""Tables as all pages show them: a true minus, no negative zero, as many decimals in all rows of a column."""

import copy
import math
import re
import zlib

import pandas as pd
import streamlit as st

from ui.widgets.formatting import number, share

# Larger tables are formatted by the browser, which has no true minus: Python takes about 15 ms for a thousand cells.
_MOST_CELLS = 1_000
_PRINTF = re.compile(r"%(\+?)(?:\.(\d))?([df])(.*)")
_ROW, _BORDER = 35, 2  # pixels of a row as Streamlit draws it, and of the border
_DIGITS = 3  # decimals of a column without a format


def show(data, column_config=None, **options):
    """Draw a table by `st.dataframe`.

    The numbers are shown by `ui.widgets.formatting.number`, with the decimals and the sign of the column's ``format``
    ("%+.2f", "percent", "localized" or none), and names of things by digits alone ("plain"); the values by which
    a press on the header sorts stay as they are. Bars of shares count from 0 to 100.

    Args:
        data: a frame, or a dict from the names of the columns to their values.
        column_config: as in `st.dataframe`. options: its other arguments.
    """
    frame = pd.DataFrame(data)
    columns = copy.deepcopy({name: column for name, column in (column_config or {}).items() if name in frame})
    texts = {}
    for name in frame.columns[[pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]]:
        if pd.api.types.is_bool_dtype(frame[name]):
            continue
        column = columns.get(name)
        settings = column.get("type_config") if isinstance(column, dict) else None
        settings = {} if settings is None else settings
        kind = settings.get("type", "number")
        if kind == "progress" and settings.get("format") in (None, "percent"):
            frame[name] = 100 * frame[name]
            settings.update(format="%.1f%%", min_value=0, max_value=100)
        elif kind == "number":
            texts[name] = _text(settings.get("format"), frame[name])
            if frame.size <= _MOST_CELLS:
                settings["format"] = None
    if not texts or frame.size > _MOST_CELLS:
        return st.dataframe(frame, column_config=columns, **options)
    plain = {name: str for name in frame.columns.difference([*texts])}
    frame.index = pd.RangeIndex(len(frame)) if options.get("hide_index") else frame.index
    return st.dataframe(frame.style.format(plain | texts), column_config=columns, **options)


def key_of(name, rows):
    """The key of a table whose rows can be ticked: Streamlit keeps the ticks of a key, which are places of rows.

    Args:
        name: str. The beginning of the key. rows: iterable. What tells the rows of the table from other ones, in order.

    Returns:
        str. Other rows have another key, and so no ticks of earlier ones.
    """
    return f"{name}_{zlib.crc32(repr(list(rows)).encode()):08x}"


def height(rows, most):
    """The height of a table in pixels, with this number of rows if they need at most ``most`` pixels."""
    return min(_ROW * (rows + 1) + _BORDER, most)


def _text(form, values):
    """The function that writes a number of a column with this format."""
    if form == "percent":
        return _unless_missing(share)
    if form == "plain":
        return _unless_missing("{:.0f}".format)
    match = _PRINTF.fullmatch(form or "")
    whole = (match[3] == "d") if match else bool((values.dropna() % 1 == 0).all())
    digits = 0 if whole else int(match[2]) if match and match[2] else _DIGITS
    sign, end = (bool(match[1]), match[4].replace("%%", "%")) if match else (False, "")
    return _unless_missing(lambda value: number(value, digits, sign) + end)


def _unless_missing(write):
    return lambda value: "" if value is None or math.isnan(value) else write(value)
