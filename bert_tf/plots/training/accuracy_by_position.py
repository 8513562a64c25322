"""The accuracy of masked words at each place of a sequence, as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from bert_tf.plots.theme import LEGEND_ABOVE, apply_theme, head_colours

if TYPE_CHECKING:
    from collections.abc import Sequence


def accuracy_by_position(reports: Sequence[dict[str, Any]], dark: bool = False, height: int = 360) -> go.Figure:
    """A line for each report: the share of masked tokens whose likeliest prediction is right, over their place.

    Args:
        reports: sequence of dicts from `pretraining.evaluate.evaluate_mlm` with `by_position`.
        dark: bool. Whether the figure is drawn for a dark page.
        height: int. In pixels.
    """
    palette, figure = head_colours(dark), go.Figure()
    for number, report in enumerate(reports):
        groups = report["by_position"]
        figure.add_trace(
            go.Scatter(
                x=[(group["first"] + group["last"]) / 2 for group in groups],
                y=[group["top1"] for group in groups],
                customdata=[[group["first"], group["last"], group["masked_tokens"]] for group in groups],
                name=f"sequences of {report['length']} tokens",
                mode="lines+markers",
                line={"color": palette[number % len(palette)], "width": 2},
                hovertemplate="places %{customdata[0]} to %{customdata[1]}<br>top 1 %{y:.1%} of "
                "%{customdata[2]:,} masked tokens<extra></extra>",
            )
        )
    figure.layout.xaxis = {"title": "place in the sequence", "rangemode": "tozero"}
    figure.layout.yaxis = {"title": "top 1", "tickformat": ".0%", "rangemode": "tozero"}
    figure.layout.showlegend = len(reports) > 1
    figure.layout.legend = {**LEGEND_ABOVE, "y": 1.02}
    return apply_theme(figure, dark, height)
