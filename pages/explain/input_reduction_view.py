"""Input reduction on the Saliency page: how few words are enough for an answer."""

import math

import streamlit as st

from bert_tf.explain.attribution.input_reduction import removable_words
from bert_tf.plots.theme import ramp
from ui.elements import tables
from ui.elements.cells import marks
from ui.session import state
from ui.widgets import export, figures, highlights, inputs, targets
from ui.widgets.formatting import count, escape_markdown

MOST = 64  # the most tokens: the work grows with their third power


def can(trace, target):
    """Whether input reduction can run; if not, the page shows the reason."""
    if target.is_regression:
        st.info(
            "Input reduction removes words while the answer stays the likeliest of several. This model predicts a"
            " number, which has no other answers.",
            icon=":material/block:",
        )
        return False
    if trace.length > MOST:
        st.info(
            f"Every word is tried many times, which takes long. At most {MOST} tokens are possible here, and this text"
            f" has {trace.length}. Shorten it.",
            icon=":material/content_cut:",
        )
        return False
    return True


def draw(trace, result):
    """Draw an ``InputReduction``."""
    label = escape_markdown(result.target.label)
    inputs.heading(f"How few words are enough for “{label}”")
    if not result.target_is_top:
        targets.note_not_likeliest(result, "nothing to keep")
        return
    export.save("words-left", result, trace=trace)
    st.markdown(_summary(trace, result))
    marks(
        "c_reduction",
        highlights.reduction_highlights(trace, result, lambda score: targets.score_text(result.target, score)),
        ramp(state.is_dark()),
        ("removed first", "stays"),
        "Point at a word, or tap it, to see when it is removed.",
    )
    is_one_of_several = result.target.is_multi_label
    lasts = "its probability stays above 50%" if is_one_of_several else "the answer stays the likeliest"
    st.caption(
        f"Words are removed one at a time, the least needed first, as long as {lasts}. The "
        "remaining words are enough for the answer, but not all that the model reads (Feng et al. 2018).",
        help=f"Without any one of the remaining words {_fails(result)}. They may be nonsense to "
        "people. Hidden words and the last word of a text always stay.",
    )
    if not result.removed:
        return
    left_column, right_column = st.columns([3, 2], gap="large")
    with left_column:
        figures.show(
            "The answer while words are removed",
            result.figure(dark=state.is_dark()),
            key="w_reduction_course",
            config=export.plot_config("words-left"),
        )
    with right_column:
        tables.show(
            {
                "order": list(range(1, len(result.removed) + 1)),
                "text": [removed.word.source.upper() for removed in result.removed],
                "word": [removed.word.text for removed in result.removed],
                "then": [100 * math.exp(removed.log_probability) for removed in result.removed],
            },
            hide_index=True,
            width="stretch",
            key="w_reduction_table",
            column_config={
                "order": st.column_config.NumberColumn("Removed as", width="small"),
                "text": st.column_config.TextColumn("Text", width="small"),
                "word": "Word",
                "then": st.column_config.NumberColumn("The answer after", format="%.1f%%"),
            },
        )


def _fails(result):
    """A clause: when a word is no longer removed."""
    return "it has at most 50%" if result.target.is_multi_label else "the model predicts something else"


def _summary(trace, result):
    full_score, remaining_score = (
        targets.score_text(result.target, score) for score in (result.log_probability, result.remaining_log_probability)
    )
    if not removable_words(trace.words(), trace, result.target):
        return (
            "There is no word to remove: hidden words, the word asked about and a text's only word stay. The answer"
            f" has {full_score}."
        )
    if not result.removed:
        return f"No word can be removed: without any one of them {_fails(result)}. The answer has {full_score}."
    return (
        f"{count(len(result.removed), 'word')} can be removed, {len(result.remaining)} stay:"
        f" **{escape_markdown(_text(trace, result))}**. “{escape_markdown(result.target.label)}” has {full_score} in"
        f" the full text and {remaining_score} in the remaining words."
    )


def _text(trace, result):
    """The remaining words, hidden ones as [MASK]; a slash separates the two texts."""
    texts = []
    for source in "ab" if trace.text_b is not None else "a":
        words = [word for word in result.remaining if word.source == source]
        hidden = [bool(set(word.positions) & set(trace.masks)) for word in words]
        texts.append(" ".join("[MASK]" if mask else word.text for word, mask in zip(words, hidden)))
    return " / ".join(texts)
