"""The three jobs over a file of inputs: predictions, predictions of a fine-tuned model, vectors.

A job says which model and which options. It can be pickled, so that Beam and Spark send it to their workers, each of
which loads the model once. `predict --input` and `features` read their rows and make their answers by the same
functions.
"""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from bert_tf.errors import DataError, InputError, json_kind
from bert_tf.finetuning.data.sentence_examples import TEXT2_COLUMNS, TEXT_COLUMNS, ColumnLayout, find_columns
from bert_tf.finetuning.data.tables import open_lines, records_or_errors, refuse_columns

if TYPE_CHECKING:
    import numpy as np

    from bert_tf.finetuning.data.tables import BlankLines
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.task import Task
    from bert_tf.inference.bert import Bert

#: Reads rows and returns an answer (JSON values or a vector), or the exception of a bad row, for each, in their order.
Answering = Callable[[Iterable[Any]], Iterator[Any]]


#: The keys that the two texts may have in a line of JSON: the names of the columns of a table, the usual one first.
TEXT_KEYS, TEXT2_KEYS = ("text_a", *TEXT_COLUMNS), ("text_b", *TEXT2_COLUMNS)


class BadLine(InputError):
    """A line of the input file that cannot be read."""


@dataclass(frozen=True)
class Job(ABC):
    """What the three jobs have in common.

    Attributes:
        model: str. The name or folder of the model; every worker must find it.
        precision: str. The precision of the computation, as in `Runtime`.
        batch_size: int. Rows in one forward pass.
    """

    model: str
    precision: str = "float32"
    batch_size: int = 32

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise InputError(f"--batch-size must be at least 1, not {self.batch_size}.")

    @abstractmethod
    def rows(self, path: str, blank: BlankLines | None = None) -> Iterator[tuple[int, Any]]:
        """Yield (number of the line, row or the exception of a bad line) of a file.

        Args:
            path: str. The file.
            blank: `BlankLines` that counts the blank lines, which are left out; None if nobody asks.
        """

    @abstractmethod
    def row(self, record: dict[str, Any]) -> Any:
        """The row of one record: of a line of JSON, or of a row of a table in Spark."""

    @abstractmethod
    def answering(self) -> Answering:
        """Load the model; returns the function that answers rows."""


@cache
def loaded(job: Job) -> Answering:
    """`job.answering()`, with the model loaded once in a process."""
    return job.answering()


def load_bert(job: Job) -> Bert:
    """The model of a job."""
    from bert_tf.checkpoints import find
    from bert_tf.inference.bert import load

    return load(find(job.model), precision=job.precision)


@dataclass(frozen=True)
class PredictJob(Job):
    """Predictions of masked words and pairs, as `predict --input` makes them.

    Attributes:
        top_k: int. The predictions at each mask.
        targets: tuple of str. Words whose rank and probability are also returned.
        file_format: str or None. "lines", "csv", "tsv" or "jsonl"; None for that of the file's extension, JSON lines
            if it has none of these.
        columns: tuple of str or None. The columns of a file without a header.
        text_column, text2_column: str or None. The columns of the texts, or their keys in JSON lines; None for those
            with a usual name, such as "text".
    """

    top_k: int = 5
    targets: tuple[str, ...] = ()
    file_format: str | None = None
    columns: tuple[str, ...] | None = None
    text_column: str | None = None
    text2_column: str | None = None

    def rows(self, path: str, blank: BlankLines | None = None) -> Iterator[tuple[int, Any]]:
        file_format = text_format(path, self.file_format, otherwise="jsonl")
        refuse_columns(path, file_format, self.columns)
        if file_format != "jsonl":
            return self._rows_of_table(path, file_format, blank)
        return rows_of_lines(sys.stdin.buffer if path == "-" else _lines(path), blank, *self._keys)

    def row(self, record: dict[str, Any]) -> Any:
        return row_of(record, *self._keys)

    @property
    def _keys(self):
        """The keys that the two texts may have in a line of JSON, two tuples."""
        return (
            (self.text_column,) if self.text_column else TEXT_KEYS,
            (self.text2_column,) if self.text2_column else TEXT2_KEYS,
        )

    def _rows_of_table(self, path, file_format, blank):
        layout = ColumnLayout(self.text_column, self.text2_column)
        columns = ("text",) if file_format == "lines" else self.columns
        keys = None
        for number, record in records_or_errors(path, file_format, columns, blank):
            if isinstance(record, DataError):
                yield number, BadLine(str(record).removeprefix(f"{path} line {number}: "))
                continue
            if keys is None:
                if file_format == "lines" and self.file_format is None:
                    _refuse_json(path, record["text"])
                column, second, _ = find_columns(path, record, layout, labelled=False)
                keys = (column,), (second,) if second else ()
            # A mask that is empty in a table is none.
            record = {**record, "mask": record.get("mask") or None}
            yield number, row_of(record, *keys)

    def answering(self) -> Answering:
        bert = load_bert(self)

        def answers(rows: Iterable[Any]) -> Iterator[Any]:
            predictions = bert.predict_many(rows, self.batch_size, self.top_k, errors="return", targets=self.targets)
            return (answer if isinstance(answer, Exception) else answer.to_dict() for answer in predictions)

        return answers


