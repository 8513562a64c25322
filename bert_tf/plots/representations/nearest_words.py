"""Figures of nearest words and nearest contexts. Dimension legend: P positions, S vectors, K neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.ranked_bars import ranked_bars
from bert_tf.plots.representations.logit_lens import state_names
from bert_tf.plots.representations.vectors import nearest_map
from bert_tf.plots.theme import escape

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.representations.contexts import NearestContexts
    from bert_tf.explain.representations.nearest_words import NearestWords

_SIDE = 60  # characters of the sentence on either side of the word


def vector_names(result: NearestWords) -> list[str]:
    """Names of the S vectors of a ``NearestWords``: "static", "emb." for the embeddings, then the layers from 1."""
    return ["static", *state_names(len(result.vectors) - 1)][: len(result.vectors)]


def word_map(result: NearestWords, dark: bool = False) -> go.Figure:
    """The nearest word other than the token itself for each vector, coloured by its cosine.

    Args:
        result: NearestWords. The nearest words.
        dark: bool. Whether the page is dark.
    """
    names = vector_names(result)
    best = [[result.nearest_other(row, column) for column in range(len(names))] for row in range(len(result.positions))]
    return nearest_map(
        [[neighbour.similarity for neighbour in line] for line in best],
        [[neighbour.token for neighbour in line] for line in best],
        [result.tokens[position] for position in result.positions],
        names,
        dark,
    )


def context_map(result: NearestContexts, dark: bool = False) -> go.Figure:
    """The words of the contexts nearest to each position, coloured by their cosines.

    Args:
        result: NearestContexts. The nearest contexts.
        dark: bool. Whether the page is dark.
    """
    figure = nearest_map(
        [[context.similarity for context in contexts] for contexts in result.nearest],
        [[context.word.text for context in contexts] for contexts in result.nearest],
        [result.tokens[position] for position in result.positions],
        [str(rank + 1) for rank in range(len(result.nearest[0]))],
        dark,
    )
    tips = [[escape(_tip(context)) for context in contexts] for contexts in result.nearest]
    figure.data[0].update(customdata=tips, hovertemplate="%{customdata}, cosine %{z:.3f}<extra></extra>")
    where = f"after layer {result.layer}"
    if result.heads is not None:
        where = f"by head{'s' * (len(result.heads) > 1)} {', '.join(map(str, result.heads))} of layer {result.layer}"
    return figure.update_xaxes(title=f"nearest contexts, {where}")


def _tip(context):
    """The hover text of a ``Context``."""
    before, word, after = context.around(_SIDE)
    text = f"row {context.row.number}: {before}[{word}]{after}"
    attended = context.most_attended
    if attended is None or round(attended.share, 2) == 0:
        return text
    return f"{text}, attends most to {attended.token} {attended.share:.2f}"


def context_bars(result: NearestContexts, row: int = 0, dark: bool = False) -> go.Figure:
    """The contexts nearest to one position, with their cosines as bars.

    Args:
        result: NearestContexts. The nearest contexts.
        row: int. The index of the position in ``result.positions``.
        dark: bool. Whether the page is dark.
    """
    contexts = result.nearest[row]
    names = [f"{context.row.number}: {context.word.text}" for context in contexts]
    return ranked_bars(names, [context.similarity for context in contexts], "cosine", dark)
