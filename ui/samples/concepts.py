"""Sample sentences for concepts, and the sentences that they are compared with. Does not import Streamlit."""

import functools

from bert_tf.explain.datasets.text_rows import lines_with_text
from bert_tf.files import sample_file

#: The folder of the samples, relative to that of all samples.
FOLDER = "concepts"
#: The concepts with sample sentences: file name -> label.
NAMES = {
    "positive": "Positive feeling",
    "negation": "Negation",
    "places": "Place names",
    "questions": "Questions",
    "past": "Past tense",
}
#: The choice of a concept from the visitor's sentences.
OWN = "own"
#: The file of the sentences that a concept is compared with.
OTHERS = "neutral"


@functools.cache
def sentences(name):
    """The sentences of one of ``NAMES``, or of ``OTHERS``."""
    return tuple(sample_file(f"{FOLDER}/{name}.txt").read_text("utf-8").splitlines())


def lines(texts, most, max_characters):
    """The first of the texts, one on each line: at most `most` texts, at most `max_characters` characters in all."""
    fitting, left = [], max_characters
    for text in (" ".join(text.split()) for text in texts[:most]):
        left -= len(text) + 1
        if left < 0:
            break
        fitting.append(text)
    return "\n".join(fitting)


def typed(lines):
    """The sentences of a typed text, one on each line."""
    return tuple(lines_with_text(lines))
