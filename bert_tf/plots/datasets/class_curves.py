"""Figures of one class against the rest: the precision-recall curve and the ROC curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.theme import apply_theme, escape, head_colours

if TYPE_CHECKING:
    from bert_tf.explain.datasets.class_curves import ClassCurve, ThresholdMetrics


def precision_recall_figure(
    curve: ClassCurve, at: ThresholdMetrics | None = None, dark: bool = False, height: int = 320
) -> go.Figure:
    """Precision over recall, with a step for each threshold.

    Args:
        curve: ``ClassCurve``.
        at: ``ThresholdMetrics`` or None. The threshold to mark.
        dark: bool. Whether the figure is drawn for a dark page.
        height: int. In pixels.
    """
    # The last point, without predicted positives, has recall 0 and by convention precision 1.
    x, y = np.append(curve.recall, 0.0), np.append(curve.precision, 1.0)
    point = at and (at.recall, 1.0 if at.precision is None else at.precision)
    return _drawn(x, y, curve.thresholds, point, at, ("recall", "precision"), "hv", dark, height)


def roc_figure(
    curve: ClassCurve, at: ThresholdMetrics | None = None, dark: bool = False, height: int = 320
) -> go.Figure:
    """Recall over the false positive rate (the ROC curve), with the diagonal of random predictions.

    Args:
        curve, at, dark, height: as in ``precision_recall_figure``.
    """
    x, y = np.append(curve.false_positive_rate, 0.0), np.append(curve.recall, 0.0)
    point = at and (at.false_positive_rate, at.recall)
    figure = _drawn(x, y, curve.thresholds, point, at, ("false positives", "recall"), "linear", dark, height)
    line = {"color": "#8a92a0", "dash": "dot", "width": 1}
    figure.add_trace(go.Scatter(x=[0, 1], y=[0, 1], mode="lines", line=line, hoverinfo="skip", showlegend=False))
    return figure


def _drawn(x, y, thresholds, point, at, titles, shape, dark, height):
    colours, figure = head_colours(dark), go.Figure()
    hover = f"%{{customdata}}: {titles[0]} %{{x:.1%}}, {titles[1]} %{{y:.1%}}<extra></extra>"
    figure.add_trace(
        go.Scatter(
            x=x,
            y=y,
            customdata=[*map(_from, thresholds), "above all"],
            name="every threshold",
            mode="lines+markers",
            line={"color": colours[0], "shape": shape},
            marker={"size": 5},
            hovertemplate=hover,
            showlegend=False,
        )
    )
    if point:
        figure.add_trace(
            go.Scatter(
                x=[point[0]],
                y=[point[1]],
                customdata=[_from(at.threshold)],
                name="this threshold",
                mode="markers",
                marker={"size": 13, "color": colours[1], "symbol": "diamond", "line": {"width": 1, "color": "#8a92a0"}},
                hovertemplate=hover,
                showlegend=False,
            )
        )
    for axis, title in zip((figure.layout.xaxis, figure.layout.yaxis), titles):
        axis.title.text, axis.tickformat, axis.range = title, ".0%", (-0.03, 1.03)
    return apply_theme(figure, dark, height)


def _from(threshold):
    return f"{threshold:.1%} and more"


def class_curve_figure(curve: ClassCurve, dark: bool = False) -> go.Figure:
    """The precision-recall curve and, beside it, the ROC curve of a ``ClassCurve``."""
    titles = f"{escape(curve.label)}: average precision {curve.average_precision:.3f}", f"AUC {curve.auc:.3f}"
    figure = make_subplots(rows=1, cols=2, subplot_titles=titles)
    for column, drawn in enumerate((precision_recall_figure(curve, dark=dark), roc_figure(curve, dark=dark)), 1):
        for trace in drawn.data:
            figure.add_trace(trace, row=1, col=column)
        figure.update_xaxes(drawn.layout.xaxis, row=1, col=column)
        figure.update_yaxes(drawn.layout.yaxis, row=1, col=column)
    return apply_theme(figure, dark, 400)


def precision_over_recall(curve: ClassCurve, dark: bool = False) -> go.Figure:
    """`precision_recall_figure` without a marked threshold."""
    return precision_recall_figure(curve, dark=dark)


def roc(curve: ClassCurve, dark: bool = False) -> go.Figure:
    """`roc_figure` without a marked threshold."""
    return roc_figure(curve, dark=dark)
