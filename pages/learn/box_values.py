"""The values of the current text in a box of the page Architecture."""

import numpy as np
import streamlit as st

from bert_tf import plots
from bert_tf.explain.models.architecture import (
    LayerActivations,
    choice_scores,
    layer_activations,
    task_head_activations,
)
from bert_tf.explain.models.box_values import HeadScores, TokenValues
from bert_tf.inference.predictions import fill_mask
from bert_tf.inference.trace import sigmoid
from bert_tf.plots.models.architecture import MAX_TOKENS, MOST_UNITS
from ui.elements import components, tables
from ui.elements.cards import cards
from ui.session import state, task_models
from ui.widgets import attention_controls, export, figures, head_predictions, task_predictions
from ui.widgets.formatting import count, number

_VALUES, _TOKEN, _UNIT = "architecture.values", "architecture.token", "architecture.unit"
_NO_PAIR = "There is only one text. Type a text B to get a prediction for the pair."
#: Pooling -> the input of a fine-tuned classifier's head.
_HEAD_INPUTS = {
    "cls": "the pooled vector",
    "mean": "the mean of all tokens' last hidden states",
    "max": "the maximum of each unit over all tokens",
    "attention": "a mean of the last hidden states with learnt weights",
}
#: Box -> the values in it: name of `layer_activations` -> label.
INSIDE = {
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


def selected_value(box):
    """The name of the chosen values of a box; None for a box outside of the layers."""
    choices, chosen = INSIDE.get(box, ()), state.setting(_VALUES, "")
    return chosen if chosen in choices else next(iter(choices), None)


def draw(shared, trace, name, layer):
    """Draw the values in the box ``name``; for a box of the encoder layers, those in ``layer`` (from 0)."""
    if name in INSIDE:
        _inside(shared, trace, name, layer)
    elif name == "embeddings":
        _values(trace, name, trace.hidden_states[0], "The normalised sum")
    elif name == "pooler" and trace.pooled is not None:
        _values(trace, name, trace.pooled[None], "The pooled vector")
    elif name == "mlm":
        _masked_words(shared, trace)
    elif name in ("nsp", "sop"):
        _pair(trace)
    elif name == "replaced":
        head_predictions.save_replaced(trace)
        head_predictions.replaced_tokens("c_architecture_replaced", trace)
    elif name == "task":
        _task(shared, trace, shared.bert.task.settings)


def _inside(shared, trace, name, layer):
    choices = INSIDE[name]
    chosen = next(iter(choices))
    if len(choices) > 1:
        chosen = st.segmented_control(
            "Look at",
            list(choices),
            format_func=choices.get,
            **state.bind_setting(_VALUES, f"w_architecture_{name}", chosen, choices),
        )
        chosen = chosen or next(iter(choices))
    values = shared.run(layer_activations, trace, layer)[chosen]
    if chosen == "attentions":
        first, _ = _window(trace.length, 1)
        selection = plots.select(trace).window(first, MAX_TOKENS)
        attention = LayerActivations(trace.tokens, layer, chosen, values)
        export.save("mean-attention", attention, trace=trace)
        figures.show(
            "Mean attention of the layer",
            plots.heatmap(trace, values.mean(axis=0), selection, dark=state.is_dark(), most=MAX_TOKENS),
            config=export.plot_config("attention"),
            key="w_architecture_maps",
        )
        st.caption("The mean of the layer's heads; the Attention pages show each head.")
        attention_controls.warning()
        return
    if values.ndim == 3:
        heads, tokens, size = values.shape
        st.caption(f"{count(heads, 'head')} of {size} units{', head 1 first' if heads > 1 else ''}.")
        values = values.transpose(1, 0, 2).reshape(tokens, heads * size)
    _values(trace, chosen, values, choices[chosen], layer=layer)


def _window(tokens, units):
    """The first token and the first unit that are drawn, from 0; sliders choose them if not all fit."""
    long = [
        (name, label, 1 + total - most)
        for name, label, total, most in (
            (_TOKEN, f"{MAX_TOKENS} tokens from", tokens, MAX_TOKENS),
            (_UNIT, f"{MOST_UNITS} units from", units, MOST_UNITS),
        )
        if total > most
    ]
    first = {}
    for column, (name, label, last) in zip(st.columns(len(long) or 1), long):
        key = f"w_{name.replace('.', '_')}"
        first[name] = column.slider(label, 1, last, **state.bind_setting(name, key, 1, range(1, last + 1))) - 1
    return first.get(_TOKEN, 0), first.get(_UNIT, 0)


def _values(trace, name, values, label, units=None, layer=None):
    """Draw the vectors of the first tokens of a trace.

    Args:
        name: of the values in the saved record. values: float [T, U], of the first T tokens. label: their name on the
            page. units: U names, or None. layer: the index of the encoder layer, or None.
    """
    values = np.asarray(values)
    token, unit = _window(*values.shape)
    tokens, units = trace.tokens[: len(values)], units and tuple(units)
    result = TokenValues(name, layer, tokens, units, values, token, unit)
    export.save("values", result, trace=trace)
    figures.show(
        f"Values: {label}",
        result.figure(dark=state.is_dark()),
        config=export.plot_config("values"),
        key="w_architecture_values",
    )
    ranges = [
        f"{axis} {first + 1:,} to {first + most:,} of {total:,}"
        for axis, first, total, most in zip(
            ("units", "tokens"), (unit, token), values.shape[::-1], (MOST_UNITS, MAX_TOKENS)
        )
        if total > most
    ]
    if units is not None:
        st.caption(f"{label}, before any softmax{': ' if ranges else ''}{' and '.join(ranges)}.")
        return
    st.caption(
        f"{label}: {' and '.join(ranges) or 'all units'}. Mean length of the vectors "
        f"{np.linalg.norm(values, axis=1).mean():.2f}; a single unit has no meaning by itself."
    )


def _masked_words(shared, trace):
    if not trace.masks:
        st.info("Nothing is hidden. Mask a word on the Predict page.", icon=":material/touch_app:")
        return
    answers = fill_mask(trace, shared.tokenizer, 5)
    head_predictions.save_predictions(trace, answers)
    components.bars("c_architecture_bars", cards(answers))


def _pair(trace):
    if trace.nsp is None and trace.sop is None:
        st.info(_NO_PAIR, icon=":material/keyboard:")
        return
    head_predictions.save_pair_prediction(trace)
    head_predictions.pair_prediction("c_architecture_gauge", trace)


def _task(shared, trace, settings):
    """Draw the output of a fine-tuned model's head."""
    if settings.task == "choose":
        _choices(shared, trace, settings)
        return
    outputs = shared.run(task_head_activations, trace)
    if settings.task == "tag":
        _values(trace, "logits", outputs["logits"], "Logits of the labels", settings.labels)
    elif settings.task == "answer":
        ends = np.stack([outputs["start_logits"], outputs["end_logits"]], axis=1)
        _values(trace, "logits", ends, "Logits of the answer's ends", ("begins", "ends"))
    elif settings.regression:
        st.metric("Value", number(outputs["logits"][0], 3))
        st.caption(f"Input of the head: {_head_input(settings)}.")
    else:
        _scores(trace, "class", settings.labels, outputs["logits"], settings.multi_label)
        st.caption(f"Input of the head: {_head_input(settings)}.")


def _head_input(settings):
    """The input of a classifier's head, in words."""
    if "activation" in settings.extra:
        return "the first token's last hidden state, by a layer of its own"
    return _HEAD_INPUTS[settings.pooling]


def _choices(shared, trace, settings):
    view = state.view()
    choices = task_models.record(settings, view.a, view.b)["choices"]
    if len(choices) < 2:
        st.info("Type two or more endings as text B, one a line.", icon=":material/keyboard:")
        return
    _scores(trace, "choice", choices, shared.run(choice_scores, view.a, choices))
    task_predictions.note_endings(settings, view.b)
    st.caption("The model reads each choice with text A in a separate forward pass; the boxes show one pass.")


def _scores(trace, of, names, logits, independent=False):
    """Draw the logits of classes or choices, and their softmax, or the sigmoid of each if they are independent."""
    logits = np.asarray(logits, np.float64)
    raised = np.exp(logits - logits.max())
    probabilities = sigmoid(logits) if independent else raised / raised.sum()
    export.save("logits", HeadScores(of, tuple(names), logits, probabilities), trace=trace)
    tables.show(
        {of: list(names), "logit": logits, "probability": probabilities},
        hide_index=True,
        key="w_architecture_numbers",
        column_config={
            of: st.column_config.TextColumn(of.capitalize()),
            "logit": st.column_config.NumberColumn("Logit", format="%.3f"),
            "probability": st.column_config.ProgressColumn("Probability", min_value=0, max_value=1, format="%.3f"),
        },
    )
