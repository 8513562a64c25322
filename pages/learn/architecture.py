"""Architecture: the loaded model as boxes, each with its size, its share of the operations and its values."""

import streamlit as st

from bert_tf.explain.models.architecture import ModelParts, parts_of
from bert_tf.parameters import LAYER_PARTS
from bert_tf.plots.numbers import percent
from pages.learn import box_values, lessons, size_table
from pages.learn.snippets.architecture import snippet
from ui.elements import components
from ui.session import state
from ui.shell import snippets
from ui.shell.page import Page, Press
from ui.widgets import export, inputs
from ui.widgets.formatting import axes, dimensions, direction, short_count
from ui.widgets.targets import view_trace

PAGE = Page(
    name="architecture",
    group="Learn",
    order=4,
    title="Architecture",
    question="The model, box by box",
    terms="diagram parameters FLOPs shapes memory boxes layer norm feed-forward GELU pooler",
    summary=(
        "the loaded model as boxes (embeddings, a layer of the encoder, pooler, heads of pre-training and of "
        "a task), each with its shape, parameters, share of the work and its values for the text; the "
        "open box, and the whole model, beside every size of its architecture"
    ),
    presses={"": Press("button[data-name]")},
    analyses=("architecture",),
    settings=("open", "layer", "values", "token", "unit"),
    settings_help=(
        "name of a box (`task` for a fine-tuned model's head); layer; name of the values; first token and unit drawn"
    ),
    opens_rows=True,
    snippet=snippet,
)


_OPEN, _LAYER = "architecture.open", "architecture.layer"


def page():
    page_inputs = inputs.page_inputs(strip=False)
    if page_inputs is None:
        return
    shared, encoding = page_inputs
    trace = view_trace(shared, encoding, hidden_states=True)
    if trace is None:
        return
    boxes = parts_of(shared.config, shared.bert.heads, trace.length, max(len(trace.masks), 1), shared.bert.task)
    names = [part.name for part in boxes]
    chosen = state.setting(_OPEN, "attention")
    chosen = chosen if chosen in names else "attention"
    layer = min(max(state.setting(_LAYER, 1), 1), shared.config.num_hidden_layers) - 1
    left, right = st.columns([4, 6], gap="large")
    with left:
        _tower(trace, boxes, chosen, layer, shared.config)
    with right:
        _detail(shared, trace, boxes, chosen, layer)
    size_table.draw(shared, trace, boxes)
    snippets.give(shared, trace, layer, chosen, box_values.selected_value(chosen))


def _tower(trace, boxes, chosen, layer, config):
    layers = config.num_hidden_layers
    work = sum(part.flops for part in boxes)
    drawn_boxes = [
        {
            "name": part.name,
            "title": part.title,
            "size": short_count(part.parameters),
            "shape": dimensions(part.shape),
            "share": part.flops / work,
            "work": f"{percent(part.flops / work)} of the work" if part.flops else "",
        }
        for part in boxes
    ]
    ends = [part.name for part in boxes if part.name not in ("embeddings", *LAYER_PARTS)]

    def open_box(name):
        if name in {part.name for part in boxes}:
            state.set_setting(_OPEN, name, "attention")

    def move_to_layer(index):
        if 0 <= index < layers:
            state.set_setting(_LAYER, index + 1, 1)

    inputs.heading("The model")
    export.save("boxes", ModelParts(trace.tokens, boxes), trace=trace)
    runs = direction(trace.text_a)
    components.tower(
        "c_tower", drawn_boxes, ends, trace.tokens[:24], runs, chosen, layer, layers, open_box, move_to_layer
    )
    st.caption(
        f"The parameters and the work of a block are those of {_all_layers(layers)}, for these {trace.length} tokens. "
        f"{_sharing(config)}Press a box to look inside.",
        help=f"The size of a box's output: {axes(*(box.shape for box in boxes))}",
    )


def _all_layers(layers):
    return f"all {layers} layers together" if layers > 1 else "the one layer"


def _sharing(config):
    """A sentence about layers that share weights; "" if none do."""
    layers, sets = config.num_hidden_layers, len(set(config.layer_groups))
    if sets == layers:
        return ""
    shared_weights = "one set of weights" if sets == 1 else f"{sets} sets of weights, neighbours the same one"
    return f"All {layers} layers share {shared_weights}: parameters count once, and every layer does its work. "


def _detail(shared, trace, boxes, chosen, layer):
    part = next(box for box in boxes if box.name == chosen)
    where = f", layer {layer + 1}" if part.name in box_values.INSIDE else ""
    st.header(part.title + where, anchor=False)
    task = shared.bert.task and shared.bert.task.settings
    lesson = lessons.part(part.name, shared.config, task and task.task)
    if lesson:
        st.markdown(lesson.text)
        st.caption(lesson.source)
    st.markdown(
        f"output **{dimensions(part.shape)}** · **{short_count(part.parameters)}** parameters{_each(part)} · "
        f"**{_operations(part.flops)}** for these {trace.length} tokens"
    )
    box_values.draw(shared, trace, part.name, layer)
    size_table.draw_box(shared, trace, boxes, part)
    if lesson:
        lessons.links(lesson.pages)


def _each(part):
    """How many of a part's parameters one layer has, as the end of a sentence."""
    if part.repeats == 1:
        return ""
    if part.title == "Add":
        return ", which normalise the output of the last layer"
    in_one_set = short_count(part.parameters // part.sets)
    if part.sets == part.repeats:
        return f", {in_one_set} in each layer"
    if part.sets == 1:
        return f", the same in all {part.repeats} layers"
    return f", {in_one_set} in each of {part.sets} sets for {part.repeats} layers"


def _operations(flops):
    if flops >= 1e9:
        return f"{flops / 1e9:.2f} GFLOP"
    if flops >= 1e6:
        return f"{flops / 1e6:.1f} MFLOP"
    return f"{flops:,} FLOP" if flops else "almost no operations"
