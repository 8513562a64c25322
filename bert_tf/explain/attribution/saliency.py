"""Which tokens a prediction depends on: gradient x input, SmoothGrad, integrated gradients, occlusion.

Each method explains one log-probability, a `Target`. It varies the vectors from the token embedding table; segment and
position embeddings stay.

Dimension legend: T tokens, H hidden, S steps or copies.
"""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.inference.batching import TOKENS_PER_BATCH, batched_answers
from bert_tf.inference.words import WordSpan
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas

    from bert_tf.explain.attribution.target import Target
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace


#: The largest convergence delta of integrated gradients that pages and commands accept, as a share of what the scores
#: explain.
MOST_GAP = 0.02
#: The number of noisy copies of SmoothGrad.
COPIES = 32
#: The most gradients that integrated gradients take for a small convergence delta.
MOST_GRADIENTS = 1024
_STEPS_OF_A_PART = 8  # gradients in each half of a part of the path that had a large gap


@dataclass(frozen=True)
class WordScore:
    """A word of the user's text and the sum of the scores of its tokens."""

    word: WordSpan
    score: float


@dataclass(frozen=True, eq=False)
class Saliency(Result, figures={"words": "bert_tf.plots.attribution.saliency:word_bars"}):
    """The score of each token for a target; a positive score supports the target, a negative score opposes it.

    Attributes:
        method: str. A key of `SALIENCY_METHODS`, such as "gradient-x-input".
        target: Target.
        log_probability: float. Natural log-probability of the target, or the value of a regression.
        tokens: tuple of T strings. The tokens of the input.
        scores: float64 [T]. In nats.
        words: tuple of WordScore. In reading order, without special tokens.
        baseline_log_probability: float or None. The target's log-probability at the baseline; None for methods without
            a baseline.
        convergence_delta: float or None. Sum of `scores` minus (log_probability - baseline_log_probability), 0 for an
            exact integral; None for methods whose scores need not add up to that difference.
        gradient_norms: float64 [T] or None. Norms of the gradient; only with gradient-x-input.
        noise_std: float or None. Standard deviation of the noise; only with smoothgrad.
        noisy_log_probability: float or None. Mean log-probability over the noisy copies; only with smoothgrad.
        weighted_r2: float or None. Weighted R^2 of the linear model on held-out samples: at most 1, and 0 or less
            where it predicts no better than the mean; only with lime.
        log_odds: float or None. The target's log-odds, or the value of a regression; only with lrp.
        rest: dict from str to float or None. The shares of `log_odds` that belong to no token; only with lrp.

    Example:
        >>> bert = bert_tf.load()
        >>> trace = bert.trace("Shanghai is a city in [MASK].")
        >>> gradient_x_input(bert, trace, mask_target(bert, trace)).to_frame()
    """

    method: str
    target: Target
    log_probability: float
    tokens: tuple[str, ...]
    scores: np.ndarray
    words: tuple[WordScore, ...]
    baseline_log_probability: float | None = None
    convergence_delta: float | None = None
    gradient_norms: np.ndarray | None = None
    noise_std: float | None = None
    noisy_log_probability: float | None = None
    weighted_r2: float | None = None
    log_odds: float | None = None
    rest: dict[str, float] | None = None

    @classmethod
    def of(
        cls, trace: Trace, method: str, target: Target, log_probability: float, scores: np.ndarray, **others: Any
    ) -> Saliency:
        """The `Saliency` of a trace from the scores [T] of its tokens; `others` are further attributes."""
        return cls(method, target, log_probability, trace.tokens, scores, word_scores(trace, scores), **others)

    def to_frame(self) -> pandas.DataFrame:
        """A row for each word, in reading order."""
        words = [scored.word for scored in self.words]
        return frame(
            {
                "source": [word.source for word in words],
                "index": [word.index for word in words],
                "word": [word.text for word in words],
                "score": [scored.score for scored in self.words],
            }
        )

    def to_text(self) -> str:
        """The scores of the words, and below them the numbers of the prediction."""
        word_sum = sum(scored.score for scored in self.words)
        quantities = {
            "log-probability": self.log_probability,
            "log-probability at the baseline": self.baseline_log_probability,
            "convergence delta": self.convergence_delta,
            "log-probability with noise": self.noisy_log_probability,
            "weighted R²": self.weighted_r2,
            "special tokens": None if self.rest is None else float(self.scores.sum()) - word_sum,
            **(self.rest or {}),
            "log-odds": self.log_odds,
        }
        if self.target.is_regression:
            quantities = {name.replace("log-probability", "value"): number for name, number in quantities.items()}
        # Adding 0 removes the sign of a negative zero after rounding.
        lines = [f"{name}: {round(number, 3) + 0.0:+.3f}" for name, number in quantities.items() if number is not None]
        return "\n".join([f"for {self.target.label}", super().to_text(), *lines])


