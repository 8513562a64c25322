"""A figure as a complete HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.theme import escape

if TYPE_CHECKING:
    import plotly.graph_objects as go


def figure_page(figure: go.Figure, title: str) -> str:
    """The HTML of a page that shows a figure and needs no network.

    Args:
        figure: plotly.graph_objects.Figure. Its layout is changed.
        title: str. Plain text above the figure.
    """
    figure.update_layout(title={"text": escape(title), "font": {"size": 15}, "x": 0.01}, margin={"t": 80})
    figure.update_layout(paper_bgcolor="#ffffff")
    return figure.to_html(include_plotlyjs=True, full_html=True, config={"displaylogo": False})
