"""Sentences about one word with their senses: the examples, and reading what is typed. No Streamlit."""

import dataclasses
import functools

from bert_tf.explain.representations.word_senses import labelled_sentences
from ui.shell.limits import ROOT

_FOLDER = ROOT / "assets" / "samples" / "senses"
WORDS = ("bank", "right", "bat", "spring")


@dataclasses.dataclass(frozen=True)
class Sentences:
    """What the page Word senses looks at.

    Attributes:
        texts: the sentences. senses: a label for each; "" where there is none.
        left_out: sentences beyond the most that are read.
    """

    texts: tuple[str, ...]
    senses: tuple[str, ...]
    left_out: int = 0


@functools.cache
def example(word):
    """The sentences about one of ``WORDS``, as a visitor would type them."""
    lines = (_FOLDER / f"{word}.tsv").read_text("utf-8").splitlines()
    return "\n".join(" | ".join(line.split("\t")) for line in lines)


def read(typed, most, max_characters):
    """Sentences as they were typed: one a line, "sense | sentence" where the sense is known.

    Args:
        typed: the lines. most: sentences at most. max_characters: of a sentence; what is longer is cut off.
    """
    texts, senses = [], []
    for sense, text in labelled_sentences(typed.splitlines()):
        texts.append(text[:max_characters])
        senses.append(sense[:40])
    return Sentences(tuple(texts[:most]), tuple(senses[:most]), max(len(texts) - most, 0))
