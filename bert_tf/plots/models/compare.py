"""Figures that compare two models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.attention.heatmaps import label_step
from bert_tf.plots.diverging import diverging_scale
from bert_tf.plots.representations.logit_lens import state_names
from bert_tf.plots.theme import COLOUR_BAR, LEGEND_ABOVE, apply_theme, colourscale, escape, head_colours, unique_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bert_tf.explain.representations.layer_similarity import LayerSimilarity


def depth_profile(profiles: dict[str, np.ndarray], name: str, dark: bool = False) -> go.Figure:
    """A value per layer of several models over relative depth, so that models with 12 and 24 layers can be compared.

    Args:
        profiles: dict str -> float [L]. Model name -> value per layer.
        name: str. The title of the vertical axis.
        dark: bool. Whether the figure is drawn for a dark page.
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
    figure.layout.legend = LEGEND_ABOVE
    return apply_theme(figure, dark, height=300)


def similarity_map(values: np.ndarray, name_a: str, name_b: str, dark: bool = False, measure: str = "CKA") -> go.Figure:
    """The similarity of each layer of one model to each layer of another.

    The colours span the values, to the next tenth: the layers of trained models are so similar that on a scale from 0
    to 1 the map would have a single colour.

    Args:
        values: float [L_a + 1, L_b + 1]. NaN where the similarity is undefined; index 0 is the embeddings.
        name_a, name_b: str. The names of the models.
        dark: bool. Whether the figure is drawn for a dark page.
        measure: str. The name of the similarity measure.
    """
    rows, columns = map(state_names, values.shape)
    finite = values[np.isfinite(values)]
    low, high = (np.floor(10 * finite.min()) / 10, np.ceil(10 * finite.max()) / 10) if finite.size else (0, 1)
    figure = go.Figure(
        go.Heatmap(
            z=values,
            x=columns,
            y=rows,
            zmin=float(low),
            zmax=float(high if high > low else low + 0.1),
            colorscale=colourscale(dark),
            hoverongaps=False,
            hovertemplate="layer %{y} and layer %{x}<br>" + measure + " %{z:.3f}<extra></extra>",
            colorbar={**COLOUR_BAR, "len": 0.9, "tickformat": ".1f", "xpad": 4, "title": {"text": measure}},
        )
    )
    common = {"type": "category", "showgrid": False, "ticks": ""}
    figure.layout.yaxis = dict(title=f"layer of {escape(name_a)}", **common)
    figure.layout.xaxis = dict(title=f"layer of {escape(name_b)}", **common)
    return apply_theme(figure, dark, height=150 + 26 * max(len(rows), 8))


def layer_similarity_map(similarity: LayerSimilarity, dark: bool = False) -> go.Figure:
    """The similarity map of a ``LayerSimilarity``."""
    names = similarity.model_a, similarity.model_b
    return similarity_map(similarity.similarity, *names, dark, similarity.measure.upper())


def answers_by_depth(curves: dict[str, np.ndarray], dark: bool = False) -> go.Figure:
    """The probability of an answer at every hidden state of two models, over relative depth.

    Args:
        curves: dict str -> float [L + 1]. Name -> probability; index 0 is the embeddings.
        dark: bool. Whether the figure is drawn for a dark page.
    """
    figure, colours = go.Figure(), head_colours(dark)
    for index, (name, values) in enumerate(curves.items()):
        last = len(values) - 1
        figure.add_trace(
            go.Scatter(
                x=[layer / last for layer in range(last + 1)],
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
    figure.layout.legend = LEGEND_ABOVE
    return apply_theme(figure, dark, height=420)


def difference_map(values: np.ndarray, tokens: Sequence[str], dark: bool = False) -> go.Figure:
    """The difference of two attention maps over the same number of tokens.

    Args:
        values: float [T, T], from -1 to 1.
        tokens: sequence of T str.
        dark: bool. Whether the figure is drawn for a dark page.
    """
    limit = max(float(np.abs(values).max(initial=0)), 1e-3)
    names, height = unique_labels(tokens), int(np.clip(130 + 22 * len(tokens), 340, 760))
    figure = go.Figure(
        go.Heatmap(
            z=np.asarray(values, np.float32),
            x=names,
            y=names,
            zmin=-limit,
            zmax=limit,
            colorscale=diverging_scale(dark),
            hovertemplate="from %{y} to %{x}<br>%{z:+.3f}<extra></extra>",
            colorbar={**COLOUR_BAR, "len": 0.9, "tickformat": "+.2f", "xpad": 4, "title": {"text": "difference"}},
        )
    )
    labelled = names[:: label_step(len(names), height)]
    common = {"tickvals": labelled, "type": "category", "showgrid": False, "ticks": "", "tickfont": {"size": 11}}
    figure.layout.yaxis = dict(autorange="reversed", **common)
    figure.layout.xaxis = dict(tickangle=-90, **common)
    return apply_theme(figure, dark, height)
