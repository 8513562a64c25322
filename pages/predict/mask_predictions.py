"""The part of the page Predict with the predictions at masks."""

import dataclasses

import streamlit as st

from bert_tf.errors import InputError
from bert_tf.inference.predictions import fill_mask
from bert_tf.inference.word_scores import score_words, split_targets
from pages.predict.filling import filled
from ui.elements import components
from ui.elements.cards import cards
from ui.elements.toolbar import Button, Choice, toolbar
from ui.session import state
from ui.session.session_cache import cached
from ui.widgets import head_predictions, inputs
from ui.widgets.formatting import escape_markdown, number

_ASK = "predict.ask"
_FILLS = ("independent", "joint")


def draw(shared, trace, side="", linked=True):
    """Draw a model's answers about single words: predictions at masks, and of a discriminator a score per token.

    Args:
        shared: ``SharedModel``. trace: its ``Trace``.
        side: the end of the keys, "_other" for the second of two models. Only the first has options and a download.
        linked: see ``components.bars``.
    """
    if trace.replaced is not None:
        inputs.heading("Replaced or original")
        if not side:
            head_predictions.save_replaced(trace)
        head_predictions.replaced_tokens(f"c_replaced{side}", trace)
        if not trace.masks:
            return
    if "mlm" not in shared.bert.heads:
        st.header("Predictions", anchor=False)
        head_predictions.missing(shared.name, "mlm")
        if shared.bert.task is not None:
            st.button(
                "Its task predictions",
                icon=":material/arrow_forward:",
                type="tertiary",
                key=f"w_predict_task{side}",
                on_click=_to_task,
                args=(shared.name,),
            )
        return
    if not trace.masks:
        st.header("Predictions", anchor=False)
        st.info("Nothing is hidden yet. Press a word above, or type [MASK] in the text.", icon=":material/touch_app:")
        if not side:
            _ask()
            if state.setting(_ASK, "").strip():
                st.caption("Press the word in whose place you ask about it: its probability is read there.")
        return
    _predictions(shared, trace, side, linked)


def _to_task(name):
    """Open Task predictions with this fine-tuned model."""
    state.set_setting("task_predictions.model", name, None)
    state.change_view(page="task_predictions")


def asked_words(shared):
    """The words that the visitor asks about: (those of one token, those of several, sentences about the others)."""
    words = [word for part in state.setting(_ASK, "").split(",") if (word := part.strip())]
    most_words, single, several, problems = state.limits().max_top_k, (), (), []
    for word in words[:most_words]:
        try:
            one, more = split_targets(shared.tokenizer, word)
            single, several = single + one, several + more
        except InputError as error:
            problems.append(str(error))
    if len(words) > most_words:
        problems.append(f"Only the first {most_words} words are used.")
    return single, several, problems


def _predictions(shared, trace, side, linked):
    asked, of_pieces, problems = asked_words(shared)
    joint, answers = _filled(shared, trace, asked, side)
    answer_cards = cards(answers, **({"number_from": 1} if joint else {}))

    drawn = state.view()

    def fill(position, token_id):
        before = state.view()
        if (before.a, before.b) != (drawn.a, drawn.b):
            return  # a press right before has written a word: these predictions are not of its text
        state.replace_view(filled(before, shared, trace, position, token_id))
        if state.view() != before:
            word = escape_markdown(shared.tokenizer.spellings[token_id])
            st.toast(f"“{word}” is in the text now. Undo brings the mask back.", icon=":material/edit:")

    toolbar(f"c_predictions{side}", *(() if side else _controls(trace)), heading="Predictions")
    for problem in problems:
        st.caption(escape_markdown(problem))
    components.bars(f"c_bars{side}", answer_cards, fill, linked)
    if joint and not side:
        _fill_all_button(joint)
    if not side:
        head_predictions.save_predictions(trace, answers)
        _ask()
    if of_pieces:
        _word_scores(shared, trace, of_pieces, side)


def _ask():
    st.text_input(
        "Ask about a word",
        placeholder="Ask about: Rome, Berlin",
        label_visibility="collapsed",
        **state.bind_setting(_ASK, "w_predict_ask", ""),
    )


def _word_scores(shared, trace, words, side):
    """The words of several pieces that the visitor asks about. Each piece takes a pass: they are cached."""
    try:
        scores = cached(f"predict_word_scores{side}", (trace, words), lambda: shared.run(score_words, trace, words))
    except InputError as error:
        st.caption(escape_markdown(str(error)))
        return
    several = len({score.positions for score in scores}) > 1
    lines = [
        f"- **{escape_markdown(score.word)}** ({escape_markdown(' '.join(score.pieces))})"
        + (f" at token {score.positions[0]}" if several else "")
        + f": {number(score.pseudo_log_likelihood)} nats"
        for score in sorted(scores, key=lambda score: (score.positions, -score.pseudo_log_likelihood))
    ]
    st.markdown("Pseudo-log-likelihood of words of several pieces\n\n" + "\n".join(lines))
    st.caption(
        "Each piece is predicted while the word's other pieces are visible, and the logarithms are added "
        "(Salazar et al. 2020). Compare words of as many pieces; it is not the probability of a word."
    )


def answers(shared, trace):
    """The ``MaskPrediction``s of the trace as the page shows them: each mask alone, or filled one after the other."""
    return _filled(shared, trace, asked_words(shared)[0], "")[1] if trace.logits is not None else ()


def _filled(shared, trace, asked, side):
    """(the joint filling of all masks or None, the ``MaskPrediction``s of all masks)."""
    view = state.view()
    if view.fill != "joint" or len(trace.masks) < 2:
        return None, fill_mask(trace, shared.tokenizer, view.top_k, asked)
    # It takes a pass for each mask, so it is cached with its trace.
    key = (trace, view.top_k, asked)
    joint = cached(f"predict_joint{side}", key, lambda: shared.fill_jointly(trace, view.top_k, asked))
    return joint, joint.steps


def _controls(trace):
    """The link to Saliency, and how the predictions are made."""
    most, view = state.limits().max_top_k, state.view()
    numbers = sorted({k for k in (3, 5, 10, 20) if k <= most} | {view.top_k})
    controls = (
        Button(
            "why",
            "Why?",
            "help",
            "Saliency: which words this prediction depends on, with the same texts and masks.",
            lambda: state.change_view(page="saliency"),
        ),
        Choice(
            "top_k",
            "Predictions for each mask",
            [f"Top {k}" for k in numbers],
            numbers.index(view.top_k),
            lambda index: state.change_view(top_k=numbers[index]),
            "Predictions for each mask. The model predicts what is usual in the texts it was trained on: a confident "
            "prediction may be untrue, and a word that is missing here may still be right.",
        ),
    )
    if len(trace.masks) < 2:
        return controls
    return (
        *controls,
        Choice(
            "fill",
            "Several masks",
            ["Independent", "Most confident first"],
            _FILLS.index(view.fill),
            lambda index: state.change_view(fill=_FILLS[index]),
            "Independent: every mask is predicted while all the others are hidden. Most confident first: the "
            "prediction with the highest probability is filled in, then the other masks are predicted again.",
        ),
    )


def _fill_all_button(joint):
    def fill_all():
        state.replace_view(dataclasses.replace(state.view(), a=joint.text_a, b=joint.text_b or "", masks=()))

    st.button("Fill in all first predictions", icon=":material/done_all:", key="w_fill_all", on_click=fill_all)
