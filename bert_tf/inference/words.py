"""The words of an input: the tokens of each word, and its position in the user's text."""

from dataclasses import dataclass
from itertools import groupby
from typing import Any
from unicodedata import normalize


@dataclass(frozen=True)
class Word:
    """A reference to a word by its position: word number `index` (from 0) of text `source`, "a" or "b"."""

    source: str
    index: int


@dataclass(frozen=True)
class WordSpan:
    """A word of an input.

    Attributes:
        source: str. "a" or "b".
        index: int. The number of the word in its text, from 0.
        text: str. The word as the user wrote it.
        positions: tuple of int. The positions of its tokens.
        start: int. Its first character in the user's text.
        end: int. The character after its last character in the user's text.
    """

    source: str
    index: int
    text: str
    positions: tuple[int, ...]
    start: int
    end: int


def folded(text: str) -> str:
    """A text without the differences of case and of the composition of accents."""
    return normalize("NFC", text.casefold())


def masked_words(trace: Any, mask_id: int) -> tuple[Word, ...]:
    """The masked words of a trace, without those that the user typed as [MASK].

    Args:
        trace: `Trace`.
        mask_id: int. The id of the mask token of the trace's model.

    Returns:
        Tuple of `Word`, in reading order, each once.
    """
    hidden = (position for position in trace.masks if trace.original_ids[position] != mask_id)
    return tuple(dict.fromkeys(Word(trace.sources[position], trace.word_ids[position]) for position in hidden))


def read_texts(encoded: Any, text_a: str, text_b: str | None) -> tuple[str, str | None]:
    """The two texts without the ends that were cut off.

    Args:
        encoded, text_a, text_b: as in `words_of`; `encoded` also has `truncated`.
    """
    if not any(encoded.truncated):
        return text_a, text_b
    ends = {"a": 0, "b": 0}
    for source, offsets in zip(encoded.sources, encoded.offsets):
        if source:
            ends[source] = offsets[1]
    return text_a[: ends["a"]], text_b and text_b[: ends["b"]]


def words_of(encoded: Any, text_a: str, text_b: str | None = None) -> tuple[WordSpan, ...]:
    """List the words of an encoded input, in reading order.

    Args:
        encoded: `Encoding` or `Trace`. It has `offsets`, `word_ids` and `sources`, with one entry per token.
        text_a: str. The user's text.
        text_b: str or None. The user's second text.

    Returns:
        Tuple of `WordSpan`. The special tokens that the model adds belong to no word.
    """
    texts: dict[str, Any] = {"a": text_a, "b": text_b}
    numbered = [
        (position, source, word)
        for position, (source, word) in enumerate(zip(encoded.sources, encoded.word_ids))
        if word is not None
    ]
    words = []
    for (source, index), members in groupby(numbered, key=lambda entry: entry[1:]):
        positions = tuple(position for position, _, _ in members)
        start, end = encoded.offsets[positions[0]][0], encoded.offsets[positions[-1]][1]
        words.append(WordSpan(source, index, texts[source][start:end], positions, start, end))
    return tuple(words)
