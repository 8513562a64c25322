"""What other words in a text's places do to an answer."""

import plotly.graph_objects as go

from bert_tf.plots.interventions.ablation import ranked_bars
from bert_tf.plots.theme import CATEGORIES, apply_theme

_LONGEST_LIST = 15


def flip_bars(names, changes, estimates, dark=False):
    """The change of an answer by each of several words, as it is and as the slope foretold it, in the order given.

    Args:
        names: which word for which; the first ones are drawn. changes, estimates: floats, nats.
        dark: for a dark page.
    """
    shown = slice(_LONGEST_LIST)
    figure = ranked_bars(list(names[shown]), list(changes[shown]), "change of the log-probability, nats", dark)
    (read,) = figure.data
    told = "%{y}: %{x:.4f}<extra>%{fullData.name}</extra>"
    read.update(name="read by the model", marker_color=CATEGORIES[4] if dark else CATEGORIES[0], hovertemplate=told)
    slope = go.Bar(
        x=[float(one) for one in estimates[shown]],
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
