"""One head's query and keys as strips of components.

Dimension legend: T tokens, D head size.
"""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.diverging import diverging_scale
from bert_tf.plots.theme import CATEGORIES, apply_theme, unique_labels


def head_vectors(trace, vectors, query, places=None, dark=False):
    """How the weights of one query come about: keys, products with the query, softmax.

    Args:
        trace: has ``tokens``. vectors: a ``bert_tf.explain.HeadVectors``.
        query: position of the token that looks. places: positions of the keys shown; None for all.
        dark: for a dark page.
    """
    places = list(range(len(trace.tokens))) if places is None else list(places)
    tokens = [trace.tokens[place] for place in places]
    parts = (vectors.keys, vectors.products(query), vectors.weights(query), vectors.scores(query))
    return neuron_strips(tokens, *(part[places] for part in parts), dark)


def neuron_strips(tokens, keys, products, weights, scores, dark=False):
    """The figure of `head_vectors` from its numbers.

    Args: tokens: T strings. keys, products: float [T, D]. weights, scores: float [T]. dark: for a dark page.
    """
    names = unique_labels(tokens)
    figure = make_subplots(
        rows=1,
        cols=3,
        shared_yaxes=True,
        column_widths=[0.4, 0.4, 0.2],
        horizontal_spacing=0.03,
        subplot_titles=("key", "query × key", "softmax"),
    )
    for column, values in ((1, keys), (2, products)):
        most = float(np.abs(values).max(initial=1e-9))
        figure.add_trace(
            go.Heatmap(
                z=values.astype(np.float32),
                y=names,
                x=list(range(1, keys.shape[1] + 1)),
                colorscale=diverging_scale(dark),
                zmin=-most,
                zmax=most,
                showscale=False,
                hovertemplate="%{y}, component %{x}: %{z:.3f}<extra></extra>",
            ),
            row=1,
            col=column,
        )
    figure.add_trace(
        go.Bar(
            x=weights,
            y=names,
            orientation="h",
            marker_color=CATEGORIES[0],
            showlegend=False,
            customdata=scores,
            hovertemplate="%{y}: %{x:.1%}, sum / √d %{customdata:.2f}<extra></extra>",
        ),
        row=1,
        col=3,
    )
    figure.update_yaxes(autorange="reversed", type="category", ticks="", showgrid=False)
    figure.update_xaxes(showgrid=False, ticks="")
    figure.update_xaxes(tickformat=".0%", row=1, col=3)
    return apply_theme(figure, dark, int(np.clip(110 + 20 * len(names), 260, 1400)))