@dataclass(frozen=True)
class TaskJob(Job):
    """Predictions of a fine-tuned model, as `predict --input` makes them.

    Attributes:
        reading: tuple of (option, value). The options of `predict` that say how the file is read.
    """

    reading: tuple[tuple[str, Any], ...] = ()

    @property
    def options(self) -> Namespace:
        """The options of reading; None for those that were not given."""
        from bert_tf.finetuning.tasks.registry import READING

        return Namespace(**{**dict.fromkeys(READING), **dict(self.reading)})

    def rows(self, path: str, blank: BlankLines | None = None) -> Iterator[tuple[int, Any]]:
        task, settings = task_of(self.model)
        for number, record in task.checked_records(path, self.options, settings, blank):
            yield number, task.asked(record, self.options)

    def row(self, record: dict[str, Any]) -> Any:
        return task_of(self.model)[0].asked(record, self.options)

    def answering(self) -> Answering:
        from bert_tf.finetuning.tasks.sequence_classification import window_settings

        bert = load_bert(self)
        if bert.task is None:
            raise InputError(f"{bert.name} is not fine-tuned for a task.")
        windows = window_settings(self.options)
        task = bert.task.with_windows(**windows) if windows else bert.task
        return lambda rows: task.predict_many(rows, self.batch_size, errors="return")


@cache
def task_of(model: str) -> tuple[Task, TaskSettings]:
    """The task that a model is fine-tuned for, and its settings.

    Raises: InputError if it is not fine-tuned.
    """
    from bert_tf.checkpoints import find
    from bert_tf.finetuning.task_settings import read_settings
    from bert_tf.finetuning.tasks.registry import task_type

    settings = read_settings(find(model))
    if settings is None:
        raise InputError(f"{model} is not fine-tuned for a task.")
    return task_type(settings.task), settings


@dataclass(frozen=True)
class FeaturesJob(Job):
    """A vector for each text, as `features` makes them. A text that cannot be read ends the job.

    Attributes:
        pooling, layer, max_length, normalize: as in `sentence_vectors`.
        file_format: str or None. "lines", "csv", "tsv" or "jsonl"; None for that of the file's extension.
        columns: tuple of str or None. The columns of a file without a header.
        text_column, text2_column: str or None. The columns of the texts.
    """

    pooling: str | None = None
    layer: int = -1
    max_length: int | None = None
    normalize: bool | None = None
    file_format: str | None = None
    columns: tuple[str, ...] | None = None
    text_column: str | None = None
    text2_column: str | None = None

    def rows(self, path: str, blank: BlankLines | None = None) -> Iterator[tuple[int, Any]]:
        from bert_tf.finetuning.data.sentence_examples import ColumnLayout, read_sentences

        # Text on lines is a table with one column: tabs and quotes are part of the text.
        file_format = text_format(path, self.file_format)
        refuse_columns(path, file_format, self.columns)
        columns = ("text",) if file_format == "lines" else self.columns
        layout = ColumnLayout(self.text_column, self.text2_column, columns=columns)
        sentences = read_sentences(path, layout, file_format, labelled=False, blank=blank)
        for number, example in enumerate(sentences, 1):
            yield number, (example.text_a, example.text_b)

    def row(self, record: dict[str, Any]) -> Any:
        layout = ColumnLayout(self.text_column, self.text2_column)
        first, second, _ = find_columns("The row", record, layout, labelled=False)
        return record[first], record[second] if second else None

    def answering(self) -> Answering:
        from bert_tf.inference.sentence_vectors import sentence_vectors

        bert = load_bert(self)

        def vectors(rows: Iterable[Any]) -> Iterator[np.ndarray]:
            return sentence_vectors(
                bert, rows, self.pooling, self.layer, self.batch_size, self.max_length, self.normalize
            )

        return vectors


