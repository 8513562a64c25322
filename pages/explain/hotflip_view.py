"""HotFlip on the Saliency page: which replaced word changes an answer most."""

import streamlit as st

from bert_tf.explain.attribution.hotflip import replaceable_words, text_with_replacements
from bert_tf.explain.attribution.methods import ANALYSIS
from bert_tf.plots.theme import ramp
from ui.elements import tables
from ui.elements.cells import marks
from ui.session import state
from ui.widgets import export, figures, highlights, inputs, targets
from ui.widgets.formatting import bold, count, escape_markdown, signed

MOST = 128  # the most tokens: the work grows with their square


def can(shared, trace, target):
    """Whether the text has words to change; if not, the page shows the reason."""
    if target.is_regression:
        st.info(
            "HotFlip changes words until another answer is the likeliest. This model predicts a number, which has no"
            " other answers.",
            icon=":material/block:",
        )
        return False
    if trace.length > MOST:
        st.info(
            f"Every word is tried, which takes long. At most {MOST} tokens are possible here, and this text has"
            f" {trace.length}. Shorten it.",
            icon=":material/content_cut:",
        )
        return False
    if not replaceable_words(shared.tokenizer, trace, target):
        st.info(
            "There is no word to change. HotFlip needs a whole word of one token that is neither hidden nor asked"
            " about.",
            icon=":material/notes:",
        )
        return False
    return True


def settings():
    """Draw the widgets for how many words are changed and tried; returns keyword arguments of ``hotflip``."""
    return {
        "most": inputs.option_choice(
            ANALYSIS.option("flips"), "Words changed, at most", (1, 2, 3, 5), "saliency.flips", "w_flips"
        ),
        "tried": inputs.option_choice(
            ANALYSIS.option("tried"),
            "Tried for each word",
            (1, 2, 5),
            "saliency.tried",
            "w_tried",
            help="How many replacements of each word the model reads: those that the gradient ranks highest.",
        ),
    }


def draw(trace, result, settings):
    """Draw a ``HotFlip``; settings: the keyword arguments from ``settings``."""
    label = escape_markdown(result.target.label)
    inputs.heading(f"Which other word changes “{label}”")
    if not result.target_is_top:
        targets.note_not_likeliest(result, "nothing to change")
        return
    export.save("words-flipped", result, settings, trace=trace)
    st.markdown(_summary(result, settings))
    st.markdown("\n".join(_step(trace, result.applied[:number]) for number in range(1, len(result.applied) + 1)))
    marks(
        "c_flips",
        highlights.hotflip_highlights(trace, result, _flip_text),
        ramp(state.is_dark()),
        ("matters least", "another word here costs most"),
        "Point at a word, or tap it, to see the other word that costs the answer most.",
    )
    st.caption(
        "Of the words that the gradient ranks highest, the one that costs the answer most is taken (HotFlip, "
        "Ebrahimi et al. 2018). A text that nobody would write shows how easily the answer changes, not what the "
        "model knows.",
        help="The gradient of the answer estimates what every word of the vocabulary would cost it at every "
        "position. The model reads the words with the highest estimates. The gradient is exact only for small "
        "steps, so a stronger word may be missed. Only whole words of one token are replaced or put in. Hidden "
        "words and the word asked about stay.",
    )
    if not result.tried:
        return
    left_column, right_column = st.columns(2, gap="medium")
    with left_column:
        figures.show(
            "Other words in the text as it is",
            result.figure(dark=state.is_dark()),
            key="w_flips_bars",
            config=export.plot_config("words-flipped"),
        )
    with right_column:
        texts = {"text": [flip.word.source.upper() for flip in result.tried]} if trace.text_b is not None else {}
        tables.show(
            {
                **texts,
                "word": [flip.word.text for flip in result.tried],
                "new": [flip.new for flip in result.tried],
                "change": [flip.change for flip in result.tried],
                "estimate": [flip.estimate for flip in result.tried],
                "answer": [flip.answer.label for flip in result.tried],
            },
            hide_index=True,
            width="stretch",
            key="w_flips_table",
            column_config={
                "text": st.column_config.TextColumn("Text", width="small"),
                "word": "Word",
                "new": "Instead",
                "change": st.column_config.NumberColumn("Nats", width="small", format="%+.3f"),
                "estimate": st.column_config.NumberColumn("By the gradient", width="small", format="%+.3f"),
                "answer": "Likeliest then",
            },
        )


def _summary(result, chosen):
    label, full_score = escape_markdown(result.target.label), targets.score_text(result.target, result.log_probability)
    if not result.tried:
        return (
            "No word could be tried: no other word would be read as one token in its position."
            f" “{label}” has {full_score}."
        )
    if not result.applied:
        return f"None of the words that were tried makes “{label}” less likely: it has {full_score}."
    last_flip = result.applied[-1]
    final_score = targets.score_text(result.target, last_flip.log_probability)
    if result.flipped:
        return (
            f"With {count(len(result.applied), 'other word')} the answer is {bold(last_flip.answer.label)}"
            f" ({targets.score_text(last_flip.answer, last_flip.answer_log_probability)}):"
            f" “{label}” falls from {full_score} to {final_score}."
        )
    outcome = "and stays above 50%" if result.target.is_multi_label else "and stays the likeliest"
    reason = "and no other word makes it less likely" if len(result.applied) < chosen["most"] else outcome
    return (
        f"With {count(len(result.applied), 'other word')} “{label}” falls from {full_score} to {final_score}, {reason}."
    )


def _step(trace, applied):
    """The last of the applied flips as a line of a numbered list, and below it the text after this flip."""
    flip = applied[-1]
    return (
        f"{len(applied)}. {bold(flip.word.text)} → {bold(flip.new)}: {signed(flip.change, 3)} nats (by the gradient"
        f" {signed(flip.estimate, 3)}), then “{escape_markdown(flip.answer.label)}” is the likeliest.  \n"
        f"   {_text(trace, applied)}"
    )


def _text(trace, applied):
    """The texts after the applied flips, separated by a slash; new words are bold, hidden words are [MASK]."""
    hidden = {word: "[MASK]" for word in trace.words() if set(word.positions) & set(trace.masks)}
    changed = {flip.word: f"\1{flip.new}\1" for flip in applied}
    texts = [(source, text) for source, text in (("a", trace.text_a), ("b", trace.text_b)) if text is not None]
    changed_texts = (
        escape_markdown(" ".join(text_with_replacements(text, source, hidden | changed).split()))
        for source, text in texts
    )
    return " / ".join(changed_texts).replace("\1", "**")


def _flip_text(flip):
    """A ``Flip`` as one line: the new word, the change and the likeliest answer after it."""
    answer = f"“{flip.answer.label}” {targets.score_text(flip.answer, flip.answer_log_probability)}"
    return f"{flip.new} instead: {signed(flip.change, 3)} nats, then {answer}"
