"""The words of an input: which tokens are pieces of one word, and where it stands in the user's text."""

from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True)
class Word:
    """Names a word by its place: the `index`-th word (from 0) of text `source`, "a" or "b"."""

    source: str
    index: int


@dataclass(frozen=True)
class WordSpan:
    """A word as it was read.

    Attributes:
        source: "a" or "b".
        index: the word's number in its text, from 0.
        text: its letters as the user wrote them.
        positions: its tokens' positions in the sequence.
        start, end: its first character and the one after its last, in the user's text.
    """

    source: str
    index: int
    text: str
    positions: tuple
    start: int
    end: int


def words_of(read, text_a, text_b=None):
    """List the words of an encoded input, in reading order.

    Args:
        read: has `offsets`, `word_ids` and `sources`, one entry a token (an `Encoding` or a `Trace`).
        text_a, text_b: the user's texts, which the offsets point into.
    Returns:
        tuple of `WordSpan`. Special tokens that the model adds belong to no word.
    """
    texts = {"a": text_a, "b": text_b}
    numbered = [
        (position, source, word)
        for position, (source, word) in enumerate(zip(read.sources, read.word_ids))
        if word is not None
    ]
    words = []
    for (source, index), members in groupby(numbered, key=lambda entry: entry[1:]):
        positions = tuple(position for position, _, _ in members)
        start, end = read.offsets[positions[0]][0], read.offsets[positions[-1]][1]
        words.append(WordSpan(source, index, texts[source][start:end], positions, start, end))
    return tuple(words)
