"""What the heads of a model do: a measure of every head as a grid, and the heads on a plane.

Dimension legend: L layers, N heads.
"""

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.interventions.ablation import ranked_bars
from bert_tf.plots.representations.vectors import points
from bert_tf.plots.theme import apply_theme, colourscale, escape

# Share of a `HeadSummary` -> where it goes.
_KINDS = {
    "cls_share": "the first token",
    "sep_share": "a separator",
    "previous_share": "the token before",
    "next_share": "the token after",
    "self_share": "itself",
}


def measure_map(values, name, dark=False):
    """A number of every head as a layer by head map.

    Args:
        values: float [L, N]. name: of the measure. dark: for a dark page.
    """
    layers, heads = values.shape
    figure = go.Figure(
        go.Heatmap(
            z=np.asarray(values, np.float32),
            x=[str(head + 1) for head in range(heads)],
            y=[str(layer + 1) for layer in range(layers)],
            colorscale=colourscale(dark),
            texttemplate="%{z:.2f}" if heads <= 16 else None,
            colorbar={"thickness": 8, "outlinewidth": 0},
            hovertemplate="layer %{y}, head %{x}: %{z:.3f}<extra></extra>",
        )
    )
    figure.layout.yaxis = dict(autorange="reversed", title="layer", type="category", showgrid=False, ticks="")
    figure.layout.xaxis = dict(side="top", title=f"head: {name}", type="category", showgrid=False, ticks="")
    return apply_theme(figure, dark, height=110 + 30 * layers)


def profile_maps(profile, dark=False):
    """Every measure of a ``HeadProfile``, and with syntax every relation, as maps chosen from a menu."""
    measures = dict(profile.measures)
    if profile.syntax is not None:
        for name, one in profile.syntax.relations.items():
            measures[f"relation {escape(name)}"] = one.best_direction
    return _maps(measures, dark)


def summary_maps(summary, dark=False):
    """Every measure of a ``HeadSummary`` as maps chosen from a menu."""
    return _maps(summary.to_arrays(), dark)


def _maps(measures, dark):
    drawn = [measure_map(values, name.replace("_", " "), dark) for name, values in measures.items()]
    figure = go.Figure([one.data[0] for one in drawn], drawn[0].layout)
    for place, trace in enumerate(figure.data):
        trace.visible = place == 0
    buttons = [
        {
            "label": name.replace("_", " "),
            "method": "update",
            "args": [
                {"visible": [other == place for other in range(len(measures))]},
                {"xaxis.title.text": f"head: {name.replace('_', ' ')}"},
            ],
        }
        for place, name in enumerate(measures)
    ]
    menu = {"buttons": buttons, "x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom"}
    return figure.update_layout(updatemenus=[menu])


def relation_bars(syntax, dark=False):
    """For each relation of a ``SyntaxAgreement`` how often its best head is right."""
    table = syntax.to_frame()
    return ranked_bars(list(table["relation"]), list(table["accuracy"]), "share right", dark)


def cluster_names(profile):
    """The name of each head's cluster, L x N strings: its number from 1, where its heads attend most, how many."""
    names = {number: _cluster_name(profile, number) for number in set(profile.clusters.ravel().tolist())}
    return [names[number] for number in profile.clusters.ravel().tolist()]


def _cluster_name(profile, number):
    inside = profile.clusters == number
    shares = {kind: float(getattr(profile.summary, kind)[inside].mean()) for kind in _KINDS}
    best = max(shares, key=shares.get)
    # A fifth of the attention on one place is far more than any place has by chance.
    where = f"to {_KINDS[best]}" if shares[best] > 0.2 else "spread out"
    return f"{number + 1}: {where} ({int(inside.sum())})"


def head_plane(profile, dark=False, chosen=None):
    """The heads of a ``HeadProfile`` as points: those that do alike lie together; chosen: as of `head_scatter`."""
    layers, heads = profile.clusters.shape
    names = [f"layer {layer + 1}, head {head + 1}" for layer in range(layers) for head in range(heads)]
    points_at, clusters = profile.coordinates.reshape(-1, 2), profile.clusters.ravel()
    return head_scatter(points_at, names, clusters, cluster_names(profile), dark, chosen)


def head_scatter(places, names, clusters, titles, dark=False, chosen=None):
    """Heads as points: those that do alike lie together.

    Args:
        places: float [L x N, 2]. names: what each head is called.
        clusters: the number of each head's cluster, int [L x N], from 0. titles: its cluster's name.
        dark: for a dark page. chosen: index of a head with a ring around it, or None.
    """
    # Cluster by cluster, so that the legend stands in their order.
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