def gradient_x_input(bert: Bert, trace: Trace, target: Target) -> Saliency:
    """Gradient times token vector, summed over H (Shrikumar et al. 2017, as DeepLIFT's simplest relative).

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace.
        target: Target.
    Returns:
        `Saliency` with `gradient_norms`. Takes one forward and one backward pass.
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


def smoothgrad(
    bert: Bert,
    trace: Trace,
    target: Target,
    copies: int = COPIES,
    noise: float = 0.01,
    seed: int = 0,
    progress: Callable[[int, int], Any] | None = None,
) -> Saliency:
    """Gradient x input with the mean gradient over noisy copies of the input (SmoothGrad, Smilkov et al. 2017).

    Every token vector of every copy gets its own Gaussian noise; the mean gradient is multiplied by the vectors without
    noise. The paper uses a noise of 0.1 to 0.2 for images (section 3). That destroys a BERT's prediction, as
    `noisy_log_probability` shows; AllenNLP uses 0.01 for text.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace.
        target: Target.
        copies: int. The number of noisy copies S, 1 to 1000.
        noise: float. Standard deviation of the noise, as a share of the difference between the largest and the
            smallest number in the token vectors of the text; 0 to 1.
        seed: int. Seed of the noise.
        progress: callable(done, total) or None. Counts copies; returning False cancels.
    Returns:
        `Saliency` with `noise_std` and `noisy_log_probability`.
    Raises:
        InputError: `copies` or `noise` is out of range.
        Cancelled: `progress` returned False.
    """
    _check_count(copies, "copies")
    if isinstance(noise, bool) or not isinstance(noise, numbers.Real) or not 0 <= float(noise) <= 1:
        raise InputError(f"noise must be a number from 0 to 1, not {noise!r:.40}.")
    vectors = bert.hooked().token_vectors(trace.token_ids[None]).numpy()
    noise_std = float(noise * np.ptp(vectors))
    random = np.random.default_rng(seed)
    block = max(1, TOKENS_PER_BATCH // trace.length)
    total, noisy = np.zeros(vectors.shape[1:]), 0.0
    for first in range(0, copies, block):
        count = min(block, copies - first)
        noisy_vectors = vectors + noise_std * random.standard_normal((count, *vectors.shape[1:]))
        segments = np.repeat(trace.segments[None], count, axis=0)
        between = functools.partial(report, progress, first, copies)
        scores, gradients = bert.hooked().gradient(noisy_vectors.astype(np.float32), segments, target, between)
        total += gradients.sum(axis=0, dtype=np.float64)
        noisy += float(scores.sum(dtype=np.float64))
        report(progress, first + count, copies)
    token_scores = (total / copies * vectors[0]).sum(axis=1)
    (score,) = target_log_probabilities(bert, trace.token_ids[None], trace.segments, target)
    return Saliency.of(
        trace,
        "smoothgrad",
        target,
        float(score),
        token_scores,
        noise_std=noise_std,
        noisy_log_probability=noisy / copies,
    )


def integrated_gradients(
    bert: Bert,
    trace: Trace,
    target: Target,
    steps: int = 32,
    baseline: str = "[MASK]",
    most_gap: float | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Saliency:
    """The integral of the gradient along the straight line from a baseline to the input (Sundararajan et al. 2017).

    At the baseline every token of the texts has the vector of `baseline`. Masks, [CLS] and [SEP] are the same in the
    baseline and in the input, and score 0. The integral is computed by Gauss-Legendre quadrature.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace.
        target: Target.
        steps: int. The number of gradients S, 1 to 1000.
        baseline: str. "[MASK]", "[PAD]" or any token of the vocabulary. With "[MASK]" the scores are more faithful
            (`benchmarks/saliency_fidelity.py`).
        most_gap: float or None. With a number more gradients are taken, up to 1024, until the convergence delta is at
            most this share of what the scores explain: the difference of the log-probabilities at both ends. The parts
            of the path where the integral misses most are halved, again and again.
        progress: callable(done, total) or None. Counts steps; returning False cancels.
    Returns:
        `Saliency` with `baseline_log_probability` and `convergence_delta`.
    Raises:
        InputError: `steps` is out of range, or `baseline` is not in the vocabulary.
        Cancelled: `progress` returned False.
    """
    _check_count(steps, "steps")
    path = _Path(bert, trace, target, baseline, steps if most_gap is None else max(steps, MOST_GRADIENTS), progress)
    parts = _parts(path, [(0.0, 1.0)], steps)
    while most_gap is not None and path.left and _share_missed(parts) > most_gap:
        parts = _with_halves(path, parts)
    token_scores = sum(part.scores for part in parts)
    return Saliency.of(
        trace,
        "integrated-gradients",
        target,
        parts[-1].end,
        token_scores,
        baseline_log_probability=parts[0].start,
        convergence_delta=float(token_scores.sum() - (parts[-1].end - parts[0].start)),
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of the path of integrated gradients, from `first` to `last` (0 is the baseline, 1 the input).

    Attributes:
        start, end: float. The target's log-probability at both ends.
        scores: float64 [T]. The integral over this part.
    """

    first: float
    last: float
    start: float
    end: float
    scores: np.ndarray

    @property
    def gained(self) -> float:
        return self.end - self.start

    @property
    def gap(self) -> float:
        return float(self.scores.sum()) - self.gained


