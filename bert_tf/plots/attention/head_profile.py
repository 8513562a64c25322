"""What the heads of a model do: a measure of every head as a grid, and the heads on a plane.

Dimension legend: L layers, N heads.
"""

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.representations.vectors import points
from bert_tf.plots.theme import apply_theme, colourscale


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
