"""Concepts (TCAV): whether an answer depends on what some example sentences have in common, layer by layer."""

import numpy as np
import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import can_test, concept_test
from bert_tf.explain.representations.tcav import ANSWERS, MIN_SENTENCES, RUNS
from bert_tf.inference.predictions import vocabulary_id
from pages.explain.snippets.tcav import snippet
from ui.elements import tables
from ui.samples import concepts
from ui.session import jobs, state
from ui.shell import snippets
from ui.shell.page import Page, Press
from ui.widgets import export, figures, file_input, head_predictions, inputs, targets
from ui.widgets.formatting import (
    bold,
    count,
    escape_markdown,
    share,
)

PAGE = Page(
    name="tcav",
    group="Explain",
    order=6,
    title="Concepts (TCAV)",
    question="What a concept does to an answer",
    terms="concept activation vector CAV concepts",
    summary=(
        "TCAV: whether a fine-tuned class, a word at a mask or a verdict on pairs depends on what some example "
        "sentences have in common (positive feeling, negation, place names, questions, past tense, or the "
        "visitor's own): the share of a file's rows that rise along the concept's vector after every layer, "
        "beside random directions, and how well a classifier detects the concept there; each row's slope"
    ),
    presses={"": Press("choice: File: Labelled reviews|Sentences", of_texts=False)},
    analyses=("tcav",),
    reads_texts=False,
    settings=(
        "concept",
        "own",
        "others",
        "of",
        "label",
        "word",
        "follows",
        "layer",
        "file",
        "lines",
        "hide",
        "first",
        "second",
        "labelled",
    ),
    settings_help=(
        "a ready concept, or `own` with its sentences and others to compare with; `class`, `word`, `next` or "
        "`order`; the class, word or verdict (`NotNext`, `Swapped`) asked about; hidden state whose rows are "
        "listed; as of `agreement`; the label whose rows alone are asked about"
    ),
    long_settings={
        "lines": "the typed lines",
        "own": "the sentences with the concept",
        "others": "the others to compare with",
    },
    snippet=snippet,
)


_OF = {"class": "The class", "word": "A word at a mask", "next": "Next sentence", "order": "Sentence order"}
_PAIR_ANSWERS = {"next": ("IsNext", "NotNext"), "order": ("In order", "Swapped")}
_WORD = "good"  # the word asked about until the visitor types another


def page():
    name, concept, others = _concept()
    if len(concept) < MIN_SENTENCES or len(others) < 2 * MIN_SENTENCES:
        st.info(
            f"Type at least {MIN_SENTENCES} sentences with the concept, one a line, and {2 * MIN_SENTENCES} without it."
            " Leave the second field empty to use sentences of the project.",
            icon=":material/keyboard:",
        )
        return
    shared = inputs.model()
    question = _asked(shared)
    if question is None:
        return
    of, answer = question
    rows_and_key = file_input.rows("tcav", typed=True, first="reviews.csv")
    if rows_and_key is None:
        return
    rows, file_key = rows_and_key
    rows, label = file_input.label_picker("tcav", rows)
    hide = file_input.hide_picker("tcav") if of == "word" else "given"
    call = Call.of(concept_test, concept=concept, others=others, of=of, answer=answer, hide=hide)
    key = (shared.name, state.view().precision, call, file_key, label)
    if not file_input.run_requested("tcav", key, len(rows.rows) <= file_input.AT_ONCE):
        st.caption(f"{count(len(rows.rows), 'row')}. Each row takes about four passes.")
        return
    snippets.give(shared, file_key, name, call, label)
    result = jobs.result(
        "tcav",
        key,
        f"Testing {count(len(rows.rows), 'row')}",
        lambda progress: shared.run(call.run, rows.rows, progress=progress),
        patience=jobs.SHORT,
    )
    if result is None:
        return
    _scores(shared, result, name, concept, rows)
    _layer(shared, result, len(result.scores) - 1)


