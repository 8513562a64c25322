"""Two inputs token by token: a partner for each example, and where two inputs part. No Streamlit."""

import difflib
from dataclasses import dataclass

from bert_tf.inference.words import words_of

# Texts of the examples with one word changed for another of as many pieces.
_PARTNERS = {
    "Shanghai is a city in China.": "Paris is a city in China.",
    "The legislators believed they were on the right side of history.": (
        "The legislators believed they were on the left side of history."
    ),
    "At the crossing, turn right and walk along the street.": (
        "At the crossing, turn right and sail along the street."
    ),
    "You were right about the answer to the question.": "You were right about the answer to the prayer.",
    "They sat on the bank of the river and watched the boats.": (
        "They sat on the bank of the street and watched the boats."
    ),
    "She opened an account at the bank to save her money.": ("She opened an account at the bank to save her life."),
}


def corrupted_text(text):
    """A text to begin with beside ``text``; the text itself where none is prepared."""
    return _PARTNERS.get(text, text)


def aligned(one, other):
    """Whether two encodings have equally many tokens in each text."""
    return one.sources == other.sources


@dataclass(frozen=True)
class Difference:
    """Words that differ: what stands in either input, and in how many tokens."""

    one: str
    other: str
    pieces: tuple


def differences(one, other, texts_one, texts_other):
    """Where two inputs differ, in reading order.

    Args:
        one, other: encodings. texts_one, texts_other: their (text_a, text_b).

    Returns:
        list of ``Difference``.
    """
    words = [words_of(encoding, *texts) for encoding, texts in ((one, texts_one), (other, texts_other))]
    spelled = [[(word.source, word.text) for word in side] for side in words]
    found = []
    for kind, first, last, begin, end in difflib.SequenceMatcher(None, *spelled, autojunk=False).get_opcodes():
        if kind != "equal":
            sides = words[0][first:last], words[1][begin:end]
            said = (" ".join(word.text for word in side) for side in sides)
            found.append(Difference(*said, tuple(sum(len(word.positions) for word in side) for side in sides)))
    return found
