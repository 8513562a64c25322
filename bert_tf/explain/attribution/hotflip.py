"""HotFlip: the replacements of words by other words of the vocabulary that lower a target's log-probability most.

Dimension legend: T tokens, V vocabulary, R rows, K outcomes of a head. Source: Ebrahimi et al. 2018, "HotFlip:
White-Box Adversarial Examples for Text Classification". The paper chooses by the gradient alone, among words of similar
meaning and the same part of speech. Here, as in AllenNLP Interpret (Wallace et al. 2019), any word may replace a word,
and the model reads the best candidates by the gradient before one is chosen.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.explain.attribution.target import Target, is_top, target_with_id
from bert_tf.explain.representations.embedding_tables import embedding_blocks
from bert_tf.inference.batching import batched_answers
from bert_tf.inference.words import WordSpan
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas

    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace
    from bert_tf.tokenizers import BaseTokenizer

#: Candidates that are tokenized for each one that the model reads: some do not keep their token in the new text.
_CANDIDATES_PER_TRIED = 4


@dataclass(frozen=True)
class Flip:
    """The replacement of one word, and the prediction after it; logarithms are natural.

    Attributes:
        word: WordSpan. The replaced word of the trace.
        new: str. The word in its place.
        token_id: int. The token id of the new word.
        estimate: float. The change of the target's log-probability by the gradient, relative to the text with the
            flips before.
        change: float. The change of the target's log-probability as the model reads it, likewise relative.
        log_probability: float. The target's log-probability after the flip.
        answer: Target. The likeliest outcome after the flip; in a multi-label classifier the label, or "not" and the
            label.
        answer_log_probability: float. The log-probability of `answer`.
        flips_prediction: bool. Whether the model no longer predicts the target.
        text_a: str. The first text after the flip.
        text_b: str or None. The second text after the flip; None without a second text.
    """

    word: WordSpan
    new: str
    token_id: int
    estimate: float
    change: float
    log_probability: float
    answer: Target
    answer_log_probability: float
    flips_prediction: bool
    text_a: str
    text_b: str | None


@dataclass(frozen=True)
class HotFlip(Result, figures={"flips": "bert_tf.plots.attribution.hotflip:flip_bars"}):
    """The flips that `hotflip` tried and applied.

    Attributes:
        target: Target.
        log_probability: float. The target's natural log-probability in the original text.
        target_is_top: bool. Whether the model predicts the target there (`is_top`); if not, no flip is tried.
        tried: tuple of Flip. The flips that were tried in the original text, the one that lowers the target's
            log-probability most first.
        applied: tuple of Flip. In the order in which they were applied, each after the flips before it.
        flipped: bool. Whether the model no longer predicts the target after all applied flips.
        tokens: tuple of T strings. The tokens of the input.
        method: str. "hotflip".

    Example:
        >>> bert = bert_tf.load()
        >>> trace = bert.trace("Shanghai is a city in [MASK].")
        >>> hotflip(bert, trace, mask_target(bert, trace)).to_frame()
    """

    target: Target
    log_probability: float
    target_is_top: bool
    tried: tuple[Flip, ...]
    applied: tuple[Flip, ...]
    flipped: bool
    tokens: tuple[str, ...]
    method: str = "hotflip"

    def to_frame(self) -> pandas.DataFrame:
        """A row for each flip: the applied flips by their step from 1, then the flips tried at first, as step 0."""
        flips = [*self.applied, *self.tried]
        return frame(
            {
                "step": [*range(1, len(self.applied) + 1), *[0] * len(self.tried)],
                "source": [flip.word.source for flip in flips],
                "index": [flip.word.index for flip in flips],
                "word": [flip.word.text for flip in flips],
                "new": [flip.new for flip in flips],
                "change": [flip.change for flip in flips],
                "estimate": [flip.estimate for flip in flips],
                "log_probability": [flip.log_probability for flip in flips],
                "answer": [flip.answer.label for flip in flips],
                "answer_log_probability": [flip.answer_log_probability for flip in flips],
            }
        )


def hotflip(
    bert: Bert,
    trace: Trace,
    target: Target,
    most: int = 3,
    tried: int = 2,
    progress: Callable[[int, int], Any] | None = None,
) -> HotFlip:
    """Replace one word at a time by the word that lowers the target's log-probability most, until the prediction flips.

    The effect of every word of the vocabulary is estimated with the gradient of the target's log-probability: gradient
    times (new vector - old vector). For every word of the texts the model reads the replacements with the lowest
    estimates, and the one that leaves the lowest log-probability is applied. It ends when the model no longer predicts
    the target, when no replacement lowers the log-probability, or after `most` words. In a multi-label classifier the
    model predicts a label while its probability is above 0.5.

    Only words that consist of letters, combining marks and digits and are a single token are replaced, and only by such
    words, where the tokens of the new text differ in this one token. No word is replaced twice. Masked words and the
    word that the target names are not replaced.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace.
        target: Target. Usually the likeliest outcome; not the value of a regression.
        most: int. The largest number of replaced words, 1 to 10.
        tried: int. The number of replacements that the model reads for each word of the texts, 1 to 20.
        progress: callable(done, total) or None. Counts inputs, where `total` is their largest possible number;
            returning False cancels.
    Returns:
        `HotFlip`. Each flip takes one backward pass and `tried` forward passes for each word.
    Raises:
        InputError: the target is the value of a regression, or a number is out of range.
        Cancelled: `progress` returned False.
    """
    if target.is_regression:
        raise InputError("HotFlip needs a target among several outcomes; a regression predicts a single number.")
    for name, number, limit in (("most", most, 10), ("tried", tried, 20)):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 1 <= number <= limit:
            raise InputError(f"{name} must be a whole number from 1 to {limit}, not {number!r:.40}.")
    tried_at_first: tuple[Flip, ...] = ()
    applied: list[Flip] = []
    ((score, target_is_top, _, _),) = _predictions(bert, trace, target, trace.token_ids[None])
    words = list(replaceable_words(bert.tokenizer, trace, target)) if target_is_top else []
    allowed = _allowed(bert, trace, words)
    total, done = tried * sum(len(words) - flip for flip in range(min(most, len(words)))), 0

    def report_read(num_read: int) -> None:
        report(progress, done + num_read, total)

    while words and len(applied) < most and not any(flip.flips_prediction for flip in applied):
        candidates = _candidates(bert, trace, target, applied, words, allowed, tried)
        before = applied[-1].log_probability if applied else score
        flips = _flips(bert, trace, target, applied, candidates, before, report_read)
        tried_at_first = tried_at_first if applied else flips
        done += tried * len(words)
        if not flips or flips[0].change >= 0:
            break
        applied.append(flips[0])
        words.remove(flips[0].word)
    flipped = bool(applied) and applied[-1].flips_prediction
    return HotFlip(target, score, target_is_top, tried_at_first, tuple(applied), flipped, trace.tokens)


def replaceable_words(tokenizer: BaseTokenizer, trace: Trace, target: Target) -> tuple[WordSpan, ...]:
    """The words of a trace that may be replaced: a single token, `is_word`, neither masked nor named by the target, and
    with the same token when it is tokenized alone."""
    fixed = {*trace.masks, target.position}
    words = [word for word in trace.words() if len(word.positions) == 1 and is_word(word.text)]
    ids_of_words = tokenizer.batch_ids([_space_before(trace, word) + word.text for word in words])
    return tuple(
        word
        for word, ids in zip(words, ids_of_words)
        if word.positions[0] not in fixed and list(ids) == [trace.original_ids[word.positions[0]]]
    )


def is_word(text: str) -> bool:
    """Whether a text consists of letters, combining marks and digits and does not begin with a mark. Hindi, Tamil and
    Thai write vowels as combining marks, for which `str.isalnum` is false."""
    return text[:1].isalnum() and all(unicodedata.category(character)[0] in "LNM" for character in text)


def _space_before(trace: Trace, word: WordSpan) -> str:
    """The space before a word, or "" if there is none: byte-level tokens include the space."""
    text = trace.text_a if word.source == "a" else trace.text_b or ""
    return " " if text[: word.start][-1:].isspace() else ""


def _allowed(bert: Bert, trace: Trace, words: Iterable[WordSpan]) -> dict[str, np.ndarray]:
    """Dict from `_space_before` a word to bool [V]: the tokens that may replace it."""
    tokenizer, allowed = bert.tokenizer, {}
    for before in {_space_before(trace, word) for word in words}:
        texts = [token.strip() for token in tokenizer.vocab]
        token_ids = [token_id for token_id, text in enumerate(texts) if is_word(text)]
        ids_of_words = tokenizer.batch_ids([before + texts[token_id] for token_id in token_ids])
        allowed[before] = np.zeros(len(texts), bool)
        allowed[before][[token_id for token_id, ids in zip(token_ids, ids_of_words) if list(ids) == [token_id]]] = True
    return allowed


def _candidates(
    bert: Bert,
    trace: Trace,
    target: Target,
    applied: Sequence[Flip],
    words: Sequence[WordSpan],
    allowed: dict[str, np.ndarray],
    tried: int,
) -> list[tuple[WordSpan, int, float]]:
    """The replacements that the model reads next, (word, token id, estimate): those with the lowest estimates of each
    word."""
    ids = _replaced_ids(trace.token_ids, applied)
    vectors = bert.hooked().token_vectors(ids[None]).numpy()
    _, gradient = bert.hooked().gradient(vectors, trace.segments[None], target)
    positions = [word.positions[0] for word in words]
    gradients = gradient[0, positions]
    products = [gradients @ block.T for block in embedding_blocks(bert)]
    estimates = np.concatenate(products, axis=1) - (gradients * vectors[0, positions]).sum(axis=1, keepdims=True)
    candidates = []
    for word, position, row in zip(words, positions, estimates):
        may_replace = allowed[_space_before(trace, word)]
        order = np.argsort(np.where(may_replace, row, np.inf), kind="stable")[: 1 + _CANDIDATES_PER_TRIED * tried]
        best = [int(new) for new in order if may_replace[new] and new != ids[position]]
        fitting = (new for new in best if _keeps_token(bert, trace, applied, word, new))
        candidates += [(word, new, float(row[new])) for new, _ in zip(fitting, range(tried))]
    return candidates


def _flips(
    bert: Bert,
    trace: Trace,
    target: Target,
    applied: Sequence[Flip],
    candidates: Sequence[tuple[WordSpan, int, float]],
    before: float,
    report_read: Callable[[int], None],
) -> tuple[Flip, ...]:
    """The candidates as the model reads them; the flip with the lowest log-probability of the target first."""
    if not candidates:
        return ()
    rows = np.repeat(_replaced_ids(trace.token_ids, applied)[None], len(candidates), axis=0)
    for row, (word, new, _) in zip(rows, candidates):
        row[word.positions[0]] = new
    flips = []
    predictions = _predictions(bert, trace, target, rows, report_read)
    for (word, new, estimate), (score, target_is_top, answer, answer_score) in zip(candidates, predictions):
        text_a, text_b = _texts(bert.tokenizer, trace, applied, word, new)
        flips.append(
            Flip(
                word,
                bert.tokenizer.id_to_token(new).strip(),
                new,
                estimate,
                score - before,
                score,
                answer,
                answer_score,
                not target_is_top,
                text_a,
                text_b,
            )
        )
    return tuple(sorted(flips, key=lambda flip: flip.log_probability))


def _predictions(
    bert: Bert, trace: Trace, target: Target, rows: np.ndarray, report_read: Callable[[int], None] | None = None
) -> list[tuple[float, bool, Target, float]]:
    """For each input int32 [R, T]: the target's log-probability, whether the model predicts the target, the likeliest
    outcome, and its log-probability."""
    predictions = []
    for done, answers in batched_answers(bert, rows, trace.segments, target):
        predictions += [
            (float(row[target.id]), bool(target_is_top), *_likeliest(bert, target, row, target_is_top))
            for row, target_is_top in zip(answers, is_top(target, answers))
        ]
        if report_read is not None:
            report_read(done)
    return predictions


def _likeliest(bert: Bert, target: Target, answers: np.ndarray, target_is_top: bool) -> tuple[Target, float]:
    """The likeliest outcome and its log-probability, from log-probabilities [K]."""
    if target.is_multi_label and not target_is_top:
        return replace(target, label=f"not {target.label}"), float(np.log1p(-np.exp(np.float64(answers[target.id]))))
    best = target.id if target.is_multi_label else int(answers.argmax())
    return target_with_id(bert, target, best), float(answers[best])


def _replaced_ids(ids: np.ndarray, applied: Iterable[Flip]) -> np.ndarray:
    """Token ids [T] after the applied flips."""
    replaced = np.array(ids)
    for flip in applied:
        replaced[flip.word.positions[0]] = flip.token_id
    return replaced


def _texts(
    tokenizer: BaseTokenizer, trace: Trace, applied: Iterable[Flip], word: WordSpan, new: int
) -> tuple[str, str | None]:
    """Both texts after the applied flips and one more."""
    replacements = {flip.word: flip.new for flip in applied} | {word: tokenizer.id_to_token(new).strip()}
    text_b = None if trace.text_b is None else text_with_replacements(trace.text_b, "b", replacements)
    return text_with_replacements(trace.text_a, "a", replacements), text_b


def text_with_replacements(text: str, source: str, instead: Mapping[WordSpan, str]) -> str:
    """A text with other words in place of some of its words.

    Args:
        text: str.
        source: str. "a" or "b"; words of the other text are left out.
        instead: dict from WordSpan to str. The new words.
    """
    for word in sorted((word for word in instead if word.source == source), key=lambda word: -word.start):
        text = text[: word.start] + instead[word] + text[word.end :]
    return text


def _keeps_token(bert: Bert, trace: Trace, applied: Sequence[Flip], word: WordSpan, new: int) -> bool:
    """Whether the tokens of the texts with a new word are the old tokens with the new word's token in place of the old,
    cut at the same length."""
    tokenizer, max_length = bert.tokenizer, trace.length if trace.truncated else bert.max_length
    text_a, text_b = _texts(tokenizer, trace, applied, word, new)
    text_a = tokenizer.normalize_mask_token(text_a)
    text_b = text_b and tokenizer.normalize_mask_token(text_b)
    expected = _replaced_ids(trace.original_ids, applied)
    expected[word.positions[0]] = new
    return np.array_equal(tokenizer.encode(text_a, text_b, max_length=max_length).token_ids, expected)
