"""Register the components of ``assets/components``, draw them and read the values that they send."""

import json
import re
import time
import uuid

import streamlit as st

from ui.shell.limits import ROOT

_FOLDER = ROOT / "assets" / "components"
#: The most presses that the browser sends together, as in ``shared.js``; the greatest number of one.
_MOST_SENT, _MOST_NUMBER = 50, 2**53


def register(name, *included, large=False):
    """Register a component of ``assets/components``; it is drawn without an iframe.

    Args:
        name: of the component. included: names of the parts that it has in common with other components; their script
            and style stand before its own.
        large: whether its data are so large that a press that does not change them must not send them again. The
            browser is not told then which presses are answered, and draws nothing anew after one that is refused.

    Returns:
        callable (key, data, presses, **options) that draws the component. ``data`` must be serialisable as JSON.
        ``presses``: dict from an event that the component's script sends to a callable (value), which checks the value:
        a browser can send any. options: keyword arguments of Streamlit.
    """
    parts = component_parts(name)
    for part in reversed(("shared", *included)):
        kinds = ("js",) if part == "shared" else ("css", "js")
        parts |= {kind: text + parts[kind] for kind, text in component_parts(part, kinds).items()}
    mount = st.components.v2.component(f"bert_{name}", **parts)

    def draw(key, data, presses=None, **options):
        if presses:
            data = {**data, "session": _session()} | ({} if large else {"answered": _answered(key)})
            options["on_presses_change"] = lambda: _take(key, presses)
        mount(key=key, data={**data, "made": _made(key, data)}, **options)

    return draw


def component_parts(name, kinds=("html", "css", "js")):
    """The files of a component: dict from "html", "css" and "js" to their text."""
    parts = {kind: (_FOLDER / f"{name}.{kind}").read_text("utf-8") for kind in kinds}
    # Streamlit sends the script with every drawing: comments and indents stay here.
    parts["js"] = re.sub(r"^\s+(?://.*\n)?|^//.*\n", "", parts["js"], flags=re.MULTILINE)
    return parts


def browser_value(key, name):
    """The value that the browser sent under ``name``, or None."""
    state = st.session_state.get(key)
    return state.get(name) if state else None


def _take(key, handlers):
    """Hand the presses that this session has not had to their handlers, in their order.

    While a page computes, Streamlit keeps only the newest message of a component; so each message has all presses that
    the browser does not know as answered (``sender`` in ``shared.js``).
    """
    sent = browser_value(key, "presses")
    if not isinstance(sent, dict) or not isinstance(sent.get("presses"), list):
        return
    presses = [press for press in sent["presses"][-_MOST_SENT:] if _is_press(press)]
    if sent.get("session") != _session():
        presses = presses[-1:]  # those before it were for a session that is lost
    for number, event, value in presses:
        if number <= _answered(key):
            continue
        st.session_state[f"_answered_{key}"] = number
        if event in handlers:
            handlers[event](value)


def _is_press(press):
    if not isinstance(press, list) or len(press) != 3:
        return False
    number, event, _ = press
    return type(number) is int and 0 < number < _MOST_NUMBER and isinstance(event, str)


def _answered(key):
    """The number of the component's last press that this session has had; 0 before the first."""
    return st.session_state.get(f"_answered_{key}", 0)


def _session():
    """A mark of this session: the browser may still have presses that were for a session before it."""
    return st.session_state.setdefault("_session_mark", uuid.uuid4().hex)


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
