"""Reading sentences and pairs with their labels, out of tables with named columns or GLUE's files."""

import math
from dataclasses import dataclass

from bert_tf.errors import DataError, RowError
from bert_tf.finetuning.data.glue import GLUE
from bert_tf.finetuning.data.tables import read_rows, records_or_errors, table_format

# Column names that are looked for where none is given.
_TEXT, _TEXT2 = ("text", "sentence", "text_a", "sentence1"), ("text2", "text_b", "sentence2")
_LABEL = ("label", "labels", "score")


@dataclass(frozen=True)
class SentenceExample:
    """One example.

    Attributes:
        text_a, text_b: the texts, `text_b` None for a single one.
        target: a label, a tuple of labels, a number, or None where it was not read.
        where: file and line, "" where there is none.
    """

    text_a: str
    text_b: str | None = None
    target: object = None
    where: str = ""


@dataclass(frozen=True)
class ColumnLayout:
    """Which columns hold what, and what the answers are.

    Attributes:
        text, text2, label: names of columns; None where the file has none, or it is to be found out.
        columns: names of all columns of a file without a header, else None.
        regression, multi_label: kind of the answers. separator: between labels of one field.
        names: label in the file -> the task's name for it; empty where they are the same.
    """

    text: str | None = None
    text2: str | None = None
    label: str | None = None
    columns: tuple | None = None
    regression: bool = False
    multi_label: bool = False
    separator: str = "|"
    names: dict | None = None


def glue_layout(name, path, kind=None):
    """The layout of a file of a GLUE task.

    Raises: DataError: no such task, or a header that is not the task's (found and expected are told).
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


def read_sentences(path, layout, kind=None, labelled=True, skipped=None):
    """Yields the `SentenceExample`s of a file.

    Args:
        path: of the file. layout: `ColumnLayout`. kind: format of the file, None to go by its ending.
        labelled: False where the answers are not needed.
        skipped: list that the RowErrors of rows that lack a field or a text are put into, None to have the first
            one raised.

    Raises: DataError naming file and line of the first row that cannot be used; OSError.
    """
    places = None
    for number, record in records_or_errors(path, kind, layout.columns):
        where = f"{path} line {number}"
        try:
            if isinstance(record, DataError):
                raise record
            if places is None:
                places = _places(path, record, layout, labelled)
            text, text2, label = places
            texts = _text(record, text, where), _text(record, text2, where) if text2 else None
        except RowError as error:
            if skipped is None:
                raise
            skipped.append(error)
            continue
        yield SentenceExample(*texts, _target(record, label, layout, where) if labelled else None, where)
    if places is None:
        raise DataError(f"{path} holds no example; it needs a row for each.")


def _places(path, record, layout, labelled):
    """(text, second text or None, label or None) by name, found among a record's columns."""

    def place(given, usual, what, option):
        if given is not None and given not in record:
            raise DataError(f"{path} has no column {given!r}; its columns are {', '.join(record):.160}.")
        found = given or next((name for name in usual if name in record), None)
        if found is None and option:
            raise DataError(
                f"{path}: no column with the {what} was found; its columns are "
                f"{', '.join(record):.160}; expected was {' or '.join(usual)}, or name it with "
                f"{option}."
            )
        return found

    text = place(layout.text, _TEXT, "text", "--text-column")
    text2 = place(layout.text2, _TEXT2, "second text", None)
    return text, text2, place(layout.label, _LABEL, "label", "--label-column") if labelled else None


def _text(record, name, where):
    value = record.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RowError(f"{where}: {name} holds no text ({value!r:.40}).")
    return value


def _target(record, name, layout, where):
    value = record.get(name)
    if layout.regression:
        return _number(value, name, where)
    if layout.multi_label:
        parts = value if isinstance(value, list) else str(value or "").split(layout.separator)
        return tuple(_label(part, layout, name, where) for part in parts if str(part).strip())
    return _label(value, layout, name, where)


def _is_answer(value, layout):
    try:
        _target({layout.label: value}, layout.label, layout, "")
    except DataError:
        return False
    return True


def _label(value, layout, name, where):
    label = "" if value is None or isinstance(value, (dict, list)) else str(value).strip()
    if not label:
        raise DataError(f"{where}: {name} holds no label ({value!r:.40}).")
    if layout.names:
        if label not in layout.names and label not in layout.names.values():
            raise DataError(f"{where}: the label is {label!r:.60}; this task has {', '.join(layout.names)}.")
        return layout.names.get(label, label)
    return label


def _number(value, name, where):
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{where}: {name} is {value!r:.40}, where a number is expected.")
    return number
