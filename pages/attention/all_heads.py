"""All heads: the attention maps of every head, and one head or several drawn large."""

import streamlit as st

from bert_tf import plots
from bert_tf.explain.attention.word_attention import word_trace
from pages.attention.snippets.all_heads import snippet
from ui.elements import components
from ui.elements.attention_page import head_name
from ui.session import state
from ui.session.session_cache import cached
from ui.shell import snippets
from ui.shell.page import Page, Press
from ui.widgets import attention_controls, export, figures, inputs

PAGE = Page(
    name="all_heads",
    group="Attention",
    order=1,
    title="All heads",
    question="Where every token looks",
    terms="attention head view lines weights BertViz",
    summary=(
        "small attention maps of all heads; one head, or up to six in a colour each, as lines between tokens, or one as"
        " a heatmap; why attention is not explanation"
    ),
    presses={"": Press("head"), "heatmap": Press("head", {"all_heads.as": "map"})},
    analyses=("attention",),
    settings=("several", "more", "least", "as", "words", "both"),
    settings_help=(
        "`1` for several heads, the others as `layer.head`, percent below which weights are hidden, `map` for "
        "the heatmap; `1` for words instead of tokens; `1` for A→B beside B→A"
    ),
    opens_rows=True,
    snippet=snippet,
)


_MORE, _SEVERAL, _LEAST, _AS = "all_heads.more", "all_heads.several", "all_heads.least", "all_heads.as"
_WORDS, _BOTH = "all_heads.words", "all_heads.both"
_WAYS = {"ab": "A → B", "ba": "B → A"}


def page():
    model_and_trace = attention_controls.page_inputs()
    if model_and_trace is None:
        return
    shared, token_trace = model_and_trace
    trace = _of_words(token_trace) if state.setting(_WORDS, False) else token_trace
    selection = attention_controls.filters(trace)
    if selection is None:
        return
    chosen = _chosen(trace)
    left, right = st.columns([43, 60], gap="large")
    with left:
        _overview(trace, selection)
    with right:
        _heads(shared, token_trace, trace, selection, chosen)
    drawn = (
        "The larger the weight, the stronger the colour. The map does"
        if state.setting(_AS, "lines") == "map"
        else "Each line leads from a token, on the left, to a token that it attends to: the larger the weight, the "
        "stronger the line. The lines do"
    )
    st.caption(
        f"{drawn} not show what information is moved, nor whether it matters.",
        help="In each head the weights of a token add up to 1.",
    )
    attention_controls.footer(shared, token_trace)


def _of_words(trace):
    """The trace with words in the place of tokens, cached while the trace stays the same."""
    return cached("word_trace", (trace,), lambda: word_trace(trace))


def _chosen(trace):
    """The heads that are drawn as pairs (layer, head), the view's own head first."""
    layers, heads = trace.attentions.shape[:2]
    view = state.view()
    chosen = [(view.layer, view.head)]
    if state.setting(_SEVERAL, False):
        for text in state.setting(_MORE, "").split(","):
            layer, _, head = text.partition(".")
            if layer.isdecimal() and head.isdecimal() and 0 < int(layer) <= layers and 0 < int(head) <= heads:
                chosen.append((int(layer) - 1, int(head) - 1))
    return list(dict.fromkeys(chosen))[: plots.MAX_HEADS]


def _choose(chosen):
    """Store these heads as the chosen ones; the first becomes the head of the view."""
    state.set_setting(_MORE, ",".join(f"{layer + 1}.{head + 1}" for layer, head in chosen[1:]), "")
    state.change_view(layer=chosen[0][0], head=chosen[0][1])


def _overview(trace, selection):
    view = state.view()
    with inputs.heading("All heads"):
        attention_controls.warning()

    def press_head(layer, head):
        chosen = _chosen(trace)
        if not state.setting(_SEVERAL, False):
            _choose([(layer, head)])
        elif (layer, head) not in chosen:
            if len(chosen) == plots.MAX_HEADS:
                st.toast(f"At most {plots.MAX_HEADS} heads can be drawn. Remove one first.")
                return
            _choose([*chosen, (layer, head)])
        elif len(chosen) > 1:
            _choose([other for other in chosen if other != (layer, head)])

    # The small maps are the same for every chosen head: they are cached, so that they are sent to the browser once.
    words = state.setting(_WORDS, False)
    key = (trace.model, view.precision, view.a, view.b, view.masks, words, selection)
    small = cached("tiles", key, lambda: plots.tiles(trace.attentions, selection))
    export.save_drawing("Small maps", "all-heads", ("png",))
    components.grid(
        "c_grid",
        small,
        press_head,
        plots.ramp(state.is_dark()),
        caption=export.trace_caption("all-heads", trace),
    )


