"""The family's sizes by parameters and work."""

import math

import plotly.graph_objects as go

from bert_tf.plots.theme import dress, escape, head_colours

_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star", "pentagon")


# Members of one size lie close together: each has its own side for the name of the size.
_SIDES = {"BERT": "top left", "RoBERTa": "middle right", "ELECTRA": "bottom left", "Left to right": "bottom right"}


def _side(title, size):
    return "bottom right" if size.endswith("generator") else _SIDES.get(title, "top center")


def parameters_and_work(rows, dark=False):
    """Each size as a point: parameters to the right, work of one pass upwards, both in powers of ten.

    Args:
        rows: `FamilyRow`s. dark: for a dark page.
    """
    figure, colours = go.Figure(), head_colours(dark)
    titles = list(dict.fromkeys(row.member.title for row in rows))
    for index, title in enumerate(titles):
        mine = [row for row in rows if row.member.title == title]
        figure.add_trace(
            go.Scatter(
                x=[row.parameters["total"] for row in mine],
                y=[row.flops for row in mine],
                text=[escape(row.size.replace("-generator", " gen.")) for row in mine],
                customdata=[escape(row.size) for row in mine],
                name=escape(title),
                mode="markers+text",
                textposition=[_side(title, row.size) for row in mine],
                textfont={"size": 11},
                marker={"size": 11, "symbol": _SYMBOLS[index % len(_SYMBOLS)], "color": colours[index % len(colours)]},
                hovertemplate="%{fullData.name} %{customdata}<br>%{x:,} parameters<br>%{y:.3s}FLOP<extra></extra>",
            )
        )
    # Room at the sides for the names.
    totals = [math.log10(row.parameters["total"]) for row in rows]
    wide = [min(totals) - 0.3, max(totals) + 0.4]
    figure.update_xaxes(type="log", title="parameters", tickformat="~s", dtick=1, range=wide)
    figure.update_yaxes(type="log", title="operations a pass", tickformat="~s", dtick=1)
    figure.update_layout(legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0})
    return dress(figure, dark, height=460)
