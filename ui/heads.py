"""What heads other than the masked words' say of a trace, drawn for any model that has them."""

import streamlit as st

from bert_tf.plots.theme import ramp
from ui import components, frame
from ui.cells import marks
from ui.words import count, percent

_HINT = "Point at a token, or tap it, for its score."


def pair_verdict(key, trace):
    """The answer about a pair, next sentence or sentence order; says so where the model has neither."""
    if trace.nsp is not None:
        components.gauge(key, float(trace.nsp.is_next))
    elif trace.sop is not None:
        components.gauge(key, float(trace.sop.in_order), order=True)
    else:
        st.caption("This model has no head for pairs of texts.")


def replaced_tokens(key, trace):
    """The texts, every token on the colour of its chance to have been put there by a generator."""
    marks(key, replaced_parts(trace), ramp(frame.is_dark()), ("original", "replaced"), _HINT)
    suspected = sum(1 for place in _inside(trace) if trace.replaced[place] > 0.5)
    st.caption(
        f"{count(suspected, 'token')} over one half. Such a model learnt to tell a text's own words from those "
        "that a small generator put there: it judges what fits, not what is true."
    )


def replaced_parts(trace):
    """What the marks component draws: dict from "a" and "b" to the parts of the text."""
    found = {"a": []}
    for source, text in (("a", trace.text_a), ("b", trace.text_b)):
        if text is None:
            continue
        drawn, end = [], 0
        for place in _inside(trace, source):
            start, stop = trace.offsets[place]
            if start > end:
                drawn.append({"text": text[end:start]})
            score = float(trace.replaced[place])
            said = "hidden" if place in trace.masks else text[start:stop]
            drawn.append({"text": text[max(start, end):stop], "tip": f"{said}: replaced {percent(score)}",
                          "shade": round(score, 3), "hidden": place in trace.masks})
            end = max(end, stop)
        found[source] = [*drawn, {"text": text[end:]}]
    return found


def _inside(trace, source=None):
    """Positions of the texts' own tokens."""
    return [place for place, side in enumerate(trace.sources) if side is not None and source in (None, side)]
