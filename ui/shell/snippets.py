"""The few lines of Python that do what a page shows, with the visitor's own texts and settings in them.

A page hands over what it shows (``give``); the front door draws the lines below it (``draw``). The page's record
names the function that writes them, which takes the view and what the page gave.
"""

import streamlit as st

from ui.session import state
from ui.shell import catalogue

_GIVEN = "_snippet"


def begin():
    """Forget what the last run showed. Once at the top of a run."""
    st.session_state.pop(_GIVEN, None)


def give(*shown, **more):
    """Hand over what the page shows, as its snippet function takes it after the view; the last call counts."""
    st.session_state[_GIVEN] = (shown, more)


def add(**more):
    """Hand over something else that the page shows, beside what was given."""
    shown, known = st.session_state[_GIVEN]
    st.session_state[_GIVEN] = (shown, {**known, **more})


def draw():
    """A menu with the lines of what was given; nothing where nothing is shown."""
    given = st.session_state.pop(_GIVEN, None)
    if given is None:
        return
    shown, more = given
    view = state.view()
    page = catalogue.pages()[view.page]
    label = "Copy as a command" if page.snippet_language == "bash" else "Copy as Python"
    with st.popover(label, icon=":material/code:", type="tertiary"):
        st.code(page.snippet(view, *shown, **more), language=page.snippet_language)
