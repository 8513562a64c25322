"""Profiles of attention heads: a measure of every head as a map, and the heads as points of a plane.

Dimension legend: L layers, N heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.ranked_bars import ranked_bars
from bert_tf.plots.representations.vectors import points
from bert_tf.plots.theme import COLOUR_BAR, apply_theme, colourscale, escape

if TYPE_CHECKING:
    from bert_tf.explain.attention.head_profile import HeadProfile
    from bert_tf.explain.attention.head_summary import HeadSummary
    from bert_tf.explain.attention.syntax import SyntaxAgreement

# Share of a `HeadSummary` -> the token that this attention goes to.
_KINDS = {
    "cls_share": "the first token",
    "sep_share": "a separator",
    "previous_share": "the token before",
    "next_share": "the token after",
    "self_share": "itself",
}


def measure_map(values: np.ndarray, name: str, dark: bool = False) -> go.Figure:
    """One number for every head as a map, layers downwards, heads across.

    Args:
        values: float [L, N].
        name: str. Name of the measure.
        dark: bool. Whether the page is dark.
    """
    layers, heads = values.shape
    figure = go.Figure(
        go.Heatmap(
            z=np.asarray(values, np.float32),
            x=[str(head + 1) for head in range(heads)],
            y=[str(layer + 1) for layer in range(layers)],
            colorscale=colourscale(dark),
            texttemplate="%{z:.2f}" if heads <= 16 else None,
            colorbar=COLOUR_BAR,
            hovertemplate="layer %{y}, head %{x}: %{z:.3f}<extra></extra>",
        )
    )
    figure.layout.yaxis = dict(autorange="reversed", title="layer", type="category", showgrid=False, ticks="")
    figure.layout.xaxis = dict(side="top", title=f"head: {name}", type="category", showgrid=False, ticks="")
    return apply_theme(figure, dark, height=110 + 30 * layers)


def profile_maps(profile: HeadProfile, dark: bool = False) -> go.Figure:
    """A map of every measure of a profile, and with syntax of every relation; a menu chooses the map."""
    measures = dict(profile.measures)
    if profile.syntax is not None:
        for name, agreement in profile.syntax.relations.items():
            measures[f"relation {escape(name)}"] = agreement.best_direction
    return _maps(measures, dark)


def summary_maps(summary: HeadSummary, dark: bool = False) -> go.Figure:
    """A map of every measure of a summary; a menu chooses the map."""
    return _maps(summary.to_arrays(), dark)


def _maps(measures: dict[str, np.ndarray], dark: bool) -> go.Figure:
    maps = [measure_map(values, name.replace("_", " "), dark) for name, values in measures.items()]
    figure = go.Figure([one_map.data[0] for one_map in maps], maps[0].layout)
    for index, trace in enumerate(figure.data):
        trace.visible = index == 0
    buttons = [
        {
            "label": name.replace("_", " "),
            "method": "update",
            "args": [
                {"visible": [other == index for other in range(len(measures))]},
                {"xaxis.title.text": f"head: {name.replace('_', ' ')}"},
            ],
        }
        for index, name in enumerate(measures)
    ]
    menu = {"buttons": buttons, "x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom"}
    return figure.update_layout(updatemenus=[menu])


def relation_bars(syntax: SyntaxAgreement, dark: bool = False) -> go.Figure:
    """The accuracy of the best head for each relation, as bars."""
    table = syntax.to_frame()
    return ranked_bars(list(table["relation"]), list(table["accuracy"]), "share right", dark)


def cluster_names(profile: HeadProfile) -> list[str]:
    """The name of each head's cluster, L x N strings: its number from 1, what its heads attend to, their number."""
    names = {number: _cluster_name(profile, number) for number in set(profile.clusters.ravel().tolist())}
    return [names[number] for number in profile.clusters.ravel().tolist()]


def _cluster_name(profile: HeadProfile, number: int) -> str:
    inside = profile.clusters == number
    shares = {kind: float(getattr(profile.summary, kind)[inside].mean()) for kind in _KINDS}
    best = max(shares, key=lambda kind: shares[kind])
    # A fifth of the attention on one token is far more than chance.
    where = f"to {_KINDS[best]}" if shares[best] > 0.2 else "spread out"
    return f"{number + 1}: {where} ({int(inside.sum())})"


def head_plane(profile: HeadProfile, dark: bool = False, chosen: int | None = None) -> go.Figure:
    """`head_scatter` of the heads of a profile."""
    layers, heads = profile.clusters.shape
    names = [f"layer {layer + 1}, head {head + 1}" for layer in range(layers) for head in range(heads)]
    coordinates, clusters = profile.coordinates.reshape(-1, 2), profile.clusters.ravel()
    return head_scatter(coordinates, names, clusters, cluster_names(profile), dark, chosen)


def head_scatter(
    places: np.ndarray,
    names: Sequence[str],
    clusters: np.ndarray,
    titles: Sequence[str],
    dark: bool = False,
    chosen: int | None = None,
) -> go.Figure:
    """Heads as points of a plane: heads with similar attention lie close together.

    Args:
        places: float [L x N, 2]. Coordinates of the heads.
        names: sequence of L x N strings. Names of the heads.
        clusters: int [L x N]. The number of each head's cluster, from 0.
        titles: sequence of L x N strings. The name of each head's cluster.
        dark: bool. Whether the page is dark.
        chosen: int or None. Index of a head that gets a ring.
    """
    # Sorted by cluster, so that the legend has the same order.
    order = np.argsort(clusters, kind="stable")
    figure = points(
        np.asarray(places, np.float32)[order],
        [names[index] for index in order],
        [titles[index] for index in order],
        dark=dark,
        height=430,
    )
    if chosen is not None:
        figure.add_trace(
            go.Scatter(
                x=[float(places[chosen][0])],
                y=[float(places[chosen][1])],
                mode="markers",
                marker={
                    "symbol": "circle-open",
                    "size": 20,
                    "line": {"width": 3},
                    "color": "#e4e7ec" if dark else "#1d2330",
                },
                hoverinfo="skip",
                showlegend=False,
            )
        )
    return figure
