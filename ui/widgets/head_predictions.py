"""What heads other than the masked words' say of a trace, drawn for any model that has them."""

import streamlit as st

from bert_tf.inference.answer import Answer
from bert_tf.plots.theme import ramp
from ui.elements import components
from ui.elements.cells import marks
from ui.session import state
from ui.widgets import export, highlights
from ui.widgets.formatting import count, percent

_HINT = "Point at a token, or tap it, for its score."


def pair_prediction(key, trace):
    """The answer about a pair, next sentence or sentence order; says so where the model has neither."""
    if trace.nsp is not None:
        components.gauge(key, float(trace.nsp.is_next))
    elif trace.sop is not None:
        components.gauge(key, float(trace.sop.in_order), order=True)
    else:
        st.caption("This model has no head for pairs of texts.")


def save_predictions(trace, answers):
    """The download menu of predictions at masks, ``MaskPrediction``s."""
    masks, replaced = tuple(answers), None if trace.replaced is None else tuple(map(float, trace.replaced))
    found = Answer(trace.model, trace.tokens, masks, trace.nsp, trace.truncated, trace.sop, replaced)
    export.save("predictions", found)


def save_pair_prediction(trace):
    """The download menu of the answer about a pair; nothing where there is none."""
    name, answer = ("next-sentence", trace.nsp) if trace.sop is None else ("sentence-order", trace.sop)
    if answer is not None:
        export.save(name, answer, {"model": trace.model, "text_a": trace.text_a, "text_b": trace.text_b})


def save_replaced(trace):
    """The download menu of the scores of every token to have been put there by a generator."""
    scores = tuple(map(float, trace.replaced))
    found = Answer(trace.model, trace.tokens, (), None, trace.truncated, None, scores)
    export.save("replaced-or-original", found)


def replaced_tokens(key, trace):
    """The texts, every token on the colour of its chance to have been put there by a generator."""
    scores = trace.replaced.tolist()
    parts = highlights.token_highlights(trace, scores, lambda place: f"replaced {percent(scores[place])}")
    marks(key, parts, ramp(state.is_dark()), ("original", "replaced"), _HINT)
    suspected = sum(1 for place in _inside(trace) if trace.replaced[place] > 0.5)
    st.caption(
        f"{count(suspected, 'token')} over one half. Such a model learnt to tell a text's own words from those "
        "that a small generator put there: it judges what fits, not what is true."
    )


def _inside(trace):
    """Positions of the texts' own tokens."""
    return [place for place, side in enumerate(trace.sources) if side is not None]
