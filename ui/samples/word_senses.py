"""Sentences about one word with their senses: the samples, and a reader of typed lines. Does not import Streamlit."""

import dataclasses
import functools

from bert_tf.explain.datasets.text_rows import lines_with_text
from bert_tf.explain.representations.word_senses import labelled_sentences
from bert_tf.files import sample_file

WORDS = ("bank", "right", "bat", "spring")


@dataclasses.dataclass(frozen=True)
class Sentences:
    """The sentences on the page Word senses.

    Attributes:
        texts: the sentences. senses: the sense of each; "" if it is not given.
        left_out: the number of sentences that were not read, as there are too many.
        cut: the number of those whose end was not read, as they are too long.
    """

    texts: tuple[str, ...]
    senses: tuple[str, ...]
    left_out: int = 0
    cut: int = 0


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
    labelled = labelled_sentences(lines_with_text(typed))
    texts = tuple(text[:max_characters] for _, text in labelled[:most])
    senses = tuple(sense[:40] for sense, _ in labelled[:most])
    cut = sum(len(text) > max_characters for _, text in labelled[:most])
    return Sentences(texts, senses, max(len(labelled) - most, 0), cut)
