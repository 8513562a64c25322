"""HotFlip: the words whose change for another word of the vocabulary hurts an answer most.

Dimension legend: T tokens, V vocabulary, R rows. Source: Ebrahimi et al. 2018, "HotFlip: White-Box Adversarial Examples
for Text Classification". There the slope chooses, for words among those alike in meaning and part of speech; here, as
in AllenNLP Interpret (Wallace et al. 2019), any word may come, and the model reads what the slope likes best before one
is chosen.
"""

import unicodedata
from dataclasses import dataclass, replace
from typing import Optional

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.explain.attribution.target import Target, is_top, target_with_id
from bert_tf.inference.batching import batched_answers
from bert_tf.inference.words import WordSpan
from bert_tf.results import Result, frame

_REREAD = 4  # words looked at, for each that is tried, to find those that the new text is read with


@dataclass(frozen=True)
class Flip:
    """A word changed for another, and what becomes of the answer; logarithms are natural.

    Attributes:
        word: the `WordSpan` of the trace. new: what stands there instead. token_id: its id.
        estimate: what the answer's log-probability gains by the slope. change: what it gains in truth; both from the
            text with the flips before.
        log_probability: the answer's then. answer: the likeliest answer then, a `Target`; of several labels at
            once the label itself, or it with "not" before its name. answer_log_probability: of that.
            flips_prediction: whether it is another than before all flips.
        text_a, text_b: the texts then; text_b None where there is no pair.
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
    text_b: Optional[str]


@dataclass(frozen=True)
class HotFlip(Result, figures={"flips": "bert_tf.plots.attribution.hotflip:flip_bars"}):
    """What `hotflip` found.

    Attributes:
        target: the `Target`. log_probability: its log-probability in the text as it is (natural logarithm).
        target_is_top: whether it is the likeliest answer there (`target.is_top`); where it is not, nothing is tried.
        tried: `Flip`s that were tried in the text as it is, what hurts the answer most first.
        applied: `Flip`s in the order in which they were done, each on top of those before.
        flipped: whether another answer is the likeliest in the end.
        tokens: the input's. method: "hotflip".
    """

    target: Target
    log_probability: float
    target_is_top: bool
    tried: tuple
    applied: tuple
    flipped: bool
    tokens: tuple
    method: str = "hotflip"

    def to_frame(self):
        """A row for each flip: those that were done by their step from 1, then what was tried at first, as step 0."""
        flips = [*self.applied, *self.tried]
        return frame(
            {
                "step": [*range(1, len(self.applied) + 1), *[0] * len(self.tried)],
                "source": [one.word.source for one in flips],
                "index": [one.word.index for one in flips],
                "word": [one.word.text for one in flips],
                "new": [one.new for one in flips],
                "change": [one.change for one in flips],
                "estimate": [one.estimate for one in flips],
                "log_probability": [one.log_probability for one in flips],
                "answer": [one.answer.label for one in flips],
                "answer_log_probability": [one.answer_log_probability for one in flips],
            }
        )


def hotflip(bert, trace, target, most=3, tried=2, progress=None):
    """Change one word at a time for the one that hurts the answer most, until another answer is the likeliest.

    What putting a word's vector in another's place would do is estimated for all words of the vocabulary by the slope
    of the answer's log-probability: slope times (new vector - old vector). For every word of the texts those with the
    lowest estimates are then read by the model, and the one that leaves the answer least is taken. It ends where the
    likeliest answer is another, where none that was read hurts the answer, or after `most` words. With several labels
    at once a label is "the likeliest" while its own probability is above a half.

    Only whole words, of letters, their marks and digits, that are one token in the vocabulary are put in the place of
    such words, and only where the new text would be read so; no word is changed twice. Hidden words and the one that
    the target is about stay.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`.
        target: a `Target`, usually the likeliest answer; not the value of a regression.
        most: words changed at most, 1 to 10. tried: words read by the model for each word of the texts, 1 to 20.
        progress: callable(done, total) in inputs read, `total` being the most there can be; returning False cancels.
    Returns:
        `HotFlip`. Each flip takes one backward pass, and a forward pass for `tried` times the words.
    Raises:
        InputError: the target is the value of a regression, or a number is no good. Cancelled: by `progress`.
    """
    if target.is_regression:
        raise InputError("The value of a regression is never the likeliest of several: there is no answer to change.")
    for name, number, limit in (("most", most, 10), ("tried", tried, 20)):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 1 <= number <= limit:
            raise InputError(f"{name} must be a whole number from 1 to {limit}, not {number!r:.40}.")
    first, applied = (), []
    ((score, target_is_top, _, _),) = _answers(bert, trace, target, trace.token_ids[None])
    free = list(replaceable_words(bert.tokenizer, trace, target)) if target_is_top else []
    allowed, table = _allowed(bert, trace, free), _table(bert) if free else None
    total, done = tried * sum(len(free) - flip for flip in range(min(most, len(free)))), 0

    def tell(read):
        report(progress, done + read, total)

    while free and len(applied) < most and not any(one.flips_prediction for one in applied):
        proposed = _proposed(bert, trace, target, applied, free, allowed, table, tried)
        found = _read(bert, trace, target, applied, proposed, applied[-1].log_probability if applied else score, tell)
        first = first if applied else found
        done += tried * len(free)
        if not found or found[0].change >= 0:
            break
        applied.append(found[0])
        free.remove(found[0].word)
    flipped = bool(applied) and applied[-1].flips_prediction
    return HotFlip(target, score, target_is_top, first, tuple(applied), flipped, trace.tokens)


def replaceable_words(tokenizer, trace, target):
    """The words of a trace that may be changed, `WordSpan`s: one token each, of letters, their marks and digits,
    neither hidden nor asked about, that alone is read as it is in the text."""
    asked = {*trace.masks, target.position}
    words = [word for word in trace.words() if len(word.positions) == 1 and is_word(word.text)]
    read = tokenizer.batch_ids([_before(trace, word) + word.text for word in words])
    return tuple(
        word
        for word, ids in zip(words, read)
        if word.positions[0] not in asked and list(ids) == [trace.original_ids[word.positions[0]]]
    )


def is_word(text):
    """Whether a text is letters, their marks and digits alone and begins with no mark. Hindi, Tamil and Thai write
    vowels as marks, which `str.isalnum` takes for neither letters nor digits."""
    return text[:1].isalnum() and all(unicodedata.category(one)[0] in "LNM" for one in text)


def _before(trace, word):
    """The space before a word, or "" where there is none: a byte-level piece has it in it."""
    text = trace.text_a if word.source == "a" else trace.text_b
    return " " if text[: word.start][-1:].isspace() else ""


def _allowed(bert, trace, free):
    """Dict from what stands before a word to bool [V]: the tokens that are such a word."""
    tokenizer, found = bert.tokenizer, {}
    for before in {_before(trace, word) for word in free}:
        words = [token.strip() for token in tokenizer.vocab]
        places = [place for place, word in enumerate(words) if is_word(word)]
        read = tokenizer.batch_ids([before + words[place] for place in places])
        found[before] = np.zeros(len(words), bool)
        found[before][[place for place, ids in zip(places, read) if list(ids) == [place]]] = True
    return found


def _table(bert):
    from bert_tf.explain.representations.vectors import embedding_table

    return embedding_table(bert, "token")


def _proposed(bert, trace, target, applied, free, allowed, table, tried):
    """What is worth reading: (`WordSpan`, token id, estimate), the most promising of each word."""
    ids = _changed(trace.token_ids, applied)
    vectors = bert.hooked().token_vectors(ids[None]).numpy()
    _, gradient = bert.hooked().gradient(vectors, trace.segments[None], target)
    places = [word.positions[0] for word in free]
    slopes = gradient[0, places]
    gains = slopes @ table.T - (slopes * vectors[0, places]).sum(axis=1, keepdims=True)
    found = []
    for word, place, row in zip(free, places, gains):
        may = allowed[_before(trace, word)]
        best = np.argsort(np.where(may, row, np.inf), kind="stable")[: 1 + _REREAD * tried]
        best = [int(new) for new in best if may[new] and new != ids[place]]
        fits = (new for new in best if _is_read_so(bert, trace, applied, word, new))
        found += [(word, new, float(row[new])) for new, _ in zip(fits, range(tried))]
    return found


def _read(bert, trace, target, applied, proposed, before, tell):
    """The proposed words in their places: `Flip`s, what hurts the answer most first."""
    if not proposed:
        return ()
    rows = np.repeat(_changed(trace.token_ids, applied)[None], len(proposed), axis=0)
    for row, (word, new, _) in zip(rows, proposed):
        row[word.positions[0]] = new
    flips_prediction = []
    found = _answers(bert, trace, target, rows, tell)
    for (word, new, estimate), (score, target_is_top, answer, answer_score) in zip(proposed, found):
        text_a, text_b = _texts(bert.tokenizer, trace, applied, word, new)
        flips_prediction.append(
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
    return tuple(sorted(flips_prediction, key=lambda one: one.log_probability))


def _answers(bert, trace, target, rows, tell=None):
    """Of each input int32 [R, T] the target's log-probability, whether it is the likeliest answer, the likeliest, and
    the log-probability of that."""
    found = []
    for done, answers in batched_answers(bert, rows, trace.segments, target):
        found += [
            (float(row[target.id]), bool(target_is_top), *_likeliest(bert, target, row, target_is_top))
            for row, target_is_top in zip(answers, is_top(target, answers))
        ]
        if tell is not None:
            tell(done)
    return found


def _likeliest(bert, target, answers, target_is_top):
    """The likeliest answer, a `Target`, and its log-probability, out of log-probabilities [K]."""
    if target.is_multi_label and not target_is_top:
        return replace(target, label=f"not {target.label}"), float(np.log1p(-np.exp(np.float64(answers[target.id]))))
    best = target.id if target.is_multi_label else int(answers.argmax())
    return target_with_id(bert, target, best), float(answers[best])


def _changed(ids, applied):
    """Token ids [T] with the flips that were taken."""
    changed = np.array(ids)
    for one in applied:
        changed[one.word.positions[0]] = one.token_id
    return changed


def _texts(tokenizer, trace, applied, word, new):
    """Both texts as they are typed with the flips and one more."""
    instead = {one.word: one.new for one in applied} | {word: tokenizer.id_to_token(new).strip()}
    return tuple(
        text_with_replacements(text, source, instead) for source, text in (("a", trace.text_a), ("b", trace.text_b))
    )


def text_with_replacements(text, source, instead):
    """A text with other words; text: of `source`, or None. instead: dict from `WordSpan` to what stands there."""
    for word in sorted((one for one in instead if one.source == source), key=lambda one: -one.start):
        text = text[: word.start] + instead[word] + text[word.end :]
    return text


def _is_read_so(bert, trace, applied, word, new):
    """Whether the texts with a new word are read as the old ones with its token in the place of the old, and cut where
    those were."""
    tokenizer, room = bert.tokenizer, trace.length if trace.truncated else bert.max_length
    text_a, text_b = (
        text and tokenizer.normalize_mask_token(text) for text in _texts(tokenizer, trace, applied, word, new)
    )
    wanted = _changed(trace.original_ids, applied)
    wanted[word.positions[0]] = new
    return np.array_equal(tokenizer.encode(text_a, text_b, max_length=room).token_ids, wanted)
