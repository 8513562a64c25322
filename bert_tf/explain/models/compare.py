"""The agreement of two traces: two models on one input, or two inputs.

Dimension legend: P masks, V vocabulary, L layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional
from weakref import WeakKeyDictionary

import numpy as np

from bert_tf.analysis import Option
from bert_tf.errors import InputError, NotComparable
from bert_tf.inference.predictions import fill_mask, require_masks

if TYPE_CHECKING:
    from bert_tf.inference.trace import Trace
    from bert_tf.tokenizers.base import BaseTokenizer


_COMMON: WeakKeyDictionary[BaseTokenizer, WeakKeyDictionary[BaseTokenizer, CommonVocabulary]] = WeakKeyDictionary()
_TINY = 1e-30  # a probability whose logarithm is finite in float32
#: The option for the second model of a comparison.
OTHER_MODEL = Option("other", "name or folder of the other model", model=True, required=True, metavar="M")


@dataclass(frozen=True)
class MaskAgreement:
    """The agreement of two models at one mask.

    Attributes:
        position_a, position_b: int. The mask's token position in each trace.
        predictions_a, predictions_b: tuple of `Prediction`. The top k of each model.
        overlap: float. The share of the top k that both models have in common, 0 to 1.
        divergence: float. Jensen-Shannon divergence in bits over the common vocabulary, 0 (equal) to 1 (disjoint).
        coverage_a, coverage_b: float. The probability that each model assigns to the common vocabulary; 1 if the
            vocabularies are equal. The divergence ignores the rest.
    """

    position_a: int
    position_b: int
    predictions_a: tuple
    predictions_b: tuple
    overlap: float
    divergence: float
    coverage_a: float
    coverage_b: float


@dataclass(frozen=True)
class Comparison:
    """The comparison of two traces.

    Attributes:
        model_a, model_b: str. The names of the models.
        masks: tuple of `MaskAgreement`. The masks that both traces have, in reading order.
        unmatched_a, unmatched_b: tuple of int. The mask positions of one trace without a mask at the same place of the
            text in the other.
        common_tokens: int. The size of the common vocabulary.
        case_folded: bool. Whether upper and lower case are counted as one, because one model is lower-case.
        is_next_difference: float or None. P(IsNext) of A minus that of B; None if one of them is missing.
        layers: tuple of pairs (layer of A, layer of B) at the same relative depth.
        in_order_difference: float or None. P(in order) of A minus that of B; None if one of them is missing.
        replaced_difference: float or None. The mean absolute difference of P(replaced) over the tokens with equal
            boundaries in both traces; None if one of the models has no such head, the texts differ, or there are no
            such tokens.
    """

    model_a: str
    model_b: str
    masks: tuple
    unmatched_a: tuple
    unmatched_b: tuple
    common_tokens: int
    case_folded: bool
    is_next_difference: Optional[float]
    layers: tuple
    in_order_difference: Optional[float] = None
    replaced_difference: Optional[float] = None


def compare(
    trace_a: Trace,
    trace_b: Trace,
    tokenizer_a: BaseTokenizer,
    tokenizer_b: BaseTokenizer,
    layers_a: int,
    layers_b: int,
    top_k: int = 5,
    across: bool = False,
) -> Comparison:
    """Compare the predictions of two models for one input, or the predictions for two inputs.

    Masks are matched by their first character in the user's text, so the models may have different tokens.
    Where the vocabularies differ, distributions are compared over the tokens that both have, by their
    strings, and renormalised; if one model alone is lower-case, the other's tokens are first folded to
    lower case and the probabilities of "China" and "china" are added up.

    Args:
        trace_a, trace_b: `Trace`. Traces of the same texts.
        tokenizer_a, tokenizer_b: `Tokenizer`. The tokenizers of the two models.
        layers_a, layers_b: int. The numbers of layers of the two models.
        top_k: int. The number of predictions that the overlap counts.
        across: bool. Whether the texts may differ; masks are then paired in reading order.
    Returns:
        `Comparison`. Without masks, or if a model has no MLM head, `masks` is empty.
    Raises:
        NotComparable: the traces are of different texts.
        InputError: a number of layers is not that of the trace.
    """
    for name, trace, layers in (("a", trace_a, layers_a), ("b", trace_b, layers_b)):
        _check_layers(name, trace, layers)
    same = (trace_a.text_a, trace_a.text_b) == (trace_b.text_a, trace_b.text_b)
    if not (same or across):
        raise NotComparable("The two traces are of different texts: trace the same texts with both models.")
    common = common_vocabulary(tokenizer_a, tokenizer_b)
    pairs, unmatched_a, unmatched_b = (_matched_masks if same else _masks_in_order)(trace_a, trace_b)
    masks: tuple[MaskAgreement, ...] = ()
    if pairs and trace_a.logits is not None and trace_b.logits is not None:
        masks = _agreements(trace_a, trace_b, tokenizer_a, tokenizer_b, pairs, common, top_k)
    return Comparison(
        model_a=trace_a.model,
        model_b=trace_b.model,
        masks=masks,
        unmatched_a=unmatched_a,
        unmatched_b=unmatched_b,
        common_tokens=common.size,
        case_folded=common.case_folded,
        is_next_difference=_first_difference(trace_a.nsp, trace_b.nsp),
        layers=aligned_layers(layers_a, layers_b),
        in_order_difference=_first_difference(trace_a.sop, trace_b.sop),
        replaced_difference=_replaced_difference(trace_a, trace_b) if same else None,
    )


def _check_layers(name, trace, layers):
    """Raise InputError if a trace has another number of layers; one without attention maps does not say it."""
    if trace.attentions is not None and len(trace.attentions) != layers:
        raise InputError(f"layers_{name} is {layers}, but trace_{name} has {len(trace.attentions)} layers.")


def _first_difference(pair_a, pair_b):
    """The difference of the first probabilities of two `PairPrediction`s; None if one of them is None."""
    return None if pair_a is None or pair_b is None else pair_a[0] - pair_b[0]


def _replaced_difference(trace_a, trace_b):
    if trace_a.replaced is None or trace_b.replaced is None:
        return None

    def scores(trace):
        places = zip(trace.sources, trace.offsets)
        return {place: score for place, score in zip(places, trace.replaced) if place[0] is not None}

    scores_a, scores_b = scores(trace_a), scores(trace_b)
    differences = [abs(float(scores_a[place]) - float(scores_b[place])) for place in scores_a if place in scores_b]
    return sum(differences) / len(differences) if differences else None


def common_vocabulary(tokenizer_a: BaseTokenizer, tokenizer_b: BaseTokenizer) -> CommonVocabulary:
    """The `CommonVocabulary` of two tokenizers. It is kept as long as both of them are."""
    others = _COMMON.setdefault(tokenizer_a, WeakKeyDictionary())
    if tokenizer_b not in others:
        others[tokenizer_b] = CommonVocabulary(
            (tokenizer_a.spellings, tokenizer_a.lower_case, tokenizer_a.special_ids),
            (tokenizer_b.spellings, tokenizer_b.lower_case, tokenizer_b.special_ids),
        )
    return others[tokenizer_b]


class CommonVocabulary:
    """The token strings that two vocabularies share, and the projection of distributions over ids to them.

    Args:
        vocabulary_a, vocabulary_b: (token strings, whether they are lower-case, ids of special tokens) of each model.

    Attributes:
        size: int. The number of common tokens.
        case_folded: bool. Whether upper and lower case are counted as one, because one vocabulary is lower-case.
    """

    def __init__(self, vocabulary_a: tuple, vocabulary_b: tuple) -> None:
        self.case_folded = vocabulary_a[1] != vocabulary_b[1]
        names_a, names_b = self._names(*vocabulary_a), self._names(*vocabulary_b)
        common = {name: slot for slot, name in enumerate(sorted(set(names_a) & set(names_b)))}
        self.size = len(common)
        self._slots_a = np.array([common.get(name, self.size) for name in names_a])
        self._slots_b = np.array([common.get(name, self.size) for name in names_b])

    def _names(self, vocabulary, _, special_ids):
        special = {vocabulary[token_id] for token_id in special_ids}
        return [token if token in special or not self.case_folded else token.lower() for token in vocabulary]

    def project_a(self, probabilities: np.ndarray) -> tuple[np.ndarray, float]:
        """Project a distribution of model A to the common tokens.

        Args:
            probabilities: float [V_A].
        Returns:
            (float64 [size] that adds up to 1, the probability of the common tokens before that).
        """
        return self._project(probabilities, self._slots_a)

    def project_b(self, probabilities: np.ndarray) -> tuple[np.ndarray, float]:
        """Project a distribution of model B, float [V_B], as `project_a`."""
        return self._project(probabilities, self._slots_b)

    def _project(self, probabilities, slots):
        # The last bin takes the tokens that the other vocabulary does not have.
        binned = np.bincount(slots, weights=probabilities[: len(slots)], minlength=self.size + 1)[: self.size]
        covered = binned.sum()
        return (binned / covered if covered > 0 else binned), float(min(covered, 1.0))


def jensen_shannon(p: np.ndarray, q: np.ndarray) -> Any:
    """Jensen-Shannon divergence of distributions in bits (Lin 1991): 0 for equal, 1 for disjoint distributions.

    Args:
        p, q: float [..., V]. Each adds up to 1 over the last axis.
    Returns:
        float [...] of their dtype; a number for two distributions.
    Raises:
        InputError: the distributions are over different numbers of outcomes, or their other axes do not fit together.
    """
    p, q = np.asarray(p), np.asarray(q)
    try:
        shape = np.broadcast_shapes(p.shape, q.shape)
    except ValueError:
        shape = ()
    if not shape or p.shape[-1:] != q.shape[-1:]:
        raise InputError(f"Distributions to compare have equal shapes, not {list(p.shape)} and {list(q.shape)}.")
    mean = np.log2(np.maximum((p + q) / 2, _TINY))

    def divergence_from_mean(distribution):
        return np.sum(distribution * (np.log2(np.maximum(distribution, _TINY)) - mean), axis=-1)

    return np.clip((divergence_from_mean(p) + divergence_from_mean(q)) / 2, 0.0, 1.0)


def aligned_layers(layers_a: int, layers_b: int) -> tuple[tuple[int, int], ...]:
    """Pair the layers of two models at the same relative depth; each layer of the deeper model appears once.

    Args:
        layers_a, layers_b: int. The numbers of layers.
    Returns:
        tuple of (layer of A, layer of B), from 0, ascending; the last layers are always a pair.
    """
    depth = max(layers_a, layers_b)
    # Layer i of L ends at depth (i + 1) / L.
    return tuple((nearest_layer(i, depth, layers_a), nearest_layer(i, depth, layers_b)) for i in range(depth))


def nearest_layer(layer: int, depth: int, layers: int) -> int:
    """The layer of a model with `layers` layers that ends nearest to the relative depth of another model's layer.

    Args:
        layer: int. The other model's layer, from 0.
        depth: int. The number of the other model's layers.
        layers: int.
    """
    return max(0, round((layer + 1) * layers / depth + 1e-9) - 1)


def _matched_masks(trace_a, trace_b):
    def places(trace):
        # Several pieces may begin at one character: the bytes of a letter, or a word and the space before it.
        starts = [(trace.sources[position], trace.offsets[position][0]) for position in trace.masks]
        return {(*start, starts[:row].count(start)): row for row, start in enumerate(starts)}

    places_a, places_b = places(trace_a), places(trace_b)
    pairs = [(row, places_b[place]) for place, row in places_a.items() if place in places_b]
    unmatched_a = tuple(trace_a.masks[row] for place, row in places_a.items() if place not in places_b)
    unmatched_b = tuple(trace_b.masks[row] for place, row in places_b.items() if place not in places_a)
    return pairs, unmatched_a, unmatched_b


def _masks_in_order(trace_a, trace_b):
    common = min(len(trace_a.masks), len(trace_b.masks))
    return [(row, row) for row in range(common)], trace_a.masks[common:], trace_b.masks[common:]


def _agreements(trace_a, trace_b, tokenizer_a, tokenizer_b, pairs, common, top_k):
    require_masks(trace_a)
    answers_a = fill_mask(trace_a, tokenizer_a, top_k)
    answers_b = fill_mask(trace_b, tokenizer_b, top_k)
    agreements = []
    for row_a, row_b in pairs:
        a, b = answers_a[row_a], answers_b[row_b]
        p, coverage_a = common.project_a(softmax(trace_a.logits[row_a]))
        q, coverage_b = common.project_b(softmax(trace_b.logits[row_b]))
        agreements.append(
            MaskAgreement(
                position_a=a.position,
                position_b=b.position,
                predictions_a=a.predictions,
                predictions_b=b.predictions,
                overlap=_overlap(_names(tokenizer_a, a), _names(tokenizer_b, b), common.case_folded),
                divergence=jensen_shannon(p, q),
                coverage_a=coverage_a,
                coverage_b=coverage_b,
            )
        )
    return tuple(agreements)


def _names(tokenizer, answer):
    return {tokenizer.spellings[prediction.id] for prediction in answer.predictions}


def _overlap(names_a, names_b, case_folded):
    if case_folded:
        names_a, names_b = ({name.lower() for name in names} for names in (names_a, names_b))
    # Case folding may merge "The" and "the"; at most the smaller set can then be in common.
    return len(names_a & names_b) / max(1, min(len(names_a), len(names_b)))


def softmax(scores: np.ndarray) -> np.ndarray:
    """Softmax over the last axis in float64, for scores of any shape."""
    scores = np.asarray(scores, np.float64)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)
