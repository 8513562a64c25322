"""The changed texts of the Counterfactuals page: one side of the context, a word less, another word, texts swapped."""

import dataclasses

import streamlit as st

from bert_tf.analyses import Call
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
from bert_tf.plots.numbers import percent
from bert_tf.plots.ranked_bars import ranked_bars
from pages.explain import likely_words
from ui.elements import components, tables
from ui.elements.cards import cards, with_top_k
from ui.session import calls, state
from ui.session.session_cache import cached
from ui.shell import snippets
from ui.widgets import export, figures, inputs, targets
from ui.widgets.formatting import escape_markdown

_MOST_PREDICTIONS = 1000  # kept for the comparison: a word that is not among them has less than 0.1%
_LONGEST_LIST = 15
#: `bert_tf.architectures.Architecture.attention_direction` -> what one side of the context shows of such a model.
_ONE_SIDE_CAPTIONS = {
    "bidirectional": (
        "A model that reads from left to right knows only the words before a word; BERT is trained to use both sides."
        " It was not trained on texts cut like this: a model trained from left to right would do better with the left"
        " side than this model does."
    ),
    "left_to_right": (
        "This model reads from left to right: the words after a word never reach its prediction. The left side alone"
        " therefore gives the same as the full text, and the right side alone tells it nothing."
    ),
    "two_one_way": (
        "This model consists of two one-way readers: one reads the words before the word, the other the words after"
        " it, and their results are combined at the end. In a text cut like this, one of the two has no words to read."
    ),
}


def one_side(shared, trace):
    """Draw the predictions from only the words before a mask, and from only those after it, beside the full text's."""
    if not trace.masks:
        st.info("This needs a hidden word: press a word above to hide it.", icon=":material/touch_app:")
        return
    position = _mask_picker(trace)
    sides = [Call.of(side, mask=position) for side in (left_context, right_context)]
    call = Call.of(predict_variants, top_k=state.limits().max_top_k)
    snippets.give(shared, "sides", trace, call, sides, position)
    outcomes = _outcomes("counterfactuals_sides", shared, trace, call, sides)
    top_k = state.view().top_k
    full_text = next(mask for mask in fill_mask(trace, shared.tokenizer, top_k) if mask.position == position)
    predictions = [_at(outcome, trace, position) for outcome in outcomes]
    answer_cards = cards([full_text, *predictions])
    titles = ("The full text", "Only the words before", "Only the words after")
    for card, title in zip(answer_cards, titles):
        card["note"], card["predictions"] = title, card["predictions"][:top_k]
    with inputs.heading("Both sides, or one"):
        _save("one-side", shared, trace, outcomes)
    components.bars("c_counterfactuals_sides", answer_cards)
    st.caption(_ONE_SIDE_CAPTIONS[shared.config.architecture.attention_direction])
    for outcome, title in zip(outcomes, titles[1:]):
        st.caption(f"{title}: {escape_markdown(' '.join(outcome.variant.tokens))}")


def _outcomes(name, shared, trace, call, changes):
    """The predictions for changed texts, from the visitor's cache or computed.

    Args:
        name: of the place in the cache. call: ``Call`` of `predict_variants`.
        changes: ``Call``s of the functions that make the variants.
    """

    def predict(bert):
        return call.run(bert, trace, [change.run(bert, trace) for change in changes])

    return cached(name, (trace, call, changes), lambda: shared.run(predict))


def _at(outcome, trace, position):
    """The prediction of an outcome at one of the trace's masks."""
    return outcome.masks[outcome.variant.rows.index(trace.masks.index(position))]


def _mask_picker(trace):
    """The position of the chosen mask; with several masks, draw a widget for it."""
    if len(trace.masks) == 1:
        return trace.masks[0]
    labels = {str(position): targets.position_label(trace, position) for position in trace.masks}
    bound = state.bind_setting(
        "counterfactuals.at", "w_counterfactuals_at", str(trace.masks[0]), labels, labels.items()
    )
    return int(st.selectbox("Hidden word", list(labels), format_func=labels.__getitem__, width=300, **bound))


def a_word_less(shared, trace):
    """Draw the answer without each word, the word with the largest effect first."""
    call = Call.of(without_each_word, top_k=1)
    snippets.give(shared, "less", trace, call)
    label = "Leaving out every word, one at a time"
    words_and_outcomes = calls.job_result(shared, call, trace, label=label, name="counterfactuals_less")
    if words_and_outcomes is None:
        return
    if not words_and_outcomes:
        st.info(
            "There is no word to leave out: a text needs at least two words that are not hidden.",
            icon=":material/notes:",
        )
        return
    rows = sorted((_less(word, outcome) for word, outcome in words_and_outcomes), key=lambda row: -row["effect"])
    with inputs.heading("Without each word"):
        _save("a-word-less", shared, trace, [outcome for _, outcome in words_and_outcomes])
    left_column, right_column = st.columns([3, 2], gap="large")
    with left_column:
        tables.show(
            {name: [row[name] for row in rows] for name in rows[0] if any(row[name] is not None for row in rows)},
            hide_index=True,
            width="stretch",
            key="w_counterfactuals_less",
            column_config=_LESS_COLUMNS,
        )
    with right_column:
        figures.show(
            "The answer without each word",
            _less_figure(shared, rows, trace, state.is_dark()),
            key="w_counterfactuals_less_bars",
            config=export.plot_config("a-word-less"),
        )
    st.caption(
        "The model reads the text again without the word; the words after it move up. With several masks the numbers"
        " are means over the masks, and the prediction is at the first mask."
    )


