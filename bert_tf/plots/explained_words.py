"""Figures of the kinds of ``explain`` about words as vectors; see ``explained``."""

import plotly.graph_objects as go

from bert_tf.plots.theme import CATEGORIES, distinct, dress


def _vectors(record, dark):
    names = distinct(one["token"] for one in record["tokens"])
    figure = go.Figure()
    for place, (part, colour) in enumerate(zip(("token", "segment", "position"), CATEGORIES)):
        shares = [one["shares"][place] for one in record["tokens"]]
        figure.add_trace(
            go.Bar(x=shares, y=names, orientation="h", name=part, marker_color=colour,
                   hovertemplate="%{y}, " + part + ": %{x:.2f}<extra></extra>")
        )  # fmt: skip
    figure.update_layout(barmode="relative", legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"})
    figure.update_yaxes(autorange="reversed", type="category", ticks="")
    figure.update_xaxes(title="share of the sum")
    return dress(figure, dark, 180 + 22 * len(names))


KINDS = {
    "vectors": _vectors,
}
