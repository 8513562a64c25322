"""The menu "Copy as Python": a script that computes what the page shows, with the visitor's texts and settings.

A page calls ``give`` with its results; ``app.py`` then calls ``draw`` to draw the menu below the page. The function
that writes the script is the ``snippet`` of the page's ``Page``; it takes the view and the arguments of ``give``.
"""

import streamlit as st

from ui.session import state
from ui.shell import catalogue

_ARGUMENTS = "_snippet"


def begin():
    """Forget the results of the last run. Call it once at the top of a run."""
    st.session_state.pop(_ARGUMENTS, None)


def give(*results, **more):
    """Set the arguments of the page's snippet function that follow the view; the last call counts."""
    st.session_state[_ARGUMENTS] = (results, more)


def add(**more):
    """Add keyword arguments to those of the last ``give``."""
    results, known = st.session_state[_ARGUMENTS]
    st.session_state[_ARGUMENTS] = (results, {**known, **more})


def draw():
    """Draw the menu with the script; draw nothing if the page has not called ``give``."""
    arguments = st.session_state.pop(_ARGUMENTS, None)
    if arguments is None:
        return
    results, more = arguments
    view = state.view()
    page = catalogue.pages()[view.page]
    label = "Copy as a command" if page.snippet_language == "bash" else "Copy as Python"
    with st.popover(label, icon=":material/code:", type="tertiary"):
        st.code(page.snippet(view, *results, **more), language=page.snippet_language)
