"""Layer-wise relevance propagation (LRP): divides a target's log-odds among the token vectors, backwards by layers.

The rules for Transformers treat the attention weights, the standard deviation of a layer normalisation and the gate of
an activation as constants; GELU is x times the gate Phi(x). The remaining steps are linear and lose no relevance:
gradients times token vectors, gradients times position and segment embeddings, and gradients times biases add up to
the log-odds.

Dimension legend: T tokens, K outcomes of a head. Sources: Ali et al. 2022, "XAI for Transformers: Better Explanations
through Conservative Propagation", sections 3 and 4 (attention, normalisations); Bach et al. 2015 (conservation; an
activation passes on all the relevance that it receives).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.explain.attribution.saliency import Saliency
from bert_tf.explain.interventions.contributions import check_has_odds
from bert_tf.inference.batching import batched_answers

if TYPE_CHECKING:
    from bert_tf.explain.attribution.target import Target
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace


def layerwise_relevance(
    bert: Bert, trace: Trace, target: Target, progress: Callable[[int, int], Any] | None = None
) -> Saliency:
    """Divide a target's log-odds among the token vectors.

    The log-odds are the logit of the target minus the logarithm of the summed exponentials of all other logits. Their
    gradient does not vanish when the probability is close to 1.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace.
        target: Target.
        progress: callable(done, total) or None. Counts layers, forwards and backwards; returning False cancels.
    Returns:
        `Saliency` with `log_odds` and `rest`: "places", the relevance of position and segment embeddings; "biases",
        the relevance of the biases of all layers and the head; "spread", minus the entropy in nats of the distribution
        over the other outcomes (0 if there is only one): the logarithm of their summed exponentials is their mean logit
        plus that entropy. The tokens and the rest add up to the log-odds, or to the value of a regression.
    Raises:
        InputError: the target is the only class of the model (`is_only_class`).
        Cancelled: `progress` returned False.
    """
    check_has_odds(bert, target)
    from bert_tf.explain.attribution.backward_rules import LRPRules
    from bert_tf.explain.attribution.rule_propagation import RulePropagation

    vectors = bert.hooked().token_vectors(trace.token_ids[None]).numpy()
    propagation = RulePropagation(bert.hooked(), LRPRules())
    (odds,), gradient, total, biases = propagation.gradients(vectors, trace.segments[None], target, progress)
    ((_, answers),) = batched_answers(bert, trace.token_ids[None], trace.segments, target)
    gradient = gradient.astype(np.float64)
    scores = (gradient * vectors).sum(axis=(0, 2))
    places = float((gradient * (total - vectors)).sum())
    spread = 0.0 if target.is_regression or target.is_multi_label else -_entropy(np.delete(answers[0], target.id))
    return Saliency.of(
        trace,
        "lrp",
        target,
        float(answers[0, target.id]),
        scores,
        log_odds=float(odds),
        rest={"places": places, "biases": biases, "spread": spread},
    )


def _entropy(log_probabilities: np.ndarray) -> float:
    """Entropy in nats of the normalised distribution over some outcomes, from their log-probabilities [K]."""
    logs = log_probabilities.astype(np.float64)
    logs -= logs.max()
    logs -= np.log(np.exp(logs).sum())
    return float(-(np.exp(logs) * logs).sum())
