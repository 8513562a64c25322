"""Whether the layers of two models hold the same: linear centred kernel alignment, and canonical correlations.

Dimension legend: L layers, W words, H hidden, D directions of a layer. Pure NumPy. Sources: Kornblith et al. 2019,
"Similarity of Neural Network Representations Revisited"; without the bias of small samples, Nguyen et al. 2021, "Do
Wide and Deep Networks Learn the Same Things?", section 2; Raghu et al. 2017, "SVCCA: Singular Vector Canonical
Correlation Analysis for Deep Learning Dynamics and Interpretability"; Morcos et al. 2018, "Insights on representational
similarity in neural networks with canonical correlation" (PWCCA).
"""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError, NotComparable, report
from bert_tf.explain.representations.vectors import word_vectors
from bert_tf.results import Result, frame

#: Words that are enough: every pair of them is a number, for every layer of both models.
MIN_WORDS = 600
#: Words for each direction of a layer that canonical correlations may use, at least: with as many directions as words
#: any two layers are the same to them.
WORDS_PER_DIRECTION = 3


def linear_cka(states_a, states_b, debiased=True):
    """CKA of every layer of one model with every layer of another, on the same W words.

    Args:
        states_a: float [L_a, W, H_a]. states_b: float [L_b, W, H_b].
        debiased: use the unbiased estimate (Song et al. 2012), which needs 4 words and may fall below 0; the
            plain one calls any two layers alike as soon as H is larger than W.
    Returns:
        float64 [L_a, L_b]; 1 the same up to rotation and scale, 0 nothing in common. NaN where a layer does
        not tell the words apart.
    Raises:
        InputError: not the same words, or too few.
    """
    _check(states_a, states_b, "CKA", 4 if debiased else 2)
    grams_a, grams_b = (np.stack([_gram(layer, debiased) for layer in states]) for states in (states_a, states_b))
    flat_a, flat_b = (grams.reshape(len(grams), -1) for grams in (grams_a, grams_b))
    inner = _inner(flat_a, flat_b, grams_a, grams_b, debiased)
    own_a, own_b = (_own(grams, debiased) for grams in (grams_a, grams_b))
    norms = np.sqrt(np.maximum(np.outer(own_a, own_b), 0))
    return np.divide(inner, norms, out=np.full(inner.shape, np.nan), where=norms > 0)


def svcca(states_a, states_b, explained=0.99):
    """SVCCA of every layer of one model with every layer of another, on the same W words.

    Of each layer the directions are kept that vary most, until they explain so much of its variance, at most W / 3 of
    them; it is the mean of the canonical correlations between the two layers' directions.

    Args:
        states_a: float [L_a, W, H_a]. states_b: float [L_b, W, H_b].
        explained: share of a layer's variance, above 0 to 1.
    Returns:
        float64 [L_a, L_b], 0 to 1; 1 the same up to an invertible linear map. The more directions there are for the
        words, the more of it comes by chance. NaN where a layer does not tell the words apart.
    Raises:
        InputError: not the same words, too few, or no such share.
    """
    return _canonical(states_a, states_b, "SVCCA", explained, _mean)


def pwcca(states_a, states_b, explained=0.99):
    """PWCCA of every layer of one model with every layer of another: `svcca`, each canonical correlation weighted by
    how much its direction accounts for of the layer of which fewer directions are kept (the first, of as many).

    Args, Returns and Raises as of `svcca`.
    """
    return _canonical(states_a, states_b, "PWCCA", explained, _weighted)


#: Name -> function (states_a, states_b) -> float64 [L_a, L_b].
MEASURES = {"cka": linear_cka, "svcca": svcca, "pwcca": pwcca}


@dataclass(frozen=True, eq=False)
class LayerSimilarity(Result, figures={"map": "bert_tf.plots.models.compare:layer_similarity_map"}):
    """How alike all layers of two models are.

    Attributes:
        model_a, model_b: their names.
        measure: a key of `MEASURES`.
        similarity: float64 [L_a + 1, L_b + 1], state 0 the embeddings; NaN where the measure has no value.
        chance_similarity: what `chance_similarity` gives.
        texts, words: how many were read of the first model.
    """

    model_a: str
    model_b: str
    measure: str
    similarity: np.ndarray
    chance_similarity: float
    texts: int
    words: int

    def to_frame(self):
        """A row for each pair of hidden states, 0 the embeddings."""
        rows, columns = self.similarity.shape
        return frame(
            {
                "hidden_state_a": np.repeat(np.arange(rows), columns),
                "hidden_state_b": np.tile(np.arange(columns), rows),
                self.measure: self.similarity.ravel(),
            }
        )


