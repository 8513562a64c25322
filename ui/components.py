"""The explorer's own components: HTML, CSS and JavaScript of ``assets/components``, without an iframe.

Each function draws one component and hands what a visitor does to a callback, checked: what comes from a
browser may be anything.
"""

import streamlit as st

from ui.limits import ROOT

_FOLDER = ROOT / "assets" / "components"


def _register(name):
    parts = {kind: (_FOLDER / f"{name}.{kind}").read_text("utf-8") for kind in ("html", "css", "js")}
    parts["js"] = (_FOLDER / "shared.js").read_text("utf-8") + parts["js"]
    return st.components.v2.component(f"bert_{name}", **parts)


_NAV, _CHIPS, _BARS, _GAUGE, _GRID, _LINES = map(
    _register, ("nav", "chips", "bars", "gauge", "grid", "lines")
)


def _sent(key, name):
    """What the browser sent with the trigger ``name``, or None."""
    state = st.session_state.get(key)
    return state.get(name) if state else None


def nav(key, groups, pages, dark, on_go):
    """Draw links to the groups of pages and, in a second row, to the pages of one; ``on_go(name)`` follows a press.

    ``dark`` says whether this run draws for a dark page: where the browser knows better, the page runs again.
    """

    def pressed():
        value = _sent(key, "go")
        if isinstance(value, str):
            on_go(value)

    _NAV(key=key, data={"groups": groups, "pages": pages, "dark": dark}, on_go_change=pressed, on_theme_change=lambda: None)


def chips(key, shown, on_toggle):
    """Draw the tokens as chips; ``on_toggle(text)`` gets the name of the spot that was pressed."""

    def pressed():
        value = _sent(key, "toggle")
        if isinstance(value, str):
            on_toggle(value)

    _CHIPS(key=key, data={"chips": shown}, on_toggle_change=pressed)


def bars(key, cards, on_fill=None):
    """Draw one card of bars for each mask; ``on_fill(position, token_id)`` follows a press.

    Without ``on_fill`` the bars are only looked at.
    """

    def pressed():
        value = _sent(key, "fill")
        if isinstance(value, dict) and all(type(value.get(name)) is int for name in ("position", "token")):
            on_fill(value["position"], value["token"])

    if on_fill is None:
        _BARS(key=key, data={"cards": cards, "still": True})
    else:
        _BARS(key=key, data={"cards": cards}, on_fill_change=pressed)


def gauge(key, is_next):
    """Draw the next-sentence score: the probability that B follows A."""
    _GAUGE(key=key, data={"is_next": is_next})


def grid(key, tiles, layer, head, on_open, ramp):
    """Draw small maps of all heads; ``on_open(layer, head)`` follows a press.

    Args:
        tiles: ``bert_tf.plots.Tiles``.
        layer, head: the one that is open.
        ramp: list of "#rrggbb", the colour scale from 0 to 1.
    """

    def pressed():
        value = _sent(key, "open")
        if isinstance(value, dict) and all(type(value.get(name)) is int for name in ("layer", "head")):
            on_open(
                min(max(value["layer"], 0), tiles.layers - 1), min(max(value["head"], 0), tiles.heads - 1)
            )

    _GRID(
        key=key,
        on_open_change=pressed,
        data={
            "layers": tiles.layers,
            "heads": tiles.heads,
            "rows": tiles.rows,
            "columns": tiles.columns,
            "bytes": tiles.base64(),
            "layer": layer,
            "head": head,
            "ramp": ramp,
        },
    )


def lines(key, weights, name):
    """Draw one head as lines between tokens.

    Args:
        weights: ``bert_tf.plots.Lines``.
        name: file name, without its ending, of the saved picture.
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
        },
    )
