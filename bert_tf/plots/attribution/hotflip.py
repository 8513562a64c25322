"""What other words in a text's places do to an answer."""

import plotly.graph_objects as go

from bert_tf.plots.interventions.ablation import ranked_bars
from bert_tf.plots.theme import CATEGORIES, apply_theme

_LONGEST_LIST = 15


def flip_bars(hotflip, dark=False):
    """The change of the answer by each word that was tried, the strongest first: measured, and as the gradient
    estimated it.

    Args:
        hotflip: a ``HotFlip``. dark: for a dark page.
    """
    flips = hotflip.tried[:_LONGEST_LIST]
    names = [f"{one.word.text} → {one.new}" for one in flips]
    figure = ranked_bars(names, [one.change for one in flips], "change of the log-probability, nats", dark)
    (read,) = figure.data
    told = "%{y}: %{x:.4f}<extra>%{fullData.name}</extra>"
    read.update(name="read by the model", marker_color=CATEGORIES[4] if dark else CATEGORIES[0], hovertemplate=told)
    slope = go.Bar(
        x=[one.estimate for one in flips],
        y=read.y,
        orientation="h",
        name="by the slope",
        marker_color=CATEGORIES[1],
        hovertemplate=told,
    )
    figure.add_trace(slope)
    figure.layout.legend = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0, "traceorder": "normal"}
    figure.layout.showlegend, figure.layout.barmode = True, "group"
    return apply_theme(figure, dark, height=130 + 32 * len(read.y))
