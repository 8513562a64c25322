"""Register the components of ``assets/components``, draw them and read the values that they send."""

import json
import re
import time

import streamlit as st

from ui.shell.limits import ROOT

_FOLDER = ROOT / "assets" / "components"


def register(name, *included):
    """Register a component of ``assets/components``; it is drawn without an iframe.

    Args:
        name: of the component. included: names of the parts that it has in common with other components; their script
            and style stand before its own.

    Returns:
        callable (key, data, **callbacks) that draws the component; ``data`` must be serialisable as JSON.
    """
    parts = component_parts(name)
    for part in reversed(("shared", *included)):
        kinds = ("js",) if part == "shared" else ("css", "js")
        parts |= {kind: text + parts[kind] for kind, text in component_parts(part, kinds).items()}
    mount = st.components.v2.component(f"bert_{name}", **parts)

    def draw(key, data, **callbacks):
        mount(key=key, data={**data, "made": _made(key, data)}, **callbacks)

    return draw


def component_parts(name, kinds=("html", "css", "js")):
    """The files of a component: dict from "html", "css" and "js" to their text."""
    parts = {kind: (_FOLDER / f"{name}.{kind}").read_text("utf-8") for kind in kinds}
    # Streamlit sends the script with every drawing: comments and indents stay here.
    parts["js"] = re.sub(r"^\s+(?://.*\n)?|^//.*\n", "", parts["js"], flags=re.MULTILINE)
    return parts


def browser_value(key, name):
    """The value that the browser sent with the trigger ``name``, or None."""
    state = st.session_state.get(key)
    return state.get(name) if state else None


def _made(key, data):
    """The time at which this component first got this data, in microseconds: later data has a greater number.

    If a component is drawn twice before the browser has loaded its script, the script can run for the two drawings in
    either order (Chromium keeps the calls that wait for a script in a set). ``inOrder`` in ``shared.js`` skips the
    older drawing.
    """
    place, mark = f"_made_{key}", hash(json.dumps(data))
    known = st.session_state.get(place)
    if known is None or known[0] != mark:
        before = 0 if known is None else known[1]
        known = st.session_state[place] = mark, max(before + 1, time.time_ns() // 1000)
    return known[1]
