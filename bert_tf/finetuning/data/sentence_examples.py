"""Reads sentences and pairs with their labels from tables with named columns, or from GLUE's files."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bert_tf.errors import DataError, RowError
from bert_tf.finetuning.data.glue import GLUE
from bert_tf.finetuning.data.tables import BlankLines, read_rows, records_or_errors, table_format
from bert_tf.finetuning.labels import composed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path


# The column names to search for if none is named.
TEXT_COLUMNS, TEXT2_COLUMNS = ("text", "sentence", "text_a", "sentence1"), ("text2", "text_b", "sentence2")
#: The column names of a label or a score.
LABEL_COLUMNS = ("label", "labels", "score")


@dataclass(frozen=True)
class SentenceExample:
    """A sentence or a pair with its target.

    Attributes:
        text_a: str. The first text.
        text_b: str. The second text; None for a single text.
        target: a label, a tuple of labels, a number, or None if it was not read.
        where: str. File and line; "" if there is no file.
    """

    text_a: str
    text_b: str | None = None
    target: object = None
    where: str = ""


@dataclass(frozen=True)
class ColumnLayout:
    """The columns of a file and the kind of its targets.

    Attributes:
        text: str. The column of the text; None to search for it.
        text2: str. The column of the second text; None to search for it, or if the file has none.
        label: str. The column of the label; None to search for it.
        columns: tuple of str. All columns of a file without a header, else None.
        regression: bool. Whether the targets are numbers.
        multi_label: bool. Whether a target is a tuple of labels.
        separator: str. The separator of the labels in one field.
        names: dict label in the file -> label of the task; None or empty if they are equal.
    """

    text: str | None = None
    text2: str | None = None
    label: str | None = None
    columns: tuple | None = None
    regression: bool = False
    multi_label: bool = False
    separator: str = "|"
    names: dict | None = None


def glue_layout(name: str, path: str | Path, kind: str | None = None) -> ColumnLayout:
    """The layout of a file of a GLUE task.

    Args:
        name: str. The name of the task.
        path: str or Path. The file.
        kind: str. The format of the file; None for the format of its ending.

    Returns: `ColumnLayout`.

    Raises: DataError if there is no such task, or if the header is another one; the message names both headers.
    """
    if name not in GLUE:
        raise DataError(f"There is no GLUE task {name!r}; choose from {', '.join(GLUE)}.")
    task, kind = GLUE[name], table_format(path, kind)
    text, text2 = (*task.texts, None)[:2]
    common = {
        "text": text,
        "text2": text2,
        "label": task.label,
        "regression": task.regression,
        "names": task.names,
    }
    if kind == "jsonl":
        return ColumnLayout(**common)
    _, first = next(read_rows(path, kind), (0, []))
    if not first:
        raise DataError(f"{path} is empty; GLUE's {name} has a row for each example.")
    if set(task.texts) <= set(first):
        return ColumnLayout(**common)
    for columns in task.headerless:
        layout = ColumnLayout(columns=columns, **common)
        if len(columns) == len(first) and _is_answer(first[columns.index(task.label)], layout):
            return layout
    expected = ", ".join([*task.texts, task.label])
    raise DataError(f"{path}: its header is {', '.join(first):.160}; GLUE's {name} has the columns {expected}.")


def read_sentences(
    path: str | Path,
    layout: ColumnLayout,
    kind: str | None = None,
    labelled: bool = True,
    skipped: list | None = None,
    blank: BlankLines | None = None,
    missing: Collection[str] = (),
    pair: bool = False,
) -> Iterator[SentenceExample]:
    """Yields the `SentenceExample`s of a file.

    Args:
        path: str or Path. The file.
        layout: `ColumnLayout`.
        kind: str. The format of the file; None for the format of its ending.
        labelled: bool. False if the targets are not needed.
        skipped: list that gets the RowErrors of rows without a field or a text; None to raise the first one.
        blank: `BlankLines` that counts the blank lines; None if nobody asks.
        missing: names in lower case that the first row lacks and the others must lack too, beside those of a second
            text.
        pair: bool. Whether the second text is needed.

    Raises: DataError, which names file and line, on the first row that cannot be used; OSError.
    """
    column_names = None
    kinds: dict[str, str] = {}  # what a label is in JSON -> the first line of such a label
    for number, record in records_or_errors(path, kind, layout.columns, blank):
        where = f"{path} line {number}"
        try:
            if isinstance(record, DataError):
                raise record
            if column_names is None:
                column_names = find_columns(path, record, layout, labelled, pair)
                missing = {*missing, *(TEXT2_COLUMNS if column_names[1] is None else ())}
            text, text2, label = column_names
            if late := next(
                (name for name in record if name.lower() in missing and record[name] not in (None, "")), None
            ):
                raise RowError(f"{where}: it has {late!r}, and the first row has not: give it in all rows or in none.")
            texts = _text(record, text, where), _text(record, text2, where) if text2 else None
        except RowError as error:
            if skipped is None:
                raise
            skipped.append(error)
            continue
        yield SentenceExample(*texts, _target(record, label, layout, where, kinds) if labelled else None, where)
    if column_names is None:
        raise DataError(f"{path} holds no example; it needs a row for each.")


def find_columns(
    path: str | Path, record: Iterable[str], layout: ColumnLayout, labelled: bool, pair: bool = False
) -> tuple[str, str | None, str | None]:
    """The names of the columns that a layout reads.

    Args:
        path: str or Path. The file, for messages.
        record: dict or iterable of str. The columns of the file, or its first row by column.
        layout: `ColumnLayout`.
        labelled: bool. Whether the label is needed.
        pair: bool. Whether the second text is needed.

    Returns: (column of the text, of the second text or None, of the label or None).

    Raises: DataError if a column is missing; the message names the columns of the file.
    """

    def column(requested, defaults, content, option, needed=True):
        if requested is not None and requested not in record:
            raise DataError(f"{path} has no column {requested!r}; its columns are {', '.join(record):.160}.")
        name = requested or usual_column(record, defaults)
        if name is None and needed:
            raise DataError(
                f"{path}: no column with the {content} was found; its columns are "
                f"{', '.join(record):.160}; expected was {' or '.join(defaults)}, or name it with "
                f"{option}."
            )
        return name

    text = column(layout.text, TEXT_COLUMNS, "text", "--text-column")
    text2 = column(layout.text2, TEXT2_COLUMNS, "second text", "--text2-column", pair)
    return text, text2, column(layout.label, LABEL_COLUMNS, "label", "--label-column") if labelled else None


def usual_column(record: Iterable[str], names: Iterable[str]) -> str | None:
    """The column of a record that has the first of some usual names, in letters of any case; None if it has none."""
    lower = {name.lower(): name for name in reversed(list(record))}
    return next((lower[name] for name in names if name in lower), None)


def _text(record, name, where):
    value = record.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RowError(f"{where}: {name} holds no text ({value!r:.40}).")
    return value


def _target(record, name, layout, where, kinds=None):
    value = record.get(name)
    if layout.regression:
        return _number(value, name, where)
    if layout.multi_label:
        if name not in record:
            raise DataError(f"{where}: there is no {name!r}; give it in all rows, an empty list or null for no label.")
        if isinstance(value, dict):
            raise DataError(f"{where}: {name} is an object ({value!r:.40}), where a list of labels is expected.")
        if isinstance(value, (bool, int, float)):
            value = [value]
        parts = value if isinstance(value, list) else str(value or "").split(layout.separator)
        return tuple(_label(part, layout, name, where, kinds) for part in parts if str(part).strip())
    return _label(value, layout, name, where, kinds)


def _is_answer(value, layout):
    try:
        _target({layout.label: value}, layout.label, layout, "")
    except DataError:
        return False
    return True


def _label(value, layout, name, where, kinds=None):
    if isinstance(value, (int, float)):
        _check_kind(value, where, {} if kinds is None else kinds)
    if isinstance(value, list):
        raise DataError(f"{where}: {name} is a list ({value!r:.40}), where one label is expected.")
    label = label_text(value)
    if not label:
        raise DataError(f"{where}: {name} holds no label ({value!r:.40}); give one, or leave the row out.")
    if layout.names:
        if label not in layout.names and label not in layout.names.values():
            raise DataError(f"{where}: the label is {label!r:.60}; this task has {', '.join(layout.names)}.")
        return layout.names.get(label, label)
    return label


def label_text(value: object) -> str:
    """A value of a table or of JSON as a label, in NFC: 1.0 is "1"; null, NaN, a list and an object are ""."""
    if value is None or isinstance(value, (dict, list)) or isinstance(value, float) and not math.isfinite(value):
        return ""
    return composed(str(int(value) if isinstance(value, float) and value.is_integer() else value).strip())


def _check_kind(value, where, kinds):
    """Raises DataError if the labels mix numbers and booleans of JSON, which Python takes for equal."""
    kind = "boolean" if isinstance(value, bool) else "number"
    kinds.setdefault(kind, where)
    if len(kinds) > 1:
        first = next(other for other in kinds if other != kind)
        raise DataError(
            f"{where}: the label is the {kind} {str(value).lower()}, and {kinds[first]} has a {first}: give all labels "
            "as numbers, as booleans or as strings."
        )


def _number(value, name, where):
    # Python alone reads a boolean, and "1_5", as a number.
    is_number = not isinstance(value, bool) and "_" not in str(value)
    try:
        number = float(value) if is_number else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{where}: {name} is {value!r:.40}, where a number is expected.")
    return number
