"""Nearest words and nearest contexts as figures. Dimension legend: P positions, S vectors, K neighbours."""

from bert_tf.plots.interventions.ablation import ranked_bars
from bert_tf.plots.representations.logit_lens import state_names
from bert_tf.plots.representations.vectors import nearest_map
from bert_tf.plots.theme import escape

_SIDE = 60  # characters of a sentence shown on either side of the word


def vector_names(found):
    """Names of the S vectors of a ``NearestWords``: "static", "in" for the embeddings, then the layers from 1."""
    return ["static", *state_names(len(found.vectors) - 1)][: len(found.vectors)]


def word_map(found, dark=False):
    """The nearest word but the token itself of each vector, on the colour of its cosine.

    Args:
        found: a ``NearestWords``. dark: for a dark page.
    """
    names = vector_names(found)
    best = [[found.nearest_other(row, column) for column in range(len(names))] for row in range(len(found.positions))]
    return nearest_map(
        [[one.similarity for one in line] for line in best],
        [[one.token for one in line] for line in best],
        [found.tokens[position] for position in found.positions],
        names,
        dark,
    )


def context_map(found, dark=False):
    """The words nearest to each position, on the colour of their cosines.

    Args:
        found: a ``NearestContexts``. dark: for a dark page.
    """
    figure = nearest_map(
        [[one.similarity for one in near] for near in found.nearest],
        [[one.word.text for one in near] for near in found.nearest],
        [found.tokens[position] for position in found.positions],
        [str(rank + 1) for rank in range(len(found.nearest[0]))],
        dark,
    )
    tips = [[escape(_tip(one)) for one in near] for near in found.nearest]
    figure.data[0].update(customdata=tips, hovertemplate="%{customdata}, cosine %{z:.3f}<extra></extra>")
    where = f"after layer {found.layer}"
    if found.heads is not None:
        where = f"by head{'s' * (len(found.heads) > 1)} {', '.join(map(str, found.heads))} of layer {found.layer}"
    return figure.update_xaxes(title=f"nearest contexts, {where}")


def _tip(one):
    before, word, after = one.around(_SIDE)
    text = f"row {one.row.number}: {before}[{word}]{after}"
    there = one.most_attended
    return text if there is None else f"{text}, looks at {there.token} {there.share:.2f}"


def context_bars(found, row=0, dark=False):
    """The contexts nearest to one position as bars of their cosines.

    Args:
        found: a ``NearestContexts``. row: index of the position among the result's. dark: for a dark page.
    """
    near = found.nearest[row]
    names = [f"{one.row.number}: {one.word.text}" for one in near]
    return ranked_bars(names, [one.similarity for one in near], "cosine", dark)