def text_format(path: str, given: str | None = None, otherwise: str | None = None) -> str | None:
    """The format of a file of texts.

    Args:
        path: str. The file; with the ending .txt it has a text on each line.
        given: str or None. The format that the user names, which goes before the ending.
        otherwise: str or None. What to return for a file whose ending tells no format.

    Returns: "lines", "csv", "tsv", "jsonl" or `otherwise`.

    Raises: InputError if there is no format of the given name.
    """
    from bert_tf.finetuning.data.tables import FORMATS

    known = ("lines", *dict.fromkeys(FORMATS.values()))
    if given is not None and given not in known:
        raise InputError(f"There is no format {given!r}; choose from {', '.join(known)}.")
    ending = os.path.splitext(path)[1].lower()
    return given or ("lines" if ending == ".txt" else FORMATS.get(ending, otherwise))


def _refuse_json(path, line):
    """Raises InputError if the first line of a file of texts is one of JSON with a text."""
    if line.startswith("{") and not isinstance(row_of_line(line.encode("utf-8")), BadLine):
        raise InputError(f"{path} holds JSON lines, and .txt is read as a text on each line: give --format jsonl.")


def _lines(path):
    with open_lines(path) as file:
        yield from file


def rows_of_lines(
    lines: Iterable[bytes],
    blank: BlankLines | None = None,
    text_a: Sequence[str] = TEXT_KEYS,
    text_b: Sequence[str] = TEXT2_KEYS,
) -> Iterator[tuple[int, Any]]:
    """The rows of lines of JSON.

    Args:
        lines: iterable of bytes.
        blank: `BlankLines` that counts the blank lines, which are left out; None if nobody asks.
        text_a, text_b: sequence of str. The keys that the two texts may have; the first one in a record counts.

    Yields: (number of the line, row or `BadLine`).
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, row_of_line(line, text_a, text_b)
        elif blank is not None:
            blank.count += 1


def row_of_line(line: bytes, text_a: Sequence[str] = TEXT_KEYS, text_b: Sequence[str] = TEXT2_KEYS) -> Any:
    """(text_a, text_b, mask) of one line of JSON, or a `BadLine` with the reason why it cannot be read.

    Args:
        line: bytes. The line.
        text_a, text_b: sequence of str. The keys that the two texts may have; the first one in a record counts.
    """
    try:
        record = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        return BadLine(f"not JSON in UTF-8 ({error}).")
    if not isinstance(record, dict):
        return BadLine(f'a JSON {json_kind(record)}, where an object with "{text_a[0]}" is expected.')
    return row_of(record, text_a, text_b)


def row_of(record: dict[str, Any], text_a: Sequence[str] = TEXT_KEYS, text_b: Sequence[str] = TEXT2_KEYS) -> Any:
    """(text_a, text_b, mask) of a record, or a `BadLine`.

    Args:
        record: dict. It may have the key "mask" too.
        text_a, text_b: sequence of str. The keys that the two texts may have; the first one in a record counts.
    """
    key_a, key_b = (next((key for key in keys if key in record), None) for keys in (text_a, text_b))
    if key_a is None:
        has = ", ".join(record) or "nothing"
        return BadLine(f'no "{text_a[0]}" in it (it has: {has[:80]}); --text-column names another key.')
    mask = record.get("mask")
    return record[key_a], None if key_b is None else record[key_b], () if mask is None else mask


def answer_line(number: int, answer: Any) -> str:
    """The line of the output for the row of a line: its answer, or {"line", "error"} for an exception."""
    record = {"line": number, "error": str(answer)} if isinstance(answer, Exception) else answer
    # Half a surrogate pair has no UTF-8 encoding; JSON has an escape for it, which is also Python's.
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "backslashreplace").decode("utf-8") + "\n"
