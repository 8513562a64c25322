"""Predict: hide words and see what the model expects there; does B follow A?"""

import dataclasses

import streamlit as st

from bert_tf.errors import InputError
from bert_tf.inference.predictions import fill_mask, vocabulary_id
from pages.predict.filling import filled
from pages.predict.snippets.predict import snippet
from ui.elements import components
from ui.elements.cards import cards
from ui.session import state
from ui.session.session_cache import cached
from ui.shell import snippets
from ui.shell.page import MASKED, Page, Press
from ui.shell.view import left_out
from ui.widgets import head_predictions, inputs
from ui.widgets.formatting import (
    count,
    escape_markdown,
    milliseconds,
    title,
)

PAGE = Page(
    name="predict",
    group="Predict",
    order=1,
    title="Predict",
    question="Hide a word, see what the model expects",
    summary=(
        "texts, tokens as chips to mask, the likeliest words at every mask, rank and probability of any word "
        "asked about, the next-sentence score"
    ),
    presses={"": Press("chip", MASKED)},
    settings=("ask",),
    settings_help="words asked about at every mask, with commas between them",
    opens_rows=True,
    snippet=snippet,
)


_ASK = "predict.ask"


def page():
    opened = inputs.page_inputs(folded=False)
    if opened is None:
        return
    shared, encoding = opened
    trace = _trace(shared, encoding)
    if trace is None:
        return
    if trace.text_b is None or not {"nsp", "sop", "mlm"} & shared.bert.heads:
        _words(shared, trace)
    else:
        left, right = st.columns([2, 1], gap="large")
        with left:
            _words(shared, trace)
        with right:
            _pair(trace)
    snippets.give(shared, trace, _asked(shared)[0])
    _footer(shared, trace)


def _trace(shared, encoding):
    """One pass over the view, or None with the reason said. The last one is kept: top k needs no new pass."""
    view = state.view()
    masked = inputs.masked_positions(shared, encoding)
    if masked is None:
        return None
    key = (shared.name, view.precision, view.a, view.b, masked)
    return cached("predict", key, lambda: shared.trace(view.a, view.b, masked))


def _words(shared, trace):
    """What the model says of single words, by its heads: predictions at masks, a score for every token."""
    if trace.replaced is not None:
        with inputs.heading("Replaced or original"):
            head_predictions.save_replaced(trace)
        head_predictions.replaced_tokens("c_replaced", trace)
        if not trace.masks:
            return
    _predictions(shared, trace)


def _predictions(shared, trace):
    view = state.view()
    if not trace.masks:
        st.header("Predictions", anchor=False)
        st.info(
            "Nothing is hidden yet. Press a word above, or type [MASK] in the text.",
            icon=":material/touch_app:",
        )
        return
    if trace.logits is None:
        st.header("Predictions", anchor=False)
        st.warning(
            f"{title(shared.name)} has no head for masked words, so it can predict none. "
            "Choose another model in the sidebar.",
            icon=":material/block:",
        )
        return
    asked, problems = _asked(shared)
    if view.fill == "joint" and len(trace.masks) > 1:
        joint = _joint(shared, trace, asked)
        answers, shown = joint.steps, cards(joint.steps, number_from=1)
    else:
        joint, answers = None, fill_mask(trace, shared.tokenizer, view.top_k, asked)
        shown = cards(answers)

    def fill(position, token_id):
        state.replace_view(filled(state.view(), shared, trace, position, token_id))

    # The menu of files stands in the heading: below the cards it would open outside a small window.
    with inputs.heading("Predictions"):
        head_predictions.save_predictions(trace, answers)
    _options(trace)
    for problem in problems:
        st.caption(escape_markdown(problem))
    components.bars("c_bars", shown, fill)
    st.caption(
        "The model predicts what is usual in the texts it was trained on: a confident prediction may be untrue, and a "
        "word that is missing here may still be right."
    )
    if joint:
        _joint_result(joint)


def _asked(shared):
    """(words of the visitor's own that the model has, sentences about those it has not)."""
    words = [word for part in state.setting(_ASK, "").split(",") if (word := part.strip())]
    most, found, problems = state.limits().max_top_k, [], []
    for word in words[:most]:
        try:
            vocabulary_id(shared.tokenizer, word)
            found.append(word)
        except InputError as error:
            problems.append(f"{error} Only words of one piece can be asked about.")
    if len(words) > most:
        problems.append(f"The first {most} words are asked about.")
    return tuple(found), problems


def _joint(shared, trace, asked):
    """All masks filled one after the other: as many passes as masks, so it is kept with its trace."""
    top_k = state.view().top_k
    return cached("predict_joint", (trace, top_k, asked), lambda: shared.fill_jointly(trace, top_k, asked))


def _options(trace):
    most = state.limits().max_top_k
    choices = sorted({k for k in (3, 5, 10, 20) if k <= most} | {state.view().top_k})
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.segmented_control("Guesses for each mask", choices, **state.bind_field("top_k", "w_top"))
        if len(trace.masks) > 1:
            st.segmented_control(
                "Several masks",
                ["independent", "joint"],
                **state.bind_field("fill", "w_fill"),
                format_func={"independent": "Each alone", "joint": "Surest first"}.get,
                help="Each alone: every mask is predicted while all the others are hidden. Surest first: the "
                "surest prediction is filled in, then the rest is predicted again with it in place.",
            )
        st.text_input(
            "Ask about a word",
            placeholder="One word, or several: Rome, Berlin",
            width=230,
            **state.bind_setting(_ASK, "w_predict_ask", ""),
        )


def _joint_result(joint):
    def fill_all():
        state.replace_view(dataclasses.replace(state.view(), a=joint.text_a, b=joint.text_b or "", masks=()))

    st.button("Fill in all first predictions", icon=":material/done_all:", key="w_fill_all", on_click=fill_all)


def _pair(trace):
    with inputs.heading("Next sentence" if trace.sop is None else "Sentence order"):
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            st.button(
                "Swap A and B",
                icon=":material/swap_horiz:",
                key="w_swap",
                type="tertiary",
                on_click=lambda: state.replace_view(state.view().swapped()),
            )
            head_predictions.save_pair_prediction(trace)
    if trace.nsp is None and trace.sop is None:
        st.warning(
            "This model has no next-sentence head, so it cannot say whether B follows A.",
            icon=":material/block:",
        )
        return
    head_predictions.pair_prediction("c_gauge", trace)
    st.caption(
        "It learnt to tell what came next from a stretch of another text, where the subject alone often decides: a "
        "high score does not say that B makes sense after A."
        if trace.sop is None
        else "It learnt this on two stretches of one text, half of the time swapped: the subject gives nothing away."
    )


def _footer(shared, trace):
    facts = (
        f"{title(shared.name)}, {state.view().precision}",
        count(trace.length, "token"),
        milliseconds(trace.seconds),
    )
    # Where the link cannot hold all of it, a line below says so.
    whole = not left_out(state.view(), state.limits())
    st.caption(" · ".join([*facts, *["the address of this page is a link to this view"] * whole]))
