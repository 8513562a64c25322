"""Parts of a model that can be switched off, as places of a grid and as text for a link. No Streamlit.

A row is a layer. Its columns are the heads, then the feed-forward block, then the layer as a whole.
"""

from bert_tf.explain import Ablation


def cells_as_text(cells, heads):
    """Places as text: "3-1.4.f_5-x" are heads 1 and 4 and the feed-forward block of layer 3, and layer 5."""
    rows = {}
    for layer, column in sorted(cells):
        rows.setdefault(layer, []).append({heads: "f", heads + 1: "x"}.get(column, str(column + 1)))
    return "_".join(f"{layer + 1}-{'.'.join(names)}" for layer, names in rows.items())


def cells_from_text(text, layers, heads):
    """The places that a text names, a frozenset of (row, column); what there is not is passed over."""
    found = set()
    for row in text.split("_"):
        layer, _, names = row.partition("-")
        for name in names.split("."):
            column = {"f": heads, "x": heads + 1}.get(name, _number(name, heads))
            if column is not None and _number(layer, layers) is not None:
                found.add((_number(layer, layers), column))
    return frozenset(found)


def _number(text, count):
    """An index from a number counted from 1, None if there is no such thing."""
    known = text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= count
    return int(text) - 1 if known else None


def ablation_of_cells(cells, tokens, heads):
    """The ``Ablation`` of places of the grid and of positions nobody attends to."""
    return Ablation(
        heads=tuple(sorted(place for place in cells if place[1] < heads)),
        feed_forward=tuple(sorted(layer for layer, column in cells if column == heads)),
        layers=tuple(sorted(layer for layer, column in cells if column == heads + 1)),
        tokens=tuple(tokens),
    )


def name(layer, column, heads):
    """A place as people read it."""
    what = {heads: "the feed-forward block", heads + 1: "the whole layer"}.get(column, f"head {column + 1}")
    return f"layer {layer + 1}, {what}"


def all_cells(layers, heads):
    """All places of the grid, row by row."""
    return [(layer, column) for layer in range(layers) for column in range(heads + 2)]
