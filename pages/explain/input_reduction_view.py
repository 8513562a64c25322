"""How few words are enough for an answer, as the page about single words shows it."""

import math

import streamlit as st

from bert_tf.explain import reduce_input
from bert_tf.explain.attribution.input_reduction import removable_words
from bert_tf.plots.theme import ramp
from ui.elements.cells import marks
from ui.session import jobs, state
from ui.shell import frame
from ui.widgets import export, figures, highlights, inputs, targets
from ui.widgets.formatting import count, escape_markdown

MOST = 64  # tokens: the work grows with their third power


def can(trace, target):
    """Whether the words can be tried; says why where they cannot."""
    if target.is_regression:
        st.info(
            "Words are taken away while the answer stays the likeliest of several, and a number has no others.",
            icon=":material/block:",
        )
        return False
    if trace.length > MOST:
        st.info(
            f"Every word is tried again and again, which takes long: at most {MOST} tokens here, and this text has"
            f" {trace.length}. Shorten it.",
            icon=":material/content_cut:",
        )
        return False
    return True


def draw(shared, trace, target):
    """Work out what is left, beside the page, and show it."""
    view = state.view()
    key = (shared.name, view.precision, view.a, view.b, trace.masks, target)
    found = jobs.result(
        "saliency input-reduction",
        key,
        "Taking words away, one at a time",
        lambda progress: shared.run(reduce_input, trace, target, progress=progress),
    )
    if found is not None:
        _show(trace, found)


def _show(trace, found):
    label = escape_markdown(found.target.label)
    heading = inputs.heading(f"How few words are enough for “{label}”")
    if not found.target_is_top:
        targets.note_not_likeliest(found, "nothing to keep")
        return
    with heading:
        export.save("words-left", found, {"model": trace.model})
    st.markdown(_summary(trace, found))
    marks(
        "c_reduction",
        highlights.reduction_highlights(trace, found, lambda score: targets.score_text(found.target, score)),
        ramp(frame.is_dark()),
        ("goes first", "stays"),
        "Point at a word, or tap it, for when it goes.",
    )
    st.caption(
        "One word goes at a time: the one that the answer misses least, as long as it stays the likeliest. Without any"
        " one of those that are left the model says something else; hidden words and the last word of a text stay."
        " What is left may be nonsense to us: it is enough for the answer, and not all that the model reads (Feng et"
        " al. 2018)."
    )
    if not found.removed:
        return
    left, right = st.columns([3, 2], gap="large")
    with left:
        figures.show(
            "The answer while words go",
            found.figure(dark=frame.is_dark()),
            key="w_reduction_course",
            config=export.plot_config("words-left"),
        )
    with right:
        st.dataframe(
            {
                "order": list(range(1, len(found.removed) + 1)),
                "text": [one.word.source.upper() for one in found.removed],
                "word": [one.word.text for one in found.removed],
                "then": [100 * math.exp(one.log_probability) for one in found.removed],
            },
            hide_index=True,
            width="stretch",
            key="w_reduction_table",
            column_config={
                "order": st.column_config.NumberColumn("Goes as", width="small"),
                "text": st.column_config.TextColumn("Text", width="small"),
                "word": "Word",
                "then": st.column_config.NumberColumn("The answer then", format="%.1f%%"),
            },
        )


def _summary(trace, found):
    whole, left = (
        targets.score_text(found.target, score) for score in (found.log_probability, found.remaining_log_probability)
    )
    if not removable_words(trace.words(), trace, found.target):
        return (
            "There is no word to take away: hidden words, the word asked about and a text's only word stay. The answer"
            f" has {whole}."
        )
    if not found.removed:
        return f"No word can go: without any one of them the model says something else. The answer has {whole}."
    return (
        f"{count(len(found.removed), 'word')} can go, {len(found.remaining)} stay:"
        f" **{escape_markdown(_text(trace, found))}**. In the"
        f" whole text “{escape_markdown(found.target.label)}” has {whole}, in what is left {left}."
    )


def _text(trace, found):
    """What is left, hidden words as [MASK], the two texts parted by a stroke."""
    texts = []
    for source in "ab" if trace.text_b is not None else "a":
        words = [word for word in found.remaining if word.source == source]
        hidden = [bool(set(word.positions) & set(trace.masks)) for word in words]
        texts.append(" ".join("[MASK]" if mask else word.text for word, mask in zip(words, hidden)))
    return " / ".join(texts)
