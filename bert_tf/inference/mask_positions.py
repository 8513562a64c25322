"""Conversion of the masks that a caller requests (positions, words, typed "[MASK]") to token positions.

Dimension legend: T tokens.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from itertools import accumulate
from numbers import Integral
from typing import Any
from unicodedata import normalize

from bert_tf.errors import InputError, MaskPositionError, MaskTruncated, WordNotFound, did_you_mean
from bert_tf.inference.words import Word, WordSpan, folded, words_of
from bert_tf.tokenizers import BaseTokenizer, Encoding

LEVELS = ("token", "word")
_LONGEST_CORRECTED = 100  # characters of a word for which similar ones are looked for, which takes long for long texts


def resolve_masks(
    encoding: Encoding, text_a: str, text_b: str | None, mask: Any, level: str, tokenizer: BaseTokenizer
) -> tuple[int, ...]:
    """Return the token positions to predict.

    Args:
        encoding: `Encoding`. The packed input of T tokens.
        text_a: str. The user's first text.
        text_b: str or None. The user's second text.
        mask: int, str, `Word`, or an iterable of them. Token positions (int), words (str) or `Word`s. A str masks all
            pieces of the first word with this spelling; upper and lower case, and composed and decomposed accents, are
            equal if no word has exactly this spelling. A str that is repeated masks the next such word.
        level: str. "token" masks only the token at a position, "word" all pieces of its word.
        tokenizer: tokenizer that made `encoding`.

    Returns:
        Sorted tuple of positions, with the positions where the user typed "[MASK]".

    Raises:
        MaskPositionError: a position is out of range or holds a special token of the model.
        WordNotFound: a word is not in the texts.
        MaskTruncated: a mask is in the part that was cut off.
        InputError: `level` is unknown, or an item of `mask` has another type.
    """
    if level not in LEVELS:
        raise InputError(f'level must be "token" or "word", not {level!r}.')
    texts = {"a": text_a, "b": text_b}
    typed = [position for position, index in enumerate(encoding.token_ids) if index == tokenizer.mask_id]
    if _is_cut(encoding):
        _refuse_cut_masks(len(typed), texts, tokenizer, encoding.length)
    positions = set(typed)
    items = _as_items(mask)
    words = words_of(encoding, text_a, text_b) if items else ()
    search = _WordSearch(words, texts)
    repetitions: Counter[str] = Counter()
    for item in items:
        if isinstance(item, str):
            matches = search.positions_of(item)
            if len(matches) <= repetitions[item]:
                raise _not_found(item, repetitions[item], words, encoding, texts, tokenizer)
            positions.update(matches[repetitions[item]])
            repetitions[item] += 1
        elif isinstance(item, Word):
            positions.update(_positions_of_word(item, words, encoding, texts, tokenizer))
        elif isinstance(item, Integral) and not isinstance(item, bool):
            positions.update(_positions_at(int(item), level, words, encoding))
        else:
            raise InputError(f"Cannot mask {item!r:.60}: give a token position (int), a word (str) or a Word.")
    return tuple(sorted(positions))


def _as_items(mask):
    if mask is None:
        return ()
    if isinstance(mask, (str, Word, Mapping)) or not isinstance(mask, Iterable):
        return (mask,)
    return tuple(mask)


def _positions_at(position, level, words, encoding):
    if not 0 <= position < encoding.length:
        raise MaskPositionError(
            f"There is no token {position} to mask: this input has {encoding.length} tokens, "
            f"and the tokens of the text are 1 to {encoding.length - 2}."
        )
    if encoding.word_ids[position] is None:
        raise MaskPositionError(
            f"Token {position} is {encoding.tokens[position]}, which the model adds: "
            "only tokens of the text can be masked."
        )
    if level == "token":
        return (position,)
    return next(word.positions for word in words if position in word.positions)


def _positions_of_word(requested, words, encoding, texts, tokenizer):
    place = requested.source, requested.index
    for word in words:
        if (word.source, word.index) == place:
            return word.positions
    if _is_cut(encoding):
        words = _words_of_full_texts(texts, tokenizer)
        if any((word.source, word.index) == place for word in words):
            raise _cut_off(f"Word {requested.index} of text {requested.source!r} is", encoding.length)
    count = sum(word.source == requested.source for word in words)
    if not count:
        raise WordNotFound(f"There is no text {requested.source!r} to mask a word of.")
    raise WordNotFound(
        f"Text {requested.source!r} has no word {requested.index}: its words are numbered 0 to {count - 1}."
    )


class _WordSearch:
    """A search for words, and runs of words ("don't", "New York"), by their spelling.

    A spelling of n characters can only begin at the start of a word and end at the end of a word n characters later:
    only there is it compared. Where case and accents do not count, these are the characters after `_decomposed`, whose
    number in a text is the sum of those of its parts.

    Args:
        words: sequence of `WordSpan`.
        texts: dict of "a", "b" -> str or None. The texts of the words.
    """

    def __init__(self, words: Sequence[WordSpan], texts: Mapping[str, str | None]) -> None:
        self._words, self._texts = words, {source: text for source, text in texts.items() if text is not None}

    def positions_of(self, spelling: str) -> list[tuple[int, ...]]:
        """The positions of all words with this spelling; if there are none, without regard to case and accents."""
        spelling = spelling.strip()
        exact = self._found(spelling, len(spelling), self._characters, str)
        return exact or self._found(folded(spelling), len(_decomposed(spelling)), self._decomposed_characters, folded)

    def _found(self, spelling, length, places, form):
        starts, ends = places
        found = []
        for first, word in enumerate(self._words):
            last = ends.get((word.source, starts[first] + length), -1)
            if first <= last and form(self._texts[word.source][word.start : self._words[last].end]) == spelling:
                positions = (position for one in self._words[first : last + 1] for position in one.positions)
                found.append(tuple(positions))
        return found

    @cached_property
    def _characters(self):
        return self._places({source: range(len(text) + 1) for source, text in self._texts.items()})

    @cached_property
    def _decomposed_characters(self):
        return self._places(
            {
                source: list(accumulate((len(_decomposed(character)) for character in text), initial=0))
                for source, text in self._texts.items()
            }
        )

    def _places(self, before):
        """(The start of each word, the number of the first word that ends at a place (source, character)).

        ``before`` has the number of characters before each place of a text.
        """
        starts = [before[word.source][word.start] for word in self._words]
        ends = {(word.source, before[word.source][word.end]): n for n, word in reversed(list(enumerate(self._words)))}
        return starts, ends


def _decomposed(text):
    """The text that `folded` composes: two are equal if and only if the folded ones are."""
    return normalize("NFD", text.casefold())


def _not_found(spelling, repetitions, words, encoding, texts, tokenizer):
    if _is_cut(encoding):
        words_of_full_texts = _words_of_full_texts(texts, tokenizer)
        if len(_WordSearch(words_of_full_texts, texts).positions_of(spelling)) > repetitions:
            return _cut_off(f"The word {spelling!r} is", encoding.length)
    if repetitions:
        return WordNotFound(
            f"{spelling!r} was requested {repetitions + 1} times, but the text has it "
            f"{'once' if repetitions == 1 else f'{repetitions} times'}."
        )
    known = dict.fromkeys(word.text for word in words) if len(spelling) <= _LONGEST_CORRECTED else ()
    similar = get_close_matches(spelling, known, n=3, cutoff=0.6)
    return WordNotFound(f"The word {spelling!r} is not in the text.{did_you_mean(map(repr, similar))}")


def _words_of_full_texts(texts, tokenizer):
    words: list[WordSpan] = []
    for source, text in texts.items():
        if text is not None:
            words.extend(words_of(_FullText(tokenizer.tokenize(text), source), text, text))
    return words


class _FullText:
    """The tokens of a text before truncation, with the attributes of an encoded input."""

    def __init__(self, tokens, source):
        self.offsets, self.word_ids = tokens.offsets, tokens.word_ids
        self.sources = (source,) * len(tokens.word_ids)


def _refuse_cut_masks(remaining, texts, tokenizer, length):
    typed = sum(
        int((tokenizer.tokenize(text).ids == tokenizer.mask_id).sum()) for text in texts.values() if text is not None
    )
    if typed > remaining:
        cut = typed - remaining
        which = f"{cut} of the {typed} [MASK] in the text" if typed > 1 else "The [MASK] of the text"
        raise _cut_off(f"{which} {'is' if cut == 1 else 'are'}", length)


def _is_cut(encoding):
    return any(encoding.truncated)


def _cut_off(what, length):
    return MaskTruncated(f"{what} in the part that was cut off: this model reads {length} tokens. Shorten the text.")
