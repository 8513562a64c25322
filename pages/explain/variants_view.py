"""The What-if page's views of a text changed: half the context, a word less, another word, swapped."""

import dataclasses
import functools

import streamlit as st

from bert_tf.explain import (
    Counterfactuals,
    left_context,
    predict_variants,
    right_context,
    swapped,
    with_word,
    without_each_word,
)
from bert_tf.inference.predictions import fill_mask
from bert_tf.plots.interventions.ablation import ranked_bars
from ui.elements import components
from ui.elements.cards import cards, with_top_k
from ui.session import jobs, state
from ui.session.session_cache import cached
from ui.shell import frame, snippets
from ui.widgets import export, figures, inputs, targets
from ui.widgets.formatting import escape_markdown, percent

_MANY = 1000  # guesses kept for comparison: one that is not among them has less than 0.1%
_LONGEST_LIST = 15
#: How a model reads (`bert_tf.architectures.Architecture.attention_direction`) -> what half the context shows of it.
_SIDES_SAY = {
    "bidirectional": (
        "A reader from left to right knows only what stands before a word; BERT is trained to use both sides."
        " Cut short like this it is out of its element: a model trained from left to right would do better"
        " with the left side than this one does."
    ),
    "left_to_right": (
        "This model reads from left to right: what stands after a word never reaches its prediction, so that the left"
        " side alone gives the same as the whole text, and the right side alone gives it nothing to go by."
    ),
    "two_one_way": (
        "This model is two one-way readers: one has read what stands before the word, the other what stands after it,"
        " and their results meet at the end. Cut short like this, one of the two has no words to read."
    ),
}


def one_side(shared, trace):
    """What stands before a mask alone, and what stands after it alone, beside the whole text."""
    if not trace.masks:
        st.info("This is about hidden words: press a word above to hide it.", icon=":material/touch_app:")
        return
    position = _mask_picker(trace)
    snippets.give(shared, "sides", trace, position)
    variants = [left_context, right_context]
    outcomes = cached(
        "counterfactuals_sides",
        (trace, position),
        lambda: shared.run(_asked, trace, variants, position, state.limits().max_top_k),
    )
    top_k = state.view().top_k
    whole = next(one for one in fill_mask(trace, shared.tokenizer, top_k) if one.position == position)
    sides = [_at(outcome, trace, position) for outcome in outcomes]
    shown = cards([whole, *sides])
    names = ("The whole text", "Only what stands before", "Only what stands after")
    for card, name in zip(shown, names):
        card["note"], card["predictions"] = name, card["predictions"][:top_k]
    with inputs.heading("Both sides, or one"):
        _save("one-side", shared, trace, outcomes)
    components.bars("c_counterfactuals_sides", shown)
    st.caption(_SIDES_SAY[shared.config.architecture.attention_direction])
    for outcome, name in zip(outcomes, names[1:]):
        st.caption(f"{name}: {escape_markdown(' '.join(outcome.variant.tokens))}")


def _asked(bert, trace, makers, position, top_k):
    return predict_variants(bert, trace, [maker(bert, trace, position) for maker in makers], top_k)


def _at(outcome, trace, position):
    """What an outcome says at one of the trace's masks."""
    return outcome.masks[outcome.variant.rows.index(trace.masks.index(position))]


def _mask_picker(trace):
    if len(trace.masks) == 1:
        return trace.masks[0]
    names = [str(position) for position in trace.masks]
    return int(
        st.selectbox(
            "Hidden word",
            names,
            format_func=lambda name: targets.position_label(trace, int(name)),
            width=300,
            **state.bind_setting("counterfactuals.at", "w_counterfactuals_at", names[0], names),
        )
    )


def a_word_less(shared, trace):
    """Every word left out once, the one that matters most on top."""
    view = state.view()
    snippets.give(shared, "less", trace)
    key = (shared.name, view.precision, view.a, view.b, trace.masks)
    work = functools.partial(shared.run, without_each_word, trace, 1)
    found = jobs.result(
        "counterfactuals_less", key, "Leaving out every word, one at a time", lambda progress: work(progress=progress)
    )
    if found is None:
        return
    if not found:
        st.info("There is no word to leave out: each text needs two that are not hidden.", icon=":material/notes:")
        return
    rows = sorted((_less(word, outcome) for word, outcome in found), key=lambda row: -row["effect"])
    with inputs.heading("Without each word"):
        _save("a-word-less", shared, trace, [outcome for _, outcome in found])
    left, right = st.columns([3, 2], gap="large")
    with left:
        st.dataframe(
            {name: [row[name] for row in rows] for name in rows[0] if any(row[name] is not None for row in rows)},
            hide_index=True,
            width="stretch",
            key="w_counterfactuals_less",
            column_config=_LESS_COLUMNS,
        )
    with right:
        figures.show(
            "The answer without each word",
            _less_figure(shared, rows, trace, frame.is_dark()),
            key="w_counterfactuals_less_bars",
            config=export.plot_config("a-word-less"),
        )
    st.caption(
        "The text without the word, read anew: what follows moves up. With several masks the numbers are"
        " means over them, and the prediction is that at the first."
    )


