"""What a model says of the rows of a file, drawn."""

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.datasets.class_curves import class_curve_figure
from bert_tf.plots.datasets.row_map import map_of_rows
from bert_tf.plots.theme import CATEGORIES, apply_theme
from bert_tf.plots.training.finetuning import confusion_matrix

_NO_SHARES = ("pseudo-perplexity", "predicted value")


def answers(dataset, dark=False):
    """How often each answer was how good: a histogram of everything that was asked; which classes were confused.

    Args:
        dataset: a `DatasetPredictions`. dark: for a dark page.
    """
    rows = dataset.rows
    asked = {
        "probability of the hidden word": [mask.original_probability for row in rows for mask in row.masks],
        "P(IsNext)": [row.is_next for row in rows],
        "P(in order)": [row.in_order for row in rows],
        "P(replaced) of a token": [score for row in rows for _, score in row.replaced or ()],
        "probability of the predicted class": [row.predicted_probability for row in rows],
        "predicted value": [row.predicted for row in rows if isinstance(row.predicted, float)],
        "pseudo-perplexity": [row.perplexity for row in rows],
    }
    asked = {name: [one for one in values if one is not None] for name, values in asked.items()}
    asked = {name: values for name, values in asked.items() if values} or {"nothing was answered": []}
    confusion = dataset.classes and dataset.classes.confusion
    titles = [*asked, *(["predicted classes, a row a true one"] if confusion else [])]
    figure = make_subplots(rows=len(titles), cols=1, subplot_titles=titles)
    for row, (name, values) in enumerate(asked.items(), 1):
        # A share has a tenth of the whole for each bar.
        bins = {} if name in _NO_SHARES else {"xbins": {"start": 0, "end": 1.0001, "size": 0.1}}
        figure.add_trace(go.Histogram(x=values, marker_color=CATEGORIES[0], showlegend=False, **bins), row=row, col=1)
    figure.update_yaxes(title="how many")
    if confusion:
        drawn, last = confusion_matrix(*confusion, dark), {"row": len(titles), "col": 1}
        figure.add_trace(drawn.data[0], **last)
        figure.update_xaxes(drawn.layout.xaxis, **last)
        figure.update_yaxes(drawn.layout.yaxis, **last)
    return apply_theme(figure, dark, 100 + 240 * len(titles))


def points(dataset, dark=False):
    """The map of a `DatasetMap`."""
    return map_of_rows(dataset.map, dark)


def curve(dataset, dark=False):
    """The curve of a `DatasetCurve`."""
    return class_curve_figure(dataset.curve, dark)
