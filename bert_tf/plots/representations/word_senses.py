"""Figures of one word in many sentences: points, cosines, and its senses layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bert_tf.plots.representations.logit_lens import state_names
from bert_tf.plots.representations.vectors import component_titles, curves, points, similarity_map

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.representations.word_senses import SenseSeparation, WordSenses


def word_points(senses: WordSenses, dark: bool = False) -> go.Figure:
    """The occurrences of a ``WordSenses`` as points."""
    groups = senses.senses if any(senses.senses) else None
    ratios = senses.explained_variance_ratio
    return points(senses.coordinates, senses.sentences, groups, component_titles(ratios, 3), dark)


def sense_nearest(separation: SenseSeparation, dark: bool = False) -> go.Figure:
    """`SenseSeparation.nearest`, layer by layer."""
    series = {"same sense nearest": separation.nearest}
    names = state_names(len(separation.nearest))
    return curves(series, names, "after layer", "nearest of the same sense", dark, percent=True)


def sense_cosines(separation: SenseSeparation, dark: bool = False) -> go.Figure:
    """The mean cosines within and between senses, layer by layer."""
    series = {"same sense": separation.within, "other sense": separation.between}
    return curves(series, state_names(len(separation.nearest)), "after layer", "mean cosine", dark)


def sense_curves(senses: WordSenses, dark: bool = False) -> go.Figure:
    """All curves of the senses of a ``WordSenses`` in one figure. It must have a separation."""
    separation: Any = senses.separation
    series = {
        "nearest has the same sense": separation.nearest,
        "cosine, same sense": separation.within,
        "cosine, other sense": separation.between,
    }
    return curves(series, state_names(len(separation.nearest)), "after layer", "share, and mean cosine", dark, 420)


def sense_map(senses: WordSenses, dark: bool = False) -> go.Figure:
    """The cosines between a word's occurrences, with occurrences of the same sense next to each other."""
    return similarity_map(senses.similarity, dark)
