"""Nearest words: the vocabulary's words nearest to a token's static vector and to its hidden state after each layer.

Dimension legend: P positions, S vectors of a token, K neighbours, L layers, H hidden.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.explain.attribution.target import check_position
from bert_tf.explain.representations.embedding_tables import embedding_rows
from bert_tf.explain.representations.vectors import nearest_tokens, word_ids
from bert_tf.inference.trace import hidden_states_of
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.explain.representations.vectors import Neighbour
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace


@dataclass(frozen=True, eq=False)
class NearestWords(Result, figures={"map": "bert_tf.plots.representations.nearest_words:word_map"}):
    """The words nearest to the vectors of some tokens.

    Attributes:
        tokens: tuple of str. The tokens of the input.
        positions: tuple of int. P token positions.
        vectors: tuple of str. The names of a token's S vectors: "static" for its row of the embedding table; "0" for
            its hidden state before the first layer, then "1" to "L" for the state after each layer. "static" alone
            where hidden states and the table's rows differ in width, as in ALBERT.
        nearest: tuple. K `Neighbour`s, the nearest first, for each position and vector: nested tuples [P][S][K].
        centred: bool. Whether the table's mean was subtracted from both sides first.
    """

    tokens: tuple
    positions: tuple
    vectors: tuple
    nearest: tuple
    centred: bool

    def to_frame(self) -> pd.DataFrame:
        """A row for each position, vector and neighbour."""
        rows = [
            (position, self.tokens[position], vector, rank, neighbour.token, neighbour.similarity)
            for position, of_position in zip(self.positions, self.nearest)
            for vector, neighbours in zip(self.vectors, of_position)
            for rank, neighbour in enumerate(neighbours, start=1)
        ]
        return frame(dict(zip(("position", "token", "vector", "rank", "neighbour", "similarity"), zip(*rows))))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """`ids` int64 and `similarities` float64, both [P, S, K]."""
        return {name: self._array(field) for name, field in (("ids", "id"), ("similarities", "similarity"))}

    def _array(self, field):
        return np.array(
            [
                [[getattr(neighbour, field) for neighbour in neighbours] for neighbours in of_position]
                for of_position in self.nearest
            ]
        )

    def nearest_other(self, row: int, column: int) -> Neighbour:
        """The nearest word other than the token itself, for one vector of one position.

        Args:
            row: int. The index of the position in `positions`.
            column: int. The index of the vector in `vectors`.
        """
        neighbours, token = self.nearest[row][column], self.tokens[self.positions[row]]
        return next((neighbour for neighbour in neighbours if neighbour.token != token), neighbours[0])


def nearest_words(
    bert: Bert, trace: Trace, positions: Iterable[int] | None = None, top_k: int = 10, centred: bool = True
) -> NearestWords:
    """The words of the vocabulary nearest to tokens' static vectors and hidden states.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. A trace with hidden states.
        positions: sequence of int. Positions of the tokens; None for all.
        top_k: int. K, the number of neighbours.
        centred: bool. Whether to subtract the table's mean from both sides (Mu and Viswanath 2018).
    Returns:
        `NearestWords`. Tokens that are not words, such as [SEP] and "[unused1]", are never neighbours.
    Raises:
        MaskPositionError: a position does not exist.
        InputError: a bad `top_k`, or the trace has no hidden states.
    """
    positions = checked_positions(trace, positions)
    places = list(positions)
    static = embedding_rows(bert, "token", trace.token_ids[places])[None]
    states = hidden_states_of(trace)[:, places]
    same_width = states.shape[-1] == static.shape[-1]
    vectors = (np.concatenate([static, states]) if same_width else static).swapaxes(0, 1)  # [P, S, H]
    count, names = vectors.shape[1], ("static", *map(str, range(len(states))))
    neighbours = nearest_tokens(bert, vectors.reshape(-1, vectors.shape[-1]), top_k, centred, word_ids(bert.tokenizer))
    return NearestWords(
        tokens=tuple(trace.tokens),
        positions=positions,
        vectors=names[:count],
        nearest=tuple(neighbours[start : start + count] for start in range(0, len(neighbours), count)),
        centred=centred,
    )


def checked_positions(trace: Trace, positions: Iterable[int] | None) -> tuple[int, ...]:
    """Token positions as a tuple; all positions of the trace for None.

    Raises:
        MaskPositionError: a position does not exist.
    """
    positions = tuple(range(trace.length) if positions is None else positions)
    for position in positions:
        check_position(trace, position)
    return positions
