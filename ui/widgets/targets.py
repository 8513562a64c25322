"""Shared parts of the pages that explain a prediction: the trace, the question, the choice of the target."""

import dataclasses
import math

import streamlit as st

from bert_tf.analysis import ANY_ANSWER
from bert_tf.explain.attribution.target import classifier_settings, classifies, reads_single_texts
from bert_tf.plots.numbers import percent
from ui.session import state
from ui.session.session_cache import cached
from ui.widgets import head_predictions, inputs
from ui.widgets.formatting import escape_markdown, number, title


def page_inputs():
    """Draw the inputs of a page that explains a prediction.

    Returns:
        (``SharedModel``, ``Encoding``, ``Trace``), or None if there is no prediction to explain, with the reason on the
        page.
    """
    model_and_encoding = inputs.page_inputs()
    if model_and_encoding is None:
        return None
    shared, encoding = model_and_encoding
    trace = view_trace(shared, encoding)
    if trace is None or not has_question(shared, trace, with_classes=True):
        return None
    return shared, encoding, trace


def view_trace(shared, encoding, hidden_states=False):
    """The trace of the view, cached; None, with the reason on the page, if there are too many masks.

    If the model has no head for masked words, no token is masked.
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
        with inputs.reading(shared):
            return shared.trace(view.a, view.b, masked, hidden_states=hidden_states)

    return cached("why_trace", key, make)


@dataclasses.dataclass(frozen=True)
class PairQuestion:
    """The texts on the page for a head that judges pairs.

    Attributes:
        title: of the question. answers: the labels of its two classes; the pages show the probability of the first.
        claim: the first answer as a clause.
    """

    title: str
    answers: tuple
    claim: str


_PAIR_QUESTIONS = {
    "nsp": PairQuestion("Next sentence", ("IsNext", "NotNext"), "B follows A"),
    "sop": PairQuestion("Sentence order", ("In order", "Swapped"), "A and B are in order"),
}


def classes(shared):
    """The ``TaskSettings`` of a model that was fine-tuned to classify texts; None for other models."""
    return classifier_settings(shared.bert)


def say_only_class(label):
    """Write why a classifier's only class cannot be explained by log-odds."""
    st.info(
        f"“{escape_markdown(label)}” is the only class, and always certain: nothing supports or opposes it.",
        icon=":material/block:",
    )


def pair_head(shared):
    """The head that judges pairs of texts, "nsp" or "sop"; None if the model has neither."""
    return next((head for head in _PAIR_QUESTIONS if head in shared.bert.heads), None)


def pair_question(shared):
    """The ``PairQuestion`` of the model's head for pairs."""
    return _PAIR_QUESTIONS[pair_head(shared)]


def first_answer_probability(result):
    """P(IsNext), or P(in order), of a trace or an outcome; None if it has neither."""
    if result.nsp is not None:
        return float(result.nsp.is_next)
    return None if result.sop is None else float(result.sop.in_order)


def has_question(shared, trace, with_classes=False):
    """Whether the model predicts something about the trace, a mask or the pair; if not, draws a note on what to do.

    Args:
        shared: ``SharedModel``. trace: ``Trace``.
        with_classes: whether the page also explains the class of a fine-tuned model and a discriminator's score of a
            token.
    """
    heads = shared.bert.heads
    if with_classes and (classifies(shared.bert, trace) or trace.replaced is not None):
        return True
    pairs = pair_head(shared)
    if (trace.masks and "mlm" in heads) or (not trace.masks and has_pair_answer(shared, trace)):
        return True
    if with_classes and classes(shared):
        note_class_needs(shared)
    elif "replaced" in heads and "mlm" not in heads and pairs is None:
        st.info(
            f"{title(shared.name)} scores every token as replaced or original, which this page does not explain."
            " Saliency, Ablation, Contributions and Patching explain such a score.",
            icon=":material/block:",
        )
    elif "mlm" not in heads and pairs is None:
        head_predictions.missing(shared.name, ANY_ANSWER[0] if with_classes else "mlm|nsp|sop")
    elif "mlm" not in heads:
        st.info("Type a text B without [MASK]: this model judges pairs only.", icon=":material/touch_app:")
    else:
        st.info(
            "There is no prediction to explain yet. Press a word above to hide it"
            + (", or type a text B." if pairs else "."),
            icon=":material/touch_app:",
        )
    return False


def note_class_needs(shared):
    """Draw the note what texts a classifier needs, where those of the page are others."""
    needs = "single texts: clear text B" if reads_single_texts(shared.bert) else "pairs: type a text B"
    st.info(f"{title(shared.name)} classifies {needs} to see its classes.", icon=":material/touch_app:")


def has_pair_answer(shared, trace):
    """Whether the model predicts something about the pair."""
    return trace.text_b is not None and pair_head(shared) is not None


