"""One attention map of each of two sides, and their difference, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.plots.attention.heatmaps import heatmap
from bert_tf.plots.attention.pooled_maps import Selection
from bert_tf.plots.models.compare import depth_profile, difference_map
from bert_tf.plots.theme import escape, titled

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.models.compared_attention import AlignedAttention, ComparedAttention, HeadAttentionChange


class _Tokens:
    """What `heatmap` reads of a trace."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tokens


def _map(tokens: Sequence[str], weights: np.ndarray, dark: bool, title: str) -> go.Figure:
    positions = tuple(range(len(tokens)))
    return heatmap(_Tokens(tokens), weights, Selection(positions, positions), dark=dark, title=title)


def _titles(compared: ComparedAttention) -> list[str]:
    """The side, layer and head of each map. Layers and heads count from 1, as in other figures of attention maps."""
    head = "mean of its heads" if compared.head is None else f"head {compared.head + 1}"
    return [f"{name.strip()}, layer {layer + 1}, {head}" for name, layer in zip(compared.names, compared.layers)]


def map_a(compared: ComparedAttention, dark: bool = False) -> go.Figure:
    """The attention map of the first side."""
    return _map(compared.tokens_a, compared.weights_a, dark, _titles(compared)[0])


def map_b(compared: ComparedAttention, dark: bool = False) -> go.Figure:
    """The attention map of the second side."""
    return _map(compared.tokens_b, compared.weights_b, dark, _titles(compared)[1])


def paired_tokens(tokens_a: Sequence[str], tokens_b: Sequence[str]) -> list[str]:
    """One name for each position of two inputs of the same length."""
    return [a if a == b else f"{a} | {b}" for a, b in zip(tokens_a, tokens_b)]


def difference(compared: AlignedAttention, dark: bool = False) -> go.Figure:
    """The attention map of the first side minus that of the second."""
    weights = compared.weights_a.astype(np.float32) - compared.weights_b
    figure = difference_map(weights, paired_tokens(compared.tokens_a, compared.tokens_b), dark)
    return titled(figure, ", minus ".join(_titles(compared)))


def entropies(compared: ComparedAttention, dark: bool = False) -> go.Figure:
    """The mean entropy of a row of the attention maps of every layer, of both sides."""
    profiles = dict(zip(map(escape, compared.names), (compared.entropy_a, compared.entropy_b)))
    return depth_profile(profiles, "mean entropy of a row, bits", dark)


def head_change(change: HeadAttentionChange, dark: bool = False) -> go.Figure:
    """The attention map of a head after fine-tuning minus the one before."""
    return difference_map(change.after.astype(np.float32) - change.before, change.tokens, dark)
