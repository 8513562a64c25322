"""Two models on one input, or two inputs: where they agree.

Dimension legend: P masks, V vocabulary, L layers.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Optional

import numpy as np

from bert_tf.analysis import Option
from bert_tf.errors import NotComparable
from bert_tf.inference.predictions import fill_mask, require_masks

#: The model that one is compared with.
OTHER_MODEL = Option("other", "name or folder of the other model", model=True, required=True, metavar="M")


@dataclass(frozen=True)
class MaskAgreement:
    """How far two models agree at one mask.

    Attributes:
        position_a, position_b: the mask's token position in either trace.
        predictions_a, predictions_b: `Prediction`s, the top k of either.
        overlap: share of the top k that both name, 0 to 1.
        divergence: Jensen-Shannon divergence in bits, 0 (the same) to 1 (nothing in common), over the common
            vocabulary.
        coverage_a, coverage_b: how much probability of either lies in the common vocabulary; 1 if the
            vocabularies are the same. The divergence says nothing about the rest.
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
    """Two models on one input.

    Attributes:
        model_a, model_b: their names.
        masks: `MaskAgreement`s of the masks both have, in reading order.
        unmatched_a, unmatched_b: mask positions of one trace without a mask at the same place in the other's.
        common_tokens: size of the vocabulary that was compared.
        case_folded: whether upper and lower case were counted as one because one model knows only lower case.
        is_next_difference: P(IsNext) of A less that of B; None if either has none.
        layers: pairs (layer of A, layer of B) at the same relative depth.
        in_order_difference: P(in order) of A less that of B; None if either has none.
        replaced_difference: mean absolute difference of P(replaced) over the tokens that both cut alike; None if
            either has none, the texts differ, or no token is cut alike.
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


def compare(trace_a, trace_b, tokenizer_a, tokenizer_b, layers_a, layers_b, top_k=5, across=False):
    """Compare what two models say about one input, or what is said about two inputs.

    Masks are matched by where they begin in the user's text, so the models may cut it into different tokens.
    Where the vocabularies differ, distributions are compared over the tokens that both have, by their
    strings, and renormalised to them; if just one model is lower-case, the other's tokens are first folded to
    lower case and the probabilities of "China" and "china" added up.

    Args:
        trace_a, trace_b: traces of the same texts.
        tokenizer_a, tokenizer_b: of the two models.
        layers_a, layers_b: their numbers of layers.
        top_k: how many predictions the overlap looks at.
        across: whether the texts may differ; masks are then paired in reading order.
    Returns:
        `Comparison`. Without masks, or if a model has no MLM head, `masks` is empty.
    Raises:
        NotComparable: the traces are of different texts.
    """
    same = (trace_a.text_a, trace_a.text_b) == (trace_b.text_a, trace_b.text_b)
    if not (same or across):
        raise NotComparable("The two traces are of different texts: trace the same texts with both models.")
    common = common_vocabulary(tokenizer_a, tokenizer_b)
    pairs, unmatched_a, unmatched_b = (_matched_masks if same else _masks_in_order)(trace_a, trace_b)
    masks = ()
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


def _first_difference(one, other):
    """The first of two answers' probabilities, subtracted; None if either is None."""
    return None if one is None or other is None else one[0] - other[0]


def _replaced_difference(trace_a, trace_b):
    if trace_a.replaced is None or trace_b.replaced is None:
        return None

    def scores(trace):
        places = zip(trace.sources, trace.offsets)
        return {place: score for place, score in zip(places, trace.replaced) if place[0] is not None}

    one, other = scores(trace_a), scores(trace_b)
    apart = [abs(float(one[place]) - float(other[place])) for place in one if place in other]
    return sum(apart) / len(apart) if apart else None


def common_vocabulary(tokenizer_a, tokenizer_b):
    """The `CommonVocabulary` of two tokenizers; the last few are kept."""
    return _common(*((one.spellings, one.lower_case, one.special_ids) for one in (tokenizer_a, tokenizer_b)))


@lru_cache(maxsize=4)
def _common(known_a, known_b):
    return CommonVocabulary(known_a, known_b)


class CommonVocabulary:
    """The token strings two vocabularies share, and the way from either's ids to them."""

    def __init__(self, known_a, known_b):
        self.case_folded = known_a[1] != known_b[1]
        names_a, names_b = self._names(*known_a), self._names(*known_b)
        common = {name: slot for slot, name in enumerate(sorted(set(names_a) & set(names_b)))}
        self.size = len(common)
        self._slots_a = np.array([common.get(name, self.size) for name in names_a])
        self._slots_b = np.array([common.get(name, self.size) for name in names_b])

    def _names(self, vocabulary, _, special_ids):
        special = {vocabulary[i] for i in special_ids}
        return [t if t in special or not self.case_folded else t.lower() for t in vocabulary]

    def project_a(self, probabilities):
        """Float [V_A] -> (float64 [common] that adds up to 1, the share of probability that was in it)."""
        return self._project(probabilities, self._slots_a)

    def project_b(self, probabilities):
        """Float [V_B] -> (float64 [common] that adds up to 1, the share of probability that was in it)."""
        return self._project(probabilities, self._slots_b)

    def _project(self, probabilities, slots):
        # The last bin takes everything the other vocabulary does not have.
        binned = np.bincount(slots, weights=probabilities[: len(slots)], minlength=self.size + 1)[: self.size]
        covered = binned.sum()
        return (binned / covered if covered > 0 else binned), float(min(covered, 1.0))


def jensen_shannon(p, q):
    """Jensen-Shannon divergence of two distributions in bits (Lin 1991): 0 the same, 1 nothing in common.

    Args:
        p, q: float [V], each adding up to 1.
    """
    middle = (p + q) / 2

    def to_middle(r):
        there = r > 0
        return float(np.sum(r[there] * np.log2(r[there] / middle[there])))

    return float(np.clip((to_middle(p) + to_middle(q)) / 2, 0.0, 1.0))


def aligned_layers(layers_a, layers_b):
    """Pair the layers of two models at the same relative depth; the deeper model's layers each appear once.

    Args:
        layers_a, layers_b: numbers of layers.
    Returns:
        tuple of (layer of A, layer of B), from 0, ascending; the last layers are always a pair.
    """
    depth = max(layers_a, layers_b)
    # Layer i of L ends at depth (i + 1) / L.
    return tuple((_nearest(i, depth, layers_a), _nearest(i, depth, layers_b)) for i in range(depth))


def _nearest(layer, depth, layers):
    return max(0, round((layer + 1) * layers / depth + 1e-9) - 1)


def _matched_masks(trace_a, trace_b):
    def places(trace):
        return {(trace.sources[p], trace.offsets[p][0]): row for row, p in enumerate(trace.masks)}

    places_a, places_b = places(trace_a), places(trace_b)
    pairs = [(row, places_b[place]) for place, row in places_a.items() if place in places_b]
    alone_a = tuple(trace_a.masks[row] for place, row in places_a.items() if place not in places_b)
    alone_b = tuple(trace_b.masks[row] for place, row in places_b.items() if place not in places_a)
    return pairs, alone_a, alone_b


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
    # Folding may make one of "The" and "the": the smaller set is then all that could be shared.
    return len(names_a & names_b) / max(1, min(len(names_a), len(names_b)))


def softmax(scores):
    """Softmax over the last axis in float64."""
    shifted = np.asarray(scores, np.float64)
    shifted = np.exp(shifted - shifted.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)
