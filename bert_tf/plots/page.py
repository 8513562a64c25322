"""A figure as an HTML page of its own."""

from bert_tf.plots.theme import escape


def figure_page(figure, title):
    """The HTML of a page that shows a figure and needs no network.

    Args:
        figure: plotly.graph_objects.Figure; its layout is changed. title: plain text above it.

    Returns: str.
    """
    figure.update_layout(title={"text": escape(title), "font": {"size": 15}, "x": 0.01}, margin={"t": 80})
    figure.update_layout(paper_bgcolor="#ffffff")
    return figure.to_html(include_plotlyjs=True, full_html=True, config={"displaylogo": False})
