"""Figures of the kinds of ``explain`` about two models, or two texts, side by side; see ``explained``."""

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.explained_parts import value_map
from bert_tf.plots.representations.logit_lens import state_names
from bert_tf.plots.theme import apply_theme, escape


def _similarity(record, dark):
    values = np.array(record[record["measure"]], float)
    rows, columns = (state_names(size) for size in values.shape)
    figure = go.Figure(value_map(values, columns, rows, dark, "states %{y} and %{x}: %{z:.2f}"))
    figure.update_traces(zmin=0, zmax=1)
    figure.update_xaxes(title=escape(record["other"]), type="category", ticks="", showgrid=False)
    figure.update_yaxes(title=escape(record["model"]), type="category", ticks="", showgrid=False)
    return apply_theme(figure, dark, 200 + 26 * len(rows))


KINDS = {
    "similarity": _similarity,
}
