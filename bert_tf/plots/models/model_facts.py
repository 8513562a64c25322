"""The speed of several models, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.ranked_bars import ranked_bars

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.models.model_facts import ModelFactsTable


def pass_times(table: ModelFactsTable, dark: bool = False) -> go.Figure:
    """The milliseconds of a forward pass of each model as bars."""
    times = [1000 * model.seconds for model in table.models]
    return ranked_bars([model.name for model in table.models], times, "milliseconds a pass", dark)
