"""Sentences that have a concept, and those it is compared with: the samples. No Streamlit."""

import functools

from ui.shell.limits import ROOT

#: The folder of the samples, from the project's.
FOLDER = "assets/samples/concepts"
#: Concepts that there are sentences of.
NAMES = {
    "positive": "Positive feeling",
    "negation": "Negation",
    "places": "Place names",
    "questions": "Questions",
    "past": "Past tense",
}
#: What stands for a concept of the visitor's own among them.
OWN = "own"
#: The sentences that a concept is compared with.
OTHERS = "neutral"


@functools.cache
def sentences(name):
    """Those of one of ``NAMES``, or of ``OTHERS``."""
    return tuple((ROOT / FOLDER / f"{name}.txt").read_text("utf-8").splitlines())


def lines(texts, most, max_characters):
    """Texts as they would be typed, one a line: the first of them, `most` at most and no more characters than
    allowed."""
    kept, left = [], max_characters
    for text in (" ".join(text.split()) for text in texts[:most]):
        left -= len(text) + 1
        if left < 0:
            break
        kept.append(text)
    return "\n".join(kept)


def typed(lines):
    """Sentences as they were typed, one a line."""
    return tuple(line.strip() for line in lines.splitlines() if line.strip())