_LESS_COLUMNS = {
    "text": st.column_config.TextColumn("Text", width="small"),
    "word": "Without",
    "guess": "First prediction then",
    "probability": st.column_config.NumberColumn("has", format="percent"),
    "change": st.column_config.NumberColumn(
        "Old prediction, nats",
        format="%+.2f",
        help="What the first prediction of the whole text has gained in log-probability.",
    ),
    "effect": st.column_config.ProgressColumn("Difference", format="%.3f", min_value=0, max_value=1),
    "is_next": st.column_config.NumberColumn("IsNext then", format="percent"),
    "in_order": st.column_config.NumberColumn("In order then", format="percent"),
}


def _less(word, outcome):
    masks = outcome.masks
    change = outcome.sop_change if outcome.nsp_change is None else outcome.nsp_change
    effect = float(outcome.divergences.mean()) if masks else abs(change)
    return {
        "text": word.source.upper(),
        "word": word.text,
        "guess": masks[0].predictions[0].token if masks else None,
        "probability": masks[0].predictions[0].probability if masks else None,
        "change": float(outcome.log_probability_changes.mean()) if masks else None,
        "effect": effect,
        "is_next": outcome.nsp.is_next if outcome.nsp else None,
        "in_order": outcome.sop.in_order if outcome.sop else None,
    }


def _less_figure(shared, rows, trace, dark):
    unit = "bits between the two distributions"
    if not trace.masks:
        unit = f"change of P({targets.pair_question(shared).answers[0]})"
    strongest = rows[:_LONGEST_LIST]
    return ranked_bars([row["word"] for row in strongest], [row["effect"] for row in strongest], unit, dark)


def another_word(shared, trace):
    """One word in the place of another."""
    words = [word for word in trace.words() if not set(word.positions) & set(trace.masks)]
    if not words:
        st.info("Every word is hidden; there is none to replace.", icon=":material/notes:")
        return
    names = [f"{word.source}{word.index}" for word in words]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        name = st.selectbox(
            "Instead of",
            names,
            # Numbered: a box knows its options by what it shows of them, and a word may stand twice in a text.
            format_func=lambda name: f"{names.index(name) + 1}: {words[names.index(name)].text}",
            width=260,
            **state.bind_setting("counterfactuals.word", "w_counterfactuals_word", names[0], names),
        )
        instead = st.text_input(
            "read",
            placeholder="Type a word",
            width=260,
            max_chars=200,
            **state.bind_setting("counterfactuals.with", "w_counterfactuals_with", ""),
        )
    if not instead.strip():
        st.info("Type a word to put in its place.", icon=":material/keyboard:")
        return
    word = words[names.index(name)]
    snippets.give(shared, "word", trace, word, instead)
    _before_after(shared, trace, functools.partial(with_word, word=word, replacement=instead), (word, instead))


def swapped_texts(shared, trace):
    """The second text first."""
    if trace.text_b is None:
        st.info("There is only one text. Type a text B to swap them.", icon=":material/swap_horiz:")
        return
    snippets.give(shared, "swap", trace)
    _before_after(shared, trace, swapped, "swap")


def _before_after(shared, trace, maker, key):
    outcome = cached("counterfactuals_change", (trace, key), lambda: shared.run(_changed, trace, maker))
    variant = outcome.variant
    before = fill_mask(trace, shared.tokenizer, _MANY) if variant.masks else ()
    top_k = state.view().top_k
    shown = targets.before_after_cards([before[row] for row in variant.rows], outcome.masks, top_k)
    share = targets.first_answer_probability(outcome)
    with inputs.heading(variant.label if variant.label == "A and B swapped" else escape_markdown(variant.label)):
        most = state.limits().max_top_k
        kept = dataclasses.replace(outcome, masks=tuple(with_top_k(outcome.masks, most)))
        _save("what-if", shared, trace, [kept])
    st.caption(escape_markdown(" ".join(variant.tokens)))
    left, right = st.columns([3, 2], gap="large") if share is not None else (st.container(), None)
    if shown:
        with left:
            components.bars("c_counterfactuals_bars", shown)
            st.caption("The line marks what it was in the text above.")
    if share is not None:
        with right if shown else left:
            components.gauge("c_counterfactuals_gauge", share, order=outcome.nsp is None)
            st.caption(
                f"{targets.pair_question(shared).claim}: {percent(targets.first_answer_probability(trace))}"
                " in the text above."
            )
    st.caption(
        "One change in one text: it shows that the answer hangs on it here, not why, nor that it would elsewhere. A "
        "text that nobody would write moves the answer too."
    )


def _changed(bert, trace, maker):
    return predict_variants(bert, trace, [maker(bert, trace)], _MANY)[0]


def _save(name, shared, trace, outcomes):
    """The download menu of what the model says to variants of a trace."""
    found = Counterfactuals.of(shared.bert, trace, outcomes, state.limits().max_top_k)
    export.save(name, found, {"model": trace.model})
