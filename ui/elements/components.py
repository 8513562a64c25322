"""The explorer's own components: HTML, CSS and JavaScript of ``assets/components``, without an iframe.

Each function draws one component and hands what a visitor does to a callback, checked: what comes from a
browser may be anything.
"""

import uuid

import streamlit as st

from ui.elements.component_registry import browser_value, register
from ui.session import state
from ui.widgets.formatting import direction

_NAV, _CHIPS, _BARS, _GAUGE, _GRID, _LINES, _HEADS, _PICTURE = map(
    register, ("nav", "chips", "bars", "gauge", "grid", "lines", "heads", "picture")
)
_PICTURES = ("svg", "png")
MOST_STRANDS, FAINTEST_STRAND = 80, 0.06  # lines drawn of a head in the grid; share of its strongest weight


def nav(key, groups, pages, dark, on_go):
    """Draw links to the groups of pages and, in a second row, to the pages of one; ``on_go(name)`` follows a press.

    ``dark`` says whether this run draws for a dark page: where the browser knows better, the page runs again.
    """

    def pressed():
        value = browser_value(key, "go")
        if isinstance(value, str):
            on_go(value)

    data = {"groups": groups, "pages": pages, "dark": dark}
    _NAV(key=key, data=data, on_go_change=pressed, on_theme_change=state.keep_view_next_run)


def chips(key, shown, texts, on_toggle):
    """Draw the tokens as chips; ``on_toggle(text)`` gets the name of the spot that was pressed.

    Args:
        shown: of ``ui.elements.mask_chips.chips``. texts: (text A, text B), each drawn the way it runs.
    """

    def pressed():
        value = browser_value(key, "toggle")
        if isinstance(value, str):
            on_toggle(value)

    data = {"chips": shown, "directions": {side: direction(text) for side, text in zip("ab", texts)}}
    _CHIPS(key=key, data=data, on_toggle_change=pressed)


def bars(key, cards, on_fill=None):
    """Draw one card of bars for each mask; ``on_fill(position, token_id)`` follows a press.

    Without ``on_fill`` the bars are only looked at.
    """

    def pressed():
        value = browser_value(key, "fill")
        if isinstance(value, dict) and all(type(value.get(name)) is int for name in ("position", "token")):
            on_fill(value["position"], value["token"])

    if on_fill is None:
        _BARS(key=key, data={"cards": cards, "still": True})
    else:
        _BARS(key=key, data={"cards": cards}, on_fill_change=pressed)


def gauge(key, is_next, order=False):
    """Draw the score of a pair: the probability that B follows A, or (``order``) that the two are in order."""
    _GAUGE(key=key, data={"is_next": is_next, "order": order})


def grid(
    key,
    tiles,
    on_open,
    ramp,
    chosen=None,
    style="maps",
    dark=False,
    tallest=52,
    texts=None,
    name="all-heads",
    hint="Layers downwards, heads across; each map scaled to its own strongest.",
    label="Maps of all heads.",
):
    """Draw something small of every head; ``on_open(layer, head)`` follows a press.

    Args:
        tiles: ``bert_tf.plots.Tiles``.
        ramp: list of "#rrggbb", the colour scale from 0 to 1.
        chosen: pairs (layer, head) that are framed; None for those that ``heads`` draws on the same page, so
            that the maps are not sent again when they change.
        style: "maps", or "lines" between the tokens, coloured by ``tiles.sides``.
        dark: whether lines are drawn for a dark page. tallest: pixels a row of heads takes at most.
        texts: a short text for each head, layer by layer, shown where there is room; None for none.
        name: file name, without its ending, of the saved picture. hint, label: what is said of it.
    """

    def pressed():
        place = _head_sent(key, "open")
        if place:
            on_open(min(max(place[0], 0), tiles.layers - 1), min(max(place[1], 0), tiles.heads - 1))

    data = {
        "layers": tiles.layers,
        "heads": tiles.heads,
        "rows": tiles.rows,
        "columns": tiles.columns,
        "bytes": tiles.base64(),
        "sides": list(tiles.sides),
        "ramp": ramp,
        "style": style,
        "most": MOST_STRANDS,
        "faintest": FAINTEST_STRAND,
        "dark": dark,
        "tallest": tallest,
        "texts": texts,
        "name": name,
        "hint": hint,
        "label": label,
        "chosen": None if chosen is None else [{"layer": layer, "head": head} for layer, head in chosen],
    }
    _GRID(key=key, on_open_change=pressed, data=data)


