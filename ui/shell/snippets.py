"""The menu "Copy as Python": a script that computes what the page shows, with the visitor's texts and settings.

A page calls ``give`` with its results; `ui.shell.page_foot` then draws the menu below the page. The function
that writes the script is the ``snippet`` of the page's ``Page``; it takes the view and the arguments of ``give``.
"""

import streamlit as st

from ui.session import state
from ui.shell import catalogue

_ARGUMENTS = "_snippet"


def give(*results, **more):
    """Set the arguments of the page's snippet function that follow the view; the last call counts."""
    st.session_state[_ARGUMENTS] = (results, more)


def add(**more):
    """Add keyword arguments to those of the last ``give``."""
    results, known = st.session_state[_ARGUMENTS]
    st.session_state[_ARGUMENTS] = (results, {**known, **more})


def take():
    """The arguments of the last ``give`` since the last call, for `draw`: (results, dict); None if there are none."""
    return st.session_state.pop(_ARGUMENTS, None)


def draw(arguments, key="w_code_menu_here"):
    """Draw the menu with the script, which is written when a visitor opens it.

    Args:
        arguments: as `take` returns them; if None, nothing is drawn.
        key: of the menu.
    """
    if arguments is None:
        return
    results, more = arguments
    view = state.view()
    page = catalogue.pages()[view.page]
    label = "Copy as a command" if page.snippet_language == "bash" else "Copy as Python"
    menu = st.popover(label, icon=":material/code:", type="tertiary", key=key, on_change="rerun")
    if menu.open:
        menu.code(page.snippet(view, *results, **more), language=page.snippet_language)
