"""Layer similarity of two models: linear centred kernel alignment (CKA) and canonical correlations (SVCCA, PWCCA).

Dimension legend: L layers, W words, H hidden, D and E directions of a layer. Pure NumPy. Sources: Kornblith et al.
2019, "Similarity of Neural Network Representations Revisited"; for the estimate without the bias of small samples,
Nguyen et al. 2021, "Do Wide and Deep Networks Learn the Same Things?", section 2; Raghu et al. 2017, "SVCCA: Singular
Vector Canonical Correlation Analysis for Deep Learning Dynamics and Interpretability"; Morcos et al. 2018, "Insights on
representational similarity in neural networks with canonical correlation" (PWCCA).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError, NotComparable, report
from bert_tf.explain.representations.vectors import word_vectors
from bert_tf.inference.words import masked_words
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.explain.datasets.text_rows import TextRow
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace

_DRAWS = 5  # shuffles of `chance_similarity`
#: Reading stops after this many words: each layer of both models needs a number for every pair of words.
MIN_WORDS = 600
#: Canonical correlations need at least this many words for each direction of a layer: with as many directions as words
#: all layers have a similarity of 1.
WORDS_PER_DIRECTION = 3


def linear_cka(states_a: np.ndarray, states_b: np.ndarray, debiased: bool = True) -> np.ndarray:
    """CKA of every layer of one model with every layer of another, on the same W words.

    Args:
        states_a: np.ndarray. float [L_a, W, H_a].
        states_b: np.ndarray. float [L_b, W, H_b].
        debiased: bool. Whether to use the unbiased estimate (Song et al. 2012), which needs 4 words and may fall below
            0. The plain estimate comes near 1 for any two layers if H is larger than W.
    Returns:
        float64 [L_a, L_b]; 1 if the layers are equal up to rotation and scale, 0 if they share nothing. NaN for a layer
        that has the same vector for all words.
    Raises:
        InputError: the words differ, or there are too few.

    Example:
        >>> states = np.random.default_rng(0).normal(size=(13, 50, 768))
        >>> linear_cka(states, states).diagonal()
    """
    _check(states_a, states_b, "CKA", 4 if debiased else 2)
    grams_a, grams_b = (np.stack([_gram(layer, debiased) for layer in states]) for states in (states_a, states_b))
    flat_a, flat_b = (grams.reshape(len(grams), -1) for grams in (grams_a, grams_b))
    inner = _inner(flat_a, flat_b, grams_a, grams_b, debiased)
    self_a, self_b = (_self_inner(grams, debiased) for grams in (grams_a, grams_b))
    norms = np.sqrt(np.maximum(np.outer(self_a, self_b), 0))
    return np.divide(inner, norms, out=np.full(inner.shape, np.nan), where=norms > 0)


def svcca(states_a: np.ndarray, states_b: np.ndarray, explained: float = 0.99) -> np.ndarray:
    """SVCCA of every layer of one model with every layer of another, on the same W words.

    Of each layer it keeps the directions with the greatest variance until they explain the share `explained` of its
    variance, at most W / 3 of them. The result is the mean of the canonical correlations between the directions of the
    two layers.

    Args:
        states_a: np.ndarray. float [L_a, W, H_a].
        states_b: np.ndarray. float [L_b, W, H_b].
        explained: float. Share of a layer's variance, above 0 to 1.
    Returns:
        float64 [L_a, L_b], 0 to 1; 1 if the layers are equal up to an invertible linear map. The more directions there
        are for the number of words, the greater the share that comes by chance. NaN for a layer that has the same
        vector for all words.
    Raises:
        InputError: the words differ, there are too few, or `explained` is out of range.
    """
    return _canonical(states_a, states_b, "SVCCA", explained, _mean)


def pwcca(states_a: np.ndarray, states_b: np.ndarray, explained: float = 0.99) -> np.ndarray:
    """PWCCA of every layer of one model with every layer of another: `svcca` with weighted canonical correlations.

    The weight of a correlation is how much its direction accounts for of the layer with fewer directions (with equally
    many, of the first layer). Args, Returns and Raises as in `svcca`.
    """
    return _canonical(states_a, states_b, "PWCCA", explained, _weighted)


#: Name -> function (states_a, states_b) -> float64 [L_a, L_b].
MEASURES = {"cka": linear_cka, "svcca": svcca, "pwcca": pwcca}


@dataclass(frozen=True, eq=False)
class LayerSimilarity(Result, figures={"map": "bert_tf.plots.models.compare:layer_similarity_map"}):
    """The similarity of all layers of two models.

    Attributes:
        model_a, model_b: str. The names of the models.
        measure: str. A key of `MEASURES`.
        similarity: np.ndarray. float64 [L_a + 1, L_b + 1], hidden state 0 the embeddings; NaN where the measure has no
            value.
        chance_similarity: float. The result of `chance_similarity`.
        texts, words: int. How many texts were read, and how many words of them are compared: those of both models.
        problems: tuple of pairs (number of the row, message). The rows that cannot be read.
    """

    model_a: str
    model_b: str
    measure: str
    similarity: np.ndarray
    chance_similarity: float
    texts: int
    words: int
    problems: tuple = ()

    def to_frame(self) -> pd.DataFrame:
        """A row for each pair of hidden states, 0 the embeddings."""
        rows, columns = self.similarity.shape
        return frame(
            {
                "hidden_state_a": np.repeat(np.arange(rows), columns),
                "hidden_state_b": np.tile(np.arange(columns), rows),
                self.measure: self.similarity.ravel(),
            }
        )

    def to_text(self) -> str:
        """The table, then the rows that cannot be read."""
        problems = [f"Row {number} cannot be read: {message}" for number, message in self.problems]
        return "\n".join([super().to_text(), *problems])


def compare_traces(traces_a: Sequence[Trace], traces_b: Sequence[Trace], measure: str = "cka") -> LayerSimilarity:
    """The similarity of all layers of two models, and the similarity that comes by chance.

    Args:
        traces_a, traces_b: list of Trace. As in `layer_similarity`.
        measure: str. A key of `MEASURES`.
    Returns:
        `LayerSimilarity`.
    Raises:
        As `layer_similarity`.
    """
    function = _function(measure)
    states_a, states_b = _states(traces_a, traces_b)
    return LayerSimilarity(
        model_a=traces_a[0].model,
        model_b=traces_b[0].model,
        measure=measure,
        similarity=function(states_a, states_b),
        chance_similarity=_by_chance(function, states_a, states_b),
        texts=len(traces_a),
        words=states_a.shape[1],
    )


def compare_layers(
    bert: Bert,
    trace: Trace | None,
    rows: Iterable[TextRow] | None,
    other: Bert,
    measure: str = "cka",
    progress: Callable[[int, int], Any] | None = None,
) -> LayerSimilarity:
    """The similarity of the layers of two models on the words of a text or of a file.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. A trace with hidden states; None if there are rows.
        rows: sequence of TextRow. They are read until there are `MIN_WORDS` words; a row that cannot be read is one of
            the result's problems. None if there is a trace.
        other: Bert. The other model.
        measure: str. A key of `MEASURES`.
        progress: callable(done, total). Called with numbers of rows; it cancels by returning False.
    Returns:
        `LayerSimilarity`.
    Raises:
        As `layer_similarity`. InputError: no row can be read. Cancelled: by `progress`.
    """
    if trace is not None:
        masked = masked_words(trace, bert.tokenizer.mask_id)
        second = other.trace(trace.text_a, trace.text_b, masked, attentions=False)
        return compare_traces([trace], [second], measure)
    readers = [functools.partial(model.trace, attentions=False) for model in (bert, other)]
    rows = list(rows or ())
    problems: list[tuple[int, str]] = []
    texts = [(row.text_a, row.text_b) for row in rows]
    traces_a, traces_b = traces_of(readers, texts, progress=progress, problems=problems)
    named = tuple((rows[index].number, message) for index, message in problems)
    if not traces_a:
        reason = f" Row {named[0][0]}: {named[0][1]}" if named else ""
        raise InputError(f"None of these rows can be read.{reason}")
    return replace(compare_traces(traces_a, traces_b, measure), problems=named)


def layer_similarity(
    traces_a: Trace | Iterable[Trace], traces_b: Trace | Iterable[Trace], debiased: bool = True, measure: str = "cka"
) -> np.ndarray:
    """The similarity of all layers of two models, on the words of some texts.

    The vector of a word is the mean of its tokens' vectors, so the two tokenizers may split words differently.

    Args:
        traces_a, traces_b: list of Trace. Traces with hidden states of the same texts by each model, or one `Trace`
            each.
        debiased: bool. As in `linear_cka`.
        measure: str. A key of `MEASURES`.
    Returns:
        float64 [L_a + 1, L_b + 1], hidden state 0 the embeddings.
    Raises:
        NotComparable: the texts differ.
        InputError: the measure does not exist, a trace has no hidden states, or there are too few words.
    """
    return _function(measure, debiased)(*_states(traces_a, traces_b))


def chance_similarity(
    traces_a: Trace | Iterable[Trace], traces_b: Trace | Iterable[Trace], measure: str = "cka", draws: int = _DRAWS
) -> float:
    """The similarity of the two models' last layers by chance: the words of one model are shuffled.

    Args:
        traces_a, traces_b, measure: as in `layer_similarity`.
        draws: int. The number of shuffles, which are the same in every call; the result is their mean.
    Returns:
        float; NaN where the measure has no value.
    Raises:
        As `layer_similarity`.
    """
    function = _function(measure)
    states_a, states_b = _states(traces_a, traces_b)
    return _by_chance(function, states_a, states_b, draws)


def _by_chance(function, states_a, states_b, draws=_DRAWS):
    last_a, last_b, rng = states_a[-1:], states_b[-1:], np.random.default_rng(0)
    return float(np.mean([function(last_a, last_b[:, rng.permutation(last_b.shape[1])])[0, 0] for _ in range(draws)]))


def _function(measure, debiased=True):
    """The function of a measure: (states_a, states_b) -> float64 [L_a, L_b]."""
    if measure not in MEASURES:
        raise InputError(f"There is no measure {measure!r:.40}: known are {', '.join(MEASURES)}.")
    return functools.partial(linear_cka, debiased=debiased) if measure == "cka" else MEASURES[measure]


def _states(traces_a, traces_b):
    """The two models' hidden states of the words that both have, float [L + 1, W, H] each."""
    traces_a, traces_b = ([traces] if hasattr(traces, "tokens") else list(traces) for traces in (traces_a, traces_b))
    texts_a, texts_b = ([(trace.text_a, trace.text_b) for trace in traces] for traces in (traces_a, traces_b))
    if texts_a != texts_b or not texts_a:
        raise NotComparable("The traces are of different texts: trace the same texts with both models.")
    vectors: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for pair in zip(traces_a, traces_b):
        words = [{(word.source, word.start, word.end): word for word in trace.words()} for trace in pair]
        # One model may truncate the text earlier than the other, and then has fewer words.
        common = [place for place in words[0] if place in words[1]]
        for states, trace, spans in zip(vectors, pair, words):
            if common:
                states.append(word_vectors(trace, [spans[place] for place in common]))
    if not vectors[0]:
        raise NotComparable("The two models have no word of these texts in common.")
    return [np.concatenate(states, axis=1) for states in vectors]


