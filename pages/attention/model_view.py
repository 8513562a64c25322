"""Model view: the lines or maps of every head of every layer on one sheet; a press on a head enlarges it."""

import streamlit as st

from bert_tf import plots
from bert_tf.explain.attention.attention_maps import AttentionMaps
from pages.attention.snippets.model_view import snippet
from ui.elements import components
from ui.elements.attention_page import head_name
from ui.session import state
from ui.session.session_cache import cached
from ui.shell import snippets
from ui.shell.page import Page, Press
from ui.widgets import attention_controls, export, inputs

PAGE = Page(
    name="model_view",
    group="Attention",
    order=2,
    title="Model view",
    question="Every head of every layer",
    terms="attention heads layers overview thumbnails BertViz",
    summary="the lines or maps of all layers by all heads on one sheet; a press enlarges one",
    presses={"": Press("zoom")},
    settings=("as", "zoom", "least"),
    settings_help="`maps`, `1` for the enlarged head, percent below which weights are hidden",
    opens_rows=True,
    snippet=snippet,
)


_AS, _ZOOM, _LEAST = "model_view.as", "model_view.zoom", "model_view.least"


def page():
    filtered_inputs = attention_controls.filtered_page_inputs()
    if filtered_inputs is None:
        return
    shared, trace, selection = filtered_inputs
    if state.setting(_ZOOM, False):
        _enlarged(shared, trace, selection)
    else:
        snippets.give(shared, trace, selection, False)
        _sheet(trace, selection)
    attention_controls.warning()
    attention_controls.footer(shared, trace)


def _zoom(on):
    state.set_setting(_ZOOM, on, False)


def _sheet(trace, selection):
    view, dark = state.view(), state.is_dark()
    layers, heads = trace.attentions.shape[:2]
    inputs.heading(f"{layers} × {heads} heads")
    _save(trace, selection)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.segmented_control(
            "Drawn as",
            ["lines", "maps"],
            format_func={"lines": "Lines", "maps": "Maps"}.get,
            **state.bind_setting(_AS, "w_model_view_as", "lines", ("lines", "maps")),
        )
        attention_controls.threshold_picker(_LEAST, width=240)

    def press_head(layer, head):
        state.change_view(layer=layer, head=head)
        _zoom(True)

    style = "maps" if state.setting(_AS, "lines") == "maps" else "lines"
    least = attention_controls.least(_LEAST)
    key = (trace.model, view.precision, view.a, view.b, trace.masks, selection, least)
    small = cached("model_view", key, lambda: plots.tiles(trace.attentions, selection, 200_000, trace.sources, least))
    export.save_drawing("Sheet", "model-view", ("svg", "png", "html") if style == "lines" else ("png",))
    components.grid(
        "c_model_view",
        small,
        press_head,
        plots.ramp(dark),
        chosen=[(view.layer, view.head)],
        style=style,
        dark=dark,
        tallest=76,
        name="model-view",
        caption=export.trace_caption("model-view", trace),
        hint="A row is a layer, a column a head. Press one to enlarge it.",
        label="Every head of every layer.",
        page=lambda: attention_controls.saved_page(trace, [(view.layer, view.head)], selection, least),
    )
    legend = {
        "lines": (
            "In each drawing the tokens run down both sides: lines lead from those that look (left), blue in text A and"
            " orange in text B, to those they look at (right)."
        ),
        "maps": "In each map a row is a token that looks, a column a token that is looked at.",
    }[style]
    left_out = (
        f"Each head has at most its {components.MOST_STRANDS} strongest lines, and none below"
        f" {components.FAINTEST_STRAND:.0%} of its strongest."
    )
    pooled = "Neighbouring tokens share a row, which shows their largest weight."
    notes = [left_out] * (style == "lines") + [pooled] * _is_pooled(small, selection)
    st.caption(
        f"{legend} Each head is scaled to its own largest weight, so strength cannot be compared between heads.",
        help=" ".join(notes) or None,
    )


def _save(trace, selection):
    """Offer the sheet in the menu Save."""
    attention = AttentionMaps(
        trace=trace,
        positions=selection.rows,
        attended_positions=selection.columns,
        threshold=attention_controls.least(_LEAST),
    )
    export.save("all-heads", attention, trace=trace)


def _is_pooled(small, selection):
    return (small.rows, small.columns) != (len(selection.rows), len(selection.columns))


def _enlarged(shared, trace, selection):
    view = state.view()
    layers, heads = trace.attentions.shape[:2]
    name = head_name(view.layer, view.head)
    with inputs.heading(f"Layer {view.layer + 1}, head {view.head + 1}"):
        with st.container(horizontal=True, gap="small", width="content"):
            st.button(
                "All heads",
                icon=":material/grid_view:",
                key="w_model_view_back",
                on_click=_zoom,
                args=(False,),
            )
    attention_controls.save(trace, [(view.layer, view.head)], selection, attention_controls.least(_LEAST))
    attention_controls.pickers((layers, heads), _LEAST)
    least = attention_controls.least(_LEAST)
    snippets.give(shared, trace, selection, True, least)
    attention_controls.draw_lines("c_model_view_lines", trace, [(view.layer, view.head)], selection, name, least)
    st.caption(
        "Lines lead from the token that looks (left) to the tokens it looks at (right). The larger the weight, between"
        " 0 and 1, the stronger the line."
    )
