"""What a concept does to an answer, layer by layer and row by row."""

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.interventions.ablation import ranked_bars
from bert_tf.plots.representations.logit_lens import state_names
from bert_tf.plots.theme import apply_theme, head_colours

_MAX_ROWS = 40  # rows drawn by name


def score_figure(test, dark=False):
    """The scores of a ``ConceptTest`` after each layer, beside those of random directions."""
    return concept_figure(test.scores, test.random_scores, test.is_significant, "score", dark)


def accuracy_figure(test, dark=False):
    """How well the concept of a ``ConceptTest`` is told from other sentences after each layer."""
    return concept_figure(test.accuracies, test.random_accuracies, test.is_decodable, "held-out accuracy", dark)


def slope_bars(found, dark=False):
    """The rows of a ``ConceptSlopes`` that the concept supports most."""
    texts = [" · ".join(filter(None, texts)) for texts in found.texts]
    names = [f"{row}: {text:.60}" for row, text in zip(found.rows, texts)][:_MAX_ROWS]
    unit = "Slope, of the value" if found.target.is_regression else "Slope, nats"
    return ranked_bars(names, found.slopes[:_MAX_ROWS], unit, dark)


def concept_figure(scores, random_scores, is_significant, title, dark=False, height=340):
    """Shares after each layer, of a concept's runs and of random directions, their standard deviations as bars.

    Args:
        scores, random_scores: float [L+1, S]. is_significant: bool [L+1], where the concept's point is filled.
        title: what the shares are. dark: for a dark page. height: in pixels.
    """
    figure, names = go.Figure(), state_names(len(scores))
    for index, (name, runs, symbol) in enumerate(
        (("the concept", scores, "circle"), ("random directions", random_scores, "diamond"))
    ):
        runs, colour = np.asarray(runs, float), head_colours(dark)[index]
        full = np.asarray(is_significant) if index == 0 else np.zeros(len(runs), bool)
        figure.add_trace(
            go.Scatter(
                x=names,
                y=runs.mean(axis=1),
                error_y={"type": "data", "array": runs.std(axis=1, ddof=1), "thickness": 1, "width": 3},
                name=name,
                mode="lines+markers",
                line={"color": colour, "dash": "dot" if index else "solid"},
                marker={"symbol": [symbol if one else f"{symbol}-open" for one in full], "size": 9},
                hovertemplate=f"after layer %{{x}}: %{{y:.1%}} ± %{{error_y.array:.1%}}<extra>{name}</extra>",
            )
        )
    figure.layout.xaxis = dict(title="after layer", type="category", showgrid=False)
    figure.layout.yaxis = dict(title=title, tickformat=".0%", range=[-0.04, 1.04])
    figure.layout.legend = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0}
    return apply_theme(figure, dark, height)