class _Path:
    """The straight line from a baseline to the input, as vectors of the token embedding table.

    Attributes:
        left: int. How many gradients may still be taken.
    """

    def __init__(self, bert, trace, target, baseline, most, progress):
        self.hooked, self.target, self.segments = bert.hooked(), target, trace.segments[None]
        self.start = self.hooked.token_vectors(baseline_token_ids(bert, trace, baseline)).numpy()
        self.way = self.hooked.token_vectors(trace.token_ids).numpy() - self.start
        self.block = max(1, TOKENS_PER_BATCH // trace.length)
        self.left = self.most = most
        self.progress = progress

    def gradients(self, shares):
        """The gradient times the whole way for each token, at S shares of the way: float64 [S, T]."""
        products = []
        for vectors, segments in self._blocks(shares):
            _, gradient = self.hooked.gradient(vectors, segments, self.target, self._report)
            products.append(np.einsum("th,sth->st", self.way.astype(np.float64), gradient))
            self.left -= len(vectors)
            self._report()
        return np.concatenate(products)

    def log_probabilities(self, shares):
        """The target's log-probability at S shares of the way, a list of floats."""
        blocks = self._blocks(shares)
        scores = [self.hooked.score_of_vectors(*block, self.target, self._report) for block in blocks]
        return [float(value) for values in scores for value in values]

    def _blocks(self, shares):
        """(vectors [S, T, H], segments [S, T]) at shares of the way, a batch at a time."""
        for first in range(0, len(shares), self.block):
            vectors = self.start + shares[first : first + self.block, None, None] * self.way
            yield vectors.astype(np.float32), np.repeat(self.segments, len(vectors), axis=0)

    def _report(self):
        report(self.progress, self.most - self.left, self.most)


def _parts(path, ends, steps):
    """The `_Part`s between pairs of ends, by Gauss-Legendre quadrature with as many steps in each."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    nodes, weights = (nodes + 1) / 2, weights / 2  # from -1..1 to 0..1
    firsts, widths = np.array([(first, last - first) for first, last in ends]).T
    gradients = path.gradients((firsts[:, None] + widths[:, None] * nodes).ravel()).reshape(len(ends), steps, -1)
    scores = np.einsum("p,s,pst->pt", widths, weights, gradients)
    borders = sorted({share for pair in ends for share in pair})
    known = dict(zip(borders, path.log_probabilities(np.array(borders))))
    return [_Part(first, last, known[first], known[last], one) for (first, last), one in zip(ends, scores)]


def _share_missed(parts):
    """The convergence delta of integrated gradients as a share of what the scores explain."""
    explained = abs(sum(part.gained for part in parts))
    return abs(sum(part.gap for part in parts)) / max(explained, 1e-9)


def _with_halves(path, parts):
    """The parts with those halved that have the largest gaps.

    The gap of each part is known, because the log-probability at its ends is. So the gradients go where the slope
    changes fast: a fine-tuned classifier can change its answer within a thousandth of the way.
    """
    largest = max(abs(part.gap) for part in parts)
    worst = [part for part in sorted(parts, key=lambda part: -abs(part.gap)) if abs(part.gap) > largest / 8]
    worst = worst[: -(-path.left // (2 * _STEPS_OF_A_PART))]
    ends = []
    for part in worst:
        middle = (part.first + part.last) / 2
        ends += [(part.first, middle), (middle, part.last)]
    halves = _parts(path, ends, _STEPS_OF_A_PART)
    kept = [part for part in parts if not any(part is one for one in worst)]
    return sorted([*kept, *halves], key=lambda part: part.first)


def occlusion(
    bert: Bert,
    trace: Trace,
    target: Target,
    baseline: str = "[MASK]",
    unit: str = "word",
    progress: Callable[[int, int], Any] | None = None,
) -> Saliency:
    """The loss of log-probability when a word or a token is replaced (Zeiler and Fergus 2014; Li et al. 2016).

    Masks, [CLS] and [SEP] are not replaced and score 0.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace.
        target: Target.
        baseline: str. The token that replaces a token, as in `integrated_gradients`.
        unit: str. "word" replaces all tokens of a word together and divides its score evenly among them; "token"
            replaces one token at a time.
        progress: callable(done, total) or None. Counts copies of the input; returning False cancels.
    Returns:
        `Saliency`. Takes one forward pass for each word or token.
    Raises:
        InputError: there is no such baseline or unit.
        Cancelled: `progress` returned False.
    """
    if unit not in ("word", "token"):
        raise InputError(f'unit must be "word" or "token", not {unit!r}.')
    fillers = baseline_token_ids(bert, trace, baseline)
    groups = (
        replaceable_word_positions(trace)
        if unit == "word"
        else [[int(position)] for position in np.flatnonzero(replaceable_mask(trace))]
    )
    copies = np.repeat(trace.token_ids[None], len(groups) + 1, axis=0)
    for row, group in enumerate(groups):
        copies[row, group] = fillers[group]
    scores = target_log_probabilities(bert, copies, trace.segments, target, progress)
    token_scores = np.zeros(trace.length)
    for group, score in zip(groups, scores):
        token_scores[group] = (scores[-1] - score) / len(group)
    return Saliency.of(trace, "occlusion", target, float(scores[-1]), token_scores)


def target_log_probabilities(
    bert: Bert,
    token_ids: np.ndarray,
    segments: np.ndarray,
    target: Target,
    progress: Callable[[int, int], Any] | None = None,
) -> np.ndarray:
    """The log-probability of a target for several inputs of one length.

    Args:
        bert: Bert.
        token_ids: int32 [R, T].
        segments: int32 [T]. The same for all inputs.
        target: Target.
        progress: callable(done, total) or None. Counts inputs; returning False cancels.
    Returns:
        float64 [R].
    Raises:
        Cancelled: `progress` returned False.
    """
    scores = []
    for done, answers in batched_answers(bert, token_ids, segments, target):
        scores.append(answers[:, target.id].astype(np.float64))
        report(progress, done, len(token_ids))
    return np.concatenate(scores)


def word_scores(trace: Trace, tokens: np.ndarray) -> tuple[WordScore, ...]:
    """The `WordScore`s of the user's words from the scores [T] of the tokens."""
    return tuple(WordScore(word, float(sum(tokens[p] for p in word.positions))) for word in trace.words())


def _check_count(number: Any, name: str) -> None:
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 1 <= number <= 1000:
        raise InputError(f"{name} must be a whole number from 1 to 1000, not {number!r}.")


def baseline_token_ids(bert: Bert, trace: Trace, baseline: str) -> np.ndarray:
    """The token ids of a trace, int32 [T], with `baseline` in place of every token of `replaceable_mask`.

    Raises:
        InputError: `baseline` is not in the vocabulary.
    """
    tokenizer = bert.tokenizer
    # Other vocabularies have other names for these two ("<pad>", "<mask>").
    known = {"[PAD]": tokenizer.pad_id, "[MASK]": tokenizer.mask_id}.get(baseline)
    if known is None and baseline not in tokenizer:
        raise InputError(
            f"The baseline {baseline!r:.40} is no token of this model's vocabulary; "
            '"[PAD]" and "[MASK]" are the usual baselines.'
        )
    filler = tokenizer.token_to_id(baseline) if known is None else known
    return np.where(replaceable_mask(trace), filler, trace.token_ids).astype(np.int32)


def replaceable_word_positions(trace: Trace) -> list[list[int]]:
    """For each word the positions of its tokens in `replaceable_mask`; words without such a token are left out."""
    replaceable = replaceable_mask(trace)
    groups = ([position for position in word.positions if replaceable[position]] for word in trace.words())
    return [group for group in groups if group]


def replaceable_mask(trace: Trace) -> np.ndarray:
    """Bool [T], true for tokens of the user's texts that are not masked."""
    replaceable = np.array([source is not None for source in trace.sources])
    replaceable[list(trace.masks)] = False
    return replaceable
