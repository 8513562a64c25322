"""Figure of replaced token detection: the discriminator's score of every token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.interventions.ablation import replaced_bars

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.interventions.replaced_token_detection import ReplacedTokenResult


def scores(result: ReplacedTokenResult, dark: bool = False) -> go.Figure:
    """The score of every token of a ``ReplacedTokenResult``; the bars of replaced tokens are orange."""
    table = result.to_frame()
    return replaced_bars(list(table["token"]), list(table["score"]), list(table["replaced"]), dark)
