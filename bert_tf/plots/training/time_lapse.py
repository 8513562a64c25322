"""One input through the snapshots of a training, drawn."""

import plotly.graph_objects as go

from bert_tf.plots.attention.heatmaps import heatmap
from bert_tf.plots.attention.pooled_maps import Selection
from bert_tf.plots.panels import trace_slider
from bert_tf.plots.training.curves import answer_trajectory


def token_ranks(time_lapse, dark=False):
    """The rank of each token that is followed at every step, and the probability of the pair.

    Args:
        time_lapse: a `TimeLapse`. dark: for a dark page.
    """
    name, scores = time_lapse.pair or ("is_next", ())
    claim = {"is_next": "B follows A", "in_order": "in order"}[name]
    steps = time_lapse.steps
    return answer_trajectory(time_lapse.trajectories, steps, len(steps) - 1, scores, dark, 420, claim)


def attention_maps(time_lapse, dark=False):
    """One head's attention map at every step, the last one shown; a slider chooses the step.

    Args:
        time_lapse: an `AttentionTimeLapse`. dark: for a dark page.
    """
    every, last = tuple(range(len(time_lapse.tokens))), len(time_lapse.steps) - 1
    maps = [heatmap(time_lapse, weights, Selection(every, every), dark=dark) for weights in time_lapse.attention]
    cells = [one.data[0].update(visible=index == last) for index, one in enumerate(maps)]
    figure = go.Figure(cells, layout=maps[-1].layout)
    slider = trace_slider([f"{step:,}" for step in time_lapse.steps], "step", last)
    return figure.update_layout(sliders=[slider])
