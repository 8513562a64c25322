"""Splits a text into words, for token classification models trained on files of separate words.

English contractions are split as in the Penn Treebank and Universal Dependencies ("do" "n't", "it" "'s"). Web and mail
addresses, @names, #tags and numbers stay whole. Every other word is a sequence of letters and digits, or one sign.
"""

import re

_WORD = re.compile(
    r"(?:https?://|www\.)[^\s<>\"]*[^\s<>\".,;:!?')\]]"
    r"|[\w.+-]{1,64}@\w+(?:[.-]\w+)+"
    r"|[@#]\w+"
    r"|\d+(?:[.,:]\d+)+"
    r"|(?:[A-Za-z]\.){2,}"
    r"|\w+(?=n['’]t\b)"
    r"|n['’]t\b"
    r"|['’](?:s|re|ve|ll|d|m)\b"
    r"|\w+"
    r"|\.{2,}"
    r"|[^\w\s]",
    re.IGNORECASE,
)


def word_spans(text: str) -> list[tuple[int, int]]:
    """The positions of the words of a text: list of (first character, last character + 1)."""
    return [match.span() for match in _WORD.finditer(text)]
