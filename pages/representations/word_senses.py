"""Word senses: the vectors of one word in many sentences, after every layer."""

import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import WordSenses, occurrences
from bert_tf.explain.representations.projection import PROJECTIONS
from bert_tf.plots.representations.vectors import cosine_map
from pages.representations.snippets.word_senses import snippet
from ui.elements import tables
from ui.samples import word_senses
from ui.session import jobs, state
from ui.session.session_cache import cached
from ui.shell import snippets
from ui.shell.page import Page, Press
from ui.widgets import export, figures, inputs
from ui.widgets.formatting import count, escape_markdown, share, title
from ui.widgets.projections import NAMES, can_lay_out, laid_out, projection_call

PAGE = Page(
    name="word_senses",
    group="Representations",
    order=2,
    title="Word senses",
    question="One word, many meanings",
    terms="contextual embeddings polysemy bank clusters disambiguation",
    summary=(
        "one word in many sentences (bank, right, bat, spring, or the visitor's own): its vectors after every "
        "layer by PCA, UMAP or t-SNE in 2 or 3 dimensions, their cosines, and the layer at which the "
        "senses separate"
    ),
    presses={
        "": Press("choice: Example: bank|right", of_texts=False),
        "UMAP": Press("choice: Example: bank|right", {"word_senses.way": "umap"}, of_texts=False),
    },
    analyses=("word-senses",),
    reads_texts=False,
    settings=("example", "word", "lines", "layer", "way", "space"),
    settings_help=(
        "an example or `own sentences` with a word and lines; hidden state (0 the embeddings); `umap` or "
        "`tsne`; `1` for three dimensions"
    ),
    long_settings={"lines": "the sentences"},
    snippet=snippet,
)


_OWN = "own sentences"
_MOST = 300  # occurrences; each has a vector for every layer, and each pair of them is a cell of the map


def page():
    chosen = _chooser()
    word, typed = _sentences(chosen)
    limits = state.limits()
    read = word_senses.read(typed, limits.max_sentences, limits.max_row_characters)
    if not word.strip() or not read.texts:
        st.info("Type a word, and below it sentences with this word, one a line.", icon=":material/keyboard:")
        return
    if read.left_out:
        st.warning(
            f"The first {count(len(read.texts), 'sentence')} are read; {read.left_out:,} more "
            f"{'is' if read.left_out == 1 else 'are'} left out.",
            icon=":material/content_cut:",
        )
    inputs.warn_cut(read.cut)
    shared = inputs.model()
    call = Call.of(occurrences, most=_MOST)
    collected = jobs.result(
        _place(chosen),
        (shared.name, state.view().precision, word, read.texts, call),
        f"Reading {count(len(read.texts), 'sentence')}",
        lambda progress: shared.run(call.run, read.texts, word, progress=progress),
    )
    if collected is not None:
        inputs.warn_cut(collected.cut, shared.bert.max_length)
        _look(shared, chosen, word, read, call, collected)


def _place(chosen):
    """The name of what is kept of an example: it is on the screen at once when the visitor comes back to it."""
    return f"word_senses {chosen}"


def _chooser():
    names = [*word_senses.WORDS, _OWN]
    return st.pills(
        "Example",
        names,
        format_func=lambda name: "Your own" if name == _OWN else name,
        label_visibility="collapsed",
        required=True,
        **state.bind_setting("word_senses.example", "w_word_senses_example", "bank", names),
    )


def _sentences(chosen):
    """(word, lines) of the example, or those that the visitor typed."""
    if chosen != _OWN:
        with st.expander("The sentences", icon=":material/notes:"):
            tables.show(
                _columns(word_senses.read(word_senses.example(chosen), 1000, 1000)),
                hide_index=True,
                width="stretch",
                height=220,
                key="w_word_senses_shown",
            )
        return chosen, word_senses.example(chosen)
    word = st.text_input(
        "Word", max_chars=60, width=260, **state.bind_setting("word_senses.word", "w_word_senses_word", "")
    )
    typed = st.text_area(
        "Sentences",
        height=190,
        max_chars=state.limits().max_characters,
        placeholder="One a line. If you know the sense, write it before the sentence: river | They sat on the bank.",
        **state.bind_setting("word_senses.lines", "w_word_senses_lines", ""),
    )
    return word or "", typed or ""


