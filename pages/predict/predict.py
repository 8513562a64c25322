"""Predict: the model's predictions for hidden words, and whether text B follows text A."""

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
    page_inputs = inputs.page_inputs(folded=False)
    if page_inputs is None:
        return
    shared, encoding = page_inputs
    trace = _trace(shared, encoding)
    if trace is None:
        return
    if trace.text_b is None or not {"nsp", "sop", "mlm"} & shared.bert.heads:
        _words(shared, trace)
    else:
        left_column, right_column = st.columns([2, 1], gap="large")
        with left_column:
            _words(shared, trace)
        with right_column:
            _pair(trace)
    snippets.give(shared, trace, _asked(shared)[0])
    _footer(shared, trace)


def _trace(shared, encoding):
    """The trace of the view, cached: another top k needs no new pass. None if the page shows why there is none."""
    view = state.view()
    masked = inputs.masked_positions(shared, encoding)
    if masked is None:
        return None
    key = (shared.name, view.precision, view.a, view.b, masked)
    return cached("predict", key, lambda: shared.trace(view.a, view.b, masked))


def _words(shared, trace):
    """Draw the model's answers about single words: predictions at masks, and of a discriminator a score per token."""
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
            f"{title(shared.name)} has no head for masked words, so it cannot predict them. "
            "Choose another model in the sidebar.",
            icon=":material/block:",
        )
        return
    asked, problems = _asked(shared)
    if view.fill == "joint" and len(trace.masks) > 1:
        joint = _joint(shared, trace, asked)
        answers, answer_cards = joint.steps, cards(joint.steps, number_from=1)
    else:
        joint, answers = None, fill_mask(trace, shared.tokenizer, view.top_k, asked)
        answer_cards = cards(answers)

    def fill(position, token_id):
        state.replace_view(filled(state.view(), shared, trace, position, token_id))

    # The download menu is in the heading: below the cards it would open outside a small window.
    with inputs.heading("Predictions"):
        head_predictions.save_predictions(trace, answers)
    _options(trace)
    for problem in problems:
        st.caption(escape_markdown(problem))
    components.bars("c_bars", answer_cards, fill)
    st.caption(
        "The model predicts what is usual in the texts it was trained on: a confident prediction may be untrue, and a "
        "word that is missing here may still be right."
    )
    if joint:
        _joint_result(joint)


def _asked(shared):
    """The words that the visitor asks about: (those in the model's vocabulary, sentences about the others)."""
    words = [word for part in state.setting(_ASK, "").split(",") if (word := part.strip())]
    most_words, known_words, problems = state.limits().max_top_k, [], []
    for word in words[:most_words]:
        try:
            vocabulary_id(shared.tokenizer, word)
            known_words.append(word)
        except InputError as error:
            problems.append(f"{error} You can only ask about words of one token.")
    if len(words) > most_words:
        problems.append(f"Only the first {most_words} words are used.")
    return tuple(known_words), problems


def _joint(shared, trace, asked):
    """The joint filling of all masks. It takes a pass for each mask, so it is cached with its trace."""
    top_k = state.view().top_k
    return cached("predict_joint", (trace, top_k, asked), lambda: shared.fill_jointly(trace, top_k, asked))


def _options(trace):
    most = state.limits().max_top_k
    choices = sorted({k for k in (3, 5, 10, 20) if k <= most} | {state.view().top_k})
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.segmented_control("Predictions for each mask", choices, **state.bind_field("top_k", "w_top"))
        if len(trace.masks) > 1:
            st.segmented_control(
                "Several masks",
                ["independent", "joint"],
                **state.bind_field("fill", "w_fill"),
                format_func={"independent": "Independent", "joint": "Most confident first"}.get,
                help="Independent: every mask is predicted while all the others are hidden. Most confident first: the "
                "prediction with the highest probability is filled in, then the other masks are predicted again.",
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
        "The model was trained to tell the next part of a text from a part of another text, and the subject alone often"
        " decides this: a high score does not say that B makes sense after A."
        if trace.sop is None
        else "The model was trained on two neighbouring parts of one text, swapped half of the time: their subject does"
        " not help."
    )


def _footer(shared, trace):
    facts = (
        f"{title(shared.name)}, {state.view().precision}",
        count(trace.length, "token"),
        milliseconds(trace.seconds),
    )
    # If the link cannot hold the full view, another line of the page says so.
    is_complete = not left_out(state.view(), state.limits())
    st.caption(" · ".join([*facts, *["the address of this page is a link to this view"] * is_complete]))
