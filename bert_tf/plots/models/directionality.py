"""The figure of a hidden word's predictions by readers that see one side of it, or both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.predictions import predictions

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.models.directionality import Directionality


def reader_predictions(result: Directionality, dark: bool = False) -> go.Figure:
    """The predictions of each reader of a ``Directionality``."""
    names = [f"{reader.model}, {reader.attention_direction.replace('_', ' ')}" for reader in result.readers]
    return predictions([reader.answer for reader in result.readers], names=names, dark=dark)
