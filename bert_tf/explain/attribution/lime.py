"""LIME: a linear model of how an answer changes when random words of its input are covered.

Dimension legend: T tokens, W words, S samples. Source: Ribeiro et al. 2016, "Why Should I Trust You?", section 3. How
words are drawn and how near a sample is are as in its authors' program (lime 0.2, `lime_text`). That takes a word
wherever it stands for one feature and removes all its occurrences; here every occurrence is one of its own, and is
covered. That fits once more with the 10 strongest features alone; here the first fit, with all words, is kept. And that
takes a ridge of 1 with 5,000 samples.
"""

import numpy as np

from bert_tf.errors import InputError
from bert_tf.explain.attribution.saliency import (
    Saliency,
    baseline_token_ids,
    replaceable_word_positions,
    target_log_probabilities,
)

MAX_SAMPLES = 5000
_FOLDS = 10  # of the draws that the model is tested on


def lime(bert, trace, target, samples=128, baseline="[MASK]", width=0.25, ridge=1e-3, seed=0, progress=None):
    """The weights of a linear model that foretells the answer from which words are there.

    The first sample is the input itself. In each other one as many words as a fair draw from 1 to W says, chosen by
    chance, are covered. A sample counts by how near it is to the input: sqrt(exp(-d^2 / width^2)), d being the cosine
    distance of the two rows of zeros and ones. Masks, [CLS] and [SEP] are left alone and score 0.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`.
        target: a `Target`; its log-probability is foretold (Ribeiro et al. take the probability).
        samples: S, at least 2. baseline: what covers a token, as in `integrated_gradients`.
        width: of the kernel, above 0.
        ridge: what the squared weights are multiplied by, at least 0; so little that it only keeps the system
            solvable. The 1 of the authors' program is for its 5,000 samples: with 128 it makes 5 nats that hang on
            one word 0.2 for a text of one word, and 3.7 for a text of 100.
        seed: of the draws, and of how they are parted for `weighted_r2`.
        progress: callable(done, total) in inputs read, equal ones counted once; returning False cancels.
    Returns:
        `Saliency` with `weighted_r2`. A word's score is its weight, shared out evenly among its tokens.
    Raises:
        InputError: a setting is no good. Cancelled: by `progress`.
    """
    _check(samples, width, ridge)
    fillers, groups = baseline_token_ids(bert, trace, baseline), replaceable_word_positions(trace)
    kept = sample_word_masks(len(groups), samples, seed)
    distinct, which = np.unique(kept, axis=0, return_inverse=True)
    copies = np.repeat(trace.token_ids[None], len(distinct), axis=0)
    for column, group in enumerate(groups):
        covered = ~distinct[:, column]
        copies[np.ix_(covered, group)] = fillers[group]
    scores = target_log_probabilities(bert, copies, trace.segments, target, progress)[which.ravel()]
    weights, fit = fit_linear_model(kept, scores, width, ridge, seed)
    tokens = np.zeros(trace.length)
    for group, weight in zip(groups, weights):
        tokens[group] = weight / len(group)
    return Saliency.of(trace, "lime", target, float(scores[0]), tokens, weighted_r2=fit)


def sample_word_masks(words, samples, seed=0):
    """Which words are there in each sample, bool [S, W]: all of them in the first."""
    random, kept = np.random.default_rng(seed), np.ones((samples, words), bool)
    for row in kept[1:] if words else ():
        row[random.choice(words, random.integers(1, words + 1), replace=False)] = False
    return kept


def fit_linear_model(kept, scores, width=0.25, ridge=1e-3, seed=0):
    """The linear model of scores by which words are there.

    Args:
        kept: bool [S, W], the first row all true. scores: float [S]. width, ridge, seed: as of `lime`.
    Returns:
        (weights float64 [W], of all samples; weighted R^2 on draws that the model was not fitted to, 1 less the share
        of their squared distance from the mean of those that it was fitted to: 0 or less where it foretells no more
        than that mean. Equal draws are held out together, a tenth at a time, the input never. None where the scores do
        not vary or there are not two different draws besides the input).
    """
    from sklearn.linear_model import Ridge

    if not kept.shape[1] or np.ptp(scores) == 0:
        return np.zeros(kept.shape[1]), None
    there = kept.astype(np.float64)
    near = np.exp(-((1 - np.sqrt(there.mean(axis=1))) ** 2) / (2 * width**2))

    def fitted(rows):
        return Ridge(alpha=ridge).fit(there[rows], scores[rows], sample_weight=near[rows])

    missed = spread = 0.0
    for out in _held_out(kept, seed):
        missed += (near[out] * (scores[out] - fitted(~out).predict(there[out])) ** 2).sum()
        spread += (near[out] * (scores[out] - np.average(scores[~out], weights=near[~out])) ** 2).sum()
    return fitted(np.ones(len(kept), bool)).coef_, float(1 - missed / spread) if spread else None


def _held_out(kept, seed):
    """What is held out in turn, bool [S] each: equal samples together, and never those that are the input."""
    _, which = np.unique(~kept, axis=0, return_inverse=True)  # the input, none of it covered, comes first
    drawn = which.max()
    if drawn < 2:
        return
    folds = np.random.default_rng(seed).permutation(drawn) % min(_FOLDS, drawn)
    fold = np.append(-1, folds)[which.ravel()]
    for number in range(folds.max() + 1):
        yield fold == number


def _check(samples, width, ridge):
    if isinstance(samples, bool) or not isinstance(samples, (int, np.integer)) or not 2 <= samples <= MAX_SAMPLES:
        raise InputError(f"samples must be a whole number from 2 to {MAX_SAMPLES:,}, not {samples!r:.40}.")
    if not width > 0:
        raise InputError(f"width must be above 0, not {width!r:.40}.")
    if not ridge >= 0:
        raise InputError(f"ridge must be at least 0, not {ridge!r:.40}.")
