"""The words of a running text, for taggers trained on files whose words were parted before.

English contractions are parted as in the Penn Treebank and Universal Dependencies ("do" "n't", "it" "'s");
addresses of pages and mail, @names, #tags and numbers stay whole; all else is a run of letters and digits or
a single sign.
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


def word_spans(text):
    """Where the words of a text are: list of (first character, last character + 1)."""
    return [match.span() for match in _WORD.finditer(text)]
