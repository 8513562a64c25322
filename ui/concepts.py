"""Sentences that have a concept, and those it is compared with: the samples. No Streamlit."""

import functools

from ui.limits import ROOT

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
#: The sentences that a concept is compared with.
OTHERS = "neutral"


@functools.cache
def sentences(name):
    """Those of one of ``NAMES``, or of ``OTHERS``."""
    return tuple((ROOT / FOLDER / f"{name}.txt").read_text("utf-8").splitlines())


def typed(lines):
    """Sentences as they were typed, one a line."""
    return tuple(line.strip() for line in lines.splitlines() if line.strip())
