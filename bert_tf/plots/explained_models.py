"""Figures of the kinds of ``explain`` about models themselves; see ``explained``."""

from types import SimpleNamespace

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.explained_parts import pooled, token_axes, trace_slider, value_map
from bert_tf.plots.models.architecture import activations, sizes
from bert_tf.plots.models.architecture_table import flops_or_time, parameters_by_part
from bert_tf.plots.theme import CATEGORIES, apply_theme, unique_labels
from bert_tf.plots.training.curves import answer_trajectory


def _architecture(record, dark):
    if "values" in record:
        return _values(np.array(record["values"], np.float32), record["tokens"], record["show"] == "attentions", dark)
    if record["show"] == "sizes":
        rows = [(size["name"], dict(size["parameters"])) for size in record["sizes"]]
        for _, counts in rows:
            counts.pop("total", None)
        return sizes(rows, dark)
    names = unique_labels(part["title"] for part in record["parts"])
    figure = make_subplots(rows=1, cols=2, shared_yaxes=True, subplot_titles=("parameters", "share of the work"))
    for column, name in enumerate(("parameters", "share_of_work"), 1):
        bars = go.Bar(
            x=[part[name] for part in record["parts"]],
            y=names,
            orientation="h",
            marker_color=CATEGORIES[column - 1],
            showlegend=False,
            hovertemplate="%{y}: %{x:,}<extra></extra>" if column == 1 else "%{y}: %{x:.1%}<extra></extra>",
        )
        figure.add_trace(bars, row=1, col=column)
    figure.update_yaxes(autorange="reversed", type="category", ticks="")
    figure.update_xaxes(row=1, col=1, tickformat="~s")
    figure.update_xaxes(row=1, col=2, tickformat=".0%")
    return apply_theme(figure, dark, 130 + 34 * len(names))


def _family(record, dark):
    """Parameters by part, or the work; the time of a pass where it was measured."""
    rows = [
        SimpleNamespace(
            name=f"{one['member']} {one['size']}",
            parts=one["parts"],
            flops=one["flops"],
            tokens=record["length"],
            timed_whole=one["timed_whole"],
        )
        for one in record["sizes"]
    ]
    times = {row.name: one["seconds"] for row, one in zip(rows, record["sizes"]) if one["seconds"] is not None}
    if times or record["show"] == "work":
        return flops_or_time(rows, times or None, dark)
    return parameters_by_part(rows, dark)


def _values(values, tokens, maps, dark):
    """What passes a layer: units of every token, or where the layer's heads look on the average."""
    if maps:
        mean, names = pooled(values.mean(axis=0), tokens)
        figure = go.Figure(value_map(mean, names, names, dark, "%{y} looks at %{x}<br>%{z:.3f}"))
        token_axes(figure)
        return apply_theme(figure, dark, int(np.clip(220 + 20 * len(names), 460, 1100)))
    if values.ndim == 3:  # [N, T, D]: the heads' units side by side
        values = values.transpose(1, 0, 2).reshape(values.shape[1], -1)
    return activations(values, tokens, dark)


def _timelapse(record, dark):
    """The rank of each followed token at every step; with a head its attention, step by step."""
    if "attention" in record:
        figure = go.Figure()
        for weights in record["attention"]:
            values, names = pooled(np.array(weights, np.float32), record["tokens"])
            cells = value_map(values, names, names, dark, "%{y} looks at %{x}<br>%{z:.3f}")
            figure.add_trace(cells.update(visible=len(figure.data) == len(record["steps"]) - 1))
        token_axes(figure)
        steps = [f"{step:,}" for step in record["steps"]]
        figure.update_layout(sliders=[trace_slider(steps, "step", len(steps) - 1)])
        return apply_theme(figure, dark, int(np.clip(220 + 20 * len(names), 460, 1100)))
    token_trajectories = [
        SimpleNamespace(token=one["token"], ranks=np.array(one["ranks"]), probabilities=np.array(one["probabilities"]))
        for one in record["courses"]
    ]
    name, claim = ("in_order", "in order") if record["snapshots"][-1]["is_next"] is None else ("is_next", "B follows A")
    scores = [one[name] for one in record["snapshots"] if one[name] is not None]
    return answer_trajectory(token_trajectories, record["steps"], len(record["steps"]) - 1, scores, dark, 420, claim)


KINDS = {
    "architecture": _architecture,
    "family": _family,
    "timelapse": _timelapse,
}
