"""The log of a training run, drawn: a figure for each panel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.training.curves import curves

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.models.training_log import TrainingLog


def loss(log: TrainingLog, dark: bool = False) -> go.Figure:
    """The losses over the steps."""
    return curves(log.run, "Loss", dark)


def accuracy(log: TrainingLog, dark: bool = False) -> go.Figure:
    """The accuracies over the steps."""
    return curves(log.run, "Accuracy", dark)


def learning_rate(log: TrainingLog, dark: bool = False) -> go.Figure:
    """The learning rate over the steps."""
    return curves(log.run, "Learning rate", dark)
