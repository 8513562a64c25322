"""Figures of the kinds of ``explain`` about two models side by side; see ``explained``."""

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.explained_parts import value_map
from bert_tf.plots.lens import state_names
from bert_tf.plots.theme import dress, escape


def _similarity(record, dark):
    values = np.array(record["cka"], float)
    rows, columns = (state_names(size) for size in values.shape)
    figure = go.Figure(value_map(values, columns, rows, dark, "states %{y} and %{x}: %{z:.2f}"))
    figure.update_traces(zmin=0, zmax=1)
    figure.update_xaxes(title=escape(record["other"]), type="category", ticks="", showgrid=False)
    figure.update_yaxes(title=escape(record["model"]), type="category", ticks="", showgrid=False)
    return dress(figure, dark, 200 + 26 * len(rows))


KINDS = {
    "similarity": _similarity,
}
