"""Figures of concept tests (TCAV): the effect of a concept on a prediction, by layer and by row.

Dimension legend: L layers, S runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.ranked_bars import ranked_bars
from bert_tf.plots.representations.logit_lens import state_names
from bert_tf.plots.theme import LEGEND_ABOVE, apply_theme, head_colours

if TYPE_CHECKING:
    from bert_tf.explain.representations.tcav import ConceptSlopes, ConceptTest

_MAX_ROWS = 40  # the most bars


def score_figure(test: ConceptTest, dark: bool = False) -> go.Figure:
    """The scores of a ``ConceptTest`` after each layer, beside the scores of random directions."""
    return concept_figure(test.scores, test.random_scores, test.is_significant, "score", dark)


def accuracy_figure(test: ConceptTest, dark: bool = False) -> go.Figure:
    """The accuracy after each layer with which a ``ConceptTest`` separates the concept from other sentences."""
    return concept_figure(test.accuracies, test.random_accuracies, test.is_decodable, "held-out accuracy", dark)


def slope_bars(result: ConceptSlopes, dark: bool = False) -> go.Figure:
    """The rows of a ``ConceptSlopes`` in which the concept supports the prediction most."""
    texts = [" · ".join(filter(None, texts)) for texts in result.texts]
    names = [f"{row}: {text:.60}" for row, text in zip(result.rows, texts)][:_MAX_ROWS]
    unit = "Slope, of the value" if result.target.is_regression else "Slope, nats"
    return ranked_bars(names, result.slopes[:_MAX_ROWS], unit, dark)


def concept_figure(
    scores: np.ndarray,
    random_scores: np.ndarray,
    is_significant: np.ndarray,
    title: str,
    dark: bool = False,
) -> go.Figure:
    """Mean shares after each layer for a concept's runs and for random directions; error bars: standard deviations.

    Args:
        scores, random_scores: np.ndarray. float [L+1, S].
        is_significant: np.ndarray. bool [L+1], the layers whose marker for the concept is filled.
        title: str. The name of the shares.
        dark: bool. Whether the page is dark.
    """
    figure, names = go.Figure(), state_names(len(scores))
    for index, (name, runs, symbol) in enumerate(
        (("the concept", scores, "circle"), ("random directions", random_scores, "diamond"))
    ):
        runs, colour = np.asarray(runs, float), head_colours(dark)[index]
        filled = np.asarray(is_significant) if index == 0 else np.zeros(len(runs), bool)
        figure.add_trace(
            go.Scatter(
                x=names,
                y=runs.mean(axis=1),
                error_y={"type": "data", "array": runs.std(axis=1, ddof=1), "thickness": 1, "width": 3},
                name=name,
                mode="lines+markers",
                line={"color": colour, "dash": "dot" if index else "solid"},
                marker={"symbol": [symbol if is_filled else f"{symbol}-open" for is_filled in filled], "size": 9},
                hovertemplate=f"after layer %{{x}}: %{{y:.1%}} ± %{{error_y.array:.1%}}<extra>{name}</extra>",
            )
        )
    figure.layout.xaxis = dict(title="after layer", type="category", showgrid=False)
    figure.layout.yaxis = dict(title=title, tickformat=".0%", range=[-0.04, 1.04])
    figure.layout.legend = LEGEND_ABOVE
    return apply_theme(figure, dark, 340)