def target_picker(page, shared, trace):
    """Draw widgets that choose the target of an explanation, bound to the settings of ``page``.

    Returns:
        ``Target``, or None, with the reason on the page.
    """
    from bert_tf.explain import class_target, mask_target

    places = [str(position) for position in trace.masks if "mlm" in shared.bert.heads]
    if has_pair_answer(shared, trace):
        places.append("next")
    if trace.replaced is not None:
        places.append("replaced")
    if classifies(shared.bert, trace):
        places.insert(0, "class")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        labels = {place: question_name(shared, place) or position_label(trace, int(place)) for place in places}
        of = st.selectbox(
            "What is explained",
            places,
            format_func=labels.__getitem__,
            width=260,
            **state.bind_setting(f"{page}.of", f"w_{page}_of", places[0], places, labels.items()),
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
    """The title of a question: "class", "next" (the pair) or "replaced" (a token's score); None for a masked word."""
    if place == "next":
        return pair_question(shared).title
    return {"class": "The class", "replaced": "Replaced or original"}.get(place)


def _pair_target(page, shared, trace):
    from bert_tf.explain import next_sentence_target, sentence_order_target

    make = next_sentence_target if pair_head(shared) == "nsp" else sentence_order_target
    return make(shared.bert, trace, _is_first_answer(page, pair_question(shared).answers))


def _is_first_answer(page, answers):
    """Draw a choice of one of two answers, bound to the page's setting "follows"; whether the first is chosen."""
    chosen = st.segmented_control(
        "Answer",
        answers,
        **state.bind_setting(f"{page}.follows", f"w_{page}_follows", answers[0], answers),
    )
    return chosen != answers[1]


def scored_token_picker(page, trace):
    """Draw a choice of a token of the texts, bound to the page's setting "at".

    The default is the token with the highest probability to be replaced.

    Returns:
        the token's position.
    """
    positions = [place for place, source in enumerate(trace.sources) if source is not None]
    most_suspected = max(positions, key=lambda place: trace.replaced[place])
    labels = {
        place: f"{place}: {trace.tokens[place]}, replaced {percent(float(trace.replaced[place]))}"
        for place in positions
    }
    return st.selectbox(
        "Token",
        positions,
        format_func=labels.__getitem__,
        width=260,
        **state.bind_setting(f"{page}.at", f"w_{page}_at", most_suspected, positions, labels.items()),
    )


def _replaced_target(page, shared, trace):
    from bert_tf.explain import replaced_target

    position = scored_token_picker(page, trace)
    return replaced_target(shared.bert, trace, position, _is_first_answer(page, ("Replaced", "Original")))


def _class_picker(page, settings):
    """Draw a choice of a class; return its label, or None for the likeliest."""
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
    """The unit of a target's scores."""
    return "of the value" if target.is_regression else "nats"


def score_text(target, score):
    """A target's score for the page: a probability, or the value of a regression."""
    return number(score, 3) if target.is_regression else percent(math.exp(score))


def note_not_likeliest(result, nothing):
    """Draw a note that the target of a ``HotFlip`` or ``InputReduction`` is not the model's prediction.

    Args:
        result: ``HotFlip`` or ``InputReduction``. nothing: the consequence, such as "nothing to change".
    """
    label, share = escape_markdown(result.target.label), score_text(result.target, result.log_probability)
    note = (
        f"“{label}” is at most as likely as not here ({share}), so there is {nothing}. Choose a label above 50%."
        if result.target.is_multi_label
        else f"“{label}” is not the likeliest answer here ({share}), so there is {nothing}. Choose the likeliest."
    )
    st.info(note, icon=":material/touch_app:")


def token_picker(name, key, shared, trace, position, label):
    """Draw a choice of a token at a mask, one of the likeliest or a typed one, bound to the setting ``name``.

    Returns:
        the token, or None for the likeliest.
    """
    from bert_tf.inference.predictions import fill_mask

    answers = cached("why_answers", trace, lambda: fill_mask(trace, shared.tokenizer, 10))
    tokens = [one.token for answer in answers if answer.position == position for one in answer.predictions]
    original = trace.original_tokens[position]
    if original not in tokens and original != trace.tokens[position]:
        tokens.append(original)
    chosen = state.setting(name, "")
    options = tokens if not chosen or chosen in tokens else [*tokens, chosen]
    # For the likeliest token the setting is empty, as that token changes with the text.
    token = chosen or tokens[0]
    state.set_widget(key, token)

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
    return token if chosen else None


def position_label(trace, position):
    """The label of a position: its number and its token, or the word that is masked there."""
    if position not in trace.masks:
        return f"{position}: {trace.tokens[position]}"
    original = trace.original_tokens[position]
    return f"{position}: [MASK]" if original == trace.tokens[position] else f"{position}: {original} (hidden)"


def before_after_cards(before, after, top_k):
    """Cards of the bars component with the predictions before and after a change of the model or its input.

    Args:
        before, after: ``MaskPrediction``s of the same masks, each with so many predictions that any other token has a
            probability near 0.
        top_k: the number of predictions on a card, from ``after``. Those of ``before`` that are not among them follow.
    """
    return [_before_after_card(*answers, top_k) for answers in zip(before, after)]


def answer_rows(shared, cards, shares):
    """The predictions before and after a change, as rows of a table.

    Args:
        shared: ``SharedModel``. cards: the result of ``before_after_cards``.
        shares: the probabilities of the first answer about the pair, before and after; None if there is no such
            answer.

    Returns:
        list of (the mask or the question, the prediction, probability before, probability after).
    """
    rows = [
        (f"{card['title']} ({card['note']})", prediction["text"], prediction["was"], prediction["p"])
        for card in cards
        for prediction in card["predictions"]
    ]
    return rows if shares is None else [*rows, (pair_question(shared).answers[0], "", *shares)]


def _before_after_card(before, after, top_k):
    was = {prediction.id: prediction for prediction in before.predictions}
    now = {prediction.id: prediction for prediction in after.predictions}
    best = (prediction for answer in (after, before) for prediction in answer.predictions[:top_k])
    token_ids = list(dict.fromkeys(prediction.id for prediction in best))
    return {
        "position": after.position,
        "title": after.original if after.original is not None else "[MASK]",
        "note": f"token {after.position}",
        "foot": "",
        "predictions": [
            {
                "id": int(token_id),
                "text": (now.get(token_id) or was[token_id]).token,
                "p": float(now[token_id].probability) if token_id in now else 0.0,
                "was": float(was[token_id].probability) if token_id in was else 0.0,
                "right": (now.get(token_id) or was[token_id]).token == after.original,
            }
            for token_id in token_ids
        ],
    }