def _concept():
    """Draw the concepts; returns (name of the ready concept or None, its sentences, the sentences without it)."""
    names = {**concepts.NAMES, concepts.OWN: "Your own"}
    chosen = st.pills(
        "Concept",
        list(names),
        format_func=names.get,
        label_visibility="collapsed",
        required=True,
        **state.bind_setting("tcav.concept", "w_tcav_concept", next(iter(names)), names),
    )
    if chosen == concepts.OWN:
        left_column, right_column = st.columns(2, gap="large")
        with left_column:
            typed_sentences = _lines("Sentences with the concept", "tcav.own", "w_tcav_own")
        with right_column:
            typed_others = _lines("Others to compare with", "tcav.others", "w_tcav_others")
        return None, typed_sentences, typed_others or concepts.sentences(concepts.OTHERS)
    with st.expander("The sentences", icon=":material/notes:"):
        left_column, right_column = st.columns(2, gap="large")
        sentence_lists = {concepts.NAMES[chosen]: chosen, "Compared with": concepts.OTHERS}
        for column, (heading, name) in zip((left_column, right_column), sentence_lists.items()):
            column.dataframe(
                {heading: list(concepts.sentences(name))},
                hide_index=True,
                width="stretch",
                height=220,
                key=f"w_tcav_shown_{name}",
            )
    return chosen, concepts.sentences(chosen), concepts.sentences(concepts.OTHERS)


def _lines(label, name, key):
    """Draw a text area; returns its sentences, at most as many as the limits allow."""
    limits = state.limits()
    lines = st.text_area(
        label,
        height=190,
        max_chars=limits.max_characters,
        placeholder="One sentence a line.",
        **state.bind_setting(name, key, ""),
    )
    sentences = concepts.typed(lines or "")
    if len(sentences) > limits.max_sentences:
        st.caption(f"The first {limits.max_sentences:,} are read.")
    return sentences[: limits.max_sentences]


def _asked(shared):
    """Draw the widgets of the question; returns (kind of the answer, the answer) as `concept_test` takes them.

    None if the page shows why there is no question.
    """
    if not head_predictions.can_analyse(shared, "tcav"):
        return None
    kinds = can_test(shared.bert)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        of = st.selectbox(
            "What is explained",
            kinds,
            format_func=_OF.get,
            width=260,
            **state.bind_setting("tcav.of", "w_tcav_of", kinds[0], kinds),
        )
        answer = _answer(shared, of)
    if "class" not in kinds:
        st.caption(
            "With a model that was fine-tuned to classify, chosen in the sidebar, you can also ask about classes."
        )
    if of == "class":
        labels = targets.classes(shared).labels
        if len(labels) == 1 and not targets.classes(shared).multi_label:
            targets.say_only_class(labels[0])
            return None
    if of == "word" and not answer:
        st.info("Type the word that is asked about at the masks.", icon=":material/keyboard:")
        return None
    if of == "word":
        try:
            vocabulary_id(shared.tokenizer, answer)
        except ValueError as error:
            st.warning(escape_markdown(str(error)), icon=":material/spellcheck:")
            return None
    return of, answer


def _answer(shared, of):
    """Draw the widget for the answer; returns the class, word or verdict, or None for a number."""
    if of == "class":
        labels = targets.classes(shared).labels
        if targets.classes(shared).regression or not labels:
            return None
        return st.selectbox(
            "Class",
            labels,
            width=260,
            **state.bind_setting("tcav.label", "w_tcav_label", labels[-1], labels),
        )
    if of == "word":
        word = st.text_input("Word", max_chars=60, width=260, **state.bind_setting("tcav.word", "w_tcav_word", _WORD))
        return (word or "").strip()
    answers = _PAIR_ANSWERS[of]
    chosen_answer = st.segmented_control(
        "Answer",
        answers,
        required=True,
        **state.bind_setting("tcav.follows", "w_tcav_follows", answers[0], answers),
    )
    return ANSWERS[of][answers.index(chosen_answer)]


