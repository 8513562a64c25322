"""What if: the same question about a text that is a little different."""

import streamlit as st

from pages.explain import minimal_pairs_view, variants_view
from ui.session import state
from ui.widgets import inputs, targets

_KINDS = {
    "sides": "One side only",
    "less": "A word less",
    "word": "Another word",
    "swap": "A and B swapped",
    "pairs": "Minimal pairs",
}


def page():
    opened = inputs.page_inputs("What if the text were different?")
    if opened is None:
        return
    shared, encoding = opened
    kind = st.segmented_control(
        "Change",
        list(_KINDS),
        format_func=_KINDS.get,
        label_visibility="collapsed",
        **state.bind_setting("whatif.kind", "w_whatif_kind", "sides", _KINDS),
    )
    if kind == "pairs":
        minimal_pairs_view.draw(shared)
        return
    trace = targets.view_trace(shared, encoding)
    if trace is None or not targets.has_question(shared, trace):
        return
    {
        "sides": variants_view.one_side,
        "less": variants_view.a_word_less,
        "word": variants_view.another_word,
        "swap": variants_view.swapped_texts,
    }[kind](shared, trace)
