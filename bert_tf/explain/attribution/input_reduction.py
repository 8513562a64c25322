"""Input reduction: how few words of a text are enough for the same prediction.

Dimension legend: T tokens, R rows, K outcomes of a head. Source: Feng et al. 2018, "Pathologies of Neural Models Make
Interpretations Difficult", section 2.2. The paper chooses the next word by the gradient; here every word is tried.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.explain.attribution.target import is_top
from bert_tf.inference.batching import TOKENS_PER_BATCH
from bert_tf.inference.words import WordSpan
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas

    from bert_tf.explain.attribution.target import Target
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace


@dataclass(frozen=True)
class RemovedWord:
    """A removed word, and the target's natural log-probability without it and the words removed before it."""

    word: WordSpan
    log_probability: float


@dataclass(frozen=True)
class InputReduction(Result, figures={"curve": "bert_tf.plots.attribution.input_reduction:reduction_curve"}):
    """The words that remain when words are removed for as long as the model predicts the target.

    Attributes:
        target: Target.
        log_probability: float. The target's natural log-probability in the complete input.
        target_is_top: bool. Whether the model predicts the target there (`is_top`); if not, no word is removed.
        removed: tuple of RemovedWord. In the order of their removal.
        remaining: tuple of WordSpan. The other words, in reading order.
        remaining_log_probability: float. The target's log-probability with only the remaining words.
        tokens: tuple of T strings. The tokens of the input.
        method: str. "input-reduction".

    Example:
        >>> bert = bert_tf.load()
        >>> trace = bert.trace("Shanghai is a big city in [MASK].")
        >>> reduce_input(bert, trace, mask_target(bert, trace)).to_frame()
    """

    target: Target
    log_probability: float
    target_is_top: bool
    removed: tuple[RemovedWord, ...]
    remaining: tuple[WordSpan, ...]
    remaining_log_probability: float
    tokens: tuple[str, ...]
    method: str = "input-reduction"

    def to_frame(self) -> pandas.DataFrame:
        """A row for each word: the removed words in their order, then the remaining words, without an order."""
        words = [*(removed.word for removed in self.removed), *self.remaining]
        missing = len(self.remaining) * [float("nan")]
        return frame(
            {
                "order": [*range(1, len(self.removed) + 1), *missing],
                "source": [word.source for word in words],
                "index": [word.index for word in words],
                "word": [word.text for word in words],
                "log_probability": [*(removed.log_probability for removed in self.removed), *missing],
            }
        )


def reduce_input(
    bert: Bert, trace: Trace, target: Target, progress: Callable[[int, int], Any] | None = None
) -> InputReduction:
    """Remove words, one at a time, while the model still predicts the target.

    Of the words without which the model still predicts the target, each step removes the one that leaves the highest
    log-probability. It ends when the removal of any remaining word would change the prediction. In a multi-label
    classifier the model predicts a label while its probability is above 0.5. Masked words, the word that the target
    names and the last word of a text are not removed.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace.
        target: Target. Usually the likeliest outcome; not the value of a regression.
        progress: callable(done, total) or None. Counts shortened inputs, where `total` is their largest possible
            number; returning False cancels.
    Returns:
        `InputReduction`. With W removable words the model reads at most W (W + 1) / 2 shortened inputs.
    Raises:
        InputError: the target is the value of a regression.
        Cancelled: `progress` returned False.
    """
    if target.is_regression:
        raise InputError(
            "Input reduction needs a target among several outcomes; a regression predicts a single number."
        )
    hidden_states = bert.steps().states(trace.token_ids[None], trace.segments[None])
    answers = bert.steps().answers(hidden_states[-1], target)
    score, target_is_top = float(answers[0, target.id]), bool(is_top(target, answers)[0])
    remaining: list[WordSpan] = list(trace.words())
    removed: list[RemovedWord] = []
    num_removable = len(removable_words(remaining, trace, target))
    most_inputs, done = num_removable * (num_removable + 1) // 2, 0

    def report_read(num_read: int) -> None:
        report(progress, done + num_read, most_inputs)

    while target_is_top and (removable := removable_words(remaining, trace, target)):
        scores, still_top = _without_each(bert, trace, target, removed, removable, report_read)
        done += len(removable)
        if not still_top.any():
            break
        best = int(np.where(still_top, scores, -np.inf).argmax())
        removed.append(RemovedWord(removable[best], float(scores[best])))
        remaining.remove(removable[best])
    last = removed[-1].log_probability if removed else score
    return InputReduction(target, score, target_is_top, tuple(removed), tuple(remaining), last, trace.tokens)


def removable_words(left: Sequence[WordSpan], trace: Trace, target: Target) -> list[WordSpan]:
    """The words of `left` that may be removed next: neither masked nor named by the target, nor the last of a text."""
    fixed = {*trace.masks, target.position}
    return [
        word
        for word in left
        if not fixed & set(word.positions) and sum(other.source == word.source for other in left) > 1
    ]


def _without_each(
    bert: Bert,
    trace: Trace,
    target: Target,
    removed: Sequence[RemovedWord],
    removable: Sequence[WordSpan],
    report_read: Callable[[int], None],
) -> tuple[np.ndarray, np.ndarray]:
    """The prediction without the removed words and each of R removable words: the target's log-probabilities float64
    [R], and whether the model predicts the target, bool [R]."""
    removed_positions = {position for one in removed for position in one.word.positions}
    # Inputs of equal length, with the target at the same position, run together.
    groups: dict[tuple[int, int | None], list[tuple[int, list[int]]]] = defaultdict(list)
    for row, word in enumerate(removable):
        positions = [p for p in range(trace.length) if p not in removed_positions and p not in word.positions]
        target_position = None if target.position is None else positions.index(target.position)
        groups[len(positions), target_position].append((row, positions))
    scores, still_top, num_read = np.zeros(len(removable)), np.zeros(len(removable), bool), 0
    for (length, target_position), members in groups.items():
        block = max(1, TOKENS_PER_BATCH // length)
        moved_target = replace(target, position=target_position)
        for start in range(0, len(members), block):
            rows, inputs = zip(*members[start : start + block])
            embeddings = bert.steps().embed(trace.token_ids[np.array(inputs)], trace.segments[np.array(inputs)])
            answers = bert.steps().answers(bert.steps().finish(embeddings, 0), moved_target)
            scores[list(rows)] = answers[:, target.id]
            still_top[list(rows)] = is_top(target, answers)
            num_read += len(rows)
            report_read(num_read)
    return scores, still_top
