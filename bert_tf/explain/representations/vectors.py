"""Vectors of words: cosines, the nearest words of the vocabulary, the vectors of words in a trace, main axes.

Dimension legend: T tokens, H hidden, E embedding (H in BERT), L layers, V vocabulary, W and X words or vectors,
K components.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import InputError
from bert_tf.explain.representations.embedding_tables import embedding_blocks
from bert_tf.inference.predictions import check_top_k
from bert_tf.inference.trace import hidden_states_of
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace
    from bert_tf.inference.words import WordSpan


# Vectors compared with the vocabulary at once: their cosines take 30 MB.
_ROWS = 256


@dataclass(frozen=True, eq=False)
class VectorSimilarity(Result, figures={"map": "bert_tf.plots.representations.vectors:similarity_map"}):
    """The cosines between some vectors.

    Attributes:
        labels: tuple of str. A label for each of the W vectors, such as its token.
        cosines: np.ndarray. float32 [W, W].
        texts: tuple of str. A longer text for each vector, such as its sentence; empty to use the labels.
    """

    labels: tuple
    cosines: np.ndarray
    texts: tuple = ()

    def to_frame(self) -> pd.DataFrame:
        """A row for each pair of vectors; `index_a` and `index_b` count from 0."""
        import pandas as pd

        def cells(strings, places):  # references to the strings: pandas would copy a string for each of its W² cells
            return pd.Series(np.array(strings, object)[places], dtype=object)

        count = len(self.labels)
        first, second = np.repeat(np.arange(count), count), np.tile(np.arange(count), count)
        columns = {"index_a": first, "label_a": cells(self.labels, first)}
        columns |= {"index_b": second, "label_b": cells(self.labels, second), "cosine": self.cosines.ravel()}
        if self.texts:
            columns |= {"text_a": cells(self.texts, first), "text_b": cells(self.texts, second)}
        return frame(columns)


@dataclass(frozen=True)
class Neighbour:
    """A token of the vocabulary near to a query vector.

    Attributes:
        token: str. The token.
        id: int. Its id.
        similarity: float. The cosine of its vector and the query vector, -1 to 1.
    """

    token: str
    id: int
    similarity: float


def cosine_similarities(vectors: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
    """Cosines of vectors [W, H] with `others` [X, H], or with each other: float32 [W, X]; 0 for zero vectors.

    Raises:
        InputError: other shapes, or vectors of different sizes.
    """
    shapes = [np.shape(part) for part in (vectors, vectors if others is None else others)]
    if any(len(shape) != 2 for shape in shapes) or shapes[0][1] != shapes[1][1]:
        raise InputError(
            f"Vectors to compare have the shapes [W, H] and [X, H], not {' and '.join(map(str, map(list, shapes)))}."
        )
    unit = _unit(vectors)
    cosines = unit @ (unit if others is None else _unit(others)).T
    return np.clip(cosines, -1, 1, out=cosines)  # rounding leads a little beyond them


def nearest_tokens(
    bert: Bert,
    vectors: np.ndarray,
    top_k: int = 10,
    centred: bool = False,
    among: Sequence[int] | np.ndarray | None = None,
) -> tuple:
    """The tokens of the vocabulary whose static vectors have the greatest cosine with query vectors.

    Args:
        bert: Bert. The model.
        vectors: np.ndarray. float [H], or several [W, H]: rows of the token table, hidden states, or mixtures of them.
        top_k: int. The number of tokens.
        centred: bool. Whether to subtract the table's mean from both sides. The vectors of a table share a direction
            that hides their differences (Mu and Viswanath 2018).
        among: sequence of int. Ids of the tokens to search, ascending; None for all. `word_ids` has the ids of words.
    Returns:
        tuple of `Neighbour`, the nearest first; W such tuples for several vectors. Hidden states are in another space
        than static vectors: the deeper the layer, the less the neighbours mean. `logit_lens` uses the MLM head instead,
        which is trained to read hidden states.
    Raises:
        InputError: a vector of another size or with numbers that are not finite, or a bad `top_k`.

    Example:
        >>> bert = bert_tf.load()
        >>> king = embedding_table(bert, "token")[bert.tokenizer.vocab.index("king")]
        >>> [neighbour.token for neighbour in nearest_tokens(bert, king, centred=True)]
    """
    check_top_k(top_k)
    vectors, width = np.asarray(vectors, np.float32), bert.config.embedding_width
    if vectors.ndim not in (1, 2) or vectors.shape[-1] != width:
        raise InputError(f"The vector has shape {list(vectors.shape)}; this model's have [{width}].")
    _check_finite(vectors)
    size = bert.config.vocab_size
    mean = sum(block.sum(axis=0) for block in embedding_blocks(bert)) / size if centred else 0
    ids = np.arange(size) if among is None else np.asarray(among)
    rows, nearest = np.atleast_2d(vectors), []
    for start in range(0, len(rows), _ROWS):
        unit = _unit(rows[start : start + _ROWS] - mean)
        blocks = embedding_blocks(bert, ids)
        similarities = np.concatenate([unit @ _unit(block - mean).T for block in blocks], axis=1)
        nearest += [_neighbours(bert.tokenizer, ids, row, min(top_k, len(ids))) for row in similarities]
    return nearest[0] if vectors.ndim == 1 else tuple(nearest)


def word_ids(tokenizer: Any) -> np.ndarray:
    """Ids of the tokens that can be part of a text, int64: no special tokens such as [MASK], no "[unused1]".

    Args:
        tokenizer: Tokenizer. The tokenizer of a model.
    """
    special = tokenizer.special_ids
    return np.array(
        [i for i, token in enumerate(tokenizer.vocab) if i not in special and not token.startswith("[unused")]
    )


def _neighbours(tokenizer, ids, similarities, top_k):
    """The `Neighbour`s with the greatest similarities among the tokens `ids`."""
    # Sort only the tokens that are near enough, not the whole vocabulary.
    lowest = np.partition(similarities, -top_k)[-top_k]
    near = np.flatnonzero(similarities >= lowest)
    best = near[np.argsort(-similarities[near], kind="stable")][:top_k]
    return tuple(
        Neighbour(tokenizer.id_to_token(int(ids[place])), int(ids[place]), float(similarities[place])) for place in best
    )


def word_vectors(trace: Trace, words: Iterable[WordSpan] | None = None) -> np.ndarray:
    """The vector of each word at every hidden state: the mean of its tokens' vectors.

    Args:
        trace: Trace. A trace with hidden states.
        words: sequence of WordSpan. None for all words of the trace.
    Returns:
        float32 [L+1, W, H].
    Raises:
        InputError: the trace has no hidden states.
    """
    states = hidden_states_of(trace)
    words = trace.words() if words is None else words
    means = [states[:, list(word.positions)].mean(axis=1) for word in words]
    return np.stack(means, axis=1)


def principal_components(vectors: np.ndarray, count: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """The principal components of vectors (PCA): the plane or space in which they differ most.

    Args:
        vectors: np.ndarray. float [W, H].
        count: int. K, the number of components.
    Returns:
        (coordinates float64 [W, K], share of the variance along each component float64 [K]); 0 for components beyond
        the number of dimensions. The sign of each component makes its greatest loading positive.
    Raises:
        InputError: another shape, numbers that are not finite, or `count` is below 1.
    """
    if count < 1:
        raise InputError(f"count must be at least 1, not {count}.")
    vectors = vectors_to_project(vectors)
    centred = vectors - np.mean(vectors, axis=0)
    left, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    # Below this they are the rounding of the mean: equal vectors, or two of them, differ along fewer components.
    sizes[sizes <= np.linalg.norm(vectors) * max(centred.shape) * np.finfo(np.float64).eps] = 0
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    coordinates, shares = np.zeros((len(centred), count)), np.zeros(count)
    available = min(count, len(sizes))
    coordinates[:, :available] = (left * sizes * signs)[:, :available]
    if sizes.any():
        shares[:available] = (sizes**2 / (sizes**2).sum())[:available]
    return coordinates, shares


def vectors_to_project(vectors: np.ndarray) -> np.ndarray:
    """Vectors as float64 [W, H]; raises InputError for another shape or for numbers that are not finite."""
    vectors = np.asarray(vectors, np.float64)
    if vectors.ndim != 2:
        raise InputError(f"Vectors to project have the shape [W, H], not {list(vectors.shape)}.")
    _check_finite(vectors)
    return vectors


def _check_finite(vectors):
    if not np.isfinite(vectors).all():
        raise InputError("The vectors hold numbers that are not finite (NaN or infinite): leave those vectors out.")


def _unit(vectors):
    """Vectors scaled to length 1; zero vectors stay zero."""
    vectors = np.asarray(vectors, np.float32)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
