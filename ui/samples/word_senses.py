"""Sentences about one word with their senses: the samples, and a reader of typed lines. Does not import Streamlit."""

import dataclasses
import functools

from bert_tf.explain.representations.word_senses import labelled_sentences
from bert_tf.files import sample_file

WORDS = ("bank", "right", "bat", "spring")


@dataclasses.dataclass(frozen=True)
class Sentences:
    """The sentences on the page Word senses.

    Attributes:
        texts: the sentences. senses: the sense of each; "" if it is not given.
        left_out: the number of sentences that were not read, as there are too many.
    """

    texts: tuple[str, ...]
    senses: tuple[str, ...]
    left_out: int = 0


@functools.cache
def example(word):
    """The sentences about one of ``WORDS`` as text, in the form that ``read`` takes."""
    lines = sample_file(f"senses/{word}.tsv").read_text("utf-8").splitlines()
    return "\n".join(" | ".join(line.split("\t")) for line in lines)


def read(typed, most, max_characters):
    """Read typed sentences: one on each line, "sense | sentence" or the sentence alone.

    Args:
        typed: the lines. most: the largest number of sentences.
        max_characters: of a sentence; the rest of a longer one is cut off.
    """
    texts, senses = [], []
    for sense, text in labelled_sentences(typed.splitlines()):
        texts.append(text[:max_characters])
        senses.append(sense[:40])
    return Sentences(tuple(texts[:most]), tuple(senses[:most]), max(len(texts) - most, 0))
