"""How the explorer's own components are registered, drawn and heard."""

import json
import time

import streamlit as st

from ui.shell.limits import ROOT

_FOLDER = ROOT / "assets" / "components"


def register(name):
    """A component of ``assets/components``, without an iframe.

    Returns:
        callable (key, data, **callbacks) that draws it; ``data`` is what can be written as JSON.
    """
    parts = {kind: (_FOLDER / f"{name}.{kind}").read_text("utf-8") for kind in ("html", "css", "js")}
    parts["js"] = (_FOLDER / "shared.js").read_text("utf-8") + parts["js"]
    mount = st.components.v2.component(f"bert_{name}", **parts)

    def draw(key, data, **callbacks):
        mount(key=key, data={**data, "made": _made(key, data)}, **callbacks)

    return draw


def browser_value(key, name):
    """What the browser sent with the trigger ``name``, or None."""
    state = st.session_state.get(key)
    return state.get(name) if state else None


def _made(key, data):
    """When this data was first given to this component, in microseconds: later data has a greater number.

    Two drawings that follow each other before the browser has loaded the script can reach it in either order
    (Chromium keeps those who wait for a script in a set); ``inOrder`` in ``shared.js`` leaves the older one out.
    """
    place, mark = f"_made_{key}", hash(json.dumps(data))
    known = st.session_state.get(place)
    if known is None or known[0] != mark:
        before = 0 if known is None else known[1]
        known = st.session_state[place] = mark, max(before + 1, time.time_ns() // 1000)
    return known[1]
