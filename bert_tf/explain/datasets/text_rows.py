"""The rows of a small file of texts (plain text, JSON lines, CSV, TSV or CoNLL-U) and the words of them to hide."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import sys
import unicodedata
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from bert_tf.analysis import Option
from bert_tf.errors import InputError
from bert_tf.explain.attention.syntax import ParsedSentence, read_conllu
from bert_tf.finetuning.data.sentence_examples import LABEL_COLUMNS, label_text, usual_column
from bert_tf.finetuning.data.tables import (
    CLOSE_QUOTES,
    HALF_PAIR,
    MOST_READ_AGAIN,
    can_be_written,
    delimiter_of,
    repeated_name,
    tsv_fields,
)
from bert_tf.inference.words import Word, words_of
from bert_tf.resources.remote import original_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bert_tf.tokenizers import Encoding


KINDS = ("text", "jsonl", "table", "tsv", "conllu")
HIDE = ("given", "random", "last")
#: The option of analyses for the words of each row that are hidden.
HIDE_OPTION = Option(
    "hide",
    "words to hide: those that the file names, a random word of each row, or its last word",
    default="random",
    choices=HIDE,
    metavar="W",
)
_FIRST = ("text_a", "text", "sentence", "sentence1", "sentence_a", "question", "premise", "a")
_SECOND = ("text_b", "text2", "sentence2", "sentence_b", "hypothesis", "answer_text", "b")
_MAX_COLUMNS = 1000
_KINDS = {
    **dict.fromkeys(("jsonl", "ndjson", "json"), "jsonl"),
    "csv": "table",
    **dict.fromkeys(("tsv", "tab"), "tsv"),
    "conllu": "conllu",
}


@dataclass(frozen=True)
class TextRow:
    """A text or pair of a file.

    Attributes:
        number: int. The line, from 1; in a table the record, without the header; in CoNLL-U the sentence.
        text_a: str. The first text.
        text_b: str or None. The second text of a pair.
        mask: tuple of str or int. The words to hide that the file names.
        label: str or None. The class that the file names; several are joined, "one|another". "" is an empty cell.
        parsed: `ParsedSentence` or None. The dependency tree of text A, where the file has trees.

    Example:
        row = TextRow(1, "The cat sat.", "It purred.", mask=("cat",))
        row.text  # "The cat sat. · It purred."
    """

    number: int
    text_a: str
    text_b: Optional[str] = None
    mask: tuple = ()
    label: Optional[str] = None
    parsed: Optional[ParsedSentence] = field(default=None, metadata={"export": False})

    @property
    def text(self) -> str:
        """Both texts in one line, separated by a dot."""
        return f"{self.text_a} · {self.text_b}" if self.text_b else self.text_a


@dataclass(frozen=True)
class TextRows:
    """The rows of a file.

    Attributes:
        rows: tuple of `TextRow`.
        problems: tuple of pairs (number, message). The rows that cannot be read.
        left_out: int. The number of rows beyond the limit.
        columns: tuple of str. The names of the file's columns or keys.
        first, second: str or None. The columns of text A and of text B.
        unit: str. What the numbers count: "line", "record" of a table, "sentence" of CoNLL-U.
    """

    rows: tuple
    problems: tuple
    left_out: int
    columns: tuple
    first: Optional[str]
    second: Optional[str]
    unit: str = "line"


def file_kind(name: str) -> str:
    """The kind of a file, from its name: "jsonl" (.jsonl, .ndjson, .json), "table" (.csv), "tsv" (.tsv, .tab),
    "conllu" or "text"."""
    return _KINDS.get(name.lower().rpartition(".")[2], "text")


def read_rows(
    data: bytes | str,
    kind: str = "text",
    first: str | None = None,
    second: str | None = None,
    most_rows: int = 1000,
    max_characters: int = 2000,
) -> TextRows:
    """Read the texts of a file.

    Args:
        data: bytes in UTF-8, or str.
        kind: str. "text": one text a line, a tab before the second text of a pair. "jsonl": one object a line.
            "table": CSV with a header line, whose commas, semicolons or tabs are the delimiter. "tsv": the same with
            tabs alone and no quoting, as training reads it. "conllu": sentences with dependency trees; their words are
            joined with spaces.
        first, second: str or None. Column or key of text A and of text B; None looks for a usual one ("text_a",
            "sentence", "text_b", "sentence2", ...); second="" reads single texts.
        most_rows: int. The maximum number of rows.
        max_characters: int. The maximum number of characters of a text.
    Returns:
        `TextRows`. The key or column "mask" names a word to hide or a list of words, "label", "labels" or "score" the
        row's class or number.
    Raises:
        InputError: `data` is neither, the file is not UTF-8, holds no texts or has over 1,000 columns, or there is no
            column of that name.
        ConlluError: a line is not CoNLL-U.
    """
    if kind not in KINDS:
        raise InputError(f"A file is of kind {', '.join(KINDS)}, not {kind!r:.40}.")
    if not isinstance(data, (bytes, str)):
        raise InputError(
            f"data must be the text or the bytes of a file, not {data!r:.60}: join lines to one text, and read a file "
            "first."
        )
    if isinstance(data, bytes):
        data = _decoded(data, "The file")
    parsed = _trees(data) if kind == "conllu" else {}
    trees = [(number, {"text": sentence.text}) for number, sentence in parsed.items()]
    readers = {
        "text": _lines,
        "jsonl": _objects,
        "table": lambda data: _table(_csv_rows(data)),
        "tsv": lambda data: _table(_tsv_rows(data)),
        "conllu": lambda _: (trees, []),
    }
    records, problems = readers[kind](data)
    columns = tuple(dict.fromkeys(key for _, record in records for key in record))
    _check_columns(columns)
    first, second = _columns(columns, first, second)
    rows: list[TextRow] = []
    left_out, unit = 0, {"table": "record", "tsv": "record", "conllu": "sentence"}.get(kind, "line")
    for number, record in records:
        row = _row(number, record, first, second, max_characters)
        if isinstance(row, str):
            problems.append((number, row))
        elif len(rows) < most_rows:
            rows.append(replace(row, parsed=parsed.get(number)))
        else:
            left_out += 1
    if not rows:
        reason = f" {unit.title()} {problems[0][0]}: {problems[0][1]}" if problems else ""
        if kind == "conllu" and not problems:
            reason = " CoNLL-U has ten fields a word, separated by tabs."
        raise InputError(f"There is no {'sentence' if kind == 'conllu' else 'text'} in the file.{reason}")
    return TextRows(tuple(rows), tuple(sorted(problems)), left_out, columns, first, second, unit)


def hidden_words(
    row: TextRow,
    encoding: Encoding,
    how: str = "random",
    other: Encoding | None = None,
    mask_tokens: Iterable[str] = (),
) -> tuple:
    """The words of a row to hide.

    Args:
        row: `TextRow`.
        encoding: `Encoding`. The tokens of the row's texts.
        how: str. "given": the words that the row names. "random": in a row that names no word, one of its words,
            the same in every call. "last": in such a row its last word. A typed mask token counts as a hidden word.
        other: `Encoding` or None. The tokens that another model reads: only a word that both have is chosen.
        mask_tokens: iterable of str. The mask tokens of the models, such as "<mask>", besides "[MASK]".
    Returns:
        tuple of values for the argument `mask` of `Bert.trace`. Words are identified by their position in the text,
        which is the same for every tokenizer.
    Raises:
        InputError: an unknown value of `how`.
    """
    check_hide(how)
    typed = any(token in text for token in ("[MASK]", *mask_tokens) for text in (row.text_a, row.text_b or ""))
    if row.mask or typed or how == "given":
        return row.mask
    words = [word for word in words_of(encoding, row.text_a, row.text_b) if _is_written_in_letters(word.text)]
    if other is not None:
        read = set(zip(other.sources, other.word_ids))
        words = [word for word in words if (word.source, word.index) in read]
    if not words:
        return ()
    chosen = words[-1] if how == "last" else random.Random(row.number).choice(words)
    return (Word(chosen.source, chosen.index),)


def check_hide(how: object) -> None:
    """Raise InputError unless `how` is one of the ways in which `hidden_words` chooses words."""
    if how not in HIDE:
        raise InputError(f"The words to hide are one of {', '.join(HIDE)}, not {how!r:.40}.")


def _is_written_in_letters(word):
    """Whether a word has letters, and besides them nothing but their marks and joiners, as Hindi and Persian have."""
    others = [unicodedata.category(sign) for sign in word if not sign.isalpha()]
    return len(others) < len(word) and all(category[0] == "M" or category == "Cf" for category in others)


def parse_row_numbers(text: str, numbers: Sequence[int]) -> tuple[int, ...]:
    """The row numbers of a short text such as "1-4,7".

    Args:
        text: str. Numbers and ranges, separated by commas or dots.
        numbers: sequence of int. The numbers of all rows.
    Returns:
        tuple of int. Those of `numbers` that the text names, in the order of `numbers`.
    Raises:
        InputError: the text holds anything but numbers and ranges.
    """
    spans = []
    for part in text.replace(",", ".").split("."):
        first, dash, last = (end.strip() for end in part.partition("-"))
        ends = (first, last if dash else first)
        if not all(end.isascii() and end.isdecimal() and len(end) < 8 for end in ends):
            raise InputError(f"Rows are named by their numbers, such as 1-4,7; not {text!r:.40}.")
        spans.append(tuple(map(int, ends)))
    return tuple(number for number in numbers if any(first <= number <= last for first, last in spans))


def labels_of(rows: Sequence[TextRow]) -> tuple[str, ...]:
    """The labels of some rows, sorted; a row with several labels counts with each of them."""
    return tuple(sorted({label for row in rows if row.label is not None for label in split_labels(row.label)}))


def split_labels(label: str) -> list[str]:
    """The labels in the text of a row's label: one, or several such as "one|another"."""
    return [part for part in map(str.strip, label.split("|")) if part]


