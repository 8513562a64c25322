"""Parts of a model that can be switched off, as cells of a grid and as text for a link.

A row of the grid is a layer. Its columns are the heads, then the feed-forward block, then the whole layer.
"""

import math

import numpy as np
import streamlit as st

from bert_tf.explain import Ablation
from bert_tf.plots.diverging import diverging_ramp
from bert_tf.plots.interventions.ablation import by_kind
from ui.elements.cells import cells as draw_cells
from ui.session import state


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


def draw_shares(key, label, shares, summary, setting, strengths, legend):
    """Draw the shares of the heads and feed-forward blocks as a grid; a press writes the cell into the link.

    Args:
        key: of the component. label: what the grid has, for screen readers.
        shares: float [L, N + 1] of the N heads and the feed-forward block of each layer; NaN for no colour.
        summary: callable cell (layer, column) -> its description.
        setting: the name of the setting that has the chosen cell.
        strengths: float, a row for each layer; its largest value is at the cell that is chosen without a link.
        legend: the meanings of the ramp's two ends.

    Returns: the chosen cell.
    """
    layers, heads = len(shares), shares.shape[1] - 1
    linked_cells = cells_from_text(state.setting(setting, ""), layers, heads)
    strongest = np.unravel_index(strengths.argmax(), strengths.shape)
    picked_cell = min((cell for cell in linked_cells if cell[1] <= heads), default=tuple(map(int, strongest)))
    all_cells = list(np.ndindex(shares.shape))

    def pressed(layer, column):
        state.set_setting(setting, cells_as_text([(layer, column)], heads), "")

    shades = (0.5 + 0.5 * by_kind(shares, heads)).ravel().tolist()
    draw_cells(
        key,
        f"{label} Arrow keys move, Enter chooses.",
        "layer",
        [str(layer + 1) for layer in range(layers)],
        [*(str(head + 1) for head in range(heads)), "FF"],
        [summary(cell) for cell in all_cells],
        diverging_ramp(state.is_dark()),
        pressed,
        shades=[None if math.isnan(shade) else round(shade, 3) for shade in shades],
        picked=all_cells.index(picked_cell),
        breaks=[heads],
        hint="Press a head or a feed-forward block (FF). The colours of heads and of blocks are scaled separately.",
        legend=legend,
    )
    return picked_cell


def look_button(key, layer, head):
    """Draw a button that opens the attention of a head."""
    st.button(
        "Where it looks",
        icon=":material/arrow_forward:",
        type="tertiary",
        key=key,
        on_click=lambda: state.change_view(page="all_heads", layer=layer, head=head),
    )