def traces_of(
    readers: Sequence[Callable[..., Trace]],
    texts: Sequence[tuple[str, str | None]],
    enough: int = MIN_WORDS,
    progress: Callable[[int, int], Any] | None = None,
    problems: list[tuple[int, str]] | None = None,
) -> list[list[Trace]]:
    """Traces of texts by several models, for `layer_similarity`. Reading stops when there are enough words.

    Args:
        readers: sequence of callable. For each model a function (text_a, text_b or None) -> `Trace` with hidden states.
        texts: sequence of (text_a, text_b or None).
        enough: int. The number of words, counted with the first model, after which reading stops.
        progress: callable(done, total). Called with numbers of texts; it cancels by returning False.
        problems: list that gets (index, message) of each text that one of the models cannot read; None to raise the
            first error.
    Returns:
        A list of `Trace`s for each model.
    Raises:
        Cancelled: by `progress`.
    """
    words = 0
    traces: list[list[Trace]] = [[] for _ in readers]
    for done, (text_a, text_b) in enumerate(texts, start=1):
        try:
            read_by_all = [read(text_a, text_b) for read in readers]
        except ValueError as error:
            if problems is None:
                raise
            problems.append((done - 1, str(error)))
        else:
            for model_traces, trace in zip(traces, read_by_all):
                model_traces.append(trace)
            words += len(read_by_all[0].words())
        report(progress, done, len(texts))
        if words >= enough:
            break
    return traces


