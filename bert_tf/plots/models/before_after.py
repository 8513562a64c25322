"""The answers of a model before and after fine-tuning, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.ranked_bars import ranked_bars

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.models.before_after import BeforeAndAfter


def answer_changes(answers: BeforeAndAfter, dark: bool = False) -> go.Figure:
    """The change of every number as bars; a number without a value before counts from 0."""
    names = [f"{row.of}: {row.item}".rstrip(": ") for row in answers.rows]
    return ranked_bars(names, [row.after - (row.before or 0) for row in answers.rows], "after, less before", dark)
