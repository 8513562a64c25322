"""DeepLIFT: divides the difference between a target's score at the input and at a reference among the token vectors.

The model reads the reference and the input together. Going backwards, every step multiplies by a multiplier instead of
a gradient. By the Rescale rule the multiplier of an elementwise function is the difference of its outputs divided by
the difference of its inputs. A product of two factors that both differ gives half of the interaction to each (their
Shapley values). Softmax is computed as exp(x - log(sum(exp(x)))), a normalisation as the centred input times
1 / sqrt(variance). No step loses a part of the difference, so the scores add up to the difference of the target's
scores.

Dimension legend: B rows (the reference, then the input), R references, T tokens, H hidden, K outcomes of a head.
Sources: Shrikumar et al. 2017, section 3.5.2 (Rescale); Lundberg and Lee 2017, section 4.2 (multipliers of composed
steps; the mean over several references, which Captum calls DeepLiftShap).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.explain.attribution.saliency import Saliency, baseline_token_ids, replaceable_mask

if TYPE_CHECKING:
    from bert_tf.explain.attribution.target import Target
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace


def deeplift(
    bert: Bert,
    trace: Trace,
    target: Target,
    baseline: str | Sequence[str] = "[MASK]",
    progress: Callable[[int, int], Any] | None = None,
) -> Saliency:
    """What each token's vector adds to the difference of a target's log-probability between the input and a reference.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace.
        target: Target.
        baseline: str or sequence of strings. The token in place of every token of the texts, as in
            `integrated_gradients`; or several texts, each of them a reference whose tokens replace those of the trace
            in order, repeated if there are too few. The scores are the mean over the references.
        progress: callable(done, total) or None. Counts the layers, forwards and backwards, of all references;
            returning False cancels.
    Returns:
        `Saliency` with `baseline_log_probability` (the mean over the references) and `convergence_delta`.
    Raises:
        InputError: the baseline is not in the vocabulary, or the texts have no tokens.
        Cancelled: `progress` returned False.
    """
    from bert_tf.explain.attribution.backward_rules import DeepLiftRules
    from bert_tf.explain.attribution.rule_propagation import RulePropagation

    references = (
        baseline_token_ids(bert, trace, baseline)[None]
        if isinstance(baseline, str)
        else _references(bert, trace, baseline)
    )
    segments, propagation = np.repeat(trace.segments[None], 2, axis=0), RulePropagation(bert.hooked(), DeepLiftRules())
    total, before = np.zeros(trace.length), 0.0
    for number, reference in enumerate(references):
        vectors = bert.hooked().token_vectors(np.stack([reference, trace.token_ids])).numpy()
        scores, gradients, _, _ = propagation.gradients(
            vectors,
            segments,
            target,
            lambda done, layers: report(progress, number * layers + done, len(references) * layers),
        )
        total += (gradients[1] * (vectors[1] - vectors[0]).astype(np.float64)).sum(axis=1)
        before, after = before + float(scores[0]), float(scores[1])
    token_scores, before = total / len(references), before / len(references)
    convergence_delta = float(token_scores.sum() - (after - before))
    return Saliency.of(
        trace,
        "deeplift",
        target,
        after,
        token_scores,
        baseline_log_probability=before,
        convergence_delta=convergence_delta,
    )


def _references(bert: Bert, trace: Trace, texts: Sequence[str]) -> np.ndarray:
    """The trace's token ids with the tokens of each text in place of those of `replaceable_mask`, int32 [R, T]."""
    positions = np.flatnonzero(replaceable_mask(trace))
    ids_of_texts = [ids for ids in bert.tokenizer.batch_ids(texts) if len(ids)]
    if not ids_of_texts:
        raise InputError("The reference texts have no tokens: give at least one text with a word.")
    references = np.repeat(trace.token_ids[None], len(ids_of_texts), axis=0)
    for reference, ids in zip(references, ids_of_texts):
        reference[positions] = np.resize(ids, len(positions))
    return references
