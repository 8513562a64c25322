"""Reading CoNLL-U, the ten-column format of Universal Dependencies.

Source: universaldependencies.org/format.html.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bert_tf.errors import TextError

FIELDS = 10


class ConlluError(TextError):
    """A line is not CoNLL-U; the message gives its number."""


class ConlluWord(NamedTuple):
    """One word: its line number in the file, counted from 1, and its ten fields."""

    line: int
    fields: tuple[str, ...]

    @property
    def form(self) -> str:
        """The word (column FORM)."""
        return self.fields[1]


def read_rows(lines: Iterable[str], first: int = 1) -> Iterator[list[ConlluWord]]:
    """Read the words of each sentence.

    Words of a multi-word token ("1-2") are not joined. Empty nodes ("3.1") and comments are skipped.

    Args:
        lines: iterable of str, such as an open file. A byte-order mark at the start is skipped.
        first: int. The number of the first line.

    Yields:
        List of `ConlluWord`, one list per sentence.

    Raises:
        ConlluError: a line does not have ten fields.
    """
    rows: list[ConlluWord] = []
    for number, line in enumerate(lines, first):
        line = line.removeprefix("\ufeff").rstrip("\r\n") if number == 1 else line.rstrip("\r\n")
        if not line.strip():
            if rows:
                yield rows
            rows = []
        elif not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) != FIELDS:
                raise ConlluError(f"Line {number} has {len(fields)} fields; CoNLL-U has {FIELDS}, separated by tabs.")
            if fields[0].isdecimal():
                rows.append(ConlluWord(number, tuple(fields)))
    if rows:
        yield rows
