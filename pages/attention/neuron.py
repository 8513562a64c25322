"""Neuron view: how the query and the keys of one head make its weights, component by component."""

import numpy as np
import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import HeadVectors, neuron_view, query_key_vectors
from bert_tf.explain.attention.head_vectors import allowed_links
from pages.attention.head_components import neuron
from pages.attention.snippets.neuron import snippet
from ui.elements.attention_page import head_name
from ui.session import state
from ui.session.session_cache import cached
from ui.shell import snippets
from ui.shell.page import Page, Press
from ui.widgets import attention_controls, export, inputs
from ui.widgets.formatting import direction

PAGE = Page(
    name="neuron",
    group="Attention",
    order=3,
    title="Neuron",
    question="How a weight is computed",
    terms="QKV query key value dot product scores softmax BertViz",
    summary=(
        "how the weights of one token in one head are computed: query, key, their product component by "
        "component, sum / √d, softmax"
    ),
    presses={"": Press(".query")},
    analyses=("neuron",),
    settings=("query", "key"),
    settings_help="positions of tokens, [CLS] is 0",
    opens_rows=True,
    snippet=snippet,
)


_QUERY, _KEY = "neuron.query", "neuron.key"


def page():
    filtered_inputs = attention_controls.filtered_page_inputs()
    if filtered_inputs is None:
        return
    shared, trace, selection = filtered_inputs
    view = state.view()
    query = _query(selection)
    inputs.heading(f"Layer {view.layer + 1}, head {view.head + 1}")
    attention_controls.pickers(trace.attentions.shape)
    detail = attention_controls.detail(selection)
    call = Call.of(neuron_view, head=(view.layer, view.head), position=query)
    result = call.run(shared.bert, trace, vectors=_vectors(shared, trace))
    positions = list(detail.columns)
    name = f"{head_name(result.layer, result.head)}-{query}"
    export.save(name, result, trace=trace)
    key = state.setting(_KEY, -1)
    if key not in positions:
        key = positions[int(np.argmax(result.weights[positions]))]
    snippets.give(shared, trace, call, key, detail)
    neuron(
        "c_neuron",
        result,
        direction(trace.text_a),
        key,
        selection.rows,
        positions,
        state.is_dark(),
        _pick_query,
        _pick_key,
    )
    st.caption(
        "The query says what a token looks for, a key what a token offers. The meaning of a single component is not "
        "known.",
        help="The products of query and key are added up, divided by the square root of the number of components, "
        "and put through the softmax over all tokens that the query may read, also over tokens that the filters hide "
        "here.",
    )
    attention_controls.warning()
    attention_controls.footer(shared, trace)


def _query(selection):
    """The position of the token that looks: the link's if the filters show it, else the first word."""
    requested = state.setting(_QUERY, 1)
    return requested if requested in selection.rows else selection.rows[min(1, len(selection.rows) - 1)]


def _pick_query(position):
    # The new query starts with its strongest key: it matters more than the key that was open before.
    state.set_setting(_KEY, -1, -1)
    state.set_setting(_QUERY, position, 1)


def _pick_key(position):
    state.set_setting(_KEY, position, -1)


def _vectors(shared, trace):
    """The `HeadVectors` of the chosen head. Of a long text only its layer's vectors are cached."""
    view = state.view()
    cached_layers = slice(None) if trace.length <= attention_controls.LARGEST else slice(view.layer, view.layer + 1)
    key = (shared.name, view.precision, view.a, view.b, trace.masks, cached_layers.start)
    with st.spinner("Reading …"):
        queries, keys = cached(
            "neuron",
            key,
            lambda: tuple(vectors[cached_layers].copy() for vectors in shared.run(query_key_vectors, trace)),
        )
    allowed = allowed_links(shared.config, trace.length, view.layer)
    layer = view.layer - (cached_layers.start or 0)
    return HeadVectors(view.layer, view.head, queries[layer, view.head], keys[layer, view.head], allowed[view.head])
