"""Figures of the kinds of ``explain`` about attention and heads; see ``explained``."""

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.attention.head_profile import measure_map
from bert_tf.plots.attention.head_vectors import neuron_strips
from bert_tf.plots.attention.token_attention import method_bars
from bert_tf.plots.explained_parts import pooled, token_axes, trace_slider, value_map
from bert_tf.plots.theme import apply_theme, escape
from bert_tf.plots.training.task_predictions import changed_heads


def _attention(record, dark):
    """A map for each layer, chosen by a slider; the last one is open."""
    figure, layers = go.Figure(), record["layers"]
    for index, layer in enumerate(layers):
        values, names = pooled(np.array(layer, np.float32), record["tokens"])
        figure.add_trace(value_map(values, names, names, dark, "%{y} looks at %{x}<br>%{z:.3f}"))
        figure.data[-1].visible = index == len(layers) - 1
    token_axes(figure)
    names_of_layers = [str(number) for number in range(1, len(layers) + 1)]
    figure.update_layout(sliders=[trace_slider(names_of_layers, "layer", len(layers) - 1)])
    return apply_theme(figure, dark, int(np.clip(220 + 20 * len(names), 460, 1100)))


def _neuron(record, dark):
    keys = np.array(record["keys"], np.float32)
    products = keys * np.array(record["query_vector"], np.float32)
    return neuron_strips(record["tokens"], keys, products, record["weights"], record["scores"], dark)


def _methods(record, dark):
    return method_bars(record["tokens"], record["methods"], dark)


def _heads(record, dark):
    """A grid for each measure, chosen from a menu."""
    figure, measures = go.Figure(), dict(record["measures"])
    for name, one in record.get("relations", {}).items():
        measures[f"relation {escape(name)}"] = np.maximum(one["dependent_looks"], one["head_looks"])
    for index, (name, values) in enumerate(measures.items()):
        drawn = measure_map(np.array(values, float), name.replace("_", " "), dark)
        figure.add_trace(drawn.data[0])
        figure.data[-1].visible = index == 0
        if index == 0:
            figure.update_layout(drawn.layout)
    menu = [
        {
            "label": name.replace("_", " "),
            "method": "update",
            "args": [
                {"visible": [at == index for at in range(len(measures))]},
                {"xaxis.title.text": f"head: {name.replace('_', ' ')}"},
            ],
        }
        for index, name in enumerate(measures)
    ]
    figure.update_layout(updatemenus=[{"buttons": menu, "x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom"}])
    return figure


def _changed(record, dark):
    return changed_heads(np.array(record["bits"], float), dark)


KINDS = {
    "attention": _attention,
    "neuron": _neuron,
    "methods": _methods,
    "heads": _heads,
    "changed": _changed,
}
