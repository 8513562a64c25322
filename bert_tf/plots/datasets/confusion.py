"""The confusion matrix of a classifier, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.training.finetuning import confusion_matrix

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.datasets.confusion import ConfusionMatrix


def confusion(matrix: ConfusionMatrix, dark: bool = False) -> go.Figure:
    """How often each true class was predicted as each class."""
    return confusion_matrix(matrix.labels, matrix.counts.tolist(), dark)
