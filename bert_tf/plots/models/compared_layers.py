"""The answers of two sides after each layer, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.models.compare import answers_by_depth, depth_profile
from bert_tf.plots.theme import escape

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.models.compared_layers import ComparedLayers, ComparedScores


def answers(compared: ComparedLayers, dark: bool = False) -> go.Figure:
    """The probability of each side's answer after every hidden state."""
    return answers_by_depth(compared.curves, dark)


def scores(compared: ComparedScores, dark: bool = False) -> go.Figure:
    """The score of each side after every layer."""
    profiles = dict(zip(map(escape, compared.names), (compared.scores_a, compared.scores_b)))
    return depth_profile(profiles, "score", dark)
