"""Plotly figures of results, and the small arrays that the explorer's components draw.

The modules import NumPy and Plotly, neither Streamlit nor TensorFlow. A function that draws a figure returns a
``plotly.graph_objects.Figure`` and has an argument ``dark``, true for a dark page.
"""

from bert_tf.plots.attention.heatmaps import (
    block_names,
    heatmap,
    heatmaps,
    overview,
)
from bert_tf.plots.attention.pooled_maps import (
    SELECTIONS,
    Lines,
    Selection,
    Tiles,
    head_cells,
    lines,
    pooled,
    select,
    tiles,
)
from bert_tf.plots.models.compare import depth_profile
from bert_tf.plots.predictions import predictions
from bert_tf.plots.theme import DARK_RAMP, LIGHT_RAMP, MAX_HEADS, head_colours, ramp

__all__ = [
    "DARK_RAMP",
    "LIGHT_RAMP",
    "MAX_HEADS",
    "SELECTIONS",
    "Lines",
    "Selection",
    "Tiles",
    "block_names",
    "head_cells",
    "depth_profile",
    "head_colours",
    "heatmap",
    "heatmaps",
    "lines",
    "overview",
    "pooled",
    "predictions",
    "ramp",
    "select",
    "tiles",
]
