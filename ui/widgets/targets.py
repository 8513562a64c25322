"""What the pages that ask why have in common: the trace they work on, the question, the target."""

import dataclasses
import math

import streamlit as st

from bert_tf.explain.attribution.target import classifier_settings
from ui.session import state
from ui.session.session_cache import cached
from ui.widgets import inputs
from ui.widgets.formatting import escape_markdown, percent, title


def page_inputs():
    """What a page that explains an answer begins with: the texts, and a question that the model answers.

    Returns:
        (the shared model, the ``Encoding``, the ``Trace``), or None where it has said what is missing.
    """
    found = inputs.page_inputs()
    if found is None:
        return None
    shared, encoding = found
    trace = view_trace(shared, encoding)
    if trace is None or not has_question(shared, trace, with_classes=True):
        return None
    return shared, encoding, trace


def view_trace(shared, encoding, hidden_states=False):
    """The trace of the view, the last one kept; None, with the reason said, where there is none.

    Masks of a model without a head for them stay unmasked: nothing could be said about them.
    """
    masked = inputs.masked_positions(shared, encoding)
    if masked is None:
        return None
    if masked and "mlm" not in shared.bert.heads:
        st.caption(f"{title(shared.name)} has no head for masked words: the masks are left out.")
        masked = ()
    view = state.view()
    key = (shared.name, view.precision, view.a, view.b, masked, hidden_states)

    def make():
        with st.spinner("Reading …", show_time=True):
            return shared.trace(view.a, view.b, masked, hidden_states=hidden_states)

    return cached("why_trace", key, make)


@dataclasses.dataclass(frozen=True)
class PairQuestion:
    """A head's answer about a pair of texts, as it is told here.

    Attributes:
        title: what it is about. answers: the labels of its two classes, the first the one that is counted.
        claim: that the first holds, as a clause.
    """

    title: str
    answers: tuple
    claim: str


_PAIR_QUESTIONS = {
    "nsp": PairQuestion("Next sentence", ("IsNext", "NotNext"), "B follows A"),
    "sop": PairQuestion("Sentence order", ("In order", "Swapped"), "A and B are in order"),
}


def classes(shared):
    """The ``TaskSettings`` of a model that was fine-tuned to classify texts, else None."""
    return classifier_settings(shared.bert)


def pair_head(shared):
    """Which head judges pairs of texts, "nsp" or "sop"; None where the model has neither."""
    return next((head for head in _PAIR_QUESTIONS if head in shared.bert.heads), None)


def pair_question(shared):
    """The ``PairQuestion`` of the model's head for pairs."""
    return _PAIR_QUESTIONS[pair_head(shared)]


def first_answer_probability(found):
    """P(IsNext), or P(in order), of a trace or an outcome; None where there is neither."""
    if found.nsp is not None:
        return float(found.nsp.is_next)
    return None if found.sop is None else float(found.sop.in_order)


def has_question(shared, trace, with_classes=False):
    """Whether the model answers anything about the trace, a mask or the pair; says what to do if not.

    Args:
        with_classes: whether the class of a fine-tuned model and a discriminator's score of a token are such answers
            here.
    """
    heads = shared.bert.heads
    if with_classes and (classes(shared) or trace.replaced is not None):
        return True
    pairs = pair_head(shared)
    if (trace.masks and "mlm" in heads) or (not trace.masks and has_pair_answer(shared, trace)):
        return True
    if "replaced" in heads and "mlm" not in heads and pairs is None:
        st.info(
            f"{title(shared.name)} scores every token as replaced or original, and has no answer of the kind that this"
            " page asks about. Saliency, Ablation, Contributions and Patching ask about such a score.",
            icon=":material/block:",
        )
    elif "mlm" not in heads and pairs is None:
        st.warning(
            f"{title(shared.name)} has neither a head for masked words nor one for pairs of texts, so"
            " there is no answer to ask about. Choose another model in the sidebar.",
            icon=":material/block:",
        )
    elif "mlm" not in heads:
        st.info("Type a text B without [MASK]: this model judges pairs only.", icon=":material/touch_app:")
    else:
        st.info(
            "There is no answer to ask about yet. Press a word above to hide it"
            + (", or type a text B." if pairs else "."),
            icon=":material/touch_app:",
        )
    return False


