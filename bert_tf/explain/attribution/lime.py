"""LIME: a linear model of how a target's log-probability changes when random words of the input are masked.

Dimension legend: T tokens, W words, S samples. Source: Ribeiro et al. 2016, "Why Should I Trust You?", section 3. The
sampling of words and the weights of samples follow the authors' program (lime 0.2, `lime_text`). Four things differ
from that program. It treats all occurrences of a word as one feature and removes them; here every occurrence is its own
feature and is replaced by the baseline token. It fits a second time with the 10 strongest features; here the first
fit, with all words, is used. It uses a ridge penalty of 1 with 5,000 samples; see `ridge` of `lime`. It
explains a probability; here it is the log-probability, as with the other methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import InputError
from bert_tf.explain.attribution.saliency import (
    Saliency,
    baseline_token_ids,
    replaceable_word_positions,
    target_log_probabilities,
)

if TYPE_CHECKING:
    from bert_tf.explain.attribution.target import Target
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace

MAX_SAMPLES = 5000
_FOLDS = 10  # of the cross-validation of the linear model


def lime(
    bert: Bert,
    trace: Trace,
    target: Target,
    samples: int = 128,
    baseline: str = "[MASK]",
    width: float = 0.25,
    ridge: float = 1e-3,
    seed: int = 0,
    progress: Callable[[int, int], Any] | None = None,
) -> Saliency:
    """The weights of a linear model that predicts a target's log-probability from the words that are present.

    The first sample is the input itself. In every other sample the number of masked words is drawn uniformly from 1 to
    W, and then the words. The weight of a sample is sqrt(exp(-d^2 / width^2)), where d is the cosine distance between
    the sample and the input as rows of zeros and ones. [MASK], [CLS] and [SEP] are never masked and score 0.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace.
        target: Target. Its log-probability is predicted (Ribeiro et al. predict the probability).
        samples: int. The number of samples S, 2 to `MAX_SAMPLES`.
        baseline: str. The token that masks a token, as in `integrated_gradients`.
        width: float. Width of the kernel, above 0.
        ridge: float. Factor of the squared weights in the loss, at least 0. The default is small and only keeps the
            system solvable. The authors' value of 1 is for 5,000 samples: with 128 samples it shrinks a weight of
            5 nats to 0.2 in a text of one word, and to 3.7 in a text of 100 words.
        seed: int. Seed of the samples and of the folds for `weighted_r2`.
        progress: callable(done, total) or None. Counts the distinct inputs; returning False cancels.
    Returns:
        `Saliency` with `weighted_r2`. A word's score is its weight, divided evenly among its tokens.
    Raises:
        InputError: a setting is out of range, or `baseline` is not in the vocabulary.
        Cancelled: `progress` returned False.
    """
    _check(samples, width, ridge)
    fillers, groups = baseline_token_ids(bert, trace, baseline), replaceable_word_positions(trace)
    present = sample_word_masks(len(groups), samples, seed)
    distinct, indices = np.unique(present, axis=0, return_inverse=True)
    copies = np.repeat(trace.token_ids[None], len(distinct), axis=0)
    for column, group in enumerate(groups):
        masked = ~distinct[:, column]
        copies[np.ix_(masked, np.array(group))] = fillers[group]
    scores = target_log_probabilities(bert, copies, trace.segments, target, progress)[indices.ravel()]
    weights, weighted_r2 = fit_linear_model(present, scores, width, ridge, seed)
    token_scores = np.zeros(trace.length)
    for group, weight in zip(groups, weights):
        token_scores[group] = weight / len(group)
    return Saliency.of(trace, "lime", target, float(scores[0]), token_scores, weighted_r2=weighted_r2)


def sample_word_masks(words: int, samples: int, seed: int = 0) -> np.ndarray:
    """Random masks over words, bool [S, W], true where a word is present; the first sample has all words."""
    random, present = np.random.default_rng(seed), np.ones((samples, words), bool)
    for row in present[1:] if words else ():
        row[random.choice(words, random.integers(1, words + 1), replace=False)] = False
    return present


def fit_linear_model(
    kept: np.ndarray, scores: np.ndarray, width: float = 0.25, ridge: float = 1e-3, seed: int = 0
) -> tuple[np.ndarray, float | None]:
    """Fit a weighted linear model of scores to the words that are present.

    Args:
        kept: bool [S, W]. True where a word is present; the first row is all true.
        scores: float [S].
        width: float. As in `lime`.
        ridge: float. As in `lime`.
        seed: int. Seed of the folds.
    Returns:
        (weights float64 [W], weighted R^2 or None). The weights are fitted to all samples. The R^2 is cross-validated:
        1 minus the squared error on held-out samples divided by their squared distance from the mean of the others; 0
        or less if the model predicts no better than that mean. Equal samples are in the same of `_FOLDS` folds; the
        input is never held out. None if all scores are equal or there are fewer than two distinct samples besides the
        input.
    """
    from sklearn.linear_model import Ridge

    if not kept.shape[1] or np.ptp(scores) == 0:
        return np.zeros(kept.shape[1]), None
    features = kept.astype(np.float64)
    similarity = np.exp(-((1 - np.sqrt(features.mean(axis=1))) ** 2) / (2 * width**2))

    def fitted(rows: np.ndarray) -> Ridge:
        return Ridge(alpha=ridge).fit(features[rows], scores[rows], sample_weight=similarity[rows])

    error = spread = 0.0
    for out in _held_out(kept, seed):
        error += (similarity[out] * (scores[out] - fitted(~out).predict(features[out])) ** 2).sum()
        spread += (similarity[out] * (scores[out] - np.average(scores[~out], weights=similarity[~out])) ** 2).sum()
    return fitted(np.ones(len(kept), bool)).coef_, float(1 - error / spread) if spread else None


def _held_out(present: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """The held-out samples of each fold, bool [S]: equal samples together, never samples that equal the input."""
    _, indices = np.unique(~present, axis=0, return_inverse=True)  # the input, without a masked word, has index 0
    num_distinct = indices.max()
    if num_distinct < 2:
        return
    folds = np.random.default_rng(seed).permutation(num_distinct) % min(_FOLDS, num_distinct)
    fold_of_sample = np.append(-1, folds)[indices.ravel()]
    for fold in range(folds.max() + 1):
        yield fold_of_sample == fold


def _check(samples: int, width: float, ridge: float) -> None:
    if isinstance(samples, bool) or not isinstance(samples, (int, np.integer)) or not 2 <= samples <= MAX_SAMPLES:
        raise InputError(f"samples must be a whole number from 2 to {MAX_SAMPLES:,}, not {samples!r:.40}.")
    if not width > 0:
        raise InputError(f"width must be above 0, not {width!r:.40}.")
    if not ridge >= 0:
        raise InputError(f"ridge must be at least 0, not {ridge!r:.40}.")
