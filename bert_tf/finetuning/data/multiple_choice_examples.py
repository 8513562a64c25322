"""Reads multiple-choice questions: SWAG's CSV, and CSV, TSV or JSON lines with other column names.

Source: Zellers et al. 2018 (SWAG).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bert_tf.errors import DataError
from bert_tf.finetuning.data.tables import read_records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_START = "sent2"
_ENDING = re.compile(r"ending(\d+)", re.ASCII)


@dataclass(frozen=True)
class ChoiceColumns:
    """The columns of a question; the defaults are those of SWAG.

    Attributes:
        context: str. The column of the text before the choices.
        start: str. The column of the common start of the choices, or None.
        choices: tuple of str. The columns of the choices; empty for all columns named "ending" and a number, in the
            order of the numbers, or in JSON lines the list "choices".
        label: str. The column of the number of the right choice, from 0.
    """

    context: str = "sent1"
    start: str | None = _START
    choices: tuple = ()
    label: str = "label"


@dataclass(frozen=True)
class MultipleChoiceExample:
    """A text and the choices that may follow it.

    Attributes:
        context: str.
        choices: tuple of C str, the complete texts to choose from.
        label: int. The number of the right choice, from 0, or None.
        source: str. File and line, for messages.
    """

    context: str
    choices: tuple
    label: int | None = None
    source: str = ""


def read_choices(
    path: str | Path, columns: ChoiceColumns = ChoiceColumns(), kind: str | None = None, labelled: bool = True
) -> Iterator[MultipleChoiceExample]:
    """Yields the `MultipleChoiceExample` of a file.

    Args:
        path: str or Path. The file.
        columns: `ChoiceColumns`.
        kind: str. "csv", "tsv" or "jsonl"; None for the format of the file's ending.
        labelled: bool. Whether to read the label.

    Raises:
        DataError: a column is missing, there are fewer than two choices, the label is not the number of a choice, or
            the number of choices differs from that of the lines before; the message names file and line.
        OSError: the file cannot be read.
    """
    count = None
    for line, record in read_records(path, kind):
        where = f"{path} line {line}"
        try:
            example = choices_of(record, columns, labelled)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        count = count or len(example.choices)
        if len(example.choices) != count:
            raise DataError(
                f"{where}: {len(example.choices)} choices, but {count} in the lines before; give all the same number."
            )
        yield MultipleChoiceExample(example.context, example.choices, example.label, where)
    if count is None:
        raise DataError(f"{path} holds no question.")


def count_choices(record: dict[str, Any]) -> int:
    """How many choices a record names, usable or not: those of its list "choices", else its columns ending0, …"""
    listed = record.get("choices")
    return len(listed) if isinstance(listed, list) else sum(map(bool, map(_ENDING.fullmatch, record)))


def choices_of(
    record: dict[str, Any], columns: ChoiceColumns = ChoiceColumns(), labelled: bool = True
) -> MultipleChoiceExample:
    """`MultipleChoiceExample` from a dict. Raises: DataError without file and line."""
    if not isinstance(record, dict):
        raise DataError('Give a "context" and "choices" as one object.')
    context_column = columns.context if columns.context in record else "context"
    context = _text(record, context_column, columns.context)
    if isinstance(record.get("choices"), list):
        choices, start = record["choices"], ""
        for choice in choices:
            if not isinstance(choice, str):
                raise DataError(f"the choice {choice!r:.40} is not a text.")
    else:
        names = columns.choices or _endings(record)
        choices = [_text(record, name, name) for name in names]
        if columns.start not in (None, _START) and columns.start not in record:
            raise DataError(f"there is no column {columns.start!r} (found: {', '.join(map(str, record))}).")
        start = str(record.get(columns.start) or "") if columns.start else ""
    if len(choices) < 2:
        number = "1 choice" if choices else "no choices"
        raise DataError(
            f"{number}; at least 2 are needed (columns ending0, ending1 … or a "
            f'list "choices"; found: {", ".join(record)}).'
        )
    if not context.strip() and not start.strip():
        raise DataError(f"the context in {context_column!r} is empty.")
    for choice in choices:
        if not f"{start}{choice}".strip():
            raise DataError("a choice is empty.")
    label = _label(record, columns.label, len(choices)) if labelled else None
    return MultipleChoiceExample(context, tuple(f"{start} {choice}".strip() for choice in choices), label)


def _endings(record):
    """The columns named "ending" and a number, in the order of their numbers."""
    numbers = {name: int(match[1]) for name in record if (match := _ENDING.fullmatch(name))}
    names = sorted(numbers, key=lambda name: numbers[name])
    for before, after in pairwise(names):
        if numbers[after] != numbers[before] + 1:
            raise DataError(
                f"the columns of the choices go from {before!r} to {after!r}; number them one after the other."
            )
    return names


def _text(record, name, wanted):
    value = record.get(name)
    if name in record and not isinstance(value, str):
        raise DataError(f"{name!r} is {value!r:.40}: give it a text.")
    if not isinstance(value, str):
        raise DataError(f"there is no column {wanted!r} (found: {', '.join(map(str, record))}).")
    return value


def _label(record, name, count):
    value = record.get(name)
    number = int(value) if str(value).isdecimal() else -1
    if not 0 <= number < count:
        raise DataError(f"the label {value!r:.40} in {name!r} is not a number from 0 to {count - 1}.")
    return number
