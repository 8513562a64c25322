"""Pairs of inputs for activation patching: a partner for each example, and the words in which two inputs differ.

Does not import Streamlit.
"""

import difflib
from dataclasses import dataclass

from bert_tf.inference.words import words_of

# Text of an example -> the same text with one word replaced by another of as many pieces, after which the hidden word
# of the example is much less likely (`tests/embedded/test_embedded_models.py`).
_PARTNERS = {
    "Shanghai is a city in China.": "Paris is a city in China.",
    "So they changed the law.": "So they took the law.",
    "The bunny ate the carrot.": "The bunny ate the parrot.",
    "At the crossing, turn right and walk along the street.": "At the crossing, turn right then walk along the street.",
    "You were right about the answer to the question.": "People were right about the answer to the question.",
    "They sat on the bank of the river and watched the boats.": (
        "They sat on the bank of the street and watched the boats."
    ),
    "She opened an account at the bank to save her money.": "She opened an inn at the bank to save her money.",
}


def corrupted_text(text):
    """The prepared partner of ``text``; the text itself if there is none."""
    return _PARTNERS.get(text, text)


def aligned(one, other):
    """Whether two encodings have the same number of tokens in each text."""
    return one.sources == other.sources


@dataclass(frozen=True)
class Difference:
    """Words that differ: the words of each input, and the number of their tokens."""

    one: str
    other: str
    pieces: tuple


def differences(one, other, texts_one, texts_other):
    """The words in which two inputs differ, in reading order.

    Args:
        one, other: encodings. texts_one, texts_other: their (text_a, text_b).

    Returns:
        list of ``Difference``.
    """
    words = [words_of(encoding, *texts) for encoding, texts in ((one, texts_one), (other, texts_other))]
    spelled = [[(word.source, word.text) for word in side] for side in words]
    parts = []
    for kind, first, last, begin, end in difflib.SequenceMatcher(None, *spelled, autojunk=False).get_opcodes():
        if kind != "equal":
            sides = words[0][first:last], words[1][begin:end]
            joined = (" ".join(word.text for word in side) for side in sides)
            parts.append(Difference(*joined, tuple(sum(len(word.positions) for word in side) for side in sides)))
    return parts
