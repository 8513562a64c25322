"""Attention: every head of every layer, one of them opened."""

import streamlit as st

from bert_tf import plots
from ui import components, export, frame, inputs, state
from ui.spots import positions
from ui.traces import attention_trace
from ui.words import count, milliseconds, title

_LARGEST = 128  # tokens a side up to which a heatmap shows every one
_WINDOW = 64  # tokens a side of the detail of a longer text


def page():
    opened = inputs.opened("Where every token looks")
    if opened is None:
        return
    shared, encoding = opened
    _settle(shared.config)
    with st.spinner("Reading …", show_time=True):
        trace = attention_trace(shared, positions(encoding, state.view().masks))
    _filters(trace)
    selection = plots.select(trace, state.view().shown, state.view().special)
    if not selection:
        st.info(
            "No token is left under these filters. Show special tokens, or type a text B.",
            icon=":material/filter_alt_off:",
        )
        return
    left, right = st.columns([5, 6], gap="large")
    with left:
        _overview(trace, selection)
    with right:
        _one_head(shared, trace, selection)
    st.caption(f"{title(shared.name)} · {count(trace.length, 'token')} · {milliseconds(trace.seconds)}")


def _settle(config):
    view = state.view()
    layer = min(view.layer, config.num_hidden_layers - 1)
    head = min(view.head, config.num_attention_heads - 1)
    if (layer, head) != (view.layer, view.head):
        state.settle(layer=layer, head=head)


def _filters(trace):
    names = {"all": "All", "aa": "A→A", "ab": "A→B", "ba": "B→A", "bb": "B→B"}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if trace.text_b is not None:
            st.segmented_control(
                "Show", list(names), format_func=names.get, **state.bound("shown", "w_shown")
            )
        elif state.view().shown != "all":
            state.settle(shown="all")
        st.toggle(
            "Special tokens",
            **state.bound("special", "w_special"),
            help="[CLS] and [SEP] often draw most of the attention: hide them to see the rest.",
        )


def _overview(trace, selection):
    view = state.view()
    st.subheader("All heads", anchor=False)

    def opened(layer, head):
        state.change(layer=layer, head=head)

    # Opening another head changes nothing in the small maps.
    key = (trace.model, view.precision, view.a, view.b, trace.masks, selection)
    kept = st.session_state.get("_tiles")
    if kept is None or kept[0] != key:
        kept = st.session_state["_tiles"] = (key, plots.tiles(trace.attentions, selection))
    dark = frame.is_dark()
    components.grid("c_grid", kept[1], view.layer, view.head, opened, plots.ramp(dark))


def _one_head(shared, trace, selection):
    layers, heads = trace.attentions.shape[:2]
    view = state.view()
    weights = trace.attentions[view.layer, view.head]
    name = f"layer-{view.layer + 1}-head-{view.head + 1}"
    with inputs.heading(f"Layer {view.layer + 1}, head {view.head + 1}"):
        export.attention(trace, weights, selection, name)
    left, right = st.columns(2)
    count_from_one = {"read": lambda number: number - 1, "show": lambda index: index + 1}
    left.slider("Layer", 1, layers, **state.bound("layer", "w_layer", **count_from_one))
    right.slider("Head", 1, heads, **state.bound("head", "w_head", **count_from_one))
    longest = max(len(selection.rows), len(selection.columns))
    detail = selection if longest <= _LARGEST else _window(selection, longest)
    tab_lines, tab_map = st.tabs(["Lines", "Heatmap"])
    with tab_lines:
        components.lines("c_lines", plots.lines(trace, weights, detail), name)
    with tab_map:
        _heatmaps(trace, weights, selection, detail, name)


def _window(selection, longest):
    most = longest - _WINDOW + 1
    if state.view().start >= most:
        state.settle(start=most - 1)
    st.slider(
        f"Detail: {_WINDOW} tokens from",
        1,
        most,
        **state.bound("start", "w_start", read=lambda number: number - 1, show=lambda index: index + 1),
    )
    return selection.window(state.view().start, _WINDOW)


def _heatmaps(trace, weights, selection, detail, name):
    dark = frame.is_dark()
    save = export.plot_config(name)
    if detail is not selection:
        st.caption("The whole text, pooled: the strongest of each block.")
        st.plotly_chart(
            plots.heatmap(trace, weights, selection, most=96, dark=dark, height=420),
            config=save,
            key="w_map_whole",
        )
        st.caption("The detail.")
    st.plotly_chart(plots.heatmap(trace, weights, detail, dark=dark), config=save, key="w_map")
    st.caption("A row is a token that looks, a column one that is looked at.")
