"""The figures of saved attention maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.attention.heatmaps import heatmaps, overview
from bert_tf.plots.attention.pooled_maps import Selection

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.attention.attention_maps import AttentionMaps, HeadAttention


def chosen_heads(attention: HeadAttention, dark: bool = False) -> go.Figure:
    """The maps of a ``HeadAttention`` below each other; dark: for a dark page."""
    titles = [f"Layer {layer + 1}, head {head + 1}" for layer, head in zip(attention.layers, attention.heads)]
    return heatmaps(
        attention.trace, attention.head_maps(), _selection(attention), titles, dark, least=attention.threshold
    )


def all_heads(attention: AttentionMaps, dark: bool = False) -> go.Figure:
    """Every head of the trace of an ``AttentionMaps`` or ``HeadAttention`` as small maps; dark: for a dark page."""
    return overview(attention.trace, _selection(attention), dark, attention.threshold)


def _selection(attention):
    return Selection(attention.positions, attention.attended_positions)
