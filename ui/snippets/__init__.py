"""The few lines of Python that do what a page shows, with the visitor's own texts and settings in them.

A page hands over what it shows (``give``); the front door draws the lines below it (``draw``). How they are written
stands in the modules here, one a group of pages: functions of the view and of what the page gave.
"""

import streamlit as st

from ui.session import state
from ui.snippets import asking, attention, comparing, files, learn, predicting, tasks, training, words

_GIVEN = "_snippet"

#: Page -> the function that writes its lines.
WRITERS = {
    "predict": predicting.predict,
    "attention": attention.attention,
    "modelview": attention.modelview,
    "neuron": attention.neuron,
    "methods": attention.methods,
    "heads": attention.heads,
    "lens": asking.lens,
    "ablation": asking.ablation,
    "contributions": asking.contributions,
    "saliency": asking.saliency,
    "patching": asking.patching,
    "concepts": files.concepts,
    "whatif": asking.whatif,
    "inputsum": words.inputsum,
    "meaning": words.meaning,
    "neighbours": words.neighbours,
    "factors": words.factors,
    "compare": comparing.compare,
    "cka": comparing.cka,
    "agreement": comparing.agreement,
    "tasks": tasks.tasks,
    "finetuned": tasks.finetuned,
    "newtask": tasks.newtask,
    "training": training.training,
    "timelapse": training.timelapse,
    "dataset": files.dataset,
    "architecture": learn.architecture,
    "oneway": learn.oneway,
    "electra": learn.electra,
    "family": learn.family,
}


def begin():
    """Forget what the last run showed. Once at the top of a run."""
    st.session_state.pop(_GIVEN, None)


def give(*shown, **more):
    """Hand over what the page shows, as its function of ``WRITERS`` takes it after the view; the last call counts."""
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
    is_command = view.page in COMMANDS
    with st.popover("Copy as a command" if is_command else "Copy as Python", icon=":material/code:", type="tertiary"):
        st.code(WRITERS[view.page](view, *shown, **more), language="bash" if is_command else "python")


#: Pages whose lines are for a shell.
COMMANDS = ("newtask",)
