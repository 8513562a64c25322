"""Layer similarity: whether the layers of two models hold the same, by centred kernel alignment or by canonical
correlations."""

import functools

import numpy as np
import streamlit as st

from bert_tf.explain import compare_traces
from bert_tf.explain.representations.layer_similarity import (
    MEASURES,
    MIN_WORDS,
    WORDS_PER_DIRECTION,
    traces_of,
)
from bert_tf.plots.models.compare import similarity_map
from pages.compare.snippets.layer_similarity import snippet
from ui.session import jobs, model_store, state
from ui.session.model_store import text_b_or_none
from ui.shell import frame, snippets
from ui.shell.page import Page, Press
from ui.widgets import comparison, export, figures, file_input, inputs
from ui.widgets.formatting import count, escape_markdown, title

PAGE = Page(
    name="layer_similarity",
    group="Compare",
    order=2,
    title="Layer similarity (CKA)",
    question="How alike are the layers",
    summary=(
        "linear CKA, SVCCA or PWCCA of every layer of one model (or snapshot of a training) with every layer "
        "of another (or the same) on the texts of a file"
    ),
    presses={"": Press("choice: File: Sentences|Pairs", of_texts=False)},
    analyses=("layer-similarity",),
    reads_texts=False,
    reads_texts_if=("source", "view"),
    settings=("source", "measure", "file", "lines", "first", "second", "one", "other"),
    settings_help=(
        "`view` for the page's texts in the place of a file; `svcca` or `pwcca`; the rest as of `agreement`; "
        "`one`, `other`: what stands in the place of `model` and `with` on this page: snapshots, "
        "`plain-english/step-1000`, or models; names that were looked up, never paths"
    ),
    long_settings={"lines": "the typed lines"},
    opens_rows=True,
    from_row=lambda view: view.with_setting("layer_similarity.source", "view"),
    snippet=snippet,
)


_TITLES = {"cka": "Linear CKA", "svcca": "SVCCA", "pwcca": "PWCCA"}
_DIRECTIONS = (
    "Of each layer the directions count that explain 99% of its variance, at most one for {a_direction} words. Such "
    "correlations come by chance too, the more the fewer words there are for each direction: with the words of one "
    "model's last layer shuffled it is {chance:.2f} here. A layer stays the same under any invertible linear map "
)
_SAYS = {
    "cka": "1: the same up to rotation and scale. 0: nothing in common; the estimate is unbiased and may fall a little "
    "below. It compares where words lie, not what a layer does with them (Kornblith et al. 2019; Nguyen et al. 2021).",
    "svcca": "The mean of the canonical correlations between two layers, 0 to 1. "
    + _DIRECTIONS
    + "(Raghu et al. 2017).",
    "pwcca": "The mean of the canonical correlations between two layers, 0 to 1, each weighted by what its direction "
    "accounts for of the layer with fewer directions. " + _DIRECTIONS + "(Morcos et al. 2018).",
}
_SOURCES = {"file": "Texts of a file", "view": "The page's text"}


def page():
    installed = model_store.installed()
    if not installed:
        st.info("No model is installed here. See Models.", icon=":material/compare_arrows:")
        return
    names = comparison.pickers(installed, "layer_similarity")
    texts, file = _texts()
    if not texts:
        return
    view = state.view()
    pair = [inputs.model(name) for name in names]
    unread = [shared for shared in pair if file is None and shared.text_b_or_none(view.b) is None]
    if unread:
        inputs.note_unreadable(unread[0], view.b)
    traced = [(texts[0][0], shared.text_b_or_none(texts[0][1])) for shared in pair]
    measure = st.segmented_control(
        "Measure",
        list(MEASURES),
        format_func=_TITLES.get,
        required=True,
        **state.bind_setting("layer_similarity.measure", "w_layer_similarity_measure", "cka", MEASURES),
    )
    snippets.give(names, traced, file, state.limits().max_sentences, MIN_WORDS, measure)
    key = (*names, view.precision, texts)
    # Each has a place of its own: it is still there after a look at another.
    found = jobs.result(
        measure,
        key,
        f"Reading {count(len(texts), 'text')} with both models",
        lambda progress: _similarity(pair, texts, measure, progress),
    )
    if found is not None:
        _show(pair, measure, found)


def _texts():
    """(pairs of text A and text B that both models read, the file they are from); the file None for the page's text.

    No pairs, with the reason said, where there are none.
    """
    source = st.segmented_control(
        "Read",
        list(_SOURCES),
        format_func=_SOURCES.get,
        label_visibility="collapsed",
        required=True,
        **state.bind_setting("layer_similarity.source", "w_layer_similarity_source", "file", _SOURCES),
    )
    if source == "view":
        with st.expander("Texts", expanded=not state.view().a.strip(), icon=":material/edit_note:"):
            inputs.examples()
            inputs.text_fields()
        return ((state.view().a, state.view().b),) if inputs.texts_are_usable() else (), None
    read = file_input.rows("layer_similarity", typed=True)
    if read is None:
        return (), None
    most = state.limits().max_sentences
    rows = read[0].rows
    if len(rows) > most:
        st.caption(f"The first {most:,} of {len(rows):,} rows are read.")
    return tuple((row.text_a, row.text_b or "") for row in rows[:most]), read[1]


def _similarity(pair, texts, measure, progress):
    readers = [functools.partial(shared.run, _traced) for shared in pair]
    return compare_traces(*traces_of(readers, texts, progress=progress), measure)


def _traced(bert, a, b):
    return bert.trace(a, text_b_or_none(b, bert.tokenizer), attentions=False)


def _show(pair, measure, found):
    values = found.similarity
    names = [title(shared.name) for shared in pair]
    with inputs.heading(f"{_TITLES[measure]} of every layer with every layer"):
        export.save("layer-similarity", found)
    figures.show(
        "Similarity of every layer with every layer",
        similarity_map(values, *names, frame.is_dark(), measure.upper()),
        config=export.plot_config("layer-similarity"),
        key="w_layer_similarity_map",
    )
    if np.isfinite(values[1:, 1:]).any():
        best = int(np.nanargmax(np.where(np.isfinite(values[-1]), values[-1], -np.inf)))
        where = f"layer {best}" if best else "the embeddings"
        st.markdown(
            f"The last layer of {escape_markdown(names[0])} is most like {where} of {escape_markdown(names[1])}:"
            f" {values[-1, best]:.2f}."
        )
    said = _SAYS[measure].format(a_direction=WORDS_PER_DIRECTION, chance=found.chance_similarity)
    st.caption(f"Over {count(found.words, 'word')}. {said}")
