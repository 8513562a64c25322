"""The words of the vocabulary nearest to a token's static vector and to its hidden state after every layer.

Dimension legend: P positions, S vectors of a token, K neighbours, L layers, H hidden.
"""

from dataclasses import dataclass

import numpy as np

from bert_tf.errors import MaskPositionError
from bert_tf.explain.representations.vectors import embedding_table, nearest_tokens, word_ids
from bert_tf.results import Result, frame


@dataclass(frozen=True, eq=False)
class NearestWords(Result, figures={"map": "bert_tf.plots.representations.nearest_words:word_map"}):
    """The nearest words of some tokens' vectors.

    Attributes:
        tokens: the input's tokens. positions: P token positions.
        vectors: names of a token's S vectors: "static", its row of the embedding table; "0" its hidden state before
            the first layer, then "1" to "L" after each. Where hidden states are of another width than the table's rows,
            as in ALBERT, "static" alone.
        nearest: K `Neighbour`s, the nearest first, for each position and vector: nested tuples [P][S][K].
        centred: whether the table's mean was taken from both sides first.
    """

    tokens: tuple
    positions: tuple
    vectors: tuple
    nearest: tuple
    centred: bool

    def to_frame(self):
        """A row for each position, vector and neighbour."""
        rows = [
            (position, self.tokens[position], vector, rank, one.token, one.similarity)
            for position, line in zip(self.positions, self.nearest)
            for vector, near in zip(self.vectors, line)
            for rank, one in enumerate(near, start=1)
        ]
        return frame(dict(zip(("position", "token", "vector", "rank", "neighbour", "similarity"), zip(*rows))))

    def to_arrays(self):
        """`ids` int64 and `similarities` float64, both [P, S, K]."""
        return {
            "ids": np.array([[[one.id for one in near] for near in line] for line in self.nearest]),
            "similarities": np.array([[[one.similarity for one in near] for near in line] for line in self.nearest]),
        }

    def nearest_other(self, row, column):
        """The nearest word but the token itself, a `Neighbour`; of the `row`-th position's `column`-th vector."""
        near, token = self.nearest[row][column], self.tokens[self.positions[row]]
        return next((one for one in near if one.token != token), near[0])


def nearest_words(bert, trace, positions=None, top_k=10, centred=True):
    """The nearest words of the vocabulary to tokens' static vectors and hidden states.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace` with hidden states.
        positions: of the tokens; None for all.
        top_k: K.
        centred: whether the table's mean is first taken from both sides (Mu and Viswanath 2018).
    Returns:
        `NearestWords`. Tokens that are no words, such as [SEP] and "[unused1]", are no neighbours.
    Raises:
        MaskPositionError: a position that is not there. InputError: a bad `top_k`.
    """
    positions = checked_positions(trace, positions)
    places = list(positions)
    static = embedding_table(bert, "token")[trace.token_ids[places]][None]
    states = trace.hidden_states[:, places]
    same_width = states.shape[-1] == static.shape[-1]
    vectors = (np.concatenate([static, states]) if same_width else static).swapaxes(0, 1)  # [P, S, H]
    count, names = vectors.shape[1], ("static", *map(str, range(len(states))))
    flat = nearest_tokens(bert, vectors.reshape(-1, vectors.shape[-1]), top_k, centred, word_ids(bert.tokenizer))
    return NearestWords(
        tokens=tuple(trace.tokens),
        positions=positions,
        vectors=names[:count],
        nearest=tuple(flat[start : start + count] for start in range(0, len(flat), count)),
        centred=centred,
    )


def checked_positions(trace, positions):
    """Token positions as a tuple, all of the trace's for None.

    Raises: MaskPositionError if one is not there.
    """
    positions = tuple(range(trace.length) if positions is None else positions)
    for position in positions:
        if not 0 <= position < trace.length:
            raise MaskPositionError(
                f"There is no token {position}: this input has {trace.length} tokens, 0 to {trace.length - 1}."
            )
    return positions
