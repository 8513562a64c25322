"""Undo and redo of what a visitor did to the texts and masks."""

import streamlit as st

from ui.session import state

_HISTORY = "_history"
_LONGEST = 100  # steps that are kept


def record():
    """Add the view's texts and masks to the history if they have changed.

    Call it before the page is drawn, and after a change that others may follow before it is.
    """
    steps, at = st.session_state.get(_HISTORY, ((), -1))
    now = _inputs(state.view())
    if at < 0 or steps[at] != now:
        steps = (*steps[: at + 1], now)[-_LONGEST:]
        st.session_state[_HISTORY] = steps, len(steps) - 1


def can_undo():
    """Whether there is a step before the current one."""
    return st.session_state.get(_HISTORY, ((), -1))[1] > 0


def can_redo():
    """Whether a step was undone."""
    steps, at = st.session_state.get(_HISTORY, ((), -1))
    return at + 1 < len(steps)


def undo():
    """Put the texts and masks of the step before into the view. Call it only from a callback."""
    _move(-1)


def redo():
    """Put the texts and masks of the step that was undone last into the view. Call it only from a callback."""
    _move(1)


def _move(step):
    if state.is_changed():  # by a press right before; what a page has corrected is no step of the visitor's
        record()
    steps, at = st.session_state.get(_HISTORY, ((), -1))
    if 0 <= at + step < len(steps):
        a, b, masks = steps[at + step]
        st.session_state[_HISTORY] = steps, at + step
        state.change_view(a=a, b=b, masks=masks, start=0)


def _inputs(view):
    return view.a, view.b, view.masks