def _centred(layer):
    """The layer [W, H] as float64, minus the mean of its words; 0 where rounding alone is left, as all are equal."""
    layer = np.asarray(layer, np.float64)
    centred = layer - layer.mean(axis=0)
    is_rounding = np.abs(centred).max() <= 1e-12 * np.abs(layer).max()
    return np.zeros_like(centred) if is_rounding else centred


def _gram(layer, debiased):
    """The inner products of the words' vectors [W, W].

    The vectors are centred; for the unbiased estimate the diagonal is 0.
    """
    layer = _centred(layer)
    gram = layer @ layer.T
    if debiased:
        np.fill_diagonal(gram, 0)
    return gram


def _hsic(product, sums_a, sums_b, both, words):
    """Song et al. 2012, equation 5, without a factor that cancels in CKA."""
    return product + sums_a * sums_b / ((words - 1) * (words - 2)) - 2 * both / (words - 2)


def _inner(flat_a, flat_b, grams_a, grams_b, debiased):
    """The inner product of each layer of one model with each layer of the other, float64 [L_a, L_b]."""
    product = flat_a @ flat_b.T
    if not debiased:
        return product
    rows_a, rows_b = grams_a.sum(axis=2), grams_b.sum(axis=2)
    return _hsic(product, rows_a.sum(axis=1)[:, None], rows_b.sum(axis=1), rows_a @ rows_b.T, grams_a.shape[1])