def _columns(read):
    return {"Sense": list(read.senses), "Sentence": list(read.texts)}


def _look(shared, chosen, word, read, call, collected):
    labels = [read.senses[text] for text in collected.texts]
    tips = [read.texts[text] for text in collected.texts]
    layers = collected.vectors.shape[0] - 1
    missing = len(read.texts) - len(set(collected.texts))
    counted = f"“{escape_markdown(word)}” {count(len(tips), 'time')} in {count(len(read.texts), 'sentence')}"
    without = f" ({missing:,} without it)" if missing else ""
    if more := collected.left_out:
        without = f" (the first ones; {more:,} more {'is' if more == 1 else 'are'} not read)"
    st.caption(f"{escape_markdown(title(shared.name))} · {counted}{without}")
    layer, way, space = _settings(layers)
    projection, example = projection_call(way, space), None if chosen == _OWN else chosen
    drawn = projection if can_lay_out(projection, len(tips)) else None
    snippets.give(shared, example, word, read, call, layer, drawn)
    left, right = st.columns([6, 5], gap="large")
    with left:
        places = laid_out(_place(chosen), collected, layer, projection)
    senses = cached(
        f"{_place(chosen)} result",
        (collected, word, tuple(tips), tuple(labels), layer, way, None if places is None else places[0].tobytes()),
        lambda: WordSenses.of(word, tips, labels, collected.vectors, layer, way, *(places or (None, None))),
    )
    if places is not None:
        with left:
            _points(senses)
    with right:
        _map(senses.similarity, layer)
    _separation(senses.separation, layer)


def _settings(layers):
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        layer = st.slider(
            "After layer",
            0,
            layers,
            width=360,
            help=(
                "0 is the embeddings: there the vectors of the word differ at most by its spelling and its position, "
                "not by the words around it."
            ),
            **state.bind_setting("word_senses.layer", "w_word_senses_layer", layers, range(layers + 1)),
        )
        way = st.segmented_control(
            "Laid out by",
            PROJECTIONS,
            format_func=NAMES.get,
            required=True,
            **state.bind_setting("word_senses.way", "w_word_senses_way", "pca", PROJECTIONS),
        )
        space = st.toggle("3D", **state.bind_setting("word_senses.space", "w_word_senses_space", False))
    return layer, way, space


def _points(senses):
    inputs.heading("The word in each sentence")
    export.save(f"word-senses-{senses.layer}", senses)
    figures.show(
        "The word in each sentence, as points",
        senses.figure("points", state.is_dark()),
        config=export.plot_config(f"word-senses-{senses.layer}"),
        key="w_word_senses_points",
    )
    st.caption("A point is the word in one sentence: point at it to read the sentence.")


def _map(similarity, layer):
    inputs.heading("How similar they are")
    export.save(f"word-senses-similarity-{layer}", similarity, {"layer": layer})
    figures.show(
        "Similarity of the sentences' words",
        cosine_map(similarity.cosines, similarity.labels, similarity.texts, state.is_dark(), height=460, spread=True),
        config=export.plot_config(f"word-senses-similarity-{layer}"),
        key="w_word_senses_map",
    )
    st.caption(
        "Cosines of the vectors, sentences of one sense together. The colours span the values outside the diagonal."
    )


def _separation(separation, layer):
    if separation is None:
        st.caption("Give at least two senses (“sense | sentence”) to see at which layer they separate.")
        return
    inputs.heading("At which layer the senses separate")
    export.save("senses-by-layer", separation)
    left, right = st.columns(2, gap="large")
    dark = state.is_dark()
    with left:
        figures.show(
            "How often the nearest sentence has the same sense",
            separation.figure("nearest", dark),
            config=export.plot_config("senses-nearest"),
            key="w_word_senses_nearest",
        )
    with right:
        figures.show(
            "Mean cosines within and between senses",
            separation.figure("cosines", dark),
            config=export.plot_config("senses-cosine"),
            key="w_word_senses_cosine",
        )
    st.caption(
        f"After layer {layer}, {share(float(separation.nearest[layer]))} of the sentences have the same sense as their "
        "nearest neighbour; a sense with a single sentence does not count. Separate senses do not show that the model "
        "uses them."
    )