def compare_traces(traces_a, traces_b, measure="cka"):
    """How alike all layers of two models are, and what comes by chance; the arguments as of `layer_similarity`.

    Args:
        traces_a, traces_b: lists of `Trace`s. measure: a key of `MEASURES`.
    Returns:
        `LayerSimilarity`.
    Raises:
        As `layer_similarity`.
    """
    return LayerSimilarity(
        model_a=traces_a[0].model,
        model_b=traces_b[0].model,
        measure=measure,
        similarity=layer_similarity(traces_a, traces_b, measure=measure),
        chance_similarity=chance_similarity(traces_a, traces_b, measure),
        texts=len(traces_a),
        words=sum(len(trace.words()) for trace in traces_a),
    )


def compare_layers(bert, trace, rows, other, measure="cka", progress=None):
    """How alike the layers of two models are on the words of a text, or of a file.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace` with hidden states; None where there are rows.
        rows: `TextRow`s, which are read until there are `MIN_WORDS` words; None where there is a trace.
        other: another `Bert`. measure: a key of `MEASURES`.
        progress: callable(done, total) in rows; returning False cancels.
    Returns:
        `LayerSimilarity`.
    Raises:
        As `layer_similarity`. Cancelled: by `progress`.
    """
    if trace is not None:
        masked = [word.text for word in trace.words() if set(word.positions) & set(trace.masks)]
        masked = [word for word in dict.fromkeys(masked) if word != "[MASK]"]
        return compare_traces([trace], [other.trace(trace.text_a, trace.text_b, masked)], measure)
    readers = [functools.partial(model.trace, attentions=False) for model in (bert, other)]
    traces = traces_of(readers, [(row.text_a, row.text_b) for row in rows], progress=progress)
    return compare_traces(*traces, measure)


def layer_similarity(traces_a, traces_b, debiased=True, measure="cka"):
    """How alike all layers of two models are, on the words of some texts.

    A word is the mean of its pieces, so the models may cut words differently.

    Args:
        traces_a, traces_b: `Trace`s with hidden states of the same texts by either model, or one `Trace`
            each.
        debiased: as in `linear_cka`. measure: a key of `MEASURES`.
    Returns:
        float64 [L_a + 1, L_b + 1], state 0 the embeddings.
    Raises:
        NotComparable: the texts differ. InputError: no such measure, no hidden states, or too few words.
    """
    return _function(measure, debiased)(*_states(traces_a, traces_b))


def chance_similarity(traces_a, traces_b, measure="cka", draws=5):
    """What a measure gives for the two models' last layers when nothing goes together: the words of one are shuffled.

    Args:
        traces_a, traces_b, measure: as in `layer_similarity`.
        draws: shuffles, whose mean it is; the same in every call.
    Returns:
        float; NaN where the measure has no value.
    Raises:
        As `layer_similarity`.
    """
    one, other = (states[-1:] for states in _states(traces_a, traces_b))
    rng, function = np.random.default_rng(0), _function(measure)
    return float(np.mean([function(one, other[:, rng.permutation(other.shape[1])])[0, 0] for _ in range(draws)]))


def _function(measure, debiased=True):
    if measure not in MEASURES:
        raise InputError(f"There is no measure {measure!r:.40}: known are {', '.join(MEASURES)}.")
    return functools.partial(linear_cka, debiased=debiased) if measure == "cka" else MEASURES[measure]


def _states(traces_a, traces_b):
    """The two models' states on the words that both have, float [L + 1, W, H] each."""
    traces_a, traces_b = ([one] if hasattr(one, "tokens") else list(one) for one in (traces_a, traces_b))
    texts_a, texts_b = ([(one.text_a, one.text_b) for one in traces] for traces in (traces_a, traces_b))
    if texts_a != texts_b or not texts_a:
        raise NotComparable("The traces are of different texts: trace the same texts with both models.")
    vectors = ([], [])
    for pair in zip(traces_a, traces_b):
        words = [{(word.source, word.start, word.end): word for word in trace.words()} for trace in pair]
        # A text cut off earlier by one model has fewer words there.
        common = [place for place in words[0] if place in words[1]]
        for states, trace, spans in zip(vectors, pair, words):
            if common:
                states.append(word_vectors(trace, [spans[place] for place in common]))
    if not vectors[0]:
        raise NotComparable("The two models have no word of these texts in common.")
    return [np.concatenate(states, axis=1) for states in vectors]


