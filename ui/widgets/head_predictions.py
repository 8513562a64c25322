"""What heads other than the masked words' say of a trace, drawn for any model that has them."""

import streamlit as st

from bert_tf import plots
from bert_tf.explain import Answer
from bert_tf.plots.interventions.ablation import replaced_bars
from bert_tf.plots.theme import ramp
from bert_tf.plots.training.task_predictions import probabilities
from ui.elements import components
from ui.elements.cells import marks
from ui.shell import frame
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
    export.menu(
        "predictions",
        ("model", "position", "original", "original_rank", "rank", "token", "probability", "asked"),
        lambda: _guesses(trace, answers),
        lambda: Answer(trace.model, trace.tokens, tuple(answers), trace.nsp, trace.truncated, trace.sop).to_json(),
        lambda: plots.predictions(answers),
    )


def _guesses(trace, answers):
    for answer in answers:
        ranked = [(rank, one, False) for rank, one in enumerate(answer.predictions, start=1)]
        for rank, one, asked in [*ranked, *((one.rank, one, True) for one in answer.targets)]:
            yield (
                trace.model,
                answer.position,
                answer.original,
                answer.original_rank,
                rank,
                one.token,
                one.probability,
                int(asked),
            )


def save_pair_prediction(trace):
    """The download menu of the answer about a pair; nothing where there is none."""
    if trace.nsp is None and trace.sop is None:
        return
    name, answers = ("next-sentence", trace.nsp) if trace.sop is None else ("sentence-order", trace.sop)
    shares = {answer: float(share) for answer, share in answers._asdict().items()}
    export.menu(
        name,
        ("answer", "probability"),
        shares.items,
        lambda: {"model": trace.model, "text_a": trace.text_a, "text_b": trace.text_b, **shares},
        lambda: probabilities(shares, shares.values()),
    )


def save_replaced(trace):
    """The download menu of the scores of every token to have been put there by a generator."""
    places = _inside(trace)
    scores = [float(trace.replaced[place]) for place in places]
    tokens = [trace.tokens[place] for place in places]
    export.menu(
        "replaced-or-original",
        ("position", "token", "replaced"),
        lambda: zip(places, tokens, scores),
        lambda: {"model": trace.model, "positions": places, "tokens": tokens, "replaced": scores},
        lambda: replaced_bars(tokens, scores),
    )


def replaced_tokens(key, trace):
    """The texts, every token on the colour of its chance to have been put there by a generator."""
    scores = trace.replaced.tolist()
    parts = highlights.token_highlights(trace, scores, lambda place: f"replaced {percent(scores[place])}")
    marks(key, parts, ramp(frame.is_dark()), ("original", "replaced"), _HINT)
    suspected = sum(1 for place in _inside(trace) if trace.replaced[place] > 0.5)
    st.caption(
        f"{count(suspected, 'token')} over one half. Such a model learnt to tell a text's own words from those "
        "that a small generator put there: it judges what fits, not what is true."
    )


def _inside(trace):
    """Positions of the texts' own tokens."""
    return [place for place, side in enumerate(trace.sources) if side is not None]