def has_pair_answer(shared, trace):
    """Whether there is an answer about the pair."""
    return trace.text_b is not None and pair_head(shared) is not None


def target_picker(page, shared, trace):
    """Widgets that choose what is explained, tied to the settings of ``page``.

    Returns:
        ``Target``, or None with the reason said.
    """
    from bert_tf.explain import class_target, mask_target

    places = [str(position) for position in trace.masks if "mlm" in shared.bert.heads]
    if has_pair_answer(shared, trace):
        places.append("next")
    if trace.replaced is not None:
        places.append("replaced")
    if classes(shared):
        places.insert(0, "class")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        of = st.selectbox(
            "What is explained",
            places,
            format_func=lambda place: question_name(shared, place) or position_label(trace, int(place)),
            width=260,
            **state.bind_setting(f"{page}.of", f"w_{page}_of", places[0], places),
        )
        if of == "class":
            return class_target(shared.bert, trace, _class_picker(page, classes(shared)))
        if of == "next":
            return _pair_target(page, shared, trace)
        if of == "replaced":
            return _replaced_target(page, shared, trace)
        token = token_picker(f"{page}.token", f"w_{page}_token", shared, trace, int(of), "The word at the mask")
    try:
        return mask_target(shared.bert, trace, int(of), token)
    except ValueError as error:
        st.warning(escape_markdown(str(error)), icon=":material/spellcheck:")
        return None


def question_name(shared, place):
    """What a question that is not about a hidden word is called: "class", "next" for the pair, or "replaced" for a
    token's score; None for any other."""
    if place == "next":
        return pair_question(shared).title
    return {"class": "The class", "replaced": "Replaced or original"}.get(place)


def _pair_target(page, shared, trace):
    from bert_tf.explain import next_sentence_target, sentence_order_target

    answers = pair_question(shared).answers
    label = st.segmented_control(
        "Answer",
        answers,
        **state.bind_setting(f"{page}.follows", f"w_{page}_follows", answers[0], answers),
    )
    make = next_sentence_target if pair_head(shared) == "nsp" else sentence_order_target
    return make(shared.bert, trace, label != answers[1])


def scored_token_picker(page, trace):
    """A choice among the tokens of the texts, tied to the page's setting "at"; the most suspected one at first.

    Returns:
        The token's position.
    """
    own = [place for place, source in enumerate(trace.sources) if source is not None]
    suspected = max(own, key=lambda place: trace.replaced[place])
    return st.selectbox(
        "Token",
        own,
        format_func=lambda place: f"{place}: {trace.tokens[place]}, replaced {percent(float(trace.replaced[place]))}",
        width=260,
        **state.bind_setting(f"{page}.at", f"w_{page}_at", suspected, own),
    )


def _replaced_target(page, shared, trace):
    from bert_tf.explain import replaced_target

    position, answers = scored_token_picker(page, trace), ("Replaced", "Original")
    label = st.segmented_control(
        "Answer",
        answers,
        **state.bind_setting(f"{page}.follows", f"w_{page}_follows", answers[0], answers),
    )
    return replaced_target(shared.bert, trace, position, label != answers[1])


def _class_picker(page, settings):
    """A choice among the classes; None for the likeliest."""
    if settings.regression or not settings.labels:
        return None
    labels = ["", *settings.labels]
    return (
        st.selectbox(
            "Class",
            labels,
            format_func=lambda label: label or "The likeliest",
            width=260,
            **state.bind_setting(f"{page}.label", f"w_{page}_label", "", labels),
        )
        or None
    )


def score_unit(target):
    """What a target's scores are counted in."""
    return "of the value" if target.is_regression else "nats"


