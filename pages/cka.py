"""Layer likeness: whether the layers of two models hold the same, by centred kernel alignment."""

import functools
import math

import numpy as np
import streamlit as st

from bert_tf.explain import layer_similarity
from bert_tf.explain.similarity import ENOUGH_WORDS, traces_of
from bert_tf.plots.comparison import likeness_map
from bert_tf.plots.lens import state_names
from ui import comparison, export, figures, files, frame, inputs, jobs, models, snippets, state
from ui.models import given
from ui.words import count, plain, title

_SOURCES = {"file": "Texts of a file", "view": "The page's text"}


def page():
    st.title("How alike are the layers", anchor=False)
    installed = models.installed()
    if not installed:
        st.info("No model is installed here. See Models.", icon=":material/compare_arrows:")
        return
    names = comparison.pickers(installed, "cka")
    texts, file = _texts()
    if not texts:
        return
    view = state.view()
    pair = [inputs.model(name) for name in names]
    unread = [shared for shared in pair if file is None and shared.given(view.b) is None]
    if unread:
        inputs.say_unread(unread[0], view.b)
    traced = [(texts[0][0], shared.given(texts[0][1])) for shared in pair]
    snippets.give(names, traced, file, state.limits().max_sentences, ENOUGH_WORDS)
    key = (*names, view.precision, texts)
    found = jobs.result(
        "cka",
        key,
        f"Reading {count(len(texts), 'text')} with both models",
        lambda progress: _likeness(pair, texts, progress),
    )
    if found is not None:
        _show(pair, found)


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
        **state.bound_setting("cka.source", "w_cka_source", "file", _SOURCES),
    )
    if source == "view":
        with st.expander("Texts", expanded=not state.view().a.strip(), icon=":material/edit_note:"):
            inputs.examples()
            inputs.text_fields()
        return ((state.view().a, state.view().b),) if inputs.texts_are_usable() else (), None
    read = files.rows("cka", typed=True)
    if read is None:
        return (), None
    most = state.limits().max_sentences
    rows = read[0].rows
    if len(rows) > most:
        st.caption(f"The first {most:,} of {len(rows):,} rows are read.")
    return tuple((row.text_a, row.text_b or "") for row in rows[:most]), read[1]


def _likeness(pair, texts, progress):
    """(CKA [L_a + 1, L_b + 1], words it is of)."""
    readers = [functools.partial(shared.run, _traced) for shared in pair]
    traces = traces_of(readers, texts, progress=progress)
    return layer_similarity(*traces), sum(len(trace.words()) for trace in traces[0])


def _traced(bert, a, b):
    return bert.trace(a, given(b, bert.tokenizer), attentions=False)


def _show(pair, found):
    values, words = found
    names = [title(shared.name) for shared in pair]
    dark = frame.is_dark()
    rows, columns = (state_names(count) for count in values.shape)
    with inputs.heading("Linear CKA of every layer with every layer"):
        export.menu(
            "layer-likeness",
            ("layer", *columns),
            lambda: ((name, *map(float, line)) for name, line in zip(rows, values)),
            lambda: {
                "model_a": pair[0].name,
                "model_b": pair[1].name,
                "words": words,
                "cka": [[None if math.isnan(value) else value for value in line] for line in values.tolist()],
            },
            lambda: likeness_map(values, *names),
            lambda: {"cka": values},
        )
    figures.show(
        "Likeness of every layer with every layer",
        likeness_map(values, *names, dark), config=export.plot_config("layer-likeness"), key="w_cka_map"
    )
    if np.isfinite(values[1:, 1:]).any():
        best = int(np.nanargmax(np.where(np.isfinite(values[-1]), values[-1], -np.inf)))
        where = f"layer {best}" if best else "the embeddings"
        st.markdown(
            f"The last layer of {plain(names[0])} is most like {where} of {plain(names[1])}: "
            f"{values[-1, best]:.2f}."
        )
    st.caption(
        f"Over {count(words, 'word')}. 1: the same up to rotation and scale. 0: nothing in common; the "
        "estimate is unbiased and may fall a little below. It compares where words lie, not what a layer "
        "does with them (Kornblith et al. 2019; Nguyen et al. 2021)."
    )
