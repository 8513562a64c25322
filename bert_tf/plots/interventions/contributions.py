"""Figures of contributions: how much each part of a model adds directly to a prediction. Numbers count from 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bert_tf.plots.interventions.ablation import effects_map, part_names
from bert_tf.plots.ranked_bars import LONGEST_LIST, ranked_bars

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.interventions.contributions import Contributions


def contributions_map(result: Contributions, dark: bool = False) -> go.Figure:
    """The contribution of every head and feed-forward block, with the first layer at the top."""
    shares = np.column_stack([result.heads, result.feed_forward])
    return effects_map(shares, _unit(result), dark, result.heads.shape[1], first=0)


def strongest_contributions(result: Contributions, dark: bool = False) -> go.Figure:
    """The parts with the strongest contributions."""
    table = result.to_frame().head(LONGEST_LIST)
    return ranked_bars(part_names(table, "component"), list(table["contribution"]), f"share, {_unit(result)}", dark)


def _unit(result):
    return "of the value" if result.target.is_regression else "nats of log-odds"