def text_of_file(path: str) -> str:
    """The text of a file in UTF-8, or of standard input for "-".

    Raises: InputError, which names the file, if it is not UTF-8; OSError.
    """
    if path == "-":
        return _decoded(sys.stdin.buffer.read(), "Standard input")
    return _decoded(Path(path).read_bytes(), original_path(path))


def _decoded(data, name):
    """The text of a file in UTF-8, with or without a byte order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not text in UTF-8 (byte {error.start}): save it as UTF-8.") from None


def lines_of(text: str) -> list[str]:
    """The lines of a text, which end as in an editor with a line feed, a carriage return, or both.

    `str.splitlines` also splits at form feeds and at the separators that texts of web pages have inside a line.
    """
    return re.split("\r\n|[\r\n]", text)


def lines_with_text(text: str) -> list[str]:
    """The lines of a text as `lines_of`, without spaces around them and without those that show nothing."""
    return list(filter(shows_text, map(str.strip, lines_of(text))))


def shows_text(text: str) -> bool:
    """Whether a text shows anything: not only spaces, control characters and letters without width."""
    return any(not letter.isspace() and unicodedata.category(letter) not in ("Cc", "Cf") for letter in text)


def texts_of_file(path: str) -> tuple[str, ...]:
    """The first text of every row of a file, of any number and length; "-" is standard input.

    Raises:
        InputError: as `read_rows`, or a row cannot be read.
    """
    read = read_rows(text_of_file(path), file_kind(path), most_rows=sys.maxsize, max_characters=sys.maxsize)
    for number, problem in read.problems:
        raise InputError(f"{path}, {read.unit} {number}: {problem}")
    return tuple(row.text_a for row in read.rows)


def labelled(rows: Sequence[TextRow], label: str) -> tuple[TextRow, ...]:
    """The rows with a label, alone or among other labels of the row.

    Args:
        rows: sequence of `TextRow`.
        label: str.
    Returns:
        tuple of `TextRow`.
    Raises:
        InputError: no row has the label.
    """
    with_label = tuple(row for row in rows if row.label is not None and label in split_labels(row.label))
    if not with_label:
        known = ", ".join(labels_of(rows))
        reason = f"its labels are {known:.120}" if known else "it has no labels"
        raise InputError(f"No row of the file is labelled {label!r:.40}: {reason}.")
    return with_label


def format_row_numbers(chosen: Iterable[int]) -> str:
    """Row numbers as the short text that `parse_row_numbers` reads: "1-4.7". Consecutive numbers become a range."""
    spans: list[list[int]] = []
    for number in sorted(set(chosen)):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ".".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _lines(data):
    records = []
    for number, line in enumerate(lines_of(data), 1):
        first, _, second = line.partition("\t")
        if line.strip():
            records.append((number, {"text_a": first, "text_b": second}))
    return records, []


def _objects(data):
    records, problems = [], []
    # Only "\n" ends a line here: JSON strings may hold other line ends as they are.
    for number, line in enumerate(data.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            is_text = can_be_written(record)
        except (ValueError, RecursionError):
            problems.append((number, "This is not JSON."))
            continue
        if not isinstance(record, dict):
            problems.append((number, f"A JSON object is expected, not a {type(record).__name__}."))
        elif not is_text:
            problems.append((number, f"It holds {HALF_PAIR}."))
        else:
            records.append((number, record))
    return records, problems


def _table(rows):
    header, records, problems = None, [], []
    for number, fields in enumerate(rows):
        if isinstance(fields, str):
            problems.append((number, fields))
        elif header is None:
            header = [name.strip() for name in fields]
            _check_columns(header)
        elif len(fields) != len(header):
            problems.append((number, f"It has {len(fields)} values, where the header names {len(header)} columns."))
        else:
            records.append((number, dict(zip(header, fields))))
    return records, problems


def _tsv_rows(data):
    """The rows of TSV, lists of str."""
    return (tsv_fields(line) for line in data.split("\n") if line.strip())


def _csv_rows(data):
    """The rows of a table, lists of str; in the place of a row that cannot be read a message.

    A quote that is not closed would make one value of the lines up to the next quote: only its line is left out.
    """
    delimiter = delimiter_of(data.split("\n", 1)[0])
    lines = io.StringIO(data, newline="").readlines()
    begin = read_again = 0
    while begin < len(lines):
        left = (lines[number] for number in range(begin, len(lines)))
        reader, taken = csv.reader(left, delimiter=delimiter), 0
        try:
            for fields in reader:
                read = lines[begin + taken : begin + reader.line_num]
                if len(read) > 1 and not _is_well_quoted("".join(read), delimiter):
                    yield f"A quote in it is not closed: {read[0].strip():.40}"
                    break
                taken = reader.line_num
                if fields:
                    yield fields
            else:
                return
        except csv.Error as error:
            yield f"It cannot be read: {error}."
        end = begin + reader.line_num
        begin += taken + 1
        read_again += sum(map(len, lines[begin:end]))
        if read_again > MOST_READ_AGAIN:
            raise InputError(f"Many quotes up to line {begin} of the file are not closed: {CLOSE_QUOTES}")


def _is_well_quoted(row, delimiter):
    """Whether every quoted value of a row's text ends with a quote before the next delimiter."""
    try:
        list(csv.reader(io.StringIO(row, newline=""), delimiter=delimiter, strict=True))
    except csv.Error:
        return False
    return True


