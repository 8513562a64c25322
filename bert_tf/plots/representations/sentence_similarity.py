"""Figures of sentence similarity: the matrix of cosines, and the most similar texts of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from bert_tf.plots.representations.vectors import cosine_map, wrapped
from bert_tf.plots.theme import CATEGORIES, LEGEND_ABOVE, apply_theme, escape

if TYPE_CHECKING:
    from bert_tf.explain.representations.sentence_similarity import SentenceSimilarity

_MOST_LETTERS = 60
_MOST_NUMBERS = 7  # sentences whose cosines are written into the cells; with more they overlap on a phone
_MOST_UPRIGHT = 12  # sentences whose numbers below the map stand upright
_MOST_SENTENCES = 6


def similarity_of_sentences(result: SentenceSimilarity, dark: bool = False) -> go.Figure:
    """The cosines of the sentences of a ``SentenceSimilarity``, which are named by their numbers."""
    similarity = result.similarity
    figure = cosine_map(similarity.cosines, similarity.labels, similarity.texts, dark, height=420, spread=True)
    if len(similarity.labels) <= _MOST_NUMBERS:
        figure.data[0].texttemplate = "%{z:.2f}"
    if len(similarity.labels) <= _MOST_UPRIGHT:
        figure.layout.xaxis.tickangle = 0
    return figure


def nearest_texts(result: SentenceSimilarity, dark: bool = False) -> go.Figure:
    """The texts that a ``SentenceSimilarity`` found, as bars of their cosines, for at most six sentences."""
    figure = go.Figure()
    ticks: list[int] = []
    labels: list[str] = []
    for index, texts in enumerate(result.nearest[:_MOST_SENTENCES]):
        places = [len(ticks) + rank for rank in range(len(texts))]
        ticks += places
        labels += [_shortened(one.text) for one in texts]
        figure.add_trace(
            go.Bar(
                x=[one.similarity for one in texts],
                y=places,
                orientation="h",
                name=f"{index + 1}: {_shortened(result.sentences[index])}",
                marker={"color": CATEGORIES[index % len(CATEGORIES)], "line": {"width": 0}},
                customdata=[wrapped(one.text) for one in texts],
                hovertemplate="%{customdata}<br>cosine %{x:.3f}<extra></extra>",
            )
        )
    figure.layout.yaxis = dict(autorange="reversed", tickvals=ticks, ticktext=labels, showgrid=False)
    figure.layout.xaxis = dict(title="cosine")
    figure.update_layout(bargap=0.25, legend=LEGEND_ABOVE)
    return apply_theme(figure, dark, height=150 + 26 * len(ticks))


def _shortened(text):
    return escape(text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…")
