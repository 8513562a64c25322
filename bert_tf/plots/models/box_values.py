"""The values of one input in a box of the drawing of a model, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.models.architecture import activations
from bert_tf.plots.training.task_predictions import probabilities

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.models.box_values import HeadScores, TokenValues


def token_values(values: TokenValues, dark: bool = False) -> go.Figure:
    """The vectors as a heatmap, from the first token and unit on that the result names."""
    return activations(values.values, values.tokens, dark, values.first_token, values.first_unit, values.unit_names)


def head_probabilities(scores: HeadScores, dark: bool = False) -> go.Figure:
    """The probability of each class or choice as bars."""
    return probabilities(scores.names, scores.probabilities, dark)
