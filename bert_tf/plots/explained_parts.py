"""What figures of ``explain`` are made of.

Dimension legend: T tokens.
"""

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.maps import block_starts
from bert_tf.plots.theme import colourscale, distinct

_MOST = 128  # tokens a side of a map; more are pooled by the greatest of each block


def value_map(values, columns, rows, dark, hover):
    """A heatmap trace of values with names; hover: what is said of a cell."""
    return go.Heatmap(
        z=values,
        x=columns,
        y=rows,
        colorscale=colourscale(dark),
        colorbar={"thickness": 8, "outlinewidth": 0},
        hovertemplate=f"{hover}<extra></extra>",
    )


def token_axes(figure):
    """Axes of a map of tokens, the first at the top left."""
    figure.update_yaxes(autorange="reversed", type="category", ticks="", showgrid=False)
    figure.update_xaxes(tickangle=-90, type="category", ticks="", showgrid=False)


def pooled(values, tokens):
    """A map [T, T] of at most ``_MOST`` a side, and the names of its rows."""
    if len(tokens) <= _MOST:
        return values, distinct(tokens)
    starts = block_starts(len(tokens), _MOST)
    blocks = np.maximum.reduceat(np.maximum.reduceat(values, starts, axis=0), starts, axis=1)
    return blocks, distinct(tokens[start] for start in starts)
