"""The family's sizes by parameters and work."""

import plotly.graph_objects as go

from bert_tf.plots.theme import CATEGORIES, dress, escape

_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star", "pentagon")


def parameters_and_work(rows, dark=False):
    """Each size as a point: parameters to the right, work of one pass upwards, both in powers of ten.

    Args:
        rows: `FamilyRow`s. dark: for a dark page.
    """
    figure = go.Figure()
    titles = list(dict.fromkeys(row.member.title for row in rows))
    for index, title in enumerate(titles):
        mine = [row for row in rows if row.member.title == title]
        figure.add_trace(
            go.Scatter(
                x=[row.parameters["total"] for row in mine],
                y=[row.flops for row in mine],
                text=[escape(row.size) for row in mine],
                name=escape(title),
                mode="markers+text",
                textposition="top center",
                textfont={"size": 11},
                marker={
                    "size": 11,
                    "symbol": _SYMBOLS[index % len(_SYMBOLS)],
                    "color": CATEGORIES[index % len(CATEGORIES)],
                },
                hovertemplate="%{fullData.name} %{text}<br>%{x:,} parameters<br>%{y:.3s}FLOP<extra></extra>",
            )
        )
    figure.update_xaxes(type="log", title="parameters", tickformat="~s", dtick=1)
    figure.update_yaxes(type="log", title="operations a pass", tickformat="~s", dtick=1)
    figure.update_layout(legend={"orientation": "h", "y": 1.1, "x": 0})
    return dress(figure, dark, height=460)
