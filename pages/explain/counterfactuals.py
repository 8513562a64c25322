"""Counterfactuals: the answer to the same question when the text is changed a little."""

import streamlit as st

from pages.explain import minimal_pairs_view, variants_view
from pages.explain.snippets.counterfactuals import snippet
from ui.samples.examples import example
from ui.session import state
from ui.shell.page import MASKED, Page, Press
from ui.widgets import inputs, targets

PAGE = Page(
    name="counterfactuals",
    group="Explain",
    order=7,
    title="Counterfactuals",
    question="What if the text were different?",
    terms="what if minimal pairs HotFlip adversarial input reduction grammar bias gender BLiMP variants",
    summary=(
        "one side of the context alone, a word less, another word, A and B swapped, minimal pairs by "
        "pseudo-log-likelihood"
    ),
    presses={
        "": Press("chip", MASKED),
        "another word": Press(
            "chip",
            {**MASKED, "counterfactuals.kind": "word", "counterfactuals.word": "a4", "counterfactuals.with": "town"},
        ),
        "swap": Press("chip", {**MASKED, "counterfactuals.kind": "swap"}),
    },
    analyses=("counterfactual", "pseudo-likelihood", "minimal-pairs"),
    example=example("River bank"),
    settings=("kind", "at", "word", "with", "good", "bad", "all"),
    settings_help=(
        "`less` `word` `swap` `pairs`; the mask; the word (as in `mask`) and what is put there; a minimal "
        "pair; `1` for all examples"
    ),
    opens_rows=True,
    snippet=snippet,
)


_KINDS = {
    "sides": "One side only",
    "less": "One word less",
    "word": "Another word",
    "swap": "A and B swapped",
    "pairs": "Minimal pairs",
}


def page():
    page_inputs = inputs.page_inputs()
    if page_inputs is None:
        return
    shared, encoding = page_inputs
    kind = st.segmented_control(
        "Change",
        list(_KINDS),
        format_func=_KINDS.get,
        label_visibility="collapsed",
        **state.bind_setting("counterfactuals.kind", "w_counterfactuals_kind", "sides", _KINDS),
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
