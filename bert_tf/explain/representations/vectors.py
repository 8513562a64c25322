"""Words as vectors: the input embedding taken apart, nearest words of the vocabulary, one word in many
sentences.

Dimension legend: T tokens, H hidden, L layers, V vocabulary, W words or occurrences.
"""

import itertools
from dataclasses import dataclass, field, replace

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.errors import InputError, WordNotFound, report
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.predictions import check_top_k
from bert_tf.inference.words import words_of
from bert_tf.results import Result, frame
from bert_tf.tokenizers import pad_batch

PARTS = ("token", "segment", "position")

# Vectors compared with the vocabulary at once: their cosines are then 30 MB.
_ROWS = 256

# Texts in one forward pass: few, for others wait for the model meanwhile.
_TEXTS = 8


@dataclass(frozen=True, eq=False)
class EmbeddingParts(Result, figures={"shares": "bert_tf.plots.representations.vectors:share_bars"}):
    """What a token's input embedding is the sum of (Devlin et al. 2019, figure 2), before layer
    normalisation.

    Attributes:
        tokens: T strings. parts: names of the P parts, those of `PARTS` that the model adds up.
        vectors: float32 [P, T, H]. total: float32 [T, H], their sum.
        norms: float32 [P, T]. total_norms: float32 [T].
        shares: float32 [P, T], each part's length along the sum, as a share of the sum's; they add up to 1.
        cosines: float32 [T, P, P], similarities of a token's parts.
        nearest: `Neighbour`s of each token's own vector in the vocabulary, T tuples; empty where not asked for.
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

    def to_frame(self):
        """A row for each token."""
        pairs = itertools.combinations(range(len(self.parts)), 2)
        columns = {"position": range(len(self.tokens)), "token": self.tokens}
        columns |= {f"{part}_norm": norms for part, norms in zip(self.parts, self.norms)}
        columns |= {"total_norm": self.total_norms}
        columns |= {f"{part}_share": shares for part, shares in zip(self.parts, self.shares)}
        columns |= {f"cosine_{self.parts[i]}_{self.parts[j]}": self.cosines[:, i, j] for i, j in pairs}
        if self.nearest:
            columns["nearest"] = [" ".join(one.token for one in near) for near in self.nearest]
        return frame(columns)


@dataclass(frozen=True, eq=False)
class VectorSimilarity(Result, figures={"map": "bert_tf.plots.representations.vectors:similarity_map"}):
    """How alike some vectors are.

    Attributes:
        labels: of the W vectors, such as tokens. texts: what each is of, such as sentences; empty for the labels.
        cosines: float32 [W, W].
    """

    labels: tuple
    cosines: np.ndarray
    texts: tuple = ()

    def to_frame(self):
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
    """How alike the vectors of the table of positions are.

    Attributes:
        positions: int64 [P], every few of them. cosines: float32 [P, P].
        mean_by_distance: float64 [G], the mean cosine of any two positions so far apart, 0 first.
    """

    positions: np.ndarray
    cosines: np.ndarray
    mean_by_distance: np.ndarray

    def to_frame(self):
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
    """A token of the vocabulary and the cosine of its vector with the one asked about, -1 to 1."""

    token: str
    id: int
    similarity: float


@dataclass(frozen=True, eq=False)
class Occurrences:
    """One word wherever it stands in some texts.

    Attributes:
        texts: indices of the texts, one an occurrence. words: `WordSpan`s, one an occurrence.
        vectors: float32 [L+1, W, H], the mean of the word's pieces at every state, 0 the embeddings.
    """

    texts: tuple
    words: tuple
    vectors: np.ndarray


def embedding_parts(bert, trace):
    """The input embeddings of a trace, taken apart.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`; a masked token has the vector of [MASK].
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


def input_embeddings(bert, trace, top_k=5):
    """The input embeddings of a trace, taken apart, and the nearest words of each token's own vector.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`. top_k: nearest words for each token, itself left out.
    Returns:
        `EmbeddingParts`.
    Raises:
        InputError: a bad `top_k`.
    """
    check_top_k(top_k)
    parts = embedding_parts(bert, trace)
    near = nearest_tokens(bert, parts.vectors[0], top_k + 1, centred=True)
    return replace(parts, nearest=tuple(row[1:] for row in near))


def parts_of(config):
    """Those of `PARTS` that a model adds up: one without segments has no such table."""
    return tuple(part for part in PARTS if part != "segment" or config.type_vocab_size)


def embedding_table(bert, part):
    """A table of the input embeddings, float32 [V or 2 or positions, E]; `part` out of `PARTS`.

    A model without segments has zeros for them; positions begin with the first that is used.
    """
    variable = _stored_table(bert, part)
    if variable is None:
        return np.zeros((2, bert.config.embedding_width), np.float32)
    table = np.asarray(variable).astype(np.float32, copy=False)
    return table[bert.config.position_offset :] if part == "position" else table


def _embedding_rows(bert, part, ids):
    """Rows of a stored table, float32 [T, E]: without a copy of the whole, which is 89 MB in Base."""
    from keras import ops

    variable = _stored_table(bert, part)
    if variable is None:
        return np.zeros((len(ids), bert.config.embedding_width), np.float32)
    rows = ops.take(variable, np.asarray(ids, np.int32), axis=0)
    return ops.convert_to_numpy(rows).astype(np.float32, copy=False)


def _stored_table(bert, part):
    """The Keras variable of a part, with unused positions too; None for the segments of a model without them."""
    from bert_tf.models import named_variables

    stored = {
        "token": "word_embeddings",
        "segment": "token_type_embeddings",
        "position": "position_embeddings",
    }
    if part not in stored:
        raise InputError(f"There is no embedding table {part!r}; choose from {', '.join(PARTS)}.")
    return named_variables(bert.model).get(f"bert.embeddings.{stored[part]}.weight")


def cosine_similarities(vectors, others=None):
    """Cosines of vectors [W, H] with `others` [X, H], or with each other: float32 [W, X]. A zero vector has
    0."""
    unit = _unit(vectors)
    return unit @ (unit if others is None else _unit(others)).T


def mean_by_distance(values, most=64):
    """The mean of a square table's entries by how far row and column are apart.

    Args:
        values: float [W, W], such as the cosines of a table of positions. most: the greatest distance looked at.
    Returns:
        float64 [G], G the smaller of W and most + 1: the mean over all places `i` of values[i, i + g]; 0 apart first.
    """
    values = np.asarray(values, np.float64)
    return np.array([np.diagonal(values, gap).mean() for gap in range(min(most + 1, len(values)))])


def position_similarity(bert, step=4):
    """How alike the vectors of the table of positions are.

    Args:
        bert: a `Bert`. step: every so many positions are compared with each other.
    Returns:
        `PositionSimilarity`.
    Raises:
        InputError: a step below 1.
    """
    if step < 1:
        raise InputError(f"step must be at least 1, not {step}.")
    cosines = cosine_similarities(embedding_table(bert, "position"))
    return PositionSimilarity(np.arange(0, len(cosines), step), cosines[::step, ::step], mean_by_distance(cosines))


def nearest_tokens(bert, vectors, top_k=10, centred=False, among=None):
    """The vocabulary's tokens whose static vectors point most nearly the same way.

    Args:
        bert: a `Bert`. vectors: float [H], or several [W, H]: rows of the token table, hidden states, any
            mixture.
        top_k: how many.
        centred: whether the table's mean is first taken from both sides; the vectors of a table have a
            direction in common that hides the differences (Mu and Viswanath 2018).
        among: ids of the tokens that count, ascending; None for all. `word_ids` leaves out those that are none.
    Returns:
        tuple of `Neighbour`, the nearest first; W such tuples for several vectors. A hidden state lives in a
        space of its own: the deeper, the less its static neighbours say; `logit_lens` asks the head that
        reads it instead.
    Raises:
        InputError: a vector of another size, or a bad `top_k`.
    """
    check_top_k(top_k)
    table = embedding_table(bert, "token")
    vectors = np.asarray(vectors, np.float32)
    if vectors.ndim not in (1, 2) or vectors.shape[-1:] != table.shape[1:]:
        raise InputError(f"The vector has shape {list(vectors.shape)}; this model's have {list(table.shape[1:])}.")
    if centred:
        middle = table.mean(axis=0)
        vectors, table = vectors - middle, table - middle
    ids = np.arange(len(table)) if among is None else np.asarray(among)
    table, rows, found = _unit(table if among is None else table[ids]), np.atleast_2d(vectors), []
    for start in range(0, len(rows), _ROWS):
        similarities = _unit(rows[start : start + _ROWS]) @ table.T
        found += [_neighbours(bert.tokenizer, ids, row, min(top_k, len(ids))) for row in similarities]
    return found[0] if vectors.ndim == 1 else tuple(found)


def word_ids(tokenizer):
    """Ids of the tokens that stand for letters: neither the model's own, such as [MASK], nor "[unused1]"; int64."""
    special = tokenizer.special_ids
    return np.array(
        [i for i, token in enumerate(tokenizer.vocab) if i not in special and not token.startswith("[unused")]
    )


