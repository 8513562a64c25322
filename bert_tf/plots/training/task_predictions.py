"""What fine-tuned models say: probabilities of classes, curves of an answer's ends, heads that changed."""

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.theme import CATEGORIES, apply_theme, escape, head_colours

_MOST_NAMES = 24  # pieces written below the curves


def probabilities(names, values, dark=False):
    """Named probabilities as horizontal bars, in the order given."""
    figure = go.Figure(
        go.Bar(
            x=list(values),
            y=[escape(name) for name in names],
            orientation="h",
            marker_color=CATEGORIES[0],
            text=[f"{value:.1%}" for value in values],
            textposition="auto",
            textangle=0,
            hovertemplate="%{y}: %{x:.4f}<extra></extra>",
        )
    )
    figure.layout.yaxis = dict(autorange="reversed", type="category", ticks="")
    figure.layout.xaxis = dict(range=[0, 1.04], tickformat=".0%")
    return apply_theme(figure, dark, height=90 + 34 * len(values))


def answer_curves(pieces, start, end, dark=False):
    """The probability of each piece of a passage to begin and to end the answer.

    Args:
        pieces: texts. start, end: probabilities, one a piece. dark: for a dark page.
    """
    figure = go.Figure()
    places = list(range(len(pieces)))
    for name, values, colour in zip(("begins", "ends"), (start, end), head_colours(dark)):
        figure.add_trace(
            go.Scatter(
                x=places,
                y=list(values),
                name=name,
                mode="lines",
                line={"color": colour, "width": 2, "shape": "hvh"},
                customdata=[escape(piece) for piece in pieces],
                hovertemplate="%{customdata}: " + name + " with %{y:.3f}<extra></extra>",
            )
        )
    named = _standing_out(start, end)
    figure.layout.xaxis = dict(
        tickvals=named,
        ticktext=[escape(pieces[place]) for place in named],
        tickangle=-60,
        showgrid=False,
        title="pieces of the passage" if len(named) < len(pieces) else None,
    )
    figure.layout.yaxis = dict(rangemode="tozero", tickformat=".0%")
    figure.layout.legend = {"orientation": "h", "y": 1.15, "x": 0}
    return apply_theme(figure, dark, height=300)


def _standing_out(start, end):
    """Places to write the pieces of: those of the greatest probabilities, and not so close that their names overlap."""
    strength = np.maximum(start, end)
    apart = -(-len(strength) // _MOST_NAMES)
    named = []
    for place in np.argsort(-strength, kind="stable").tolist():
        if all(abs(place - other) >= apart for other in named):
            named.append(place)
    return sorted(named)
