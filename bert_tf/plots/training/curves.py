"""Figures of a training: its curves, and the rank of an answer over its snapshots."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from bert_tf.plots.theme import LEGEND_ABOVE, apply_theme, escape, head_colours

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bert_tf.explain.models.time_lapse import TokenTrajectory
    from bert_tf.training.run_folder import Run


#: The panels of a run: title -> (pairs (name in the log, name in the legend), number format of the axis).
PANELS = {
    "Loss": (
        (
            ("loss", "total"),
            ("mlm_loss", "masked words"),
            ("nsp_loss", "next sentence"),
            ("sop_loss", "sentence order"),
            ("replaced_loss", "replaced words"),
            ("soft_loss", "teacher's words"),
            ("cosine_loss", "teacher's hidden states"),
            ("attention_loss", "teacher's attention"),
            ("value_loss", "teacher's values"),
            ("query_loss", "teacher's queries"),
            ("key_loss", "teacher's keys"),
        ),
        ".2~f",
    ),
    "Accuracy": (
        (
            ("mlm_accuracy", "masked words"),
            ("nsp_accuracy", "next sentence"),
            ("sop_accuracy", "sentence order"),
            ("replaced_accuracy", "replaced words"),
        ),
        ".0%",
    ),
    "Learning rate": ((("learning_rate", "learning rate"),), ".3~g"),
}
_GREY = "#8a92a0"
# Curves that never occur in the same run may share a colour.
_COLOURS = {
    "total": 4,
    "masked words": 0,
    "next sentence": 1,
    "sentence order": 2,
    "learning rate": 0,
    "replaced words": 3,
    "teacher's words": 3,
    "teacher's hidden states": 5,
    "teacher's attention": 3,
    "teacher's values": 5,
    "teacher's queries": 3,
    "teacher's keys": 2,
}


def curves(run: Run, panel: str, dark: bool = False, height: int = 250) -> go.Figure:
    """One panel of a run's log.

    Args:
        run: ``training.run_folder.Run``, or any object with ``curve(name)`` -> (steps, values).
        panel: str. A key of ``PANELS``.
        dark: bool. Whether the figure is drawn for a dark page.
        height: int. In pixels.
    """
    names, number_format = PANELS[panel]
    palette, figure = head_colours(dark), go.Figure()
    for name, label in names:
        steps, values = run.curve(name)
        if steps:
            figure.add_trace(
                go.Scatter(
                    x=steps,
                    y=values,
                    name=label,
                    mode="lines" if len(steps) > 2 else "lines+markers",
                    line={"color": palette[_COLOURS[label]], "width": 2},
                    hovertemplate=f"step %{{x:,}}<br>{label} %{{y:{number_format}}}<extra></extra>",
                )
            )
    figure.layout.xaxis = dict(title="step", tickformat="~s", rangemode="tozero")
    figure.layout.yaxis = dict(tickformat=number_format, rangemode="tozero", nticks=6)
    figure.layout.showlegend = len(figure.data) > 1
    figure.layout.legend = {**LEGEND_ABOVE, "y": 1.02}
    apply_theme(figure, dark, height).layout.margin.t = 10
    return figure


def answer_trajectory(
    token_trajectories: Sequence[TokenTrajectory],
    steps: Sequence[int],
    at: int,
    scores: Sequence[float] = (),
    dark: bool = False,
    height: int = 290,
    claim: str = "B follows A",
) -> go.Figure:
    """The rank of each mask's answer over the snapshots, rank 1 on top; the snapshots are evenly spaced.

    Args:
        token_trajectories: sequence of ``TokenTrajectory`` of one series.
        steps: sequence of S int. The training steps of the snapshots.
        at: int. The index of the snapshot on screen.
        scores: float [S]. The probability of ``claim`` about the pair; empty for none.
        dark: bool. Whether the figure is drawn for a dark page.
        height: int. In pixels.
        claim: str. "B follows A" or "in order".
    """
    palette, figure, places = head_colours(dark), go.Figure(), list(range(len(steps)))
    for number, token_trajectory in enumerate(token_trajectories):
        figure.add_trace(
            go.Scatter(
                x=places,
                y=token_trajectory.ranks.tolist(),
                name=escape(token_trajectory.token),
                mode="lines+markers",
                line={"color": palette[number % len(palette)], "width": 2},
                customdata=token_trajectory.probabilities.tolist(),
                hovertemplate="rank %{y:,}, %{customdata:.1%}<extra>" + escape(token_trajectory.token) + "</extra>",
            )
        )
    if len(scores):
        figure.add_trace(
            go.Scatter(
                x=places,
                y=scores,
                name=claim,
                mode="lines",
                yaxis="y2",
                line={"dash": "dot", "width": 2, "color": _GREY},
                hovertemplate="%{y:.1%}<extra>" + claim + "</extra>",
            )
        )
    figure.add_vline(x=at, line={"color": _GREY, "width": 1, "dash": "dash"})
    figure.update_xaxes(
        title="step", tickvals=places, ticktext=[f"{step:,}" for step in steps], autotickangles=[0, -45]
    )
    worst = max((int(token_trajectory.ranks.max()) for token_trajectory in token_trajectories), default=1)
    marks = [1, 5, 10, *(10**power for power in range(2, 7) if 10 ** (power - 1) < worst)]
    apply_theme(figure, dark, height)
    figure.update_layout(
        yaxis={
            "type": "log",
            "title": "rank",
            "range": [math.log10(max(marks[-1], 20)), -0.1],
            "tickvals": marks,
            "ticktext": [f"{mark:,}" for mark in marks],
            "visible": bool(token_trajectories),
        },
        # Without explicit ticks Plotly would use the positions of the rank axis.
        yaxis2={
            "overlaying": "y",
            "side": "right",
            "range": [0, 1.03],
            "tickformat": ".0%",
            "showgrid": False,
            "tickmode": "array",
            "tickvals": [0, 0.5, 1],
            "visible": bool(len(scores)),
        },
        showlegend=True,
        margin={"t": 10},
        hovermode="x unified",
        legend={**LEGEND_ABOVE, "y": 1.02},
    )
    return figure
