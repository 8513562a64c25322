"""The logit lens as figures.

Dimension legend: L layers, P positions.
"""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.representations.vectors import curves
from bert_tf.plots.theme import CATEGORIES, apply_theme, colourscale, escape

# More curves than colours cannot be told apart.
_MOST_CLASSES = 6


def state_names(count):
    """Names of ``count`` hidden states: "in" for the embeddings, then the layers from 1."""
    return ["in", *map(str, range(1, count))]


def lens_map(lens, dark=False):
    """The likeliest token after every layer at every position, on the colour of its probability.

    Args:
        lens: a ``Lens``.
        dark: for a dark page.
    """
    tokens = lens.position_tokens
    names = state_names(lens.probabilities.shape[1])
    figure = go.Figure(
        go.Heatmap(
            z=lens.probabilities[:, :, 0],
            text=[[escape(best[0]) for best in row] for row in lens.predicted_tokens],
            texttemplate="%{text}",
            x=names,
            y=list(range(len(tokens))),
            customdata=[[escape(token)] * len(names) for token in tokens],
            zmin=0,
            zmax=1,
            colorscale=colourscale(dark),
            colorbar={"thickness": 8, "outlinewidth": 0, "tickformat": ".0%"},
            hovertemplate="%{customdata}, after layer %{x}<br>%{text} %{z:.1%}<extra></extra>",
        )
    )
    labels = [escape(token) for token in tokens]
    figure.layout.yaxis = dict(
        autorange="reversed", tickvals=list(range(len(tokens))), ticktext=labels, showgrid=False, ticks=""
    )
    figure.layout.xaxis = dict(title="after layer", type="category", side="top", showgrid=False, ticks="")
    return apply_theme(figure, dark, height=110 + 26 * len(tokens))


def answer_curve(lens, row=0, dark=False):
    """Rank and probability of an answer after every layer.

    Args:
        lens: a ``Lens``.
        row: index of the position among the lens's.
        dark: for a dark page.
    """
    names = state_names(lens.probabilities.shape[1])
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08, row_heights=[0.55, 0.45])
    colour = CATEGORIES[4] if dark else CATEGORIES[0]
    ranks, shares = lens.answer_ranks[row], lens.answer_probabilities[row]
    for panel, values, symbol, told in (
        (1, ranks, "circle", "rank %{y:,}"),
        (2, shares, "diamond", "%{y:.2%}"),
    ):
        figure.add_trace(
            go.Scatter(
                x=names,
                y=values.tolist(),
                mode="lines+markers",
                showlegend=False,
                line={"color": colour if panel == 1 else CATEGORIES[1]},
                marker={"symbol": symbol, "size": 7},
                hovertemplate=f"after layer %{{x}}: {told}<extra></extra>",
            ),
            row=panel,
            col=1,
        )
    figure.update_yaxes(
        title="rank",
        type="log",
        autorange="reversed",
        tickvals=[1, 2, 5, 10, 20, 50, 100] if ranks.max() <= 100 else [1, 10, 100, 1000, 10000, 100000],
        row=1,
        col=1,
    )
    figure.update_yaxes(title="probability", range=[0, 1.05], tickformat=".0%", row=2, col=1)
    figure.update_xaxes(type="category")
    figure.update_xaxes(title="after layer", row=2, col=1)
    return apply_theme(figure, dark, height=340)


def class_curves(lens, dark=False):
    """The probability of each class, or the value of a regression, after every layer; of many classes the six that come
    furthest at any.

    Args:
        lens: a ``ClassLogitLens``. dark: for a dark page.
    """
    strongest = sorted(np.argsort(-lens.values.max(axis=0), kind="stable")[:_MOST_CLASSES])
    shown = {lens.labels[one]: lens.values[:, one] for one in strongest}
    unit = "score" if lens.regression else "probability"
    return curves(shown, state_names(len(lens.values)), "after layer", unit, dark, percent=not lens.regression)
