"""Two models beside each other."""

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.diverging import diverging_scale
from bert_tf.plots.theme import apply_theme, colourscale, escape, head_colours


def depth_profile(profiles, name, dark=False):
    """A number per layer of several models over relative depth, so that 12 layers lie over 24.

    Args:
        profiles: dict from model name to float [L].
        name: what the number is, for the axis.
        dark: for a dark page.
    """
    figure, colours = go.Figure(), head_colours(dark)
    for index, (model, values) in enumerate(profiles.items()):
        layers = len(values)
        figure.add_trace(
            go.Scatter(
                x=[(layer + 1) / layers for layer in range(layers)],
                y=[float(value) for value in values],
                name=model,
                mode="lines+markers",
                line={"color": colours[index], "dash": ("solid", "dot")[index % 2]},
                marker={"symbol": ("circle", "diamond")[index % 2], "size": 8},
                customdata=[layer + 1 for layer in range(layers)],
                hovertemplate="layer %{customdata}: %{y:.3f}<extra>" + model + "</extra>",
            )
        )
    figure.layout.xaxis = dict(title="relative depth", tickformat=".0%", range=[0, 1.04])
    figure.layout.yaxis = dict(title=name, rangemode="tozero")
    figure.layout.legend = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0}
    return apply_theme(figure, dark, height=300)


def similarity_map(values, name_a, name_b, dark=False, measure="CKA"):
    """How alike each layer of one model is to each of another, from 0 to 1.

    Args:
        values: float [L_a + 1, L_b + 1], NaN where it is not defined; state 0 are the embeddings.
        name_a, name_b: the models.
        dark: for a dark page. measure: what the values are.
    """
    rows, columns = (["in", *map(str, range(1, count))] for count in values.shape)
    figure = go.Figure(
        go.Heatmap(
            z=values,
            x=columns,
            y=rows,
            zmin=0,
            zmax=1,
            colorscale=colourscale(dark),
            hoverongaps=False,
            hovertemplate="layer %{y} and layer %{x}<br>" + measure + " %{z:.3f}<extra></extra>",
            colorbar={"thickness": 8, "outlinewidth": 0, "len": 0.9, "tickformat": ".1f", "xpad": 4},
        )
    )
    common = {"type": "category", "showgrid": False, "ticks": ""}
    figure.layout.yaxis = dict(title=f"layer of {escape(name_a)}", **common)
    figure.layout.xaxis = dict(title=f"layer of {escape(name_b)}", **common)
    return apply_theme(figure, dark, height=150 + 26 * max(len(rows), 8))


def layer_similarity_map(similarity, dark=False):
    """The values of a ``LayerSimilarity``."""
    names = similarity.model_a, similarity.model_b
    return similarity_map(similarity.similarity, *names, dark, similarity.measure.upper())


def answers_by_depth(curves, dark=False):
    """The probability of an answer after every state of two models, over relative depth.

    Args:
        curves: dict from name to float [L + 1], state 0 the embeddings.
        dark: for a dark page.
    """
    figure, colours = go.Figure(), head_colours(dark)
    for index, (name, values) in enumerate(curves.items()):
        last = len(values) - 1
        figure.add_trace(
            go.Scatter(
                x=[state / last for state in range(last + 1)],
                y=[float(value) for value in values],
                name=escape(name),
                mode="lines+markers",
                line={"color": colours[index], "dash": ("solid", "dot")[index % 2]},
                marker={"symbol": ("circle", "diamond")[index % 2], "size": 8},
                customdata=list(range(last + 1)),
                hovertemplate="after layer %{customdata}: %{y:.1%}<extra>" + escape(name) + "</extra>",
            )
        )
    figure.layout.xaxis = dict(title="relative depth", tickformat=".0%", range=[-0.03, 1.04])
    figure.layout.yaxis = dict(title="probability", tickformat=".0%", range=[0, 1.04])
    figure.layout.legend = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0}
    return apply_theme(figure, dark, height=420)


def difference_map(values, tokens, dark=False):
    """One attention map less another of as many tokens.

    Args:
        values: float [T, T], from -1 to 1.
        tokens: T names.
        dark: for a dark page.
    """
    most = max(float(np.abs(values).max(initial=0)), 1e-3)
    places = list(range(len(tokens)))
    names = [escape(token) for token in tokens]
    figure = go.Figure(
        go.Heatmap(
            z=np.asarray(values, np.float32),
            x=places,
            y=places,
            zmin=-most,
            zmax=most,
            colorscale=diverging_scale(dark),
            hovertemplate="%{y} looks at %{x}<br>%{z:+.3f}<extra></extra>",
            colorbar={"thickness": 8, "outlinewidth": 0, "len": 0.9, "tickformat": "+.2f", "xpad": 4},
        )
    )
    common = {"tickvals": places, "ticktext": names, "showgrid": False, "ticks": "", "tickfont": {"size": 11}}
    figure.layout.yaxis = dict(autorange="reversed", **common)
    figure.layout.xaxis = dict(tickangle=-90, **common)
    return apply_theme(figure, dark, height=int(np.clip(130 + 22 * len(tokens), 340, 760)))
