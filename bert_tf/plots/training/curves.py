"""How a training went: its curves, and one answer over its snapshots."""

import math

import plotly.graph_objects as go

from bert_tf.plots.theme import apply_theme, escape, head_colours

#: The panels of a run: title -> (name of the log, name in the legend), the number format of the axis.
PANELS = {
    "Loss": (
        (
            ("loss", "together"),
            ("mlm_loss", "masked words"),
            ("nsp_loss", "next sentence"),
            ("sop_loss", "sentence order"),
            ("replaced_loss", "replaced words"),
            ("soft_loss", "teacher's words"),
            ("cosine_loss", "teacher's states"),
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
_QUIET = "#8a92a0"
# Those that no run has together share a colour.
_COLOURS = {
    "together": 4,
    "masked words": 0,
    "next sentence": 1,
    "sentence order": 2,
    "learning rate": 0,
    "replaced words": 3,
    "teacher's words": 3,
    "teacher's states": 5,
    "teacher's attention": 3,
    "teacher's values": 5,
    "teacher's queries": 3,
    "teacher's keys": 2,
}


def curves(run, panel, dark=False, height=250):
    """One panel of a run's log.

    Args:
        run: has ``curve(name)`` -> (steps, values), as ``training.run_folder.Run``.
        panel: a key of ``PANELS``.
        dark: for a dark page. height: in pixels.
    """
    names, form = PANELS[panel]
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
                    hovertemplate=f"step %{{x:,}}<br>{label} %{{y:{form}}}<extra></extra>",
                )
            )
    figure.layout.xaxis = dict(title="step", tickformat="~s", rangemode="tozero")
    figure.layout.yaxis = dict(tickformat=form, rangemode="tozero", nticks=6)
    figure.layout.showlegend = len(figure.data) > 1
    figure.layout.legend = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    apply_theme(figure, dark, height).layout.margin.t = 10
    return figure


def answer_trajectory(token_trajectories, steps, at, scores=(), dark=False, height=290, claim="B follows A"):
    """The rank of each mask's answer over the snapshots, the first on top; the snapshots evenly spaced.

    Args:
        token_trajectories: ``explain.models.timelapse.Course``s of one series. steps: of its snapshots.
        at: number of the snapshot that is looked at. scores: float [S], the probability of ``claim`` about the
            pair; empty for none.
        dark: for a dark page. height: in pixels. claim: "B follows A" or "in order".
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
                line={"dash": "dot", "width": 2, "color": _QUIET},
                hovertemplate="%{y:.1%}<extra>" + claim + "</extra>",
            )
        )
    figure.add_vline(x=at, line={"color": _QUIET, "width": 1, "dash": "dash"})
    figure.update_xaxes(title="step", tickvals=places, ticktext=[f"{step:,}" for step in steps], tickangle=-45)
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
        # Ticks of its own: Plotly would put them where the ranks have theirs.
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
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )
    return figure
