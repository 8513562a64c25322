"""Attention methods: one token's raw attention beside four other methods."""

from dataclasses import replace

import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import attention_flow, token_attention
from bert_tf.explain.attention.token_attention import mean_maps, scaled
from bert_tf.explain.attention.value_attention import value_vectors
from pages.attention.head_components import weights
from pages.attention.snippets.attention_methods import snippet
from ui.session import jobs, state
from ui.session.session_cache import cached
from ui.shell import snippets
from ui.shell.page import Page, Press
from ui.widgets import attention_controls, export, inputs

PAGE = Page(
    name="attention_methods",
    group="Attention",
    order=4,
    title="Attention methods",
    question="Raw attention and four other methods",
    terms="rollout flow gradient attention is not explanation value-weighted norms",
    summary="one token's attention raw, effective, norm-weighted, by rollout and by flow, side by side",
    presses={"": Press("button.token")},
    analyses=("attention-methods",),
    settings=("token", "of"),
    settings_help="position of the token, [CLS] is 0; `head` for one head instead of its layer",
    opens_rows=True,
    snippet=snippet,
)


_TOKEN, _OF = "attention_methods.token", "attention_methods.of"
_MOST_FLOW = 128  # the most tokens for which flow is computed: its cost grows with the third power of the tokens


def page():
    filtered_inputs = attention_controls.filtered_page_inputs()
    if filtered_inputs is None:
        return
    shared, trace, selection = filtered_inputs
    view, position = state.view(), _position(trace)
    inputs.heading(f"“{trace.tokens[position]}” after layer {view.layer + 1}")
    _pickers(trace)
    detail = attention_controls.detail(selection)
    positions = list(detail.columns)
    head = view.head if state.setting(_OF, "layer") == "head" else None
    call = Call.of(token_attention, layer=view.layer, position=position, head=head, flow=trace.length <= _MOST_FLOW)
    snippets.give(shared, trace, call, detail)
    attention = _attention(shared, trace, call)
    export.save(f"methods-layer-{view.layer + 1}-token-{position}", attention, trace=trace)
    weights(
        "c_methods",
        trace.tokens,
        positions,
        _columns(attention, positions),
        position,
        state.is_dark(),
        lambda chosen: state.set_setting(_TOKEN, chosen, 1),
        "Attention of one token by method",
        "Press a token to see where it looks. Bars are scaled to the longest of their column.",
    )
    _notes(trace)
    attention_controls.warning()
    attention_controls.footer(shared, trace)


def _position(trace):
    requested = state.setting(_TOKEN, 1)
    return requested if 0 <= requested < trace.length else 1


def _pickers(trace):
    layers, heads = trace.attentions.shape[:2]
    attention_controls.pickers((layers, heads if state.setting(_OF, "layer") == "head" else 1))
    names = {"layer": "All heads of the layer", "head": "This head alone"}
    st.segmented_control(
        "Of",
        list(names),
        format_func=names.get,
        **state.bind_setting(_OF, "w_attention_methods_of", "layer", tuple(names)),
        help=(
            "Raw, effective and norm-weighted attention exist for one head. Rollout and flow use all heads of all"
            " layers up to this one."
        ),
    )


def _attention(shared, trace, call):
    """The result of the ``Call``; it includes the flow once the background job has finished."""
    view = state.view()
    input_key = (shared.name, view.precision, view.a, view.b, trace.masks)
    with st.spinner("Reading …"):
        values = _values(shared, trace, input_key)
        means = cached("methods means", input_key, lambda: mean_maps(trace))
        attention = cached(
            "attention_methods",
            (input_key, call),
            lambda: call.replace(flow=False).run(shared.bert, trace, values=values, means=means),
        )
    flow = _flow(trace, call, input_key) if call["flow"] else None
    return attention if flow is None else replace(attention, flow=scaled(flow))


def _columns(attention, positions):
    """The table's columns of a ``TokenAttention``: dicts with the name, a note and the values at the positions."""
    notes = {
        "raw": "mean of the heads" if attention.head is None else "the weights of the head",
        "effective": "the part that reaches the output",
        "norm-weighted": "share of the moved vectors",
        "rollout": "share of each input token, all layers",
        "flow": "share of the greatest flow",
    }
    return [
        {"name": name.capitalize(), "note": notes[name], "values": values[positions]}
        for name, values in attention.methods.items()
    ]


def _values(shared, trace, input_key):
    """The value vectors of the chosen layer. Of a long text only this layer's are cached."""
    layer = state.view().layer
    if trace.length <= attention_controls.LARGEST:
        return cached("methods values", input_key, lambda: shared.run(value_vectors, trace))[layer]
    return cached("methods values", (input_key, layer), lambda: shared.run(value_vectors, trace)[layer].copy())


def _flow(trace, call, input_key):
    layer, position = call["layer"], call["position"]

    def work(progress):
        return attention_flow(trace, layer, (position,), most_tokens=_MOST_FLOW, progress=progress)[0]

    return jobs.result("flow", (input_key, layer, position), "Flow", work, skeleton=False)


def _notes(trace):
    st.caption(
        "**Effective** and **norm-weighted** change the weights of one layer, while **rollout** and **flow** go "
        "through all layers. No method includes the feed-forward blocks.",
        help="**Effective** (Brunner et al. 2020): the weights without the part that cannot change the layer's "
        "output. They equal the raw weights unless there are more tokens than a head has components, and they "
        "may be negative.\n\n**Norm-weighted** (Kobayashi et al. 2020): the weights times the norms of the "
        "vectors they move.\n\n**Rollout** and **flow** (Abnar and Zuidema 2020): half of each step passes "
        "around the attention. Rollout multiplies the maps. Flow is the maximum flow through them.",
    )
    if trace.length > _MOST_FLOW:
        st.caption(f"Flow is computed for at most {_MOST_FLOW} tokens; this text has {trace.length}.")
