"""DeepLift: the difference between an answer here and at a reference, shared out among the token vectors.

Both are read, and every step of the model passes on backwards the differences that it was given, by multipliers. By the
Rescale rule that of an elementwise function is the difference that comes out over the one that goes in. A product of
two things that both differ is shared between them by halves (of two factors the Shapley values); softmax is exp(x - log
of the sum of all exp(x)), a normalisation the centred input times 1 / sqrt(variance). As no step loses anything, the
scores add up to the difference of the answers.

Dimension legend: B rows (the reference, then the input), T tokens, H hidden, K possible answers. Sources: Shrikumar et
al. 2017, section 3.5.2 (Rescale); Lundberg and Lee 2017, section 4.2
(multipliers of parts put together).
"""

import numpy as np

from bert_tf.explain.saliency import Saliency, erased, word_scores


def deeplift(bert, trace, target, baseline="[PAD]", progress=None):
    """What each token's vector does to the difference between an answer here and at a reference.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`. target: a `Target`.
        baseline: what stands for every token of the texts in the reference, as in `integrated_gradients`.
        progress: callable(done, total) in layers, there and back; returning False cancels.
    Returns:
        `Saliency` with `baseline_score` and `gap`.
    Raises:
        InputError: no such baseline. Cancelled: by `progress`.
    """
    from bert_tf.explain.ruled import Ruled
    from bert_tf.explain.rules import Multipliers

    ids = np.stack([erased(bert, trace, baseline), trace.token_ids])
    vectors = bert.opened.token_vectors(ids).numpy()
    segments = np.repeat(trace.segments[None], 2, axis=0)
    scores, slopes, _, _ = Ruled(bert.opened, Multipliers()).slopes(vectors, segments, target, progress)
    before, after = (float(score) for score in scores)
    tokens = (slopes[1] * (vectors[1] - vectors[0]).astype(np.float64)).sum(axis=1)
    gap = float(tokens.sum() - (after - before))
    return Saliency("deeplift", target, after, tokens, word_scores(trace, tokens), before, gap)
