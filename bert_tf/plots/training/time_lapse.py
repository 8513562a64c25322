"""Figures of the predictions for one input by the snapshots of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from bert_tf.plots.attention.heatmaps import heatmap
from bert_tf.plots.attention.pooled_maps import Selection
from bert_tf.plots.panels import trace_slider
from bert_tf.plots.training.curves import answer_trajectory

if TYPE_CHECKING:
    from bert_tf.explain.models.time_lapse import AttentionTimeLapse, TimeLapse


def token_ranks(time_lapse: TimeLapse, dark: bool = False) -> go.Figure:
    """The rank of each followed token at every step, and the probability of the pair.

    Args:
        time_lapse: `TimeLapse`.
        dark: bool. Whether the figure is drawn for a dark page.
    """
    name, scores = time_lapse.pair or ("is_next", ())
    claim = {"is_next": "B follows A", "in_order": "in order"}[name]
    steps = time_lapse.steps
    return answer_trajectory(time_lapse.trajectories, steps, len(steps) - 1, scores, dark, 420, claim)


def attention_maps(time_lapse: AttentionTimeLapse, dark: bool = False) -> go.Figure:
    """One head's attention map at every step; a slider chooses the step, at first the last one.

    Args:
        time_lapse: `AttentionTimeLapse`.
        dark: bool. Whether the figure is drawn for a dark page.
    """
    positions, last = tuple(range(len(time_lapse.tokens))), len(time_lapse.steps) - 1
    selection = Selection(positions, positions)
    maps = [heatmap(time_lapse, weights, selection, dark=dark) for weights in time_lapse.attention]
    traces = [map_figure.data[0].update(visible=index == last) for index, map_figure in enumerate(maps)]
    figure = go.Figure(traces, layout=maps[-1].layout)
    slider = trace_slider([f"{step:,}" for step in time_lapse.steps], "step", last)
    return figure.update_layout(sliders=[slider])
