"""Parts of a model that can be switched off, as cells of a grid and as text for a link. No Streamlit.

A row of the grid is a layer. Its columns are the heads, then the feed-forward block, then the whole layer.
"""

from bert_tf.explain import Ablation


def cells_as_text(cells, heads):
    """Cells as text: "3-1.4.f_5-x" are heads 1 and 4 and the feed-forward block of layer 3, and the whole layer 5."""
    rows = {}
    for layer, column in sorted(cells):
        rows.setdefault(layer, []).append({heads: "f", heads + 1: "x"}.get(column, str(column + 1)))
    return "_".join(f"{layer + 1}-{'.'.join(names)}" for layer, names in rows.items())


def cells_from_text(text, layers, heads):
    """The cells that a text names, a frozenset of (row, column); names of parts that do not exist are ignored."""
    named_cells = set()
    for row in text.split("_"):
        layer, _, names = row.partition("-")
        for name in names.split("."):
            column = {"f": heads, "x": heads + 1}.get(name, _number(name, heads))
            if column is not None and _number(layer, layers) is not None:
                named_cells.add((_number(layer, layers), column))
    return frozenset(named_cells)


def _number(text, count):
    """The index from 0 of a number that counts from 1; None unless it is 1 to ``count``."""
    is_valid = text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= count
    return int(text) - 1 if is_valid else None


def ablation_of_cells(cells, tokens, heads):
    """The ``Ablation`` of cells of the grid; tokens: positions that no token may attend to."""
    return Ablation(
        heads=tuple(sorted(cell for cell in cells if cell[1] < heads)),
        feed_forward=tuple(sorted(layer for layer, column in cells if column == heads)),
        layers=tuple(sorted(layer for layer, column in cells if column == heads + 1)),
        tokens=tuple(tokens),
    )


def name(layer, column, heads):
    """The name of a cell on the screen, with layers and heads from 1."""
    part = {heads: "the feed-forward block", heads + 1: "the whole layer"}.get(column, f"head {column + 1}")
    return f"layer {layer + 1}, {part}"


def all_cells(layers, heads):
    """All cells of the grid, row by row."""
    return [(layer, column) for layer in range(layers) for column in range(heads + 2)]
