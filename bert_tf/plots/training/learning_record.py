"""The log of a fine-tuning, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.training.finetuning import learning_curve

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.finetuning.learning_record import LearningRecord


def learning(record: LearningRecord, dark: bool = False) -> go.Figure:
    """The training loss over the updates, and beside it the score of every evaluation."""
    return learning_curve(record.records, record.rounds, record.metric, dark)
