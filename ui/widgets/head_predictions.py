"""What a model's heads predict, the downloads of that, and the warning that a head is missing."""

import streamlit as st

from bert_tf.analyses import analysis, check_model
from bert_tf.errors import MissingHead
from bert_tf.inference.answer import Answer
from bert_tf.plots.numbers import percent
from bert_tf.plots.theme import ramp
from ui.elements import components
from ui.elements.cells import marks
from ui.session import state
from ui.widgets import export, highlights
from ui.widgets.formatting import count, escape_markdown, title

_HINT = "Point at a token, or tap it, for its score."


def pair_prediction(key, trace):
    """Draw the prediction about a pair, next sentence or sentence order; a caption if the model has neither head."""
    if trace.nsp is not None:
        components.gauge(key, float(trace.nsp.is_next))
    elif trace.sop is not None:
        components.gauge(key, float(trace.sop.in_order), order=True)
    else:
        st.caption("This model has no head for pairs of texts.")


def save_predictions(trace, answers):
    """Offer predictions at masks in the menu Save, ``MaskPrediction``s."""
    masks, replaced = tuple(answers), None if trace.replaced is None else tuple(map(float, trace.replaced))
    result = Answer(trace.model, trace.tokens, masks, trace.nsp, trace.truncated, trace.sop, replaced)
    export.save("predictions", result, trace=trace)


def save_pair_prediction(trace):
    """Offer the prediction about a pair in the menu Save; nothing if there is none."""
    name, answer = ("next-sentence", trace.nsp) if trace.sop is None else ("sentence-order", trace.sop)
    if answer is not None:
        export.save(name, answer, {"text_a": trace.text_a, "text_b": trace.text_b}, trace=trace)


def save_replaced(trace):
    """Offer a discriminator's scores in the menu Save: the probability of every token to be replaced."""
    scores = tuple(map(float, trace.replaced))
    result = Answer(trace.model, trace.tokens, (), None, trace.truncated, None, scores)
    export.save("replaced-or-original", result, trace=trace)


def replaced_tokens(key, trace):
    """Draw the texts with every token on the colour of its probability to be replaced."""
    scores = trace.replaced.tolist()
    parts = highlights.token_highlights(trace, scores, lambda place: f"replaced {percent(scores[place])}")
    marks(key, parts, ramp(state.is_dark()), ("original", "replaced"), _HINT)
    suspected = sum(1 for place in _inside(trace) if trace.replaced[place] > 0.5)
    st.caption(
        f"{count(suspected, 'token')} with a probability above 50%. The model learnt to tell the words of a text from "
        "words that a small generator put in their place: its score says how well a word fits, not whether the text "
        "is true."
    )


def _inside(trace):
    """The positions of the texts' tokens, without the special tokens that the model adds."""
    return [place for place, side in enumerate(trace.sources) if side is not None]


def can_analyse(shared, name):
    """Whether a ``SharedModel`` has the heads that an analysis needs; draws the warning if not.

    Args:
        shared: ``SharedModel``. name: of the analysis, as ``explain`` takes it.
    """
    try:
        check_model(analysis(name), shared.bert, title(shared.name))
    except MissingHead as error:
        _warning(error)
        return False
    return True


def missing(name, head):
    """Draw the warning that the model of this name lacks a head; head: as `MissingHead` takes it."""
    _warning(MissingHead(head, title(name)))


def _warning(error):
    model = error.model
    st.warning(escape_markdown(model) + error.sentence.removeprefix(model), icon=":material/block:")
