"""Architecture: the loaded model as boxes, each with its size, its share of the work and what passes through it."""

import numpy as np
import streamlit as st

from bert_tf import plots
from bert_tf.config import BertConfig, parameter_counts
from bert_tf.explain.architecture import parts, passing
from bert_tf.plots.architecture import MOST_TOKENS, MOST_UNITS, activations, sizes
from ui import components, export, frame, inputs, lessons, state
from ui.kept import kept
from ui.words import percent, title

_OPEN, _LAYER, _VALUES = "architecture.open", "architecture.layer", "architecture.values"
#: Box -> what can be looked at in it: name of `passing` -> label.
_INSIDE = {
    "attention": {
        "attention": "What the block adds",
        "queries": "Queries",
        "keys": "Keys",
        "values": "Values",
        "attentions": "Attention",
    },
    "attention_norm": {"attention_norm": "After add & norm"},
    "feed_forward": {"feed_forward": "What the block adds", "feed_forward_wide": "Inside, widened"},
    "feed_forward_norm": {"feed_forward_norm": "Hidden state"},
}


def page():
    opened = inputs.opened("BERT, box by box", strip=False)
    if opened is None:
        return
    shared, encoding = opened
    found = inputs.masked(shared, encoding)
    if found is None:
        return
    trace = _trace(shared, found)
    boxes = parts(shared.bert.model, trace.length, max(len(trace.masks), 1))
    names = [part.name for part in boxes]
    chosen = state.setting(_OPEN, "attention")
    chosen = chosen if chosen in names else "attention"
    layer = min(max(state.setting(_LAYER, 1), 1), shared.config.num_hidden_layers) - 1
    left, right = st.columns([4, 6], gap="large")
    with left:
        _tower(trace, boxes, chosen, layer, shared.config.num_hidden_layers)
    with right:
        _detail(shared, trace, boxes, chosen, layer)
    _sizes(shared)


def _trace(shared, masked):
    view = state.view()
    key = (shared.name, view.precision, view.a, view.b, masked)
    return kept("architecture", key, lambda: shared.trace(view.a, view.b, masked, hidden_states=True))


def _tower(trace, boxes, chosen, layer, layers):
    work = sum(part.flops for part in boxes)
    shown = [
        {
            "name": part.name,
            "title": part.title,
            "size": _parameters(part.parameters),
            "shape": _shape(part.shape),
            "share": part.flops / work,
            "work": f"{percent(part.flops / work)} of the work" if part.flops else "",
        }
        for part in boxes
    ]
    heads = [part.name for part in boxes if part.repeats == 1 and part.name != "embeddings"]

    def opened(name):
        if name in {part.name for part in boxes}:
            state.set_setting(_OPEN, name, "attention")

    def moved(index):
        if 0 <= index < layers:
            state.set_setting(_LAYER, index + 1, 1)

    components.tower("c_tower", shown, heads, trace.tokens[:24], chosen, layer, layers, opened, moved)
    st.caption(
        f"Sizes and work of the blocks are those of all {layers} layers together, for these "
        f"{trace.length} tokens. Press a box to look inside."
    )


def _detail(shared, trace, boxes, chosen, layer):
    part = next(one for one in boxes if one.name == chosen)
    where = f", layer {layer + 1}" if part.name in _INSIDE else ""
    st.subheader(part.title + where, anchor=False)
    lesson = lessons.PARTS.get(part.name)
    if lesson:
        st.markdown(lesson.text)
        st.caption(lesson.source)
    each = f", {_parameters(part.parameters // part.repeats)} a layer" if part.repeats > 1 else ""
    st.markdown(
        f"gives **{_shape(part.shape)}** · **{_parameters(part.parameters)}** parameters{each} · "
        f"**{_operations(part.flops)}** for these {trace.length} tokens"
    )
    if part.name in _INSIDE:
        _inside(shared, trace, part.name, layer)
    elif part.name == "embeddings":
        _values(trace.hidden_states[0], trace.tokens, "The normalised sum")
    elif part.name == "pooler" and trace.pooled is not None:
        _values(trace.pooled[None], ["[CLS]"], "The pooled vector")
    elif part.name == "mlm":
        _masked_words(shared, trace)
    elif part.name == "nsp":
        _next_sentence(trace)
    if lesson:
        lessons.links(lesson.pages)