def score_text(target, score):
    """A target's score as people read it: a probability, or the value of a regression."""
    return f"{score:.3f}" if target.is_regression else percent(math.exp(score))


def note_not_likeliest(found, nothing):
    """Say that the answer of a ``HotFlip`` or ``InputReduction`` is not the model's; nothing: as "nothing to keep"."""
    label, share = escape_markdown(found.target.label), score_text(found.target, found.log_probability)
    told = (
        f"“{label}” is at most as likely as not here ({share}), so there is {nothing}. Choose a label above 50%."
        if found.target.is_multi_label
        else f"“{label}” is not the likeliest answer here ({share}), so there is {nothing}. Choose the likeliest."
    )
    st.info(told, icon=":material/touch_app:")


def token_picker(name, key, shared, trace, position, label):
    """A choice among the likeliest tokens at a mask, or any typed one, tied to the setting ``name``.

    Returns:
        The token, or None for the likeliest.
    """
    from bert_tf.inference.predictions import fill_mask

    answers = cached("why_answers", trace, lambda: fill_mask(trace, shared.tokenizer, 10))
    tokens = [one.token for answer in answers if answer.position == position for one in answer.predictions]
    original = trace.original_tokens[position]
    if original not in tokens and original != trace.tokens[position]:
        tokens.append(original)
    chosen = state.setting(name, "")
    options = tokens if not chosen or chosen in tokens else [*tokens, chosen]
    # The likeliest has no name of its own in a link: it changes with the text.
    settled = chosen or tokens[0]
    state.set_widget(key, settled)

    def pull():
        value = st.session_state[key]
        state.set_setting(name, "" if value is None or value == tokens[0] else str(value), "")

    st.selectbox(
        label,
        options,
        key=key,
        on_change=pull,
        accept_new_options=True,
        width=260,
        help="One of the likeliest, or type any token of the vocabulary.",
    )
    return settled if chosen else None


def position_label(trace, position):
    """A position as people read it: its number and the word that is hidden there."""
    if position not in trace.masks:
        return f"{position}: {trace.tokens[position]}"
    original = trace.original_tokens[position]
    return f"{position}: [MASK]" if original == trace.tokens[position] else f"{position}: {original} (hidden)"


def before_after_cards(before, after, top_k):
    """Predictions before and after something as cards of the bars component.

    Args:
        before, after: ``MaskPrediction``s of the same masks, with so many guesses that one that is missing
            has next to nothing.
        top_k: guesses shown of each; those that fell out of the list stay below it.
    """
    return [_changed(one, other, top_k) for one, other in zip(before, after)]


#: Columns of `answer_rows`.
ANSWER_HEADER = ("of", "item", "before", "after")


def answer_rows(shared, cards, shares):
    """What is said before and after something, as rows of a table.

    Args:
        shared: ``SharedModel``. cards: as ``before_after_cards`` makes them.
        shares: of the first verdict on the pair, before and after; None where there is no verdict.

    Returns: list of (of what, the item, before, after).
    """
    rows = [
        (f"{card['title']} ({card['note']})", one["text"], one["was"], one["p"])
        for card in cards
        for one in card["predictions"]
    ]
    return rows if shares is None else [*rows, (pair_question(shared).answers[0], "", *shares)]


def _changed(before, after, top_k):
    was = {one.id: one for one in before.predictions}
    now = {one.id: one for one in after.predictions}
    shown = list(dict.fromkeys(one.id for found in (after, before) for one in found.predictions[:top_k]))
    return {
        "position": after.position,
        "title": after.original if after.original is not None else "[MASK]",
        "note": f"token {after.position}",
        "foot": "",
        "predictions": [
            {
                "id": int(one),
                "text": (now.get(one) or was[one]).token,
                "p": float(now[one].probability) if one in now else 0.0,
                "was": float(was[one].probability) if one in was else 0.0,
                "right": (now.get(one) or was[one]).token == after.original,
            }
            for one in shown
        ],
    }
