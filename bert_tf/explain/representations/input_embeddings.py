"""Input embeddings: the parts whose sum is the vector of a token, and how similar the positions are.

Dimension legend: T tokens, P parts or positions, H hidden, E embedding (H in BERT), G gaps between positions.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.errors import InputError
from bert_tf.explain.representations.embedding_tables import embedding_rows, embedding_table, parts_of
from bert_tf.explain.representations.vectors import cosine_similarities, nearest_tokens, word_ids
from bert_tf.inference.predictions import check_top_k
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.config import BertConfig
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace


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
    vectors = np.stack([embedding_rows(bert, part, ids[part]) for part in parts])
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
        `EmbeddingParts`. Tokens that are not words, such as [SEP] and "[unused1]", are never among the nearest.
    Raises:
        InputError: a bad `top_k`.
    """
    check_top_k(top_k)
    parts = embedding_parts(bert, trace)
    near = nearest_tokens(bert, parts.vectors[0], top_k + 1, True, word_ids(bert.tokenizer))
    others = ([word for word in row if word.id != token] for row, token in zip(near, trace.token_ids))
    return replace(parts, nearest=tuple(tuple(row[:top_k]) for row in others))


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


def positions_without_table(config: BertConfig) -> str:
    """How a model without position embeddings knows the order of its tokens, as a clause without a full stop."""
    if config.architecture.score_terms > 1:
        return "its attention scores also compare contents with relative positions"
    return "its layers rotate queries and keys by their positions"


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
        raise InputError(f"{bert.name} has no table of positions: {positions_without_table(bert.config)}.")
    if step < 1:
        raise InputError(f"step must be at least 1, not {step}.")
    cosines = cosine_similarities(embedding_table(bert, "position"))
    return PositionSimilarity(np.arange(0, len(cosines), step), cosines[::step, ::step], mean_by_distance(cosines))


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
