"""Figures of the pseudo-likelihood of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.ranked_bars import ranked_bars

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.datasets.pseudo_likelihood import MinimalPair, MinimalPairs, PseudoLikelihood


_UNIT = "log-probability, nats"
_MAX_PAIRS = 40  # drawn pairs


def token_bars(result: PseudoLikelihood, dark: bool = False) -> go.Figure:
    """The log-probability of every token of a ``PseudoLikelihood``."""
    table = result.to_frame()
    return ranked_bars(list(table["token"]), list(table["log_probability"]), _UNIT, dark)


def pair_token_bars(result: MinimalPair, dark: bool = False) -> go.Figure:
    """The log-probability of every token of a ``MinimalPair``, of the first text, then of the second."""
    table = result.to_frame()
    numbers = table["text"].map({"good": 1, "bad": 2})
    names = [f"{token} ({number})" for token, number in zip(table["token"], numbers)]
    return ranked_bars(names, list(table["log_probability"]), _UNIT, dark)


def margin_bars(result: MinimalPairs, dark: bool = False) -> go.Figure:
    """The margin of each pair of ``MinimalPairs``: by how much the first text is likelier."""
    table = result.to_frame().head(_MAX_PAIRS)
    names = [f"{name}: {text:.40}" for name, text in zip(table["row"], table["good"])]
    return ranked_bars(names, list(table["margin"]), "margin of the first text, nats", dark)
