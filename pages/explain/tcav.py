"""Concepts: whether an answer hangs on what some example sentences have in common, layer by layer."""

import streamlit as st

from bert_tf.explain import can_test, concept_test
from bert_tf.explain.representations.tcav import ANSWERS, MIN_SENTENCES, RUNS
from bert_tf.inference.predictions import vocabulary_id
from pages.explain.snippets.tcav import snippet
from ui.samples import concepts
from ui.session import jobs, state
from ui.shell import frame, snippets
from ui.shell.page import Page, Press
from ui.widgets import export, figures, file_input, inputs, targets
from ui.widgets.formatting import (
    bold,
    count,
    escape_markdown,
    share,
    title,
)

PAGE = Page(
    name="tcav",
    group="Explain",
    order=6,
    title="Concepts (TCAV)",
    question="What a concept does to an answer",
    summary=(
        "TCAV: whether a fine-tuned class, a word at a mask or a verdict on pairs hangs on what some example "
        "sentences have in common (positive feeling, negation, place names, questions, past tense, or the "
        "visitor's own): the share of a file's rows that rise along the concept's vector after every layer, "
        "beside random directions, and how well the concept can be told there; each row's slope"
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
_SAID = {"next": ("IsNext", "NotNext"), "order": ("In order", "Swapped")}
_WORD = "good"  # that is asked about at first


def page():
    name, concept, others = _concept()
    if len(concept) < MIN_SENTENCES or len(others) < 2 * MIN_SENTENCES:
        st.info(
            f"Type at least {MIN_SENTENCES} sentences that have the concept, one a line, and {2 * MIN_SENTENCES} that "
            "do not, or leave the second field empty for sentences of the project.",
            icon=":material/keyboard:",
        )
        return
    shared = inputs.model()
    asked = _asked(shared)
    if asked is None:
        return
    of, answer = asked
    read = file_input.rows("tcav", typed=True, first="reviews.csv")
    if read is None:
        return
    rows, file_key = read
    rows, label = file_input.label_picker("tcav", rows)
    hide = file_input.hide_picker("tcav") if of == "word" else "given"
    key = (shared.name, state.view().precision, concept, others, of, answer, hide, file_key, label)
    if not file_input.run_requested("tcav", key, len(rows.rows) <= file_input.AT_ONCE):
        st.caption(f"{count(len(rows.rows), 'row')}. A row takes about four passes.")
        return

    def work(progress):
        return shared.run(concept_test, rows.rows, concept, others, of, answer, hide, progress=progress)

    snippets.give(shared, file_key, name, concept, others, of, answer, hide, label)
    found = jobs.result("tcav", key, f"Testing {count(len(rows.rows), 'row')}", work, patience=jobs.SHORT)
    if found is None:
        return
    _scores(shared, found, name, concept, rows)
    _layer(shared, found, len(found.scores) - 1)


def _concept():
    """(name of the ready concept or None, its sentences, those it is compared with)."""
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
        left, right = st.columns(2, gap="large")
        with left:
            own = _lines("Sentences with the concept", "tcav.own", "w_tcav_own")
        with right:
            rest = _lines("Others to compare with", "tcav.others", "w_tcav_others")
        return None, own, rest or concepts.sentences(concepts.OTHERS)
    with st.expander("The sentences", icon=":material/notes:"):
        left, right = st.columns(2, gap="large")
        shown = {concepts.NAMES[chosen]: chosen, "Compared with": concepts.OTHERS}
        for column, (heading, name) in zip((left, right), shown.items()):
            column.dataframe(
                {heading: list(concepts.sentences(name))},
                hide_index=True,
                width="stretch",
                height=220,
                key=f"w_tcav_shown_{name}",
            )
    return chosen, concepts.sentences(chosen), concepts.sentences(concepts.OTHERS)


def _lines(label, name, key):
    limits = state.limits()
    lines = st.text_area(
        label,
        height=190,
        max_chars=limits.max_characters,
        placeholder="One a line.",
        **state.bind_setting(name, key, ""),
    )
    read = concepts.typed(lines or "")
    if len(read) > limits.max_sentences:
        st.caption(f"The first {limits.max_sentences:,} are read.")
    return read[: limits.max_sentences]


def _asked(shared):
    """(what the answer is of, the answer) as `concept_test` takes them; None with the reason said."""
    able = can_test(shared.bert)
    if not able:
        st.info(
            f"{title(shared.name)} has no head for words or pairs and no classes, so there is no answer to ask about. "
            "Choose another model in the sidebar.",
            icon=":material/block:",
        )
        return None
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        of = st.selectbox(
            "What is explained",
            able,
            format_func=_OF.get,
            width=260,
            **state.bind_setting("tcav.of", "w_tcav_of", able[0], able),
        )
        answer = _answer(shared, of)
    if "class" not in able:
        st.caption("Of a model that was fine-tuned to classify, chosen in the sidebar, classes can be asked about too.")
    if of == "class":
        labels = targets.classes(shared).labels
        if len(labels) == 1 and not targets.classes(shared).multi_label:
            st.info(
                f"“{escape_markdown(labels[0])}” is the only class, and always certain:"
                " nothing supports or opposes it.",
                icon=":material/block:",
            )
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
    said = _SAID[of]
    chosen = st.segmented_control(
        "Answer",
        said,
        required=True,
        **state.bind_setting("tcav.follows", "w_tcav_follows", said[0], said),
    )
    return ANSWERS[of][said.index(chosen)]


def _scores(shared, found, name, concept, rows):
    rises = "value rises" if found.target.is_regression else f"log-odds of “{escape_markdown(found.target.label)}” rise"
    with inputs.heading("Score by layer"):
        export.save("concept-scores", found, {"model": shared.name, "concept": name or list(concept)})
    dark = frame.is_dark()
    left, right = st.columns([6, 5], gap="large")
    with left:
        figures.show(
            "The concept's score after every layer, beside random directions",
            found.figure("score", dark),
            key="w_tcav_scores",
            config=export.plot_config("concept-scores"),
        )
    with right:
        figures.show(
            "How well the concept is told from other sentences, beside random directions",
            found.figure("accuracy", dark),
            key="w_tcav_accuracies",
            config=export.plot_config("concept-accuracies"),
        )
    left_out = len(rows.rows) - len(found.places)
    without = f" {count(left_out, 'row')} without such an answer left out." if left_out else ""
    st.caption(
        f"The score is the share of {count(len(found.places), 'row')} whose {rises} along the concept's "
        f"vector, all tokens moved along it, by their exact slope.{without} The vector is the normal of a linear "
        f"classifier that tells {found.sentences} sentences with the concept from as many others by the mean of their "
        f"tokens' hidden states: {RUNS} of them, each with others, its accuracy on a third held out. Random directions "
        f"are of {RUNS} classifiers of others against others. Bars are standard deviations. Filled: at that layer no "
        "random direction lies as far from one half as the concept's mean, and no random classifier is as good as the "
        "concept's. A "
        "vector holds all that sets these sentences apart from the others, also what you did not mean; and what an "
        "answer would do along it is to first order."
    )


def _layer(shared, found, layers):
    st.header("After one layer", anchor=False)
    layer = st.slider(
        "After layer",
        0,
        layers,
        width=360,
        help="0 is what goes in.",
        **state.bind_setting("tcav.layer", "w_tcav_layer", layers, range(layers + 1)),
    )
    st.markdown(_summary(found, layer))
    slopes = found.at(layer)
    unit = "Slope, of the value" if found.target.is_regression else "Slope, nats"
    with inputs.heading("Row by row"):
        export.save(f"concept-rows-{layer}", slopes, {"model": shared.name})
    st.dataframe(
        {
            "slope": slopes.slopes,
            "row": list(slopes.rows),
            "text": [" · ".join(filter(None, texts)) for texts in slopes.texts],
        },
        hide_index=True,
        width="stretch",
        height=min(60 + 36 * len(slopes.rows), 420),
        key="w_tcav_rows",
        column_config={
            "slope": st.column_config.NumberColumn(unit, format="%.4f", width=110),
            "row": st.column_config.NumberColumn("Row", width=60),
            "text": st.column_config.TextColumn("Text", width="large"),
        },
    )
    st.caption("Slopes are the mean over the concept's vectors, each of length 1; lengths differ from layer to layer.")


def _summary(found, layer):
    """The chosen layer in a sentence."""
    scores, random_scores = found.scores[layer], found.random_scores[layer]
    told = (
        "differs from that of a random direction"
        if found.is_significant[layer]
        else "does not differ from that of a random direction"
        if found.is_decodable[layer]
        else "says nothing, as the concept cannot be told there better than a random direction"
    )
    label = "the value" if found.target.is_regression else bold(found.target.label)
    return (
        f"After layer {layer} the concept supports {label} in {_spread(scores)} of the rows, a random direction in "
        f"{_spread(random_scores)} (p = {found.p_values[layer]:.2g}). The classifiers are right on "
        f"{share(found.accuracies[layer].mean())} of the sentences held out. The score {told}."
    )


def _spread(shares):
    """The mean of shares with their standard deviation, in percent."""
    return f"{100 * shares.mean():.1f}% ± {100 * shares.std(ddof=1):.1f}"
