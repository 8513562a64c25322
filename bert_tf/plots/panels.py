"""What figures of ``explain`` are made of.

Dimension legend: T tokens.
"""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.attention.pooled_maps import block_starts
from bert_tf.plots.theme import CATEGORIES, colourscale, escape, unique_labels

_MOST = 128  # tokens a side of a map; more are pooled by the greatest of each block


def value_map(values, columns, rows, dark, hover):
    """A heatmap trace of values with names; hover: what is said of a cell."""
    return go.Heatmap(
        z=values,
        x=columns,
        y=rows,
        colorscale=colourscale(dark),
        colorbar={"thickness": 8, "outlinewidth": 0},
        hovertemplate=f"{hover}<extra></extra>",
    )


def answer_panels(panels, names, more=()):
    """Two answers to each of some questions as bars, one panel a question.

    Args:
        panels: (title, answers, answers), each answer a dict with "token" and "probability".
        names: of the two that answer. more: titles of empty panels below, for other traces.
    """
    titles = [*(escape(title) for title, _, _ in panels), *more]
    figure = make_subplots(rows=max(len(titles), 1), cols=1, subplot_titles=titles)
    for row, (_, *both) in enumerate(panels, 1):
        for name, answers, colour in zip(names, both, CATEGORIES):
            bars = go.Bar(
                x=[escape(one["token"]) for one in answers],
                y=[one["probability"] for one in answers],
                name=escape(name),
                marker_color=colour,
                showlegend=row == 1,
                hovertemplate="%{x}: %{y:.2%}<extra></extra>",
            )
            figure.add_trace(bars, row=row, col=1)
        figure.update_xaxes(row=row, col=1, type="category")
        # The value of a regression is no share.
        if all(0 <= one["probability"] <= 1 for answers in both for one in answers):
            figure.update_yaxes(row=row, col=1, range=[0, 1], tickformat=".0%")
    return figure


def trace_slider(steps, label, active):
    """A slider that shows one of the figure's traces at a time.

    Args:
        steps: names of the traces. label: what they are. active: number of the one shown at first.
    """
    made = [
        {"label": name, "method": "restyle", "args": [{"visible": [at == index for at in range(len(steps))]}]}
        for index, name in enumerate(steps)
    ]
    return {"active": active, "currentvalue": {"prefix": f"{label} "}, "steps": made}


def token_axes(figure):
    """Axes of a map of tokens, the first at the top left."""
    figure.update_yaxes(autorange="reversed", type="category", ticks="", showgrid=False)
    figure.update_xaxes(tickangle=-90, type="category", ticks="", showgrid=False)


def pooled(values, tokens):
    """A map [T, T] of at most ``_MOST`` a side, and the names of its rows."""
    if len(tokens) <= _MOST:
        return values, unique_labels(tokens)
    starts = block_starts(len(tokens), _MOST)
    blocks = np.maximum.reduceat(np.maximum.reduceat(values, starts, axis=0), starts, axis=1)
    return blocks, unique_labels(tokens[start] for start in starts)