_LESS_COLUMNS = {
    "text": st.column_config.TextColumn("Text", width=45),
    "word": st.column_config.TextColumn("Without", width=85),
    "prediction": st.column_config.TextColumn("Predicts then", width=105),
    "probability": st.column_config.NumberColumn("has", format="percent", width=65),
    "change": st.column_config.NumberColumn(
        "Former, nats",
        width=95,
        format="%+.2f",
        help="The change in log-probability of the full text's first prediction.",
    ),
    "effect": st.column_config.ProgressColumn("Difference", format="%.3f", min_value=0, max_value=1, width=120),
    "is_next": st.column_config.NumberColumn("IsNext then", format="percent"),
    "in_order": st.column_config.NumberColumn("In order then", format="percent"),
}


def _less(word, outcome):
    """The table's row of a word that is left out; the keys are those of ``_LESS_COLUMNS``."""
    masks = outcome.masks
    change = outcome.sop_change if outcome.nsp_change is None else outcome.nsp_change
    effect = float(outcome.divergences.mean()) if masks else abs(change)
    return {
        "text": word.source.upper(),
        "word": word.text,
        "prediction": masks[0].predictions[0].token if masks else None,
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
    """Draw the answer with one word replaced by another."""
    words = likely_words.words_in_sight(trace)
    if not words:
        st.info("Every word is hidden; there is none to replace.", icon=":material/notes:")
        return
    # Streamlit tells options apart by their text, and a word may occur twice: the options have a number.
    labels = {f"{word.source}{word.index}": f"{number}: {word.text}" for number, word in enumerate(words, 1)}
    names = list(labels)

    def first_word():
        first = cached("counterfactuals_exchange", (trace,), lambda: likely_words.exchange(shared, trace))
        return f"{first[0].source}{first[0].index}" if first else names[0]

    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        name = st.selectbox(
            "Replace",
            names,
            format_func=labels.__getitem__,
            width=260,
            **state.bind_setting("counterfactuals.word", "w_counterfactuals_word", first_word, names, labels.items()),
        )
        word = words[names.index(name)]

        def first_instead():
            return next(iter(likely_words.suggestions(shared, trace, word)), "")

        binding = state.bind_setting("counterfactuals.with", "w_counterfactuals_with", first_instead)

        def typed():
            binding["on_change"]()
            # The word that is offered depends on the masks; what was typed is for this one.
            state.set_setting("counterfactuals.word", name, None)

        instead = st.text_input(
            "by",
            placeholder="Type a word",
            width=260,
            max_chars=200,
            **{**binding, "on_change": typed},
        )
    if not instead.strip():
        st.info("Type a word to put in its place.", icon=":material/keyboard:")
        return
    _before_after(shared, trace, Call.of(with_word, word=word, replacement=instead))


def swapped_texts(shared, trace):
    """Draw the answer with text B before text A."""
    if trace.text_b is None:
        st.info("There is only one text. Type a text B to swap them.", icon=":material/swap_horiz:")
        return
    _before_after(shared, trace, Call.of(swapped))


def _before_after(shared, trace, change):
    """Draw the answers before and after a change; change: the ``Call`` that makes the variant."""
    call = Call.of(predict_variants, top_k=_MOST_PREDICTIONS)
    snippets.give(shared, "change", trace, call, [change])
    (outcome,) = _outcomes("counterfactuals_change", shared, trace, call, [change])
    variant = outcome.variant
    before = fill_mask(trace, shared.tokenizer, _MOST_PREDICTIONS) if variant.masks else ()
    top_k = state.view().top_k
    answer_cards = targets.before_after_cards([before[row] for row in variant.rows], outcome.masks, top_k)
    pair_share = targets.first_answer_probability(outcome)
    with inputs.heading(variant.label if variant.label == "A and B swapped" else escape_markdown(variant.label)):
        most = state.limits().max_top_k
        shortened = dataclasses.replace(outcome, masks=tuple(with_top_k(outcome.masks, most)))
        _save("what-if", shared, trace, [shortened])
    st.caption(escape_markdown(" ".join(variant.tokens)))
    left_column, right_column = st.columns([3, 2], gap="large") if pair_share is not None else (st.container(), None)
    if answer_cards:
        with left_column:
            components.bars("c_counterfactuals_bars", answer_cards)
            st.caption("The line marks the probability in the text above.")
    if pair_share is not None:
        with right_column if answer_cards else left_column:
            components.gauge("c_counterfactuals_gauge", pair_share, order=outcome.nsp is None)
            st.caption(
                f"{targets.pair_question(shared).claim}: {percent(targets.first_answer_probability(trace))}"
                " in the text above."
            )
    st.caption(
        "This is one change in one text: it shows that the answer depends on it here, but not why, nor that it would in"
        " other texts. A text that nobody would write changes the answer too."
    )


def _save(name, shared, trace, outcomes):
    """Offer the answers to variants of a trace in the menu Save."""
    counterfactuals = Counterfactuals.of(shared.bert, trace, outcomes, state.limits().max_top_k)
    export.save(name, counterfactuals, trace=trace)
