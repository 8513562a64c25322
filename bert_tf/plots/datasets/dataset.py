"""Figures of a model's predictions for the rows of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.datasets.class_curves import class_curve_figure
from bert_tf.plots.datasets.row_map import map_of_rows
from bert_tf.plots.theme import CATEGORIES, apply_theme
from bert_tf.plots.training.finetuning import confusion_matrix

if TYPE_CHECKING:
    from bert_tf.explain.datasets.class_curves import ClassCurve
    from bert_tf.explain.datasets.dataset import DatasetCurve, DatasetMap, DatasetPredictions, RowMap


_NOT_PROBABILITIES = ("pseudo-perplexity", "predicted value")


def answers(dataset: DatasetPredictions, dark: bool = False) -> go.Figure:
    """A histogram of each kind of prediction, and the confusion matrix of the classes.

    Args:
        dataset: `DatasetPredictions`.
        dark: bool. Whether the figure is drawn for a dark page.
    """
    rows = dataset.rows
    columns: dict[str, list] = {
        "probability of the hidden word": [mask.original_probability for row in rows for mask in row.masks],
        "P(IsNext)": [row.is_next for row in rows],
        "P(in order)": [row.in_order for row in rows],
        "P(replaced) of a token": [score for row in rows for _, score in row.replaced or ()],
        "probability of the predicted class": [row.predicted_probability for row in rows],
        "predicted value": [row.predicted for row in rows if isinstance(row.predicted, float)],
        "pseudo-perplexity": [row.perplexity for row in rows],
    }
    columns = {name: [value for value in values if value is not None] for name, values in columns.items()}
    columns = {name: values for name, values in columns.items() if values} or {"no predictions": []}
    confusion = dataset.classes and dataset.classes.confusion
    titles = [*columns, *(["predicted classes, one row per true class"] if confusion else [])]
    figure = make_subplots(rows=len(titles), cols=1, subplot_titles=titles)
    for row, (name, values) in enumerate(columns.items(), 1):
        histogram = go.Histogram(x=values) if name in _NOT_PROBABILITIES else _ten_bins(values)
        figure.add_trace(histogram.update(marker_color=CATEGORIES[0], showlegend=False), row=row, col=1)
    figure.update_yaxes(title="count")
    if confusion:
        labels, counts = confusion
        matrix, cell = confusion_matrix(labels, counts, dark), {"row": len(titles), "col": 1}
        figure.add_trace(matrix.data[0], **cell)
        figure.update_xaxes(matrix.layout.xaxis, **cell)
        figure.update_yaxes(matrix.layout.yaxis, **cell)
    return apply_theme(figure, dark, 100 + 240 * len(titles))


def _ten_bins(probabilities: list[float]) -> go.Histogram:
    """The histogram of probabilities in ten bins. A bin does not hold its upper end, but the last one counts 1."""
    return go.Histogram(x=np.minimum(probabilities, 1 - 1e-9), xbins={"start": 0, "end": 1, "size": 0.1})


def points(dataset: DatasetMap, dark: bool = False) -> go.Figure:
    """The map of a `DatasetMap`."""
    return map_of_rows(cast("RowMap", dataset.map), dark)


def curve(dataset: DatasetCurve, dark: bool = False) -> go.Figure:
    """The curve of a `DatasetCurve`."""
    return class_curve_figure(cast("ClassCurve", dataset.curve), dark)
