"""Which tokens an answer hangs on: gradient x input, SmoothGrad, integrated gradients, occlusion.

Each explains one log-probability, a `Target`. What is varied is the token's vector out of the token table;
segment and position stay.

Dimension legend: T tokens, H hidden, S steps or copies.
"""

import numbers
from dataclasses import dataclass
from typing import Optional

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.inference.batching import TOKENS_PER_BATCH, batched_answers
from bert_tf.inference.words import WordSpan
from bert_tf.results import Result, frame


@dataclass(frozen=True)
class WordScore:
    """A word of the user's text and the sum of its tokens' scores."""

    word: WordSpan
    score: float


@dataclass(frozen=True, eq=False)
class Saliency(Result, figures={"words": "bert_tf.plots.attribution.saliency:word_bars"}):
    """What each token does to a target's log-probability; positive: it speaks for the target.

    Attributes:
        method: a name of `SALIENCY_METHODS`, such as "gradient-x-input".
        target: the `Target`.
        log_probability: of the target (natural logarithm), or the value of a regression.
        tokens: T strings, the input's. scores: float64 [T], in nats.
        words: `WordScore`s in reading order; special tokens belong to none.
        baseline_log_probability: at the baseline; None where there is none.
        convergence_delta: sum of `scores` less (log_probability - baseline_log_probability), which would be 0 with
            infinitely many steps; None where that need not hold.
        gradient_norms: float64 [T], lengths of the gradient; only with gradient-x-input, otherwise None.
        noise_std, noisy_log_probability: standard deviation of the noise, and the mean log-probability of the copies
            that have it; only with smoothgrad, otherwise None.
        weighted_r2: of the linear model whose weights the scores are, on draws that it was not fitted to: up to 1, and
            0 or less where it predicts nothing; only with lime, otherwise None.
        log_odds, rest: the target's log-odds, or the value of a regression, and a dict of what has shares in it besides
            `scores`, in the same unit; only with lrp, otherwise None.
    """

    method: str
    target: object
    log_probability: float
    tokens: tuple
    scores: np.ndarray
    words: tuple
    baseline_log_probability: Optional[float] = None
    convergence_delta: Optional[float] = None
    gradient_norms: Optional[np.ndarray] = None
    noise_std: Optional[float] = None
    noisy_log_probability: Optional[float] = None
    weighted_r2: Optional[float] = None
    log_odds: Optional[float] = None
    rest: Optional[dict] = None

    @classmethod
    def of(cls, trace, method, target, log_probability, scores, **others):
        """The `Saliency` of the scores [T] of a trace's tokens."""
        return cls(method, target, log_probability, trace.tokens, scores, word_scores(trace, scores), **others)

    def to_frame(self):
        """A row for each word, in reading order."""
        words = [one.word for one in self.words]
        return frame(
            {
                "source": [word.source for word in words],
                "index": [word.index for word in words],
                "word": [word.text for word in words],
                "score": [one.score for one in self.words],
            }
        )

    def to_text(self):
        """The words' scores, and the numbers of the whole answer below them."""
        scored = sum(one.score for one in self.words)
        whole = {
            "log-probability": self.log_probability,
            "log-probability at the baseline": self.baseline_log_probability,
            "convergence delta": self.convergence_delta,
            "log-probability with noise": self.noisy_log_probability,
            "weighted R²": self.weighted_r2,
            "special tokens": None if self.rest is None else float(self.scores.sum()) - scored,
            **(self.rest or {}),
            "log-odds": self.log_odds,
        }
        if self.target.is_regression:
            whole = {name.replace("log-probability", "value"): number for name, number in whole.items()}
        # Adding 0 takes the sign off a zero that rounding leaves.
        lines = [f"{name}: {round(number, 3) + 0.0:+.3f}" for name, number in whole.items() if number is not None]
        return "\n".join([f"for {self.target.label}", super().to_text(), *lines])


