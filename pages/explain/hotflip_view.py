"""Which word changed for which other changes an answer most, as the page about single words shows it."""

import streamlit as st

from bert_tf.explain import hotflip
from bert_tf.explain.attribution.hotflip import replaceable_words, text_with_replacements
from bert_tf.plots.theme import ramp
from ui.elements.cells import marks
from ui.session import jobs, state
from ui.shell import frame
from ui.widgets import export, figures, highlights, inputs, targets
from ui.widgets.formatting import bold, count, escape_markdown

MOST = 128  # tokens: the work grows with their square


def can(shared, trace, target):
    """Whether there are words to change; says why where there are none."""
    if target.is_regression:
        st.info(
            "Words are changed until another answer is the likeliest, and a number has no others.",
            icon=":material/block:",
        )
        return False
    if trace.length > MOST:
        st.info(
            f"Every word is tried, which takes long: at most {MOST} tokens here, and this text has {trace.length}."
            " Shorten it.",
            icon=":material/content_cut:",
        )
        return False
    if not replaceable_words(shared.tokenizer, trace, target):
        st.info(
            "There is no word to change: it takes a whole word, of one token, that is neither hidden nor asked about.",
            icon=":material/notes:",
        )
        return False
    return True


def settings():
    """Widgets for how much is tried: keyword arguments of ``hotflip``."""
    return {
        "most": st.segmented_control(
            "Words changed, at most", (1, 2, 3, 5), **state.bind_setting("saliency.flips", "w_flips", 3, (1, 2, 3, 5))
        ),
        "tried": st.segmented_control(
            "Tried for each word",
            (1, 2, 5),
            help="Those that the slope likes best are read by the model.",
            **state.bind_setting("saliency.tried", "w_tried", 2, (1, 2, 5)),
        ),
    }


def draw(shared, trace, target, chosen):
    """Work out which words change the answer, beside the page, and show them; chosen: as ``settings`` gives it."""
    view = state.view()
    key = (shared.name, view.precision, view.a, view.b, trace.masks, target, chosen)
    found = jobs.result(
        "saliency hotflip",
        key,
        "Trying other words",
        lambda progress: shared.run(hotflip, trace, target, progress=progress, **chosen),
        patience=jobs.SHORT,
    )
    if found is not None:
        _show(trace, found, chosen)


def _show(trace, found, chosen):
    label = escape_markdown(found.target.label)
    heading = inputs.heading(f"Which other word changes “{label}”")
    if not found.target_is_top:
        targets.note_not_likeliest(found, "nothing to change")
        return
    with heading:
        export.save("words-flipped", found, {"model": trace.model, **chosen})
    st.markdown(_summary(found, chosen))
    st.markdown("\n".join(_step(trace, found.applied[:number]) for number in range(1, len(found.applied) + 1)))
    marks(
        "c_flips",
        highlights.hotflip_highlights(trace, found, _flip_text),
        ramp(frame.is_dark()),
        ("matters least", "another word here costs most"),
        "Point at a word, or tap it, for the other word that costs the answer most.",
    )
    st.caption(
        "The slope of the answer tells what every word of the vocabulary would cost it in every place; those that look"
        " worst are read by the model, and the worst of them is taken (HotFlip, Ebrahimi et al. 2018). Only whole words"
        " of one token take part; hidden words and the word asked about stay. The slope holds for small steps, so a"
        " stronger word may be missed; and a text that nobody would write shows how little holds the answer, not what"
        " the model knows."
    )
    if not found.tried:
        return
    left, right = st.columns(2, gap="medium")
    with left:
        figures.show(
            "Other words in the text as it is",
            found.figure(dark=frame.is_dark()),
            key="w_flips_bars",
            config=export.plot_config("words-flipped"),
        )
    with right:
        texts = {"text": [one.word.source.upper() for one in found.tried]} if trace.text_b is not None else {}
        st.dataframe(
            {
                **texts,
                "word": [one.word.text for one in found.tried],
                "new": [one.new for one in found.tried],
                "change": [one.change for one in found.tried],
                "estimate": [one.estimate for one in found.tried],
                "answer": [one.answer.label for one in found.tried],
            },
            hide_index=True,
            width="stretch",
            key="w_flips_table",
            column_config={
                "text": st.column_config.TextColumn("Text", width="small"),
                "word": "Word",
                "new": "Instead",
                "change": st.column_config.NumberColumn("Nats", width="small", format="%+.3f"),
                "estimate": st.column_config.NumberColumn("By the slope", width="small", format="%+.3f"),
                "answer": "Likeliest then",
            },
        )


def _summary(found, chosen):
    label, whole = escape_markdown(found.target.label), targets.score_text(found.target, found.log_probability)
    if not found.tried:
        return f"Nothing could be tried: no other word would be read as one token in its place. “{label}” has {whole}."
    if not found.applied:
        return f"None of the words that were tried costs “{label}” anything: it has {whole}."
    last = found.applied[-1]
    left = targets.score_text(found.target, last.log_probability)
    if found.flipped:
        return (
            f"With {count(len(found.applied), 'other word')} the answer is {bold(last.answer.label)}"
            f" ({targets.score_text(last.answer, last.answer_log_probability)}):"
            f" “{label}” falls from {whole} to {left}."
        )
    stays = "and stays above 50%" if found.target.is_multi_label else "and stays the likeliest"
    end = "and no other costs it anything" if len(found.applied) < chosen["most"] else stays
    return f"With {count(len(found.applied), 'other word')} “{label}” falls from {whole} to {left}, {end}."


def _step(trace, applied):
    """The last of some flips as a line of a numbered list, and below it the text after it."""
    one = applied[-1]
    return (
        f"{len(applied)}. {bold(one.word.text)} → {bold(one.new)}: {one.change:+.3f} nats (by the slope"
        f" {one.estimate:+.3f}), then “{escape_markdown(one.answer.label)}” is the likeliest.  \n"
        f"   {_text(trace, applied)}"
    )


def _text(trace, applied):
    """The texts with the words that were changed, those bold, hidden ones as [MASK], parted by a stroke."""
    hidden = {word: "[MASK]" for word in trace.words() if set(word.positions) & set(trace.masks)}
    changed = {one.word: f"\1{one.new}\1" for one in applied}
    texts = [(source, text) for source, text in (("a", trace.text_a), ("b", trace.text_b)) if text is not None]
    shown = (
        escape_markdown(" ".join(text_with_replacements(text, source, hidden | changed).split()))
        for source, text in texts
    )
    return " / ".join(shown).replace("\1", "**")


def _flip_text(one):
    """A ``Flip`` in a few words."""
    then = f"“{one.answer.label}” {targets.score_text(one.answer, one.answer_log_probability)}"
    return f"{one.new} instead: {one.change:+.3f} nats, then {then}"
