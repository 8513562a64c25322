"""Word vectors: the parts of the input embedding, the nearest words of the vocabulary, one word in many sentences.

Dimension legend: T tokens, P parts or positions, H hidden, E embedding (H in BERT), L layers, V vocabulary, W and X
words or vectors, G gaps between positions, K components.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.errors import InputError, WordNotFound, report
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.predictions import check_top_k
from bert_tf.inference.words import words_of
from bert_tf.results import Result, frame
from bert_tf.runtime.weights import parameter
from bert_tf.tokenizers import pad_batch

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.config import BertConfig
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace
    from bert_tf.inference.words import WordSpan

#: The parts whose sum is the input embedding.
PARTS = ("token", "segment", "position")

# Vectors compared with the vocabulary at once: their cosines take 30 MB.
_ROWS = 256

# Texts in one forward pass: few, because other users wait for the model meanwhile.
_TEXTS = 8


@dataclass(frozen=True, eq=False)
class EmbeddingParts(Result, figures={"shares": "bert_tf.plots.representations.vectors:share_bars"}):
    """The parts whose sum is a token's input embedding (Devlin et al. 2019, figure 2), before layer normalisation.

    Attributes:
        tokens: tuple of str. The T tokens.
        parts: tuple of str. The names of the P parts, those of `PARTS` that the model has.
        vectors: np.ndarray. float32 [P, T, H].
        total: np.ndarray. float32 [T, H], the sum of the parts.
        norms: np.ndarray. float32 [P, T].
        total_norms: np.ndarray. float32 [T].
        shares: np.ndarray. float32 [P, T], each part's length along the sum, as a share of the sum's length; the shares
            of a token add up to 1.
        cosines: np.ndarray. float32 [T, P, P], between the parts of a token.
        nearest: tuple. T tuples of the `Neighbour`s of each token's static vector in the vocabulary; empty where not
            asked for.
    """

    tokens: tuple
    parts: tuple
    vectors: np.ndarray = field(metadata={"export": "arrays"})
    total: np.ndarray = field(metadata={"export": "arrays"})
    norms: np.ndarray
    total_norms: np.ndarray
    shares: np.ndarray
    cosines: np.ndarray
    nearest: tuple = ()

    def to_frame(self) -> pd.DataFrame:
        """A row for each token."""
        pairs = itertools.combinations(range(len(self.parts)), 2)
        columns: dict[str, Any] = {"position": range(len(self.tokens)), "token": self.tokens}
        columns |= {f"{part}_norm": norms for part, norms in zip(self.parts, self.norms)}
        columns |= {"total_norm": self.total_norms}
        columns |= {f"{part}_share": shares for part, shares in zip(self.parts, self.shares)}
        columns |= {f"cosine_{self.parts[i]}_{self.parts[j]}": self.cosines[:, i, j] for i, j in pairs}
        if self.nearest:
            columns["nearest"] = [" ".join(neighbour.token for neighbour in near) for near in self.nearest]
        return frame(columns)


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
        count = len(self.labels)
        first, second = np.repeat(np.arange(count), count), np.tile(np.arange(count), count)
        columns = {"index_a": first, "label_a": np.array(self.labels)[first]}
        columns |= {"index_b": second, "label_b": np.array(self.labels)[second], "cosine": self.cosines.ravel()}
        if self.texts:
            columns |= {"text_a": np.array(self.texts)[first], "text_b": np.array(self.texts)[second]}
        return frame(columns)


@dataclass(frozen=True, eq=False)
class PositionSimilarity(
    Result,
    figures={
        "map": "bert_tf.plots.representations.vectors:position_similarity_map",
        "by-distance": "bert_tf.plots.representations.vectors:distance_curve",
    },
):
    """The cosines between the position embeddings.

    Attributes:
        positions: np.ndarray. int64 [P], positions at equal steps.
        cosines: np.ndarray. float32 [P, P].
        mean_by_distance: np.ndarray. float64 [G], the mean cosine of two positions at each distance, from distance 0.
    """

    positions: np.ndarray
    cosines: np.ndarray
    mean_by_distance: np.ndarray

    def to_frame(self) -> pd.DataFrame:
        """A row for each pair of positions."""
        count = len(self.positions)
        return frame(
            {
                "position_a": np.repeat(self.positions, count),
                "position_b": np.tile(self.positions, count),
                "cosine": self.cosines.ravel(),
            }
        )


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


@dataclass(frozen=True, eq=False)
class Occurrences:
    """All occurrences of one word in some texts.

    Attributes:
        texts: tuple of int. The index of the text of each occurrence.
        words: tuple of WordSpan. One for each occurrence.
        vectors: np.ndarray. float32 [L+1, W, H], the mean of the word's tokens at every hidden state, 0 the embeddings.
    """

    texts: tuple
    words: tuple
    vectors: np.ndarray


def embedding_parts(bert: Bert, trace: Trace) -> EmbeddingParts:
    """The parts of a trace's input embeddings.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. The input; a masked token has the vector of [MASK].
    Returns:
        `EmbeddingParts`.
    """
    ids = {
        "token": trace.token_ids,
        "segment": trace.segments,
        "position": bert.config.position_offset + np.arange(trace.length),
    }
    parts = parts_of(bert.config)
    vectors = np.stack([_embedding_rows(bert, part, ids[part]) for part in parts])
    total = vectors.sum(axis=0)
    total_norms = np.linalg.norm(total, axis=-1)
    shares = np.einsum("pth,th->pt", vectors, total) / np.maximum(total_norms, 1e-12) ** 2
    cosines = np.stack([cosine_similarities(vectors[:, token]) for token in range(trace.length)])
    norms = np.linalg.norm(vectors, axis=-1)
    return EmbeddingParts(tuple(trace.tokens), parts, vectors, total, norms, total_norms, shares, cosines)


def input_embeddings(bert: Bert, trace: Trace, top_k: int = 5) -> EmbeddingParts:
    """The parts of a trace's input embeddings, and the words nearest to each token's static vector.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. The input.
        top_k: int. The number of nearest words for each token, without the token itself.
    Returns:
        `EmbeddingParts`.
    Raises:
        InputError: a bad `top_k`.
    """
    check_top_k(top_k)
    parts = embedding_parts(bert, trace)
    near = nearest_tokens(bert, parts.vectors[0], top_k + 1, centred=True)
    return replace(parts, nearest=tuple(row[1:] for row in near))


def parts_of(config: BertConfig) -> tuple[str, ...]:
    """The parts in `PARTS` that a model has: not every model adds vectors of segments or of positions."""
    has = {"token": True, "segment": config.type_vocab_size > 0, "position": config.architecture.has_position_table}
    return tuple(part for part in PARTS if has[part])


def embedding_table(bert: Bert, part: str) -> np.ndarray:
    """A table of the input embeddings, float32 [V or 2 or positions, E].

    A model without segments returns zeros for them. Positions begin with the first one that is used.

    Args:
        bert: Bert. The model.
        part: str. One of `PARTS`.
    """
    weight = _stored_table(bert, part)
    if weight is None:
        return np.zeros((2, bert.config.embedding_width), np.float32)
    table = weight.float32()
    return table[bert.config.position_offset :] if part == "position" else table


def _embedding_rows(bert, part, ids):
    """Rows of a stored table, float32 [T, E], without a copy of the whole table, which is 89 MB in Base."""
    weight = _stored_table(bert, part)
    if weight is None:
        return np.zeros((len(ids), bert.config.embedding_width), np.float32)
    return weight.float32(np.asarray(ids))


def _stored_table(bert, part):
    """The `Weight` of a part, with unused positions; None for the segments of a model without them."""
    stored = {
        "token": "word_embeddings",
        "segment": "token_type_embeddings",
        "position": "position_embeddings",
    }
    if part not in stored:
        raise InputError(f"There is no embedding table {part!r}; choose from {', '.join(PARTS)}.")
    if part not in parts_of(bert.config):
        return None
    return parameter(bert.weights, f"bert.embeddings.{stored[part]}.weight")


def cosine_similarities(vectors: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
    """Cosines of vectors [W, H] with `others` [X, H], or with each other: float32 [W, X]; 0 for zero vectors."""
    unit = _unit(vectors)
    return unit @ (unit if others is None else _unit(others)).T


def mean_by_distance(values: np.ndarray, most: int = 64) -> np.ndarray:
    """The mean of a square table's entries at each distance between row and column.

    Args:
        values: np.ndarray. float [W, W], such as the cosines of position embeddings.
        most: int. The greatest distance.
    Returns:
        float64 [G], G the smaller of W and most + 1: entry g is the mean of values[i, i + g] over all i.
    """
    values = np.asarray(values, np.float64)
    return np.array([np.diagonal(values, gap).mean() for gap in range(min(most + 1, len(values)))])


def position_similarity(bert: Bert, step: int = 4) -> PositionSimilarity:
    """The cosines between the position embeddings.

    Args:
        bert: Bert. The model.
        step: int. The step between the positions that are compared.
    Returns:
        `PositionSimilarity`.
    Raises:
        InputError: a step below 1, or a model without position embeddings.
    """
    if "position" not in parts_of(bert.config):
        raise InputError(
            f"{bert.name} has no table of positions: its layers rotate queries and keys by their positions."
        )
    if step < 1:
        raise InputError(f"step must be at least 1, not {step}.")
    cosines = cosine_similarities(embedding_table(bert, "position"))
    return PositionSimilarity(np.arange(0, len(cosines), step), cosines[::step, ::step], mean_by_distance(cosines))


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
        InputError: a vector of another size, or a bad `top_k`.

    Example:
        >>> bert = bert_tf.load()
        >>> king = embedding_table(bert, "token")[bert.tokenizer.vocab.index("king")]
        >>> [neighbour.token for neighbour in nearest_tokens(bert, king, centred=True)]
    """
    check_top_k(top_k)
    table = embedding_table(bert, "token")
    vectors = np.asarray(vectors, np.float32)
    if vectors.ndim not in (1, 2) or vectors.shape[-1:] != table.shape[1:]:
        raise InputError(f"The vector has shape {list(vectors.shape)}; this model's have {list(table.shape[1:])}.")
    if centred:
        mean = table.mean(axis=0)
        vectors, table = vectors - mean, table - mean
    ids = np.arange(len(table)) if among is None else np.asarray(among)
    table, rows, nearest = _unit(table if among is None else table[ids]), np.atleast_2d(vectors), []
    for start in range(0, len(rows), _ROWS):
        similarities = _unit(rows[start : start + _ROWS]) @ table.T
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
    if trace.hidden_states is None:
        raise InputError("This trace holds no hidden states: trace again with hidden_states=True.")
    words = trace.words() if words is None else words
    means = [trace.hidden_states[:, list(word.positions)].mean(axis=1) for word in words]
    return np.stack(means, axis=1)