def _check_columns(columns):
    if len(columns) > _MAX_COLUMNS:
        raise InputError(
            f"The file has {len(columns):,} columns; at most {_MAX_COLUMNS:,} are read. Keep those with texts and "
            "labels."
        )
    twice = repeated_name(columns)
    if twice is not None:
        raise InputError(f"Two columns are named {twice!r:.40}: rename one of them.")


def _trees(data):
    """The sentences of CoNLL-U by their numbers, from 1."""
    # Only "\n" ends a line here: words may hold other line ends.
    return dict(enumerate((sentence for sentence in read_conllu(data.split("\n")) if sentence.words), 1))


def _columns(columns, first, second):
    if first is None:
        others = [name for name in columns if name.lower() not in LABEL_COLUMNS] or [*columns, None]
        first = usual_column(columns, _FIRST) or others[0]
    if second is None:
        second = usual_column((name for name in columns if name != first), _SECOND)
    for name in (first, second):
        if name and name not in columns:
            known = ", ".join(columns)
            raise InputError(f"There is no column {name!r:.40} in the file; it has {known:.120}.")
    return first, second or None


def _row(number, record, first, second, max_characters):
    """A `TextRow`, or a message about a record that cannot be read."""
    text_a, text_b = record.get(first), record.get(second) if second else None
    if first not in record:
        return f"It has no {first!r:.40} (it has: {', '.join(record):.80})."
    if text_a is None or isinstance(text_a, str) and not text_a.strip():
        return "Its first text is empty."
    for text in (text_a, text_b):
        if text is not None and not isinstance(text, str):
            return f"Its text is not a string but {text!r:.40}."
        if text is not None and len(text) > max_characters:
            return f"It has {len(text):,} characters; at most {max_characters:,} of a text are read."
    mask = record.get("mask") or ()
    mask = (mask,) if isinstance(mask, (str, int)) else mask
    if not isinstance(mask, (list, tuple)) or not all(type(word) in (str, int) for word in mask):
        return f"Its mask is neither a word nor a list of words: {mask!r:.40}."
    return TextRow(number, text_a, text_b if text_b and text_b.strip() else None, tuple(mask), _label(record))


def _label(record):
    """The label of a record as text: "" for an empty cell, None without a cell or for one that holds no label."""
    name = usual_column(record, LABEL_COLUMNS)
    if name is None:
        return None
    cell = record[name]
    label = "|".join(filter(None, map(label_text, cell if isinstance(cell, list) else [cell])))
    return label if label or cell is None or isinstance(cell, (str, list)) else None