def _self_inner(grams, debiased):
    """The inner product of each layer with itself, float64 [L]."""
    return np.array(
        [_inner(gram.reshape(1, -1), gram.reshape(1, -1), gram[None], gram[None], debiased)[0, 0] for gram in grams]
    )


def _check(states_a, states_b, name, min_words):
    words = states_a.shape[1]
    if words != states_b.shape[1]:
        raise InputError(f"Both models' layers must be of the same words, not of {words} and {states_b.shape[1]}.")
    if words < min_words:
        raise InputError(f"{name} needs at least {min_words} words, not {words}: use a longer text or several.")


class _Layer(NamedTuple):
    """The directions of a layer on W words that are kept.

    Attributes:
        basis: float64 [W, D], an orthonormal basis of the directions.
        units: float64 [D, H], the dot product of each direction with each unit of the layer.
    """

    basis: np.ndarray
    units: np.ndarray


def _directions(layer, explained):
    """The `_Layer` of a hidden state float [W, H]: the directions that explain a share of its variance."""
    layer = _centred(layer)
    # The squared singular values and the left singular vectors; much faster than an SVD with this many words.
    variances, vectors = np.linalg.eigh(layer @ layer.T)
    variances, vectors = variances[::-1], vectors[:, ::-1]
    rank = int((variances > variances[0] * sum(layer.shape) * np.finfo(np.float64).eps).sum())
    if not rank:
        return _Layer(vectors[:, :0], layer[:0])
    cumulative = np.cumsum(variances[:rank]) / variances[:rank].sum()
    enough = rank if explained == 1 else int(np.searchsorted(cumulative, explained)) + 1
    basis = vectors[:, : min(rank, enough, len(layer) // WORDS_PER_DIRECTION)]
    return _Layer(basis, basis.T @ layer)


def _canonical(states_a, states_b, name, explained, summarise):
    """A summary of the canonical correlations of every pair of layers, float64 [L_a, L_b].

    It is NaN for a layer that has the same vector for all words.

    Args:
        summarise: function of the inner products of two bases, float64 [D, E] with D <= E, and of the units [D, H] of
            the layer with D directions.
    """
    _check(states_a, states_b, name, 2 * WORDS_PER_DIRECTION)
    if not 0 < explained <= 1:
        raise InputError(f"explained must be above 0 and at most 1, not {explained}.")
    layers_a, layers_b = ([_directions(layer, explained) for layer in states] for states in (states_a, states_b))
    similarity = np.full((len(layers_a), len(layers_b)), np.nan)
    for row, layer_a in enumerate(layers_a):
        for column, layer_b in enumerate(layers_b):
            b_has_fewer = layer_b.basis.shape[1] < layer_a.basis.shape[1]
            fewer, more = (layer_b, layer_a) if b_has_fewer else (layer_a, layer_b)
            if fewer.basis.shape[1]:
                similarity[row, column] = summarise(fewer.basis.T @ more.basis, fewer.units)
    return similarity


def _mean(products, units):
    """The mean canonical correlation: the mean of the singular values of the inner products [D, E]."""
    # The singular values are the square roots of the eigenvalues of the matrix times its transpose.
    return np.sqrt(np.clip(np.linalg.eigvalsh(products @ products.T), 0, 1)).mean()


def _weighted(products, units):
    """The mean canonical correlation, weighted by the sum of a direction's absolute dot products with all units."""
    squares, directions = np.linalg.eigh(products @ products.T)
    weights = np.abs(directions.T @ units).sum(axis=1)
    return weights @ np.sqrt(np.clip(squares, 0, 1)) / weights.sum()


ANALYSIS = Analysis(
    name="layer-similarity",
    function=compare_layers,
    summary="how alike the layers of two models are on a text or a file (CKA, SVCCA, PWCCA)",
    source="Kornblith et al. 2019; Raghu et al. 2017; Morcos et al. 2018",
    inputs="pair or file",
    options=(
        Option("other", "name or folder of the other model", metavar="M", required=True, model=True),
        Option("measure", "the measure of similarity", default="cka", choices=tuple(MEASURES), metavar="S"),
    ),
    aliases=("similarity",),
)