def gradient_x_input(bert, trace, target):
    """Gradient times token vector, summed over H (Shrikumar et al. 2017, as DeepLIFT's simplest relative).

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`. target: a `Target`.
    Returns:
        `Saliency` with `gradient_norms`. One forward and one backward pass.
    """
    vectors = bert.hooked().token_vectors(trace.token_ids[None]).numpy()
    score, gradient = bert.hooked().gradient(vectors, trace.segments[None], target)
    scores = (gradient[0] * vectors[0]).sum(axis=1, dtype=np.float64)
    return Saliency.of(
        trace,
        "gradient-x-input",
        target,
        float(score[0]),
        scores,
        gradient_norms=np.linalg.norm(gradient[0], axis=1).astype(np.float64),
    )


def smoothgrad(bert, trace, target, copies=32, noise=0.01, seed=0, progress=None):
    """Gradient x input with the gradient's mean over noisy copies of the input (SmoothGrad, Smilkov et al. 2017).

    Every token's vector gets Gaussian noise of its own in every copy; the mean gradient is multiplied by the vectors
    without noise. Images bear a noise of 0.1 to 0.2 (section 3 there). A BERT's answer is gone by then, as
    `noisy_log_probability` tells; 0.01 is what AllenNLP takes for text.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`. target: a `Target`.
        copies: S, gradients taken. noise: standard deviation of the noise, as a share of the difference between the
            largest and the smallest number in the text's token vectors. seed: of the noise.
        progress: callable(done, total) in copies; returning False cancels.
    Returns:
        `Saliency` with `noise_std` and `noisy_log_probability`.
    Raises:
        InputError: `copies` or `noise` is no good. Cancelled: by `progress`.
    """
    _check_count(copies, "copies")
    if isinstance(noise, bool) or not isinstance(noise, numbers.Real) or not 0 <= noise <= 1:
        raise InputError(f"noise is a share from 0 to 1, not {noise!r:.40}.")
    vectors = bert.hooked().token_vectors(trace.token_ids[None]).numpy()
    noise_std = float(noise * np.ptp(vectors))
    random = np.random.default_rng(seed)
    block = max(1, TOKENS_PER_BATCH // trace.length)
    total, noisy = np.zeros(vectors.shape[1:]), 0.0
    for first in range(0, copies, block):
        count = min(block, copies - first)
        shaken = vectors + noise_std * random.standard_normal((count, *vectors.shape[1:]))
        segments = np.repeat(trace.segments[None], count, axis=0)
        scores, gradients = bert.hooked().gradient(shaken.astype(np.float32), segments, target)
        total += gradients.sum(axis=0, dtype=np.float64)
        noisy += float(scores.sum(dtype=np.float64))
        report(progress, first + count, copies)
    tokens = (total / copies * vectors[0]).sum(axis=1)
    (score,) = target_log_probabilities(bert, trace.token_ids[None], trace.segments, target)
    return Saliency.of(
        trace,
        "smoothgrad",
        target,
        float(score),
        tokens,
        noise_std=noise_std,
        noisy_log_probability=noisy / copies,
    )


def integrated_gradients(bert, trace, target, steps=32, baseline="[PAD]", progress=None):
    """The gradient along the straight line from a baseline to the input (Sundararajan et al. 2017).

    At the baseline every token of the texts has the vector of `baseline`; masks, [CLS] and [SEP] stay as they
    are, so that the question stays the same, and score 0. The integral is a Gauss-Legendre sum.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`. target: a `Target`.
        steps: S, gradients taken. baseline: "[PAD]", "[MASK]" or any token of the vocabulary.
        progress: callable(done, total) in steps; returning False cancels.
    Returns:
        `Saliency` with `baseline_log_probability` and `convergence_delta`.
    Raises:
        InputError: `steps` or `baseline` is no good. Cancelled: by `progress`.
    """
    _check_count(steps, "steps")
    hooked, segments = bert.hooked(), trace.segments[None]
    vectors = hooked.token_vectors(trace.token_ids).numpy()
    start = hooked.token_vectors(baseline_token_ids(bert, trace, baseline)).numpy()
    places, weights = np.polynomial.legendre.leggauss(steps)
    places, weights = (places + 1) / 2, weights / 2  # from -1..1 to 0..1
    block = max(1, TOKENS_PER_BATCH // trace.length)
    total = np.zeros(vectors.shape)
    for first in range(0, steps, block):
        share = places[first : first + block, None, None]
        path = (start + share * (vectors - start)).astype(np.float32)  # [S, T, H]
        _, gradients = hooked.gradient(path, np.repeat(segments, len(path), axis=0), target)
        total += np.einsum("s,sth->th", weights[first : first + block], gradients)
        report(progress, min(first + block, steps), steps)
    ends, _ = hooked.gradient(np.stack([start, vectors]), np.repeat(segments, 2, axis=0), target)
    tokens = ((vectors - start) * total).sum(axis=1)
    return Saliency.of(
        trace,
        "integrated-gradients",
        target,
        float(ends[1]),
        tokens,
        baseline_log_probability=float(ends[0]),
        convergence_delta=float(tokens.sum() - (float(ends[1]) - float(ends[0]))),
    )


def occlusion(bert, trace, target, baseline="[MASK]", unit="word", progress=None):
    """How much log-probability is lost when a word or a token is replaced (Zeiler and Fergus 2014; Li et al. 2016).

    Masks, [CLS] and [SEP] are left alone and score 0.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`. target: a `Target`.
        baseline: what stands in a token's place, as in `integrated_gradients`.
        unit: "word" takes all pieces of a word together (its score is shared out evenly among them), "token" one
            token at a time.
        progress: callable(done, total) in copies of the input; returning False cancels.
    Returns:
        `Saliency`. As many copies of the input as tokens or words.
    Raises:
        InputError: no such baseline or unit. Cancelled: by `progress`.
    """
    if unit not in ("word", "token"):
        raise InputError(f'unit must be "word" or "token", not {unit!r}.')
    fillers = baseline_token_ids(bert, trace, baseline)
    groups = (
        replaceable_word_positions(trace)
        if unit == "word"
        else [[int(place)] for place in np.flatnonzero(replaceable_mask(trace))]
    )
    copies = np.repeat(trace.token_ids[None], len(groups) + 1, axis=0)
    for row, group in enumerate(groups):
        copies[row, group] = fillers[group]
    scores = target_log_probabilities(bert, copies, trace.segments, target, progress)
    tokens = np.zeros(trace.length)
    for group, score in zip(groups, scores):
        tokens[group] = (scores[-1] - score) / len(group)
    return Saliency.of(trace, "occlusion", target, float(scores[-1]), tokens)


def target_log_probabilities(bert, token_ids, segments, target, progress=None):
    """A target's log-probability, float64 [R], for token ids int32 [R, T] that share segments [T]."""
    scores = []
    for done, answers in batched_answers(bert, token_ids, segments, target):
        scores.append(answers[:, target.id].astype(np.float64))
        report(progress, done, len(token_ids))
    return np.concatenate(scores)


def word_scores(trace, tokens):
    """`WordScore`s of the user's words from scores of tokens [T]."""
    return tuple(WordScore(word, float(sum(tokens[p] for p in word.positions))) for word in trace.words())


def _check_count(number, name):
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 1 <= number <= 1000:
        raise InputError(f"{name} must be a whole number from 1 to 1000, not {number!r}.")


def baseline_token_ids(bert, trace, baseline):
    """The trace's token ids with every token that may be replaced replaced."""
    tokenizer = bert.tokenizer
    # These two are called otherwise in other vocabularies ("<pad>", "<mask>").
    known = {"[PAD]": tokenizer.pad_id, "[MASK]": tokenizer.mask_id}.get(baseline)
    if known is None and baseline not in tokenizer:
        raise InputError(
            f'The baseline {baseline!r:.40} is no token of this model\'s vocabulary; "[PAD]" and '
            '"[MASK]" are the usual ones.'
        )
    filler = tokenizer.token_to_id(baseline) if known is None else known
    return np.where(replaceable_mask(trace), filler, trace.token_ids).astype(np.int32)


def replaceable_word_positions(trace):
    """The positions of each word's tokens that may be replaced, lists; words without any are left out."""
    may = replaceable_mask(trace)
    return [kept for word in trace.words() if (kept := [place for place in word.positions if may[place]])]


def replaceable_mask(trace):
    """Bool [T]: tokens of the user's texts that are not masked."""
    mine = np.array([source is not None for source in trace.sources])
    mine[list(trace.masks)] = False
    return mine
