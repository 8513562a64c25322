"""Plotly figures, and the small arrays the explorer's own components draw, from a Trace.

NumPy and Plotly only: neither Streamlit nor TensorFlow. Every function that makes a figure returns a
``plotly.graph_objects.Figure`` and takes ``dark`` for a dark page.
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