def occurrences(
    bert: Bert,
    texts: Iterable[str],
    word: str,
    progress: Callable[[int, int], Any] | None = None,
    most: int | None = None,
) -> Occurrences:
    """The vectors of one word in many texts, such as "bank" by the river and "bank" for money.

    Args:
        bert: Bert. The model.
        texts: sequence of str. The texts.
        word: str. The word; upper and lower case are the same.
        progress: callable(done, total). Called with numbers of texts that have the word; it cancels by returning False.
        most: int. The most occurrences, the first ones; None for all.
    Returns:
        `Occurrences`, in the order of the texts. Texts without the word add none.
    Raises:
        WordNotFound: no text has the word.
        InputError, TextError: an empty text or one that is not a text.
        Cancelled: by `progress`.
    """
    texts, wanted = list(texts), word.strip().casefold()
    prepared = [prepare_input(bert.tokenizer, bert.max_length, text) for text in texts]
    matches = [
        [span for span in words_of(ready.encoding, ready.text_a) if span.text.casefold() == wanted]
        for ready in prepared
    ]
    if most is not None:
        before = np.cumsum([0, *map(len, matches)])
        matches = [spans[: max(most - start, 0)] for spans, start in zip(matches, before)]
    with_word = [index for index, spans in enumerate(matches) if spans]
    if not with_word:
        raise WordNotFound(f"The word {word!r:.60} is in none of the {len(texts)} texts.")
    text_indices, spans, vectors = [], [], []
    for start in range(0, len(with_word), _TEXTS):
        block = with_word[start : start + _TEXTS]
        batch = pad_batch([prepared[index] for index in block], pad_id=bert.tokenizer.pad_id)
        states = bert.runtime.run(batch, ("hidden_states",))["hidden_states"]  # L+1 of [B, T, H]
        for row, index in enumerate(block):
            for span in matches[index]:
                text_indices.append(index)
                spans.append(span)
                vectors.append([layer[row, list(span.positions)].mean(axis=0) for layer in states])
        report(progress, min(start + _TEXTS, len(with_word)), len(with_word))
    return Occurrences(tuple(text_indices), tuple(spans), np.array(vectors, np.float32).swapaxes(0, 1))


