"""Reading CoNLL-U, the ten-column format of Universal Dependencies.

Source: universaldependencies.org/format.html.
"""

from typing import NamedTuple

from bert_tf.errors import TextError

FIELDS = 10


class ConlluError(TextError):
    """A line that is not CoNLL-U; the message gives its number."""


class ConlluWord(NamedTuple):
    """One word: its line number in the file from 1, and its ten fields."""

    line: int
    fields: tuple

    @property
    def form(self):
        """The word itself."""
        return self.fields[1]


def read_rows(lines, first=1):
    """The words of each sentence; those split from one token ("1-2") are not joined, empty nodes ("3.1") and
    comments are passed over.

    Args:
        lines: strings, such as an open file; a byte-order mark before the first is passed over.
        first: number of the first line.
    Returns:
        iterator of lists of `ConlluWord`, one list a sentence.
    Raises:
        ConlluError: a line without ten fields.
    """
    rows = []
    for number, line in enumerate(lines, first):
        line = line.removeprefix("\ufeff").rstrip("\r\n") if number == 1 else line.rstrip("\r\n")
        if not line.strip():
            if rows:
                yield rows
            rows = []
        elif not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) != FIELDS:
                raise ConlluError(f"Line {number} has {len(fields)} fields; CoNLL-U has {FIELDS}, parted by tabs.")
            if fields[0].isdecimal():
                rows.append(ConlluWord(number, tuple(fields)))
    if rows:
        yield rows
