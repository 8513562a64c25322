"""Layer-wise relevance propagation: an answer's log-odds shared out among the token vectors, layer by layer backwards.

By the rules for Transformers the weights of attention and the spread that a normalisation divides by are held as they
are in the pass, and so is the gate of an activation: of GELU, x times the normal distribution's share below x, that
share. What is left is linear, so that nothing gets lost on the way: gradients times token vectors, what positions and
segments bring, and gradients times biases add up to the log-odds.

Dimension legend: T tokens, K possible answers. Sources: Ali et al. 2022, "XAI for Transformers: Better Explanations
through Conservative Propagation", sections 3 and 4 (attention, normalisations); Bach et al. 2015 (conservation; an
activation gives on what it is given).
"""

import numpy as np

from bert_tf.errors import InputError
from bert_tf.explain.attribution.saliency import Saliency
from bert_tf.explain.interventions.contributions import is_only_class
from bert_tf.inference.batching import batched_answers


def layerwise_relevance(bert, trace, target, progress=None):
    """Share an answer's log-odds out among the token vectors.

    Log-odds are the difference of logits between the target and all else: their gradient does not vanish where the
    probability comes near 1.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`. target: a `Target`.
        progress: callable(done, total) in layers, there and back; returning False cancels.
    Returns:
        `Saliency` with `log_odds` and `rest`: "places", what positions and segments bring; "biases", those of all
        layers and the head; "spread", less the entropy, in nats, of how the other answers share what they have among
        themselves (0 where there is one): the logarithm of their sum is their mean logit and this. The tokens and the
        rest add up to the log-odds, or to the value of a regression.
    Raises:
        InputError: `is_only_class`. Cancelled: by `progress`.
    """
    if is_only_class(bert, target):
        raise InputError(f"{target.label} is the only class, and always certain: nothing speaks for or against it.")
    from bert_tf.explain.attribution.backward_rules import LRPRules
    from bert_tf.explain.attribution.rule_propagation import RulePropagation

    vectors = bert.hooked().token_vectors(trace.token_ids[None]).numpy()
    asked = vectors, trace.segments[None], target, progress
    (odds,), gradient, total, biases = RulePropagation(bert.hooked(), LRPRules()).gradients(*asked)
    ((_, answers),) = batched_answers(bert, trace.token_ids[None], trace.segments, target)
    gradient = gradient.astype(np.float64)
    tokens = (gradient * vectors).sum(axis=(0, 2))
    places = float((gradient * (total - vectors)).sum())
    spread = 0.0 if target.is_regression or target.is_multi_label else -_entropy(np.delete(answers[0], target.id))
    return Saliency.of(
        trace,
        "lrp",
        target,
        float(answers[0, target.id]),
        tokens,
        log_odds=float(odds),
        rest={"places": places, "biases": biases, "spread": spread},
    )


def _entropy(log_shares):
    """Entropy in nats of how answers share what they have, from their log-probabilities [K]."""
    logs = log_shares.astype(np.float64)
    logs -= logs.max()
    logs -= np.log(np.exp(logs).sum())
    return float(-(np.exp(logs) * logs).sum())
