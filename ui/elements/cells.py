"""Two components: a table of coloured cells, and texts with coloured words."""

from ui.elements.component_registry import register
from ui.widgets.formatting import direction

_CELLS, _MARKS = register("cells"), register("marks")


def cells(key, label, corner, rows, columns, tips, ramp, on_press=None, **look):
    """Draw a table of coloured cells.

    Args:
        key: of the component.
        label: name of the table, for screen readers. corner: the text of the top left cell, which names the columns.
        rows, columns: the names of the rows and of the columns.
        tips: description of each cell, shown while the pointer is on it.
        ramp: list of "#rrggbb".
        on_press: callable (row, column), called when a cell is pressed; None for cells that cannot be pressed.
        look: for each cell ``shades`` (floats from 0 to 1 on the ramp, None for no colour), ``texts``, ``edges``
            (bools: cells with a frame) and ``off`` (bools: cells that are switched off; a press switches one);
            for the table ``picked`` (index of one cell), ``strong`` (indices of rows with a bold name), ``breaks``
            (columns that begin a group), ``hint`` (shown while the pointer is on no cell), ``legend`` (the
            meanings of the ramp's two ends).

    All lists with one value for each cell go row by row.
    """

    def pressed(value):
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
    _CELLS(key=key, data=data, presses=None if on_press is None else {"press": pressed})


def marks(key, parts, ramp, legend, hint):
    """Draw texts with each word on the colour of its score.

    Args:
        key: of the component.
        parts: dict from "a" and "b" to lists of dicts in reading order: ``text`` and, for a word, ``tip``,
            ``shade`` (0 to 1 on the ramp), ``hidden`` (drawn as [MASK]), ``asked`` (drawn with a frame).
        ramp: list of "#rrggbb".
        legend: the meanings of the ramp's two ends. hint: shown while the pointer is on no word.
    """
    texts = {side: "".join(part["text"] for part in parts.get(side) or ()) for side in "ab"}
    directions = {side: direction(text) for side, text in texts.items()}
    data = {"a": parts.get("a"), "b": parts.get("b"), "directions": directions}
    data |= {"ramp": ramp, "legend": legend, "hint": hint}
    _MARKS(key=key, data=data)
