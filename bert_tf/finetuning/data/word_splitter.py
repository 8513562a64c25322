"""Splits a text into words, for token classification models trained on files of separate words.

English contractions are split as in the Penn Treebank and Universal Dependencies ("do" "n't", "it" "'s"). Web and mail
addresses, @names, #tags and numbers stay whole. Every other word is a sequence of letters and digits, or one sign, with
their combining marks (accents, the vowel signs of Devanagari) and joiners.
"""

import re
import unicodedata

# Stands for every character of `_is_mark`, because `re` has no class of them.
_MARK = "\u0300"
#: The soft hyphen, and the zero-width non-joiner and joiner, which stand inside Persian and Indic words.
_JOINERS = "\u00ad\u200c\u200d"
_WORD = re.compile(
    r"(?:https?://|www\.)[^\s<>\"]*[^\s<>\".,;:!?')\]]"
    r"|[\w.+-]{1,64}@\w+(?:[.-]\w+)+"
    rf"|[@#]\w[\w{_MARK}]*"
    r"|\d+(?:[.,:]\d+)+"
    r"|(?:[A-Za-z]\.){2,}"
    r"|\w+(?=n['’]t\b)"
    r"|n['’]t\b"
    r"|['’](?:s|re|ve|ll|d|m)\b"
    rf"|\w[\w{_MARK}]*"
    r"|\.{2,}"
    rf"|[^\w\s]{_MARK}*",
    re.IGNORECASE,
)


def word_spans(text: str) -> list[tuple[int, int]]:
    """The positions of the words of a text: list of (first character, last character + 1)."""
    plain = text if text.isascii() else "".join(_MARK if _is_mark(character) else character for character in text)
    return [match.span() for match in _WORD.finditer(plain)]


def _is_mark(character):
    return character in _JOINERS or unicodedata.category(character).startswith("M")