def _scores(shared, result, name, concept, rows):
    rise_text = (
        "value rises" if result.target.is_regression else f"log-odds of “{escape_markdown(result.target.label)}” rise"
    )
    inputs.heading("Score by layer")
    export.save("concept-scores", result, {"model": shared.name, "concept": name or list(concept)})
    dark = state.is_dark()
    left_column, right_column = st.columns([6, 5], gap="large")
    with left_column:
        figures.show(
            "The concept's score after every layer, beside random directions",
            result.figure("score", dark),
            key="w_tcav_scores",
            config=export.plot_config("concept-scores"),
        )
    with right_column:
        figures.show(
            "How well a classifier detects the concept, beside random directions",
            result.figure("accuracy", dark),
            key="w_tcav_accuracies",
            config=export.plot_config("concept-accuracies"),
        )
    left_out = len(rows.rows) - len(result.places)
    if left_out:
        st.caption(f"Left out: {count(left_out, 'row')} without such an answer.")
    st.caption(
        f"The score is the share of {count(len(result.places), 'row')} whose {rise_text} along the concept's vector. "
        "A vector holds everything that separates the concept's sentences from the others, also what you did not "
        "mean.",
        help=f"The vector is the normal of a linear classifier that separates {result.sentences} sentences with the "
        f"concept from as many others by the mean of their tokens' hidden states. There are {RUNS} classifiers, "
        "each with different other sentences, and a third of the sentences is held out for the accuracy. The "
        f"random directions are from {RUNS} classifiers that separate other sentences from each other. Bars are "
        "standard deviations.\n\nA filled point means: at that layer no random direction lies as far from one "
        "half as the concept's mean, and no random classifier is as good as the concept's.\n\nWhether an "
        "answer rises is told by the exact gradient when all tokens move along the vector. It shows the "
        "answer's change only to first order.",
    )


def open_layer(is_significant):
    """The hidden state that is open at first: the last one with a significant score, else the last; bool [L+1]."""
    return int(max(np.flatnonzero(is_significant), default=len(is_significant) - 1))


def _layer(shared, result, layers):
    st.header("After one layer", anchor=False)
    layer = st.slider(
        "After layer",
        0,
        layers,
        width=360,
        help="0 are the embeddings.",
        **state.bind_setting("tcav.layer", "w_tcav_layer", open_layer(result.is_significant), range(layers + 1)),
    )
    st.markdown(_summary(result, layer))
    slopes = result.at(layer)
    unit = "Slope, of the value" if result.target.is_regression else "Slope, nats"
    inputs.heading("Row by row")
    export.save(f"concept-rows-{layer}", slopes, {"model": shared.name})
    tables.show(
        {
            "slope": slopes.slopes,
            "row": list(slopes.rows),
            "text": [" · ".join(filter(None, texts)) for texts in slopes.texts],
        },
        hide_index=True,
        width="stretch",
        height=tables.height(len(slopes.rows), 420),
        key="w_tcav_rows",
        column_config={
            "slope": st.column_config.NumberColumn(unit, format="%.4f", width=110),
            "row": st.column_config.NumberColumn("Row", width=60),
            "text": st.column_config.TextColumn("Text", width="large"),
        },
    )
    st.caption(
        "A slope is the mean over the concept's vectors, each of length 1. The lengths of hidden states differ between"
        " layers, so slopes of different layers cannot be compared."
    )


def _summary(result, layer):
    """The result after one layer, in sentences."""
    scores, random_scores = result.scores[layer], result.random_scores[layer]
    verdict = (
        "differs from that of a random direction"
        if result.is_significant[layer]
        else "does not differ from that of a random direction"
        if result.is_decodable[layer]
        else "means nothing, as a classifier detects the concept there no better than a random direction"
    )
    label = "the value" if result.target.is_regression else bold(result.target.label)
    return (
        f"After layer {layer} the concept supports {label} in {_spread(scores)} of the rows, a random direction in "
        f"{_spread(random_scores)} (p = {result.p_values[layer]:.2g}). The classifiers are right for "
        f"{share(result.accuracies[layer].mean())} of the held-out sentences. The score {verdict}."
    )


def _spread(shares):
    """The mean and the standard deviation of shares, as percentages."""
    return f"{100 * shares.mean():.1f}% ± {100 * shares.std(ddof=1):.1f}"