def traces_of(readers, texts, enough=MIN_WORDS, progress=None):
    """Traces of texts by several models, for `layer_similarity`; no more texts are read than give enough words.

    Args:
        readers: a function (text_a, text_b or None) -> `Trace` with hidden states for each model.
        texts: pairs (text_a, text_b or None). enough: words, as the first model counts them, after which reading ends.
        progress: callable(done, total) in texts; returning False cancels.
    Returns:
        A list of `Trace`s for each model.
    Raises:
        Cancelled: by `progress`.
    """
    words, traces = 0, [[] for _ in readers]
    for done, (text_a, text_b) in enumerate(texts, start=1):
        for read, kept in zip(readers, traces):
            kept.append(read(text_a, text_b))
        words += len(traces[0][-1].words())
        report(progress, done, len(texts))
        if words >= enough:
            break
    return traces


def _gram(layer, debiased):
    """The inner products of the words' vectors [W, W]: centred, or with the diagonal empty for the unbiased
    estimate."""
    layer = np.asarray(layer, np.float64)
    layer = layer - layer.mean(axis=0)
    gram = layer @ layer.T
    if debiased:
        np.fill_diagonal(gram, 0)
    return gram


def _hsic(product, sums_a, sums_b, both, words):
    """Song et al. 2012, equation 5, less a factor that cancels in CKA."""
    return product + sums_a * sums_b / ((words - 1) * (words - 2)) - 2 * both / (words - 2)


def _inner(flat_a, flat_b, grams_a, grams_b, debiased):
    product = flat_a @ flat_b.T
    if not debiased:
        return product
    rows_a, rows_b = grams_a.sum(axis=2), grams_b.sum(axis=2)
    return _hsic(product, rows_a.sum(axis=1)[:, None], rows_b.sum(axis=1), rows_a @ rows_b.T, grams_a.shape[1])


def _own(grams, debiased):
    return np.array(
        [_inner(gram.reshape(1, -1), gram.reshape(1, -1), gram[None], gram[None], debiased)[0, 0] for gram in grams]
    )


def _check(states_a, states_b, name, least):
    words = states_a.shape[1]
    if words != states_b.shape[1]:
        raise InputError(f"Both models' layers must be of the same words, not of {words} and {states_b.shape[1]}.")
    if words < least:
        raise InputError(f"{name} needs at least {least} words, not {words}: use a longer text or several.")


class _Layer(NamedTuple):
    """A layer on W words: an orthonormal basis of its directions that are kept, float64 [W, D], and what each of these
    has in common with each unit of the layer [D, H]."""

    basis: np.ndarray
    units: np.ndarray


def _directions(layer, explained):
    layer = np.asarray(layer, np.float64)
    layer = layer - layer.mean(axis=0)
    # The squared singular values and left singular vectors; of so many words this takes a fraction of the time.
    variances, vectors = np.linalg.eigh(layer @ layer.T)
    variances, vectors = variances[::-1], vectors[:, ::-1]
    there = int((variances > variances[0] * sum(layer.shape) * np.finfo(np.float64).eps).sum())
    if not there:
        return _Layer(vectors[:, :0], layer[:0])
    reached = np.cumsum(variances[:there]) / variances[:there].sum()
    enough = there if explained == 1 else int(np.searchsorted(reached, explained)) + 1
    basis = vectors[:, : min(there, enough, len(layer) // WORDS_PER_DIRECTION)]
    return _Layer(basis, basis.T @ layer)


def _canonical(states_a, states_b, name, explained, summed):
    """What `summed` makes of every pair of layers that tell the words apart.

    Args:
        summed: function of the inner products of two bases, float64 [D, E] with D <= E, and of the units [D, H] of the
            layer with D directions.
    """
    _check(states_a, states_b, name, 2 * WORDS_PER_DIRECTION)
    if not 0 < explained <= 1:
        raise InputError(f"explained must be above 0 and at most 1, not {explained}.")
    layers_a, layers_b = ([_directions(layer, explained) for layer in states] for states in (states_a, states_b))
    found = np.full((len(layers_a), len(layers_b)), np.nan)
    for row, one in enumerate(layers_a):
        for column, other in enumerate(layers_b):
            fewer, more = (other, one) if other.basis.shape[1] < one.basis.shape[1] else (one, other)
            if fewer.basis.shape[1]:
                found[row, column] = summed(fewer.basis.T @ more.basis, fewer.units)
    return found


def _mean(products, units):
    """The mean canonical correlation: of the singular values, the roots of the eigenvalues of their square."""
    return np.sqrt(np.clip(np.linalg.eigvalsh(products @ products.T), 0, 1)).mean()


def _weighted(products, units):
    """The mean canonical correlation, each weighted by the sum of what its direction has in common with every unit."""
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
        Option("measure", "how alike two layers are", default="cka", choices=tuple(MEASURES), metavar="S"),
    ),
    aliases=("similarity",),
)
