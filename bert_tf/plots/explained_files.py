"""Figures of the kinds of ``explain`` about every row of a file; see ``explained``."""

from types import SimpleNamespace

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.datasets.class_curves import precision_recall_figure, roc_figure
from bert_tf.plots.datasets.row_map import row_scatter
from bert_tf.plots.interventions.ablation import ranked_bars
from bert_tf.plots.representations.tcav import concept_figure
from bert_tf.plots.representations.vectors import component_titles
from bert_tf.plots.theme import CATEGORIES, apply_theme, escape
from bert_tf.plots.training.finetuning import confusion_matrix

_MOST = 40  # rows drawn by name


def _dataset(record, dark):
    """How often each answer was how good: a histogram of everything that was asked; which classes were confused."""
    if "map" in record:
        return _map(record["map"], dark)
    if "curve" in record:
        return _curve(record["curve"], dark)
    rows = record["rows"]
    masks = [mask["original_probability"] for row in rows for mask in row["masks"]]
    asked = {
        "probability of the hidden word": masks,
        "P(IsNext)": [row["is_next"] for row in rows],
        "P(in order)": [row["in_order"] for row in rows],
        "P(replaced) of a token": [one["score"] for row in rows for one in row["replaced"] or ()],
        "probability of the class found": [(row["said"] or {}).get("probability") for row in rows],
        "value found": [(row["said"] or {}).get("value") for row in rows],
        "pseudo-perplexity": [row["perplexity"] for row in rows],
    }
    asked = {name: [one for one in values if one is not None] for name, values in asked.items()}
    asked = {name: values for name, values in asked.items() if values} or {"nothing was answered": []}
    confusion = (record["classes"] or {}).get("confusion")
    titles = [*asked, *(["classes found, a row a true one"] if confusion else [])]
    figure = make_subplots(rows=len(titles), cols=1, subplot_titles=titles)
    for row, (name, values) in enumerate(asked.items(), 1):
        # A share has a tenth of the whole for each bar.
        is_share = name not in ("pseudo-perplexity", "value found")
        bins = {"xbins": {"start": 0, "end": 1.0001, "size": 0.1}} if is_share else {}
        bars = go.Histogram(x=values, marker_color=CATEGORIES[0], showlegend=False, **bins)
        figure.add_trace(bars, row=row, col=1)
    figure.update_yaxes(title="how many")
    if confusion:
        drawn, last = confusion_matrix(*confusion, dark), {"row": len(titles), "col": 1}
        figure.add_trace(drawn.data[0], **last)
        figure.update_xaxes(drawn.layout.xaxis, **last)
        figure.update_yaxes(drawn.layout.yaxis, **last)
    return apply_theme(figure, dark, 100 + 240 * len(titles))


def _curve(found, dark):
    """One class against the rest: precision over recall, beside it the ROC curve."""
    one = SimpleNamespace(
        **{name: value for name, value in found.items() if name != "threshold"}, thresholds=found["threshold"]
    )
    titles = (
        f"{escape(found['label'])}: average precision {found['average_precision']:.3f}",
        f"AUC {found['auc']:.3f}",
    )
    figure = make_subplots(rows=1, cols=2, subplot_titles=titles)
    for column, drawn in enumerate((precision_recall_figure(one, dark=dark), roc_figure(one, dark=dark)), 1):
        for trace in drawn.data:
            figure.add_trace(trace, row=1, col=column)
        figure.update_xaxes(drawn.layout.xaxis, row=1, col=column)
        figure.update_yaxes(drawn.layout.yaxis, row=1, col=column)
    return apply_theme(figure, dark, 400)


def _map(found, dark):
    """The rows as points, those asked about and near it with rings."""
    numbers = found["rows"]
    chosen = None if found["near"] is None else numbers.index(found["near"])
    near = [numbers.index(one["row"]) for one in found["nearest"] or ()]
    tips = [f"{number}: {text}" for number, text in zip(numbers, found["texts"])]
    axes = component_titles(found["shares_of_variance"], 3)
    return row_scatter(found["coordinates"], tips, found["colour"], found["values"], axes, None, chosen, near, dark)


def _pairs(record, dark):
    shown = record["pairs"][:_MOST]
    names = [f"{one['row']}: {one['good']:.40}" for one in shown]
    return ranked_bars(names, [one["margin"] for one in shown], "how much likelier the first is, nats", dark)


def _concepts(record, dark):
    return concept_figure(record["scores"], record["chance"], record["differs"], "score", dark)


KINDS = {
    "concepts": _concepts,
    "pairs": _pairs,
    "dataset": _dataset,
}
