"""Input reduction: how few words of a text are enough for the same answer.

Dimension legend: T tokens, R rows, K possible answers. Source: Feng et al. 2018, "Pathologies of Neural Models Make
Interpretations Difficult", section 2.2; there a gradient tells which word goes next, here every one is tried.
"""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.explain.attribution.target import is_top
from bert_tf.inference.batching import TOKENS_PER_BATCH
from bert_tf.inference.words import WordSpan
from bert_tf.results import Result, frame


@dataclass(frozen=True)
class RemovedWord:
    """A word that was taken away, and the answer's log-probability (natural logarithm) without it and those before."""

    word: WordSpan
    log_probability: float


@dataclass(frozen=True)
class InputReduction(Result, figures={"curve": "bert_tf.plots.attribution.input_reduction:reduction_curve"}):
    """What is left of an input when words are taken away for as long as its answer stays the likeliest.

    Attributes:
        target: the `Target`. log_probability: its log-probability in the whole input (natural logarithm).
        target_is_top: whether it is the likeliest answer there (`target.is_top`); if not, no word is removed.
        removed: `RemovedWord`s in the order in which they went.
        remaining: `WordSpan`s of the others, in reading order.
        remaining_log_probability: the answer's log-probability when only those are there.
        tokens: the input's. method: "input-reduction".
    """

    target: object
    log_probability: float
    target_is_top: bool
    removed: tuple
    remaining: tuple
    remaining_log_probability: float
    tokens: tuple
    method: str = "input-reduction"

    def to_frame(self):
        """A row for each word: those that went in their order, then those that remain, without an order."""
        words = [*(one.word for one in self.removed), *self.remaining]
        missing = len(self.remaining) * [float("nan")]
        return frame(
            {
                "order": [*range(1, len(self.removed) + 1), *missing],
                "source": [word.source for word in words],
                "index": [word.index for word in words],
                "word": [word.text for word in words],
                "log_probability": [*(one.log_probability for one in self.removed), *missing],
            }
        )


def reduce_input(bert, trace, target, progress=None):
    """Take words away, one at a time, while the answer stays the likeliest.

    Each time the word goes without which the answer has the greatest log-probability, of those without which it is
    still the likeliest. It ends when there is none: without any one of the words that are left the model says
    something else. With several labels at once a label is "the likeliest" while its own probability is above a half.
    Hidden words, the word that the target is about, and the last one of a text stay.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`.
        target: a `Target`, usually the likeliest answer; not the value of a regression.
        progress: callable(done, total) in shortened inputs, `total` being the most there can be; returning False
            cancels.
    Returns:
        `InputReduction`. With W words to take away at most W (W + 1) / 2 shortened inputs are read.
    Raises:
        InputError: the target is the value of a regression. Cancelled: by `progress`.
    """
    if target.is_regression:
        raise InputError("The value of a regression is never the likeliest of several: there is no answer to keep.")
    states = bert.hooked().states(trace.token_ids[None], trace.segments[None])
    answers = bert.hooked().answers(states[-1], target)
    score, target_is_top = float(answers[0, target.id]), bool(is_top(target, answers)[0])
    left, removed = list(trace.words()), []
    most, done = _most(len(removable_words(left, trace, target))), 0

    def tell(read):
        report(progress, done + read, most)

    while target_is_top and (free := removable_words(left, trace, target)):
        scores, likeliest = _without_each(bert, trace, target, removed, free, tell)
        done += len(free)
        if not likeliest.any():
            break
        best = int(np.where(likeliest, scores, -np.inf).argmax())
        removed.append(RemovedWord(free[best], float(scores[best])))
        left.remove(free[best])
    last = removed[-1].log_probability if removed else score
    return InputReduction(target, score, target_is_top, tuple(removed), tuple(left), last, trace.tokens)


def _most(words):
    return words * (words + 1) // 2


def removable_words(left, trace, target):
    """The words of `left`, a list of `WordSpan`s, that may go next."""
    asked = {*trace.masks, target.position}
    return [
        word for word in left if not asked & set(word.positions) and sum(one.source == word.source for one in left) > 1
    ]


def _without_each(bert, trace, target, removed, free, tell):
    """The answer without the words that are gone and each of `free`: log-probabilities float64 [R], and whether it is
    the likeliest, bool [R]."""
    away = {position for one in removed for position in one.word.positions}
    groups = defaultdict(list)  # inputs of one length, with the question at one place, run together
    for row, word in enumerate(free):
        kept = [p for p in range(trace.length) if p not in away and p not in word.positions]
        place = None if target.position is None else kept.index(target.position)
        groups[len(kept), place].append((row, kept))
    scores, likeliest, read = np.zeros(len(free)), np.zeros(len(free), bool), 0
    for (length, place), members in groups.items():
        block = max(1, TOKENS_PER_BATCH // length)
        moved = replace(target, position=place)
        for start in range(0, len(members), block):
            rows, kept = zip(*members[start : start + block])
            states = bert.hooked().embed(trace.token_ids[np.array(kept)], trace.segments[np.array(kept)])
            answers = bert.hooked().answers(bert.hooked().finish(states, 0), moved)
            scores[list(rows)] = answers[:, target.id]
            likeliest[list(rows)] = is_top(target, answers)
            read += len(rows)
            tell(read)
    return scores, likeliest
