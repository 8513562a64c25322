"""Methods: one token's attention, raw and by four ways of reading more out of it, side by side."""

from dataclasses import replace

import streamlit as st

from bert_tf.explain import attention_flow, token_attention
from bert_tf.explain.attention.token_attention import mean_maps, scaled
from bert_tf.explain.attention.value_attention import value_vectors
from pages.attention.head_components import weights
from pages.attention.snippets.attention_methods import snippet
from ui.session import jobs, state
from ui.session.session_cache import cached
from ui.shell import frame, snippets
from ui.shell.page import Page, Press
from ui.widgets import attention_controls, export, inputs

PAGE = Page(
    name="attention_methods",
    group="Attention",
    order=4,
    title="Attention methods",
    question="Raw attention and what to make of it",
    summary="one token's attention raw, effective, norm-weighted, by rollout and by flow, side by side",
    presses={"": Press("button.token")},
    analyses=("attention-methods",),
    settings=("token", "of"),
    settings_help="position of the token, [CLS] is 0; `head` for one head instead of its layer",
    opens_rows=True,
    snippet=snippet,
)


_TOKEN, _OF = "attention_methods.token", "attention_methods.of"
_MOST_FLOW = 128  # tokens up to which the flow is worked out: its cost grows with the third power


def page():
    found = attention_controls.filtered_page_inputs()
    if found is None:
        return
    shared, trace, selection = found
    view, position = state.view(), _position(trace)
    with inputs.heading(f"“{trace.tokens[position]}” after layer {view.layer + 1}"):
        menu = st.container(width="content")
    _pickers(trace)
    detail = attention_controls.detail(selection)
    places = list(detail.columns)
    head = view.head if state.setting(_OF, "layer") == "head" else None
    snippets.give(shared, trace, position, head, trace.length <= _MOST_FLOW, detail)
    found = _attention(shared, trace, position, head)
    with menu:
        export.save(f"methods-layer-{view.layer + 1}-token-{position}", found, {"model": trace.model})
    weights(
        "c_methods",
        trace.tokens,
        places,
        _columns(found, places),
        position,
        frame.is_dark(),
        lambda chosen: state.set_setting(_TOKEN, chosen, 1),
        "Attention of one token by method",
        "Press a token to see where it looks. Bars are scaled to the longest of their column.",
    )
    _notes(trace)
    attention_controls.warning_link()
    attention_controls.footer(shared, trace)


def _position(trace):
    wanted = state.setting(_TOKEN, 1)
    return wanted if 0 <= wanted < trace.length else 1


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
            "Raw, effective and norm-weighted attention can be read of one head. Rollout and flow run through"
            " all heads of all layers up to this one."
        ),
    )


def _attention(shared, trace, position, head):
    """The ``TokenAttention`` of the open layer, with the flow once it is worked out."""
    view = state.view()
    text = (shared.name, view.precision, view.a, view.b, trace.masks)
    with st.spinner("Reading …"):
        values = _values(shared, trace, text)
        means = cached("methods means", text, lambda: mean_maps(trace))
        found = cached(
            "attention_methods",
            (text, view.layer, position, head),
            lambda: token_attention(shared.bert, trace, view.layer, position, head, False, values, means),
        )
    flow = _flow(trace, position, text) if trace.length <= _MOST_FLOW else None
    return found if flow is None else replace(found, flow=scaled(flow))


def _columns(found, places):
    """What the table shows of a ``TokenAttention``: dicts with name, note and values of the places."""
    notes = {
        "raw": "mean of the heads" if found.head is None else "the weights of the head",
        "effective": "what reaches the output",
        "norm-weighted": "share of what is moved",
        "rollout": "mixed from, all layers",
        "flow": "share of the greatest flow",
    }
    return [
        {"name": name.capitalize(), "note": notes[name], "values": values[places]}
        for name, values in found.methods.items()
    ]


def _values(shared, trace, text):
    """The open layer's value vectors: of a long text only these are kept."""
    layer = state.view().layer
    if trace.length <= attention_controls.LARGEST:
        return cached("methods values", text, lambda: shared.run(value_vectors, trace))[layer]
    return cached("methods values", (text, layer), lambda: shared.run(value_vectors, trace)[layer].copy())


def _flow(trace, position, text):
    layer = state.view().layer

    def work(progress):
        return attention_flow(trace, layer, (position,), most_tokens=_MOST_FLOW, progress=progress)[0]

    return jobs.result("flow", (text, layer, position), "Flow", work)


def _notes(trace):
    st.caption(
        "**Effective** (Brunner et al. 2020): without the part of the weights that cannot change the layer's"
        " output; it is all of them unless there are more tokens than a head has components, and may be"
        " negative. **Norm-weighted** (Kobayashi et al. 2020): weights times the length of the vectors they"
        " move. **Rollout** and **flow** (Abnar and Zuidema 2020): through all layers, half of each step"
        " passing around the attention; rollout multiplies the maps, flow asks how much the narrowest places"
        " let through. None of them knows what the feed-forward blocks do."
    )
    if trace.length > _MOST_FLOW:
        st.caption(f"Flow is worked out for at most {_MOST_FLOW} tokens; this text has {trace.length}.")
