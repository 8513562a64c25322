"""The part of the page Predict with the prediction about the pair: next sentence, or sentence order."""

import dataclasses
import random

import streamlit as st

from ui.elements.toolbar import Button, toolbar
from ui.samples.examples import EXAMPLES, example
from ui.session import state
from ui.widgets import head_predictions

_BUNNY = example("Bunny after history").b
_CAPTIONS = {
    "nsp": "The model was trained to tell the next part of a text from a part of another text, and the subject alone "
    "often decides this: a high score does not say that B makes sense after A.",
    "sop": "The model was trained on two neighbouring parts of one text, swapped half of the time: their subject does "
    "not help.",
}


def draw(trace, side=""):
    """Draw the prediction for the pair, with buttons that swap the texts and that take another text B.

    Args:
        trace: ``Trace``. side: the end of the keys, "_other" for the second of two models, which has no buttons.
    """
    head = "sop" if "sop" in trace.heads else "nsp" if "nsp" in trace.heads else None
    if trace.text_b is None and head is None:
        return
    buttons = () if side else _buttons(trace)
    toolbar(f"c_pair{side}", *buttons, heading="Sentence order" if head == "sop" else "Next sentence")
    if not side and trace.text_b is not None:
        head_predictions.save_pair_prediction(trace)
    if head is None:
        head_predictions.missing(trace.model, "nsp")
    elif trace.text_b is None:
        st.caption("There is no text B. Type one, or press “Another B”.")
    else:
        head_predictions.pair_prediction(f"c_gauge{side}", trace)
        if not side:
            st.caption(_CAPTIONS[head])


def _buttons(trace):
    """The buttons that swap the texts, and that take another text B."""
    buttons = (
        Button(
            "swap",
            "Swap",
            "swap_horiz",
            "Swap text A and text B.",
            lambda: state.replace_view(state.view().swapped()),
        ),
        Button(
            "another_b",
            "Another B",
            "shuffle",
            "Put another text B after text A: a sentence of the examples, chosen at random.",
            _take_another,
        ),
    )
    return buttons[trace.text_b is None :]


def _take_another():
    """Put another example's text B into the view: first the bunny, then at random."""
    view = state.view()
    # Text -> its masks in its example, as those of a text B.
    texts = {
        text: tuple(dataclasses.replace(spot, source="b") for spot in one.masks if spot.source == side)
        for one in EXAMPLES
        for side, text in (("a", one.a), ("b", one.b))
        if text and text not in (view.a, view.b)
    }
    is_first = not st.session_state.get("_another_b", False)
    st.session_state["_another_b"] = True
    chosen = _BUNNY if is_first and _BUNNY in texts else random.choice(sorted(texts))
    masks = tuple(spot for spot in view.masks if spot.source == "a")
    if len(masks) < len(view.masks):  # a word of text B was hidden: one of the new text is hidden in its place
        masks += texts[chosen]
    state.replace_view(dataclasses.replace(view, b=chosen, masks=masks, start=0))
