"""Two of the explorer's own components: a table of coloured cells, and words on colours."""

from ui.elements.component_registry import browser_value, register
from ui.widgets.formatting import direction

_CELLS, _MARKS = register("cells"), register("marks")


def cells(key, label, corner, rows, columns, tips, ramp, on_press=None, **look):
    """Draw a table of cells; ``on_press(row, column)`` follows a press on one.

    Args:
        label: what it is, for a screen reader. corner: what the columns are.
        rows, columns: their names.
        tips: what is said of each cell, row by row, as is all that follows for each cell.
        ramp: list of "#rrggbb".
        look: ``shades`` (floats from 0 to 1 on the ramp, None for none), ``texts``, ``edges`` (bools),
            ``off`` (bools: cells that a press switches), ``picked`` (index of one cell), ``strong`` (indices
            of rows), ``breaks`` (columns that begin a group), ``hint``, ``legend`` (what the ramp's
            ends mean).
    """

    def pressed():
        value = browser_value(key, "press")
        if not isinstance(value, dict) or not all(type(value.get(name)) is int for name in ("row", "column")):
            return
        if 0 <= value["row"] < len(rows) and 0 <= value["column"] < len(columns):
            on_press(value["row"], value["column"])

    data = {
        "label": label,
        "corner": corner,
        "rows": list(rows),
        "columns": list(columns),
        "tips": tips,
        "ramp": ramp,
        "shades": None,
        "texts": None,
        "edges": None,
        "off": None,
        "picked": None,
        "strong": [],
        "breaks": [],
        "hint": "",
        "legend": None,
        "still": on_press is None,
        **look,
    }
    if on_press is None:
        _CELLS(key=key, data=data)
    else:
        _CELLS(key=key, data=data, on_press_change=pressed)


def marks(key, parts, ramp, legend, hint):
    """Draw texts whose words stand on the colours of their scores.

    Args:
        parts: dict from "a" and "b" to lists of dicts in reading order: ``text`` and, for a word, ``tip``,
            ``shade`` (0 to 1 on the ramp), ``hidden`` (drawn as a mask), ``asked`` (framed).
        ramp: list of "#rrggbb".
        legend: what its two ends mean. hint: said while no word is pointed at.
    """
    texts = {side: "".join(part["text"] for part in parts.get(side) or ()) for side in "ab"}
    directions = {side: direction(text) for side, text in texts.items()}
    data = {"a": parts.get("a"), "b": parts.get("b"), "directions": directions}
    data |= {"ramp": ramp, "legend": legend, "hint": hint}
    _MARKS(key=key, data=data)
