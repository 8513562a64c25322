"""The part of the page Predict with the attention of one head, or the mean of a layer, as lines between the tokens."""

import streamlit as st

from bert_tf import plots
from bert_tf.explain.models.compare import nearest_layer
from ui.elements import components
from ui.elements.toolbar import Button, Choice, toolbar
from ui.session import state
from ui.session.session_cache import cached
from ui.widgets import attention_controls
from ui.widgets.formatting import count

LONGEST = 128  # tokens; the attention of a longer text is drawn on the page All heads
_MEAN = "predict.mean"


def draw(shared, trace, side="", depth_of=None, linked=True):
    """Draw the lines of one head, and for a page with one model the small maps of all heads.

    Args:
        shared: ``SharedModel``. trace: its ``Trace``; without attention maps a link to the page All heads is drawn.
        side: the end of the keys, "_other" for the second of two models, which has no choices of its own.
        depth_of: the configuration of the model whose layers the view counts; this model's layer at the same relative
            depth is drawn. None: this model's own.
        linked: see ``components.lines``.

    Returns: (layer, head), from 0; head None for the mean. None if no lines are drawn.
    """
    if trace.attentions is None:
        toolbar(f"c_attention{side}", _more(), heading="Attention")
        st.caption(f"The text has {count(trace.length, 'token')}; lines are drawn here for up to {LONGEST}.")
        return None
    if not side:
        attention_controls.keep_head_in_model(shared.config)
    layer, head = _drawn(shared.config, depth_of)
    mean = head is None
    if side:
        toolbar(f"c_attention{side}", heading=f"Attention, layer {layer + 1}, {'mean' if mean else f'head {head + 1}'}")
    else:
        toolbar("c_attention", *_choices(shared.config), _more(), heading="Attention")
    maps = trace.attentions[layer].mean(axis=0) if mean else trace.attentions[layer, head]
    everything = plots.select(trace)
    weights = plots.lines(trace, maps, everything)
    if depth_of is not None:
        components.lines(f"c_home_lines{side}", weights, "attention", linked=linked)
        return layer, head
    chosen = [(layer, other) for other in range(shared.config.num_attention_heads)] if mean else [(layer, head)]
    framed = components.named_heads(chosen, plots.head_colours(state.is_dark())[:1] * len(chosen))
    left, right = st.columns([8, 5], gap="small")
    with left:
        components.lines("c_home_lines", weights, "attention", linked=linked, framed=framed)
    with right:
        _all_heads(trace, everything)
    return layer, head


def _drawn(config, depth_of):
    """(layer, head) that are drawn, from 0; the head is None for the mean, or if the model has no such head."""
    view = state.view()
    layer, head = view.layer, None if state.setting(_MEAN, False) else view.head
    if depth_of is None or depth_of is config:
        return layer, head
    layer = nearest_layer(layer, depth_of.num_hidden_layers, config.num_hidden_layers)
    layer = min(layer, config.num_hidden_layers - 1)  # the view's layer may be of a deeper model
    return layer, head if head is not None and head < config.num_attention_heads else None


def _choices(config):
    """The menus of the layer and of its head or the mean."""
    view = state.view()
    layers = [f"Layer {layer + 1}" for layer in range(config.num_hidden_layers)]
    heads = ["Mean", *(f"Head {head + 1}" for head in range(config.num_attention_heads))]
    head = 0 if state.setting(_MEAN, False) else view.head + 1
    return (
        Choice("layer", "Layer", layers, view.layer, lambda layer: state.change_view(layer=layer)),
        Choice("head", "Head", heads, head, lambda index: _choose_head(index - 1)),
    )


def _choose_head(head):
    """Draw a head, from 0; -1: the mean of the heads."""
    state.set_setting(_MEAN, head < 0, False)
    if head >= 0:
        state.change_view(head=head)


def _more():
    """The button that opens the page All heads."""
    return Button(
        "all_heads",
        "All heads",
        "arrow_forward",
        "The page All heads, with the same text, masks, layer and head: filters, several heads, heatmaps.",
        lambda: state.change_view(page="all_heads"),
    )


def _all_heads(trace, selection):
    def press_head(layer, head):
        state.set_setting(_MEAN, False, False)
        state.change_view(layer=layer, head=head)

    # The small maps are the same for every chosen head: they are cached, so that they are sent to the browser once.
    view = state.view()
    key = (trace.model, view.precision, view.a, view.b, trace.masks)
    small = cached("home_tiles", key, lambda: plots.tiles(trace.attentions, selection, most_bytes=60_000))
    components.grid(
        "c_home_grid",
        small,
        press_head,
        plots.ramp(state.is_dark()),
        tallest=26,
        name="",
        hint="Layers ↓, heads →. Press one.",
    )
