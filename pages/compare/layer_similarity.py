"""Layer similarity: how similar the layers of two models are, by centred kernel alignment or canonical correlations."""

import dataclasses

import numpy as np
import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import TextRow, compare_layers
from bert_tf.explain.representations.layer_similarity import MEASURES, WORDS_PER_DIRECTION
from bert_tf.plots.models.compare import similarity_map
from pages.compare.snippets.layer_similarity import snippet
from ui.session import jobs, model_store, state
from ui.shell import snippets
from ui.shell.page import Page, Press
from ui.widgets import comparison, export, figures, file_input, inputs
from ui.widgets.formatting import count, escape_markdown, number, title

PAGE = Page(
    name="layer_similarity",
    group="Compare",
    order=2,
    title="Layer similarity (CKA)",
    question="How alike the layers are",
    terms="CKA SVCCA representation similarity cosine layers",
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
        "`view` for the page's texts instead of a file; `svcca` or `pwcca`; the rest as of `agreement`; "
        "`one`, `other`: the two models or snapshots (`plain-english/step-1000`) that this page uses instead of "
        "`model` and `with`; names of known models, never paths"
    ),
    long_settings={"lines": "the typed lines"},
    opens_rows=True,
    from_row=lambda view: view.with_setting("layer_similarity.source", "view"),
    snippet=snippet,
)


_TITLES = {"cka": "Linear CKA", "svcca": "SVCCA", "pwcca": "PWCCA"}
_DIRECTIONS = (
    "For each layer the directions that explain 99% of its variance are used, at most one for {a_direction} words. "
    "Random data have such correlations too, the more the fewer words there are for each direction. An invertible "
    "linear map of a layer changes nothing "
)
_MEASURE_NOTES = {
    "cka": "1: the same up to rotation and scale. 0: nothing in common; the estimate is unbiased and may be a little "
    "below. It compares where words lie, not what a layer does with them (Kornblith et al. 2019; Nguyen et al. 2021).",
    "svcca": "The mean of the canonical correlations between two layers, 0 to 1. "
    + _DIRECTIONS
    + "(Raghu et al. 2017).",
    "pwcca": "The mean of the canonical correlations between two layers, 0 to 1, each weighted by the share of the "
    "layer with fewer directions that its direction explains. " + _DIRECTIONS + "(Morcos et al. 2018).",
}
_SOURCES = {"file": "Texts of a file", "view": "The page's text"}


def page():
    installed = model_store.installed()
    if not installed:
        st.info("No model is installed here. See Models.", icon=":material/compare_arrows:")
        return
    names = comparison.pickers(installed, "layer_similarity")
    rows, file = _rows()
    if not rows:
        return
    view = state.view()
    pair = [inputs.model(name) for name in names]
    reads_no_text_b = [shared for shared in pair if file is None and shared.text_b_or_none(view.b) is None]
    if reads_no_text_b:
        inputs.note_unreadable(reads_no_text_b[0], view.b)
    whole, rows = rows, tuple(_readable(row, pair) for row in rows)
    left_out = [row.number for row, read in zip(whole, rows) if row.text_b and read.text_b is None]
    if file is None:
        _warn_truncated(rows[0], pair)
    elif left_out:
        st.caption(f"Text B of {count(len(left_out), 'row')} is left out: one of the models does not read it.")
    measure = st.segmented_control(
        "Measure",
        list(MEASURES),
        format_func=_TITLES.get,
        required=True,
        **state.bind_setting("layer_similarity.measure", "w_layer_similarity_measure", "cka", MEASURES),
    )
    call = Call.of(compare_layers, measure=measure)
    snippets.give(names, call, rows, file, left_out)
    one, other = map(comparison.LockedPerTrace, pair)
    # A job for each measure: its result is kept while another measure is shown.
    result = jobs.result(
        measure,
        (*names, view.precision, rows, call),
        f"Reading {count(len(rows), 'text')} with both models",
        lambda progress: call.run(one, None, rows, other, progress=progress),
    )
    if result is not None:
        _show(pair, measure, result, (rows[0].text_a, rows[0].text_b) if file is None else ())


def _rows():
    """The widgets that choose the texts.

    Returns:
        (``TextRow``s, the file of the rows or None for the page's text). Without texts there are no rows, and the page
        says why.
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
            inputs.text_fields(undo=True)
        return (TextRow(1, state.view().a, state.view().b),) if inputs.texts_are_usable() else (), None
    read = file_input.rows("layer_similarity", typed=True)
    if read is None:
        return (), None
    most = state.limits().max_sentences
    rows = read[0].rows
    if len(rows) > most:
        st.caption(f"The first {most:,} of {len(rows):,} rows are read.")
    return rows[:most], read[1]


def _readable(row, pair):
    """The ``TextRow``; without its text B if one of the two models can read none of it."""
    readable = all(shared.text_b_or_none(row.text_b or "") for shared in pair)
    return row if readable else dataclasses.replace(row, text_b=None)


def _warn_truncated(row, pair):
    """Draw a warning for each model that does not read the whole page's text."""
    for shared in {shared.name: shared for shared in pair}.values():
        encoding = shared.tokenizer.encode(row.text_a, row.text_b, max_length=shared.bert.max_length)
        inputs.warn_truncated(encoding, title(shared.name))


def _show(pair, measure, result, texts):
    values = result.similarity
    names = [title(shared.name) for shared in pair]
    inputs.heading(f"{_TITLES[measure]} of every layer with every layer")
    models = tuple(shared.name for shared in pair)
    export.save("layer-similarity", result, {"models": models}, texts)
    figures.show(
        "Similarity of every layer with every layer",
        similarity_map(values, *names, state.is_dark(), measure.upper()),
        config=export.plot_config("layer-similarity"),
        key="w_layer_similarity_map",
    )
    if np.isfinite(values[1:, 1:]).any():
        best = int(np.nanargmax(np.where(np.isfinite(values[-1]), values[-1], -np.inf)))
        where = f"layer {best}" if best else "the embeddings"
        st.markdown(
            f"The last layer of {escape_markdown(names[0])} is most similar to {where} of {escape_markdown(names[1])}:"
            f" {number(values[-1, best])}."
        )
    words, chance = f"Over {count(result.words, 'word')}", result.chance_similarity
    if measure != "cka":
        words += f"; with the words of one model's last layer shuffled it is {chance:.2f} here"
    note = _MEASURE_NOTES[measure].format(a_direction=WORDS_PER_DIRECTION)
    st.caption(f"{words}. The colours span the values of the map.", help=note)
    if result.problems:
        row, why = result.problems[0]
        st.caption(
            f"{count(len(result.problems), 'row')} could not be read; the first, {row:,}: {escape_markdown(why)}"
        )