def _neighbours(tokenizer, ids, similarities, top_k):
    # A sort of the few that are near enough, not of the whole vocabulary.
    least = np.partition(similarities, -top_k)[-top_k]
    near = np.flatnonzero(similarities >= least)
    best = near[np.argsort(-similarities[near], kind="stable")][:top_k]
    return tuple(
        Neighbour(tokenizer.id_to_token(int(ids[place])), int(ids[place]), float(similarities[place])) for place in best
    )


def word_vectors(trace, words=None):
    """The mean of each word's pieces at every state.

    Args:
        trace: a `Trace` with hidden states. words: `WordSpan`s; None for all of the trace's.
    Returns:
        float32 [L+1, W, H].
    Raises:
        InputError: no hidden states in the trace.
    """
    if trace.hidden_states is None:
        raise InputError("This trace holds no hidden states: trace again with hidden_states=True.")
    words = trace.words() if words is None else words
    means = [trace.hidden_states[:, list(word.positions)].mean(axis=1) for word in words]
    return np.stack(means, axis=1)


def occurrences(bert, texts, word, progress=None, most=None):
    """The vectors of one word in many texts, as "bank" by the river and of money.

    Args:
        bert: a `Bert`. texts: strings. word: its spelling; upper and lower case count as one.
        progress: callable(done, total) in texts that have it; returning False cancels.
        most: how many occurrences are taken, the first ones; None for all.
    Returns:
        `Occurrences`, in the order of the texts. Texts without the word add none.
    Raises:
        WordNotFound: the word is in none of them. InputError, TextError: a text that is none. Cancelled: by
            `progress`.
    """
    texts, wanted = list(texts), word.strip().casefold()
    read = [prepare_input(bert.tokenizer, bert.max_length, text) for text in texts]
    found = [[span for span in words_of(one.encoding, one.text_a) if span.text.casefold() == wanted] for one in read]
    if most is not None:
        before = np.cumsum([0, *map(len, found)])
        found = [spans[: max(most - start, 0)] for spans, start in zip(found, before)]
    having = [index for index, spans in enumerate(found) if spans]
    if not having:
        raise WordNotFound(f"The word {word!r:.60} is in none of the {len(texts)} texts.")
    places, spans, vectors = [], [], []
    for start in range(0, len(having), _TEXTS):
        block = having[start : start + _TEXTS]
        batch = pad_batch([read[index] for index in block], pad_id=bert.tokenizer.pad_id)
        states = bert.runtime.run(batch, ("hidden_states",))["hidden_states"]  # L+1 of [B, T, H]
        for row, index in enumerate(block):
            for span in found[index]:
                places.append(index)
                spans.append(span)
                vectors.append([layer[row, list(span.positions)].mean(axis=0) for layer in states])
        report(progress, min(start + _TEXTS, len(having)), len(having))
    return Occurrences(tuple(places), tuple(spans), np.array(vectors, np.float32).swapaxes(0, 1))


def principal_components(vectors, count=2):
    """Vectors in the plane (or space) in which they differ most (PCA).

    Args:
        vectors: float [W, H]. count: number of components K.
    Returns:
        (coordinates float64 [W, K], share of the variance along each float64 [K]); 0 where there are fewer
        dimensions than asked for. Each component's sign is such that its greatest loading is positive.
    """
    centred = np.asarray(vectors, np.float64) - np.mean(vectors, axis=0, dtype=np.float64)
    left, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    coordinates, shares = np.zeros((len(centred), count)), np.zeros(count)
    kept = min(count, len(sizes))
    coordinates[:, :kept] = (left * sizes * signs)[:, :kept]
    if sizes.any():
        shares[:kept] = (sizes**2 / (sizes**2).sum())[:kept]
    return coordinates, shares


def _unit(vectors):
    vectors = np.asarray(vectors, np.float32)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


ANALYSES = (
    Analysis(
        name="input-embeddings",
        function=input_embeddings,
        summary="the input embeddings taken apart into token, segment and position, and the nearest words",
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
        options=(Option("step", "every so many positions", int, 4, minimum=1, metavar="S"),),
        aliases=("positions",),
    ),
)
