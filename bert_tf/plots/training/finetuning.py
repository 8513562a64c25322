"""Figures of a fine-tuning: its learning curve, the confusion matrix and the F1 of each label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.theme import CATEGORIES, apply_theme, colourscale, escape, head_colours, text_colours

if TYPE_CHECKING:
    from collections.abc import Sequence


def learning_curve(
    records: Sequence[dict[str, Any]], rounds: Sequence[dict[str, Any]], metric: str, dark: bool = False
) -> go.Figure:
    """The training loss over the updates and, beside it, the dev score of every round.

    Args:
        records: sequence of dicts with "step" and "loss" (`run/metrics.jsonl`).
        rounds: sequence of dicts with "step", "dev" and "best" (`run/rounds.json`).
        metric: str. The name of the score.
        dark: bool. Whether the figure is drawn for a dark page.
    """
    colours = head_colours(dark)
    measured = [record for record in rounds if metric in record["dev"]]
    figure = make_subplots(rows=1, cols=2 if measured else 1, horizontal_spacing=0.12)
    figure.add_trace(
        go.Scatter(
            x=[record["step"] for record in records],
            y=[record["loss"] for record in records],
            mode="lines",
            name="training loss",
            line={"color": colours[0]},
        ),
        1,
        1,
    )
    figure.update_yaxes(title="training loss", rangemode="tozero", row=1, col=1)
    if measured:
        figure.add_trace(
            go.Scatter(
                x=[record["step"] for record in measured],
                y=[record["dev"][metric] for record in measured],
                mode="lines+markers",
                name=f"dev {metric}",
                line={"color": colours[1]},
                marker={"size": 8},
            ),
            1,
            2,
        )
        # A correlation may be negative; the other scores are not.
        lowest = min(record["dev"][metric] for record in measured)
        figure.update_yaxes(title=f"dev {metric}", rangemode="tozero" if lowest >= 0 else "normal", row=1, col=2)
    figure.update_xaxes(title="updates", rangemode="tozero")
    figure.update_layout(showlegend=False)
    return apply_theme(figure, dark, height=300)


def confusion_matrix(labels: Sequence[str], counts: Sequence[Sequence[int]], dark: bool = False) -> go.Figure:
    """The confusion matrix: how often each true label was predicted as each label.

    Args:
        labels: sequence of K str.
        counts: int [K][K]. One row per true label, one column per predicted label.
        dark: bool. Whether the figure is drawn for a dark page.
    """
    names = [escape(label) for label in labels]
    totals = [max(1, sum(row)) for row in counts]
    shares = [[count / total for count in row] for row, total in zip(counts, totals)]
    figure = go.Figure(
        go.Heatmap(
            z=shares,
            x=names,
            y=names,
            zmin=0,
            zmax=1,
            colorscale=colourscale(dark),
            showscale=False,
            text=counts,
            hovertemplate="true %{y}, predicted %{x}: %{text} (%{z:.1%})<extra></extra>",
        )
    )
    if len(labels) <= 20:
        # The counts are annotations: Plotly's own text colours are hard to read on the middle of the dark scale.
        figure.layout.annotations = [
            {"x": x, "y": y, "text": str(count), "showarrow": False, "font": {"color": colour}}
            for y, row_counts, row_shares in zip(names, counts, shares)
            for x, count, colour in zip(names, row_counts, text_colours(colourscale(dark), row_shares))
        ]
    figure.update_xaxes(title="predicted", side="bottom", type="category")
    figure.update_yaxes(title="true", autorange="reversed", type="category")
    return apply_theme(figure, dark, height=max(260, 60 + 26 * len(labels)))


def label_bars(rows: Sequence[dict[str, Any]], dark: bool = False) -> go.Figure:
    """The F1 of each label as bars.

    Args:
        rows: sequence of dicts with "label", "f1" and the number of examples, "examples" or "support".
        dark: bool. Whether the figure is drawn for a dark page.
    """
    figure = go.Figure(
        go.Bar(
            x=[row["f1"] for row in rows],
            y=[escape(str(row["label"])) for row in rows],
            orientation="h",
            marker={"color": CATEGORIES[0]},
            customdata=[row.get("examples", row.get("support")) for row in rows],
            hovertemplate="%{y}: F1 %{x:.3f} over %{customdata} examples<extra></extra>",
        )
    )
    figure.update_xaxes(title="F1", range=[0, 1])
    figure.update_yaxes(autorange="reversed", type="category")
    return apply_theme(figure, dark, height=max(200, 60 + 24 * len(rows)))
