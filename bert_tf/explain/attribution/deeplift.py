"""DeepLift: the difference between an answer here and at a reference, shared out among the token vectors.

Both are read, and every step of the model passes on backwards the differences that it was given, by multipliers. By the
Rescale rule that of an elementwise function is the difference that comes out over the one that goes in. A product of
two things that both differ is shared between them by halves (of two factors the Shapley values); softmax is exp(x - log
of the sum of all exp(x)), a normalisation the centred input times 1 / sqrt(variance). As no step loses anything, the
scores add up to the difference of the answers.

Dimension legend: B rows (the reference, then the input), R references, T tokens, H hidden, K possible answers. Sources:
Shrikumar et al. 2017, section 3.5.2 (Rescale); Lundberg and Lee 2017, section 4.2 (multipliers of parts put together;
the mean over several references, which Captum calls DeepLiftShap).
"""

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.explain.attribution.saliency import (
    Saliency,
    baseline_token_ids,
    replaceable_mask,
)


def deeplift(bert, trace, target, baseline="[PAD]", progress=None):
    """What each token's vector does to the difference between an answer here and at a reference.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`. target: a `Target`.
        baseline: what stands for every token of the texts in the reference, as in `integrated_gradients`; or a list of
            texts, for the mean over a reference of each: its tokens in the place of those of the trace, from its first
            on, and over again where it is shorter.
        progress: callable(done, total) in layers, there and back, for each reference; returning False cancels.
    Returns:
        `Saliency` with `baseline_log_probability` (of several references the mean) and `convergence_delta`.
    Raises:
        InputError: no such baseline. Cancelled: by `progress`.
    """
    from bert_tf.explain.attribution.backward_rules import DeepLiftRules
    from bert_tf.explain.attribution.rule_propagation import RulePropagation

    references = (
        baseline_token_ids(bert, trace, baseline)[None] if isinstance(baseline, str) else _filled(bert, trace, baseline)
    )
    segments, passes = np.repeat(trace.segments[None], 2, axis=0), RulePropagation(bert.hooked(), DeepLiftRules())
    total, before = np.zeros(trace.length), 0.0
    for number, reference in enumerate(references):
        vectors = bert.hooked().token_vectors(np.stack([reference, trace.token_ids])).numpy()
        scores, gradients, _, _ = passes.gradients(
            vectors,
            segments,
            target,
            lambda done, layers: report(progress, number * layers + done, len(references) * layers),
        )
        total += (gradients[1] * (vectors[1] - vectors[0]).astype(np.float64)).sum(axis=1)
        before, after = before + float(scores[0]), float(scores[1])
    tokens, before = total / len(references), before / len(references)
    convergence_delta = float(tokens.sum() - (after - before))
    return Saliency.of(
        trace,
        "deeplift",
        target,
        after,
        tokens,
        baseline_log_probability=before,
        convergence_delta=convergence_delta,
    )


def _filled(bert, trace, texts):
    """The trace's token ids with the tokens of each text in the place of those that may be replaced, int32 [R, T]."""
    places = np.flatnonzero(replaceable_mask(trace))
    tokens = [found for found in bert.tokenizer.batch_ids(texts) if len(found)]
    if not tokens:
        raise InputError("A reference is made of the tokens of a text, and none of the texts given has one.")
    references = np.repeat(trace.token_ids[None], len(tokens), axis=0)
    for reference, found in zip(references, tokens):
        reference[places] = np.resize(found, len(places))
    return references