def _inside(shared, trace, name, layer):
    choices = _INSIDE[name]
    chosen = next(iter(choices))
    if len(choices) > 1:
        chosen = st.segmented_control(
            "Look at",
            list(choices),
            format_func=choices.get,
            **state.bound_setting(_VALUES, f"w_architecture_{name}", chosen, choices),
        )
        chosen = chosen or next(iter(choices))
    values = shared.run(passing, trace, layer)[chosen]
    if chosen == "attentions":
        strongest = values.mean(axis=0)
        selection = plots.select(trace)
        st.plotly_chart(
            plots.heatmap(trace, strongest, selection, dark=frame.is_dark(), most=MOST_TOKENS),
            config=export.plot_config("attention"),
            key="w_architecture_maps",
        )
        st.caption("The mean of the layer's heads; each head by itself is on the Attention pages.")
        return
    if values.ndim == 3:
        heads, tokens, size = values.shape
        st.caption(f"{heads} heads of {size} units, head 1 first.")
        values = values.transpose(1, 0, 2).reshape(tokens, heads * size)
    _values(values, trace.tokens, choices[chosen])


def _values(values, tokens, label):
    values = np.asarray(values)
    st.plotly_chart(
        activations(values, tokens, frame.is_dark()),
        config=export.plot_config("values"),
        key="w_architecture_values",
    )
    cut = [f"the first {MOST_UNITS} of {values.shape[1]:,} units"] if values.shape[1] > MOST_UNITS else []
    cut += [f"the first {MOST_TOKENS} of {len(values):,} tokens"] if len(values) > MOST_TOKENS else []
    st.caption(
        f"{label}: {' and '.join(cut) or 'all units'}. Mean length of the vectors "
        f"{np.linalg.norm(values, axis=1).mean():.2f}; a unit has no meaning by itself."
    )


def _masked_words(shared, trace):
    from bert_tf.explain import fill_mask
    from ui.cards import cards

    if not trace.masks:
        st.info("Nothing is hidden. Mask a word on the Predict page.", icon=":material/touch_app:")
        return
    components.bars("c_architecture_bars", cards(fill_mask(trace, shared.tokenizer, 5)))


def _next_sentence(trace):
    if trace.nsp is None:
        st.info("There is only one text. Type a text B to have the pair judged.", icon=":material/keyboard:")
        return
    components.gauge("c_architecture_gauge", float(trace.nsp.is_next))


def _sizes(shared):
    st.subheader("Beside the other sizes", anchor=False)
    config = shared.config
    member = config.member
    rows = [(size, BertConfig.named(size, config.model_type, vocab_size=config.vocab_size)) for size in member.sizes]
    rows = [(name, parameter_counts(one, member.trained)) for name, one in rows]
    rows.append((f"{title(shared.name)} (loaded)", parameter_counts(config, sorted(shared.bert.model.bert_heads))))
    plain = [(name, {part: n for part, n in counts.items() if part != "total"}) for name, counts in rows]
    st.plotly_chart(sizes(plain, frame.is_dark()), config=export.plot_config("sizes"), key="w_architecture_sizes")
    st.caption(
        f"{member.title}'s sizes with this model's vocabulary of {config.vocab_size:,}: "
        + ", ".join(f"{name} {_parameters(counts['total'])}" for name, counts in rows[:-1])
        + "."
    )


def _shape(shape):
    return " × ".join(f"{letter} {number:,}" for letter, number in shape)


def _parameters(number):
    if number >= 1e6:
        return f"{number / 1e6:.1f} M"
    return f"{number / 1e3:.1f} k" if number >= 1e3 else str(number)


def _operations(flops):
    if flops >= 1e9:
        return f"{flops / 1e9:.2f} GFLOP"
    return f"{flops / 1e6:.1f} MFLOP" if flops else "next to none"
