"""Figures of the kinds of ``explain`` about models themselves; see ``explained``."""

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.theme import CATEGORIES, apply_theme, escape, unique_labels


def _one_way(record, dark):
    readers = record["readers"]
    titles = [f"{escape(one['model'])}, reads {one['reads']}" for one in readers]
    figure = make_subplots(rows=len(readers), cols=1, subplot_titles=titles)
    for row, one in enumerate(readers, 1):
        said = one["predictions"]
        bars = go.Bar(
            x=[escape(guess["token"]) for guess in said],
            y=[guess["probability"] for guess in said],
            # The word that stood there is green, as on the other pages.
            marker_color=[CATEGORIES[2 if guess["token"] == one["original"] else 0] for guess in said],
            showlegend=False,
            hovertemplate="%{x}: %{y:.2%}<extra></extra>",
        )
        figure.add_trace(bars, row=row, col=1)
    figure.update_xaxes(type="category")
    figure.update_yaxes(range=[0, 1], tickformat=".0%")
    return apply_theme(figure, dark, 100 + 220 * len(readers))


def _replaced(record, dark):
    """The score of every token; those that were really replaced are orange."""
    tokens = record["tokens"]
    bars = go.Bar(
        x=unique_labels(one["token"] for one in tokens),
        y=[one["score"] for one in tokens],
        marker_color=[CATEGORIES[1 if one["replaced"] else 0] for one in tokens],
        customdata=[escape(one["original"]) for one in tokens],
        hovertemplate="%{x}: replaced %{y:.1%}<br>stood there: %{customdata}<extra></extra>",
    )
    figure = go.Figure(bars)
    figure.update_xaxes(type="category")
    figure.update_yaxes(title="probability that it was replaced", range=[0, 1], tickformat=".0%")
    return apply_theme(figure, dark, 420)


KINDS = {
    "one-way": _one_way,
    "replaced": _replaced,
}