def _head_sent(key, name):
    """The (layer, head) that the browser sent, or None."""
    value = browser_value(key, name)
    if isinstance(value, dict) and all(type(value.get(part)) is int for part in ("layer", "head")):
        return value["layer"], value["head"]
    return None


def heads(key, chosen, colours, several, on_drop):
    """Draw the names of the heads that are drawn together; ``on_drop(layer, head)`` follows a press on one.

    Args:
        chosen: pairs (layer, head). colours: "#rrggbb" of each.
        several: whether several may be chosen; the small maps of the page learn of it.
    """

    def pressed():
        place = _head_sent(key, "drop")
        if place in chosen:
            on_drop(*place)

    shown = [{"layer": layer, "head": head, "colour": colour} for (layer, head), colour in zip(chosen, colours)]
    _HEADS(key=key, data={"heads": shown, "several": several}, on_drop_change=pressed)


def lines(key, weights, name, colours=("",), least=0.0):
    """Draw one head or several as lines between tokens.

    Args:
        weights: ``bert_tf.plots.Lines``.
        name: file name, without its ending, of the saved picture.
        colours: "#rrggbb" of each head where there are several.
        least: weights below it are not drawn.
    """
    _LINES(
        key=key,
        data={
            "left": weights.left,
            "right": weights.right,
            "bytes": weights.base64(),
            "sides_left": weights.sides_left,
            "sides_right": weights.sides_right,
            "name": name,
            "colours": list(colours),
            "least": least,
        },
    )


@st.fragment
def picture(key, title, name, figure):
    """Draw the buttons that save a figure as SVG and as PNG, which the browser makes of it.

    Args:
        title: what the figure is called. name: of the file, without its ending.
        figure: callable () -> a Plotly figure; called when a button is pressed, and this part alone runs then.
    """
    asked = f"_{key}_asked"

    def pressed():
        value = browser_value(key, "ask")
        if isinstance(value, dict) and value.get("format") in _PICTURES:
            st.session_state[asked] = value

    data, wanted = {"title": title, "name": name}, st.session_state.pop(asked, None)
    if wanted:
        data |= {"format": wanted["format"], "figure": figure().to_json(), "number": uuid.uuid4().hex}
        if wanted.get("library"):
            from plotly.offline import get_plotlyjs

            data["library"] = get_plotlyjs()
    _PICTURE(key=key, data=data, on_ask_change=pressed)


_TOWER = register("tower")


def tower(key, boxes, heads, tokens, runs, chosen, layer, layers, on_open, on_layer):
    """Draw a model as boxes; ``on_open(name)`` follows a press, ``on_layer(index)`` a step to another layer.

    Args:
        boxes: dicts with ``name``, ``title``, ``size``, ``shape``, ``work`` and ``share`` (0 to 1).
        heads: names of the boxes that stand at the end.
        tokens: the first tokens of the text. runs: which way it does, "ltr" or "rtl".
        chosen: name of the open box. layer: index of the open layer, of ``layers``.
    """

    def opened():
        value = browser_value(key, "open")
        if isinstance(value, str):
            on_open(value)

    def moved():
        value = browser_value(key, "layer")
        if type(value) is int:
            on_layer(value)

    _TOWER(
        key=key,
        on_open_change=opened,
        on_layer_change=moved,
        data={
            "boxes": boxes,
            "heads": heads,
            "tokens": list(tokens),
            "direction": runs,
            "chosen": chosen,
            "layer": layer,
            "layers": layers,
        },
    )