def _heads(shared, token_trace, trace, selection, chosen):
    """Draw the chosen heads of ``trace``, which is ``token_trace`` or its trace of words."""
    layer, head = chosen[0]
    weights = trace.attentions[layer, head]
    several = len(chosen) > 1
    name = (
        "heads-" + "-".join(f"{chosen_layer + 1}.{chosen_head + 1}" for chosen_layer, chosen_head in chosen)
        if several
        else head_name(layer, head)
    )
    inputs.heading(f"{len(chosen)} heads" if several else f"Layer {layer + 1}, head {head + 1}")
    attention_controls.save(trace, chosen, selection, attention_controls.least(_LEAST))
    as_map = state.setting(_AS, "lines") == "map"
    attention_controls.pickers(trace.attentions.shape, _LEAST)
    colours = plots.head_colours(state.is_dark())[: len(chosen)]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.segmented_control(
            "As",
            ["lines", "map"],
            format_func={"lines": "Lines", "map": "Heatmap"}.get,
            **state.bind_setting(_AS, "w_all_heads_as", "lines", ("lines", "map")),
            label_visibility="collapsed",
        )
        st.toggle(
            "Several heads",
            **state.bind_setting(_SEVERAL, "w_several", False),
            help=(
                "While this is on, a press on a small map adds its head in another colour, or removes it. "
                f"Up to {plots.MAX_HEADS} heads are drawn together."
            ),
        )
        st.toggle(
            "Per word",
            **state.bind_setting(_WORDS, "w_all_heads_words", False),
            help=(
                "Words in the place of their pieces: the attention to a word is the sum over its pieces, the attention "
                "from a word the mean."
            ),
        )
        if trace.text_b is not None and not as_map:
            st.toggle(
                "A→B, B→A",
                **state.bind_setting(_BOTH, "w_all_heads_both", False),
                help="Two drawings beside each other: from the tokens of text A to those of text B, and back.",
            )
        components.heads("c_heads", chosen, colours, state.setting(_SEVERAL, False), _drop(trace))
    detail = attention_controls.detail(selection) if as_map else selection
    view = state.view()
    drawn = {view.selection: detail}
    if trace.text_b is not None and not as_map and state.setting(_BOTH, False):
        drawn = {way: plots.select(trace, way, view.special, view.punctuation) for way in _WAYS}
    least = 0.0 if as_map else attention_controls.least(_LEAST)
    snippets.give(
        shared,
        token_trace,
        chosen[:1] if as_map else chosen,
        drawn,
        least,
        trace if trace is not token_trace else None,
    )
    if as_map:
        _heatmaps(trace, weights, selection, detail, name)
        if several:
            st.caption(f"The heatmap shows layer {layer + 1}, head {head + 1} alone. Lines show all chosen heads.")
    else:
        _lines(trace, drawn, chosen, name, colours)


def _lines(trace, drawn, chosen, name, colours):
    """The lines of the chosen heads.

    Args:
        drawn: dict from a value of the view's ``selection`` to its ``Selection``: one, or those of ``_WAYS``, which are
            drawn beside each other.
    """
    least = attention_controls.least(_LEAST)
    if len(drawn) == 1:
        (selection,) = drawn.values()
        attention_controls.draw_lines("c_lines", trace, chosen, selection, name, least, colours)
        return
    for column, (way, part) in zip(st.columns(2), drawn.items()):
        with column:
            st.markdown(f"**{_WAYS[way]}**")
            if part:
                attention_controls.draw_lines(
                    f"c_lines_{way}", trace, chosen, part, f"{name}-{way}", least, colours, f"Lines {_WAYS[way]}"
                )
            else:
                st.caption("No token is left under these filters.")


def _drop(trace):
    """The callback that removes a head from the chosen ones; the last one stays."""

    def drop(layer, head):
        chosen = _chosen(trace)  # a press right before may have removed one
        _choose([other for other in chosen if other != (layer, head)] or chosen)

    return drop


def _heatmaps(trace, weights, selection, detail, name):
    dark, least = state.is_dark(), attention_controls.least(_LEAST)
    config = export.plot_config(name)
    if detail is not selection:
        st.caption("The whole text: each cell shows the largest weight of a block of tokens.")
        figures.show(
            "Attention of the whole text, pooled",
            plots.heatmap(trace, weights, selection, most=96, dark=dark, height=420, least=least),
            config=config,
            key="w_map_whole",
        )
        st.caption("The detail.")
    label = f"Attention, {name.replace('-', ' ')}"
    figures.show(label, plots.heatmap(trace, weights, detail, dark=dark, least=least), config=config, key="w_map")
    st.caption("A row is a token that looks, a column a token that is looked at.")