def principal_components(vectors: np.ndarray, count: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """The principal components of vectors (PCA): the plane or space in which they differ most.

    Args:
        vectors: np.ndarray. float [W, H].
        count: int. K, the number of components.
    Returns:
        (coordinates float64 [W, K], share of the variance along each component float64 [K]); 0 for components beyond
        the number of dimensions. The sign of each component makes its greatest loading positive.
    """
    centred = np.asarray(vectors, np.float64) - np.mean(vectors, axis=0, dtype=np.float64)
    left, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    coordinates, shares = np.zeros((len(centred), count)), np.zeros(count)
    available = min(count, len(sizes))
    coordinates[:, :available] = (left * sizes * signs)[:, :available]
    if sizes.any():
        shares[:available] = (sizes**2 / (sizes**2).sum())[:available]
    return coordinates, shares


def _unit(vectors):
    """Vectors scaled to length 1; zero vectors stay zero."""
    vectors = np.asarray(vectors, np.float32)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


ANALYSES = (
    Analysis(
        name="input-embeddings",
        function=input_embeddings,
        summary="the token, segment and position parts of the input embeddings, and the nearest words",
        source="Devlin et al. 2019, BERT, figure 2",
        options=(TOP_K,),
        aliases=("vectors",),
    ),
    Analysis(
        name="position-embeddings",
        function=position_similarity,
        summary="how alike the vectors of positions are",
        source="Devlin et al. 2019, BERT, section 3",
        inputs="none",
        options=(Option("step", "the step between the compared positions", int, 4, minimum=1, metavar="S"),),
        aliases=("positions",),
    ),
)
