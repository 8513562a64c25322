"""The rows of a small file of texts: plain text, JSON lines, a table or CoNLL-U; and which of their words to hide."""

import csv
import io
import json
import random
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Optional

from bert_tf.analysis import Option
from bert_tf.errors import InputError
from bert_tf.explain.attention.syntax import ParsedSentence, read_conllu
from bert_tf.inference.words import Word, words_of

KINDS = ("text", "jsonl", "table", "conllu")
HIDE = ("given", "random", "last")
#: What of each row of a file is hidden, as an option of analyses.
HIDE_OPTION = Option(
    "hide",
    "what is hidden: what the file names, a word of each row at random, or its last",
    default="random",
    choices=HIDE,
    metavar="W",
)
_FIRST = ("text_a", "text", "sentence", "sentence1", "sentence_a", "question", "premise", "a")
_SECOND = ("text_b", "sentence2", "sentence_b", "hypothesis", "answer_text", "b")
_LABEL = "label"


@dataclass(frozen=True)
class TextRow:
    """A text or pair of a file.

    Attributes:
        number: its line, from 1 (of a table, its record; the header does not count; of CoNLL-U, its sentence).
        text_a, text_b: `text_b` is None where there is no pair.
        mask: words to hide that the file names.
        label: the class it belongs to, as the file says; of several "one|another"; None where it says nothing.
        parsed: the `ParsedSentence` whose words text A is made of; None where the file has no trees.
    """

    number: int
    text_a: str
    text_b: Optional[str] = None
    mask: tuple = ()
    label: Optional[str] = None
    parsed: Optional[ParsedSentence] = field(default=None, metadata={"export": False})

    @property
    def text(self):
        """Its texts in one line, a dot between two."""
        return f"{self.text_a} · {self.text_b}" if self.text_b else self.text_a


@dataclass(frozen=True)
class TextRows:
    """What was read of a file.

    Attributes:
        rows: `TextRow`s. problems: (number, sentence) of what is none.
        left_out: how many rows came after the last one that was allowed.
        columns: names of the columns or keys there are. first, second: those that were taken for the texts.
        unit: what the numbers count: "line", "record" of a table, "sentence" of CoNLL-U.
    """

    rows: tuple
    problems: tuple
    left_out: int
    columns: tuple
    first: Optional[str]
    second: Optional[str]
    unit: str = "line"


def file_kind(name):
    """The kind of a file by its name: "jsonl", "table" (.csv, .tsv), "conllu" or "text"."""
    ending = name.lower().rpartition(".")[2]
    kinds = {"jsonl": "jsonl", "ndjson": "jsonl", "csv": "table", "tsv": "table", "conllu": "conllu"}
    return kinds.get(ending, "text")


def read_rows(data, kind="text", first=None, second=None, most_rows=1000, max_characters=2000):
    """Read the texts of a file that somebody gave.

    Args:
        data: bytes in UTF-8, or str.
        kind: "text": a text a line, a tab before the second of a pair. "jsonl": an object a line. "table":
            CSV or TSV with a header line. "conllu": sentences with dependency trees, their words with a space between.
        first, second: column or key of text A and of text B; None looks for a usual one ("text_a",
            "sentence", "text_b", "sentence2", ...). second may be "" for none.
        most_rows, max_characters: rows, and characters of a row's text, at most.
    Returns:
        `TextRows`. A key or column "mask" names a word to hide, or a list of them, "label" the row's class.
    Raises:
        InputError: not UTF-8, nothing in it, or no column of that name. ConlluError: a line that is not CoNLL-U.
    """
    if kind not in KINDS:
        raise InputError(f"A file is of kind {', '.join(KINDS)}, not {kind!r:.40}.")
    if isinstance(data, bytes):
        try:
            data = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"The file is not text in UTF-8 (byte {error.start}): save it as UTF-8.") from None
    parsed = _trees(data) if kind == "conllu" else {}
    trees = [(number, {"text": one.text}) for number, one in parsed.items()]
    readers = {"text": _lines, "jsonl": _objects, "table": _table, "conllu": lambda _: (trees, [])}
    records, problems = readers[kind](data)
    columns = tuple(dict.fromkeys(key for _, record in records for key in record))
    first, second = _columns(columns, first, second)
    rows, left_out, unit = [], 0, {"table": "record", "conllu": "sentence"}.get(kind, "line")
    for number, record in records:
        row = _row(number, record, first, second, max_characters)
        if isinstance(row, str):
            problems.append((number, row))
        elif row and len(rows) < most_rows:
            rows.append(replace(row, parsed=parsed.get(number)))
        elif row:
            left_out += 1
    if not rows:
        why = f" {unit.title()} {problems[0][0]}: {problems[0][1]}" if problems else ""
        if kind == "conllu" and not problems:
            why = " CoNLL-U has ten fields a word, parted by tabs."
        raise InputError(f"There is no {'sentence' if kind == 'conllu' else 'text'} in the file.{why}")
    return TextRows(tuple(rows), tuple(sorted(problems)), left_out, columns, first, second, unit)


def hidden_words(row, encoding, how="random"):
    """Which words of a row to hide.

    Args:
        row: a `TextRow`. encoding: its `Encoding`, to know its words.
        how: "given": those the row names; typed "[MASK]"s are hidden anyway. "random": where a row hides
            nothing, one of its words, always the same. "last": its last word.
    Returns:
        tuple of what `Bert.trace` takes as `mask`. Words are named by their place, the same for every
        tokenizer of the family.
    """
    if how not in HIDE:
        raise InputError(f"What to hide is one of {', '.join(HIDE)}, not {how!r:.40}.")
    typed = "[MASK]" in row.text_a or "[MASK]" in (row.text_b or "")
    if row.mask or typed or how == "given":
        return row.mask
    words = [word for word in words_of(encoding, row.text_a, row.text_b) if word.text.isalpha()]
    if not words:
        return ()
    chosen = words[-1] if how == "last" else random.Random(row.number).choice(words)
    return (Word(chosen.source, chosen.index),)


def parse_row_numbers(text, numbers):
    """Row numbers out of a short text such as "1-4,7".

    Args:
        text: numbers and ranges of them, with commas or dots between. numbers: of the rows that there are.
    Returns:
        tuple of those of `numbers` that are meant, in their order.
    Raises:
        InputError: it is no such text.
    """
    spans = []
    for part in text.replace(",", ".").split("."):
        first, dash, last = (one.strip() for one in part.partition("-"))
        ends = (first, last if dash else first)
        if not all(one.isascii() and one.isdecimal() and len(one) < 8 for one in ends):
            raise InputError(f"Rows are named by their numbers, such as 1-4,7; not {text!r:.40}.")
        spans.append(tuple(map(int, ends)))
    return tuple(number for number in numbers if any(first <= number <= last for first, last in spans))


def labels_of(rows):
    """The labels that rows have, a tuple of str in their order: of several of a row each."""
    return tuple(sorted({part for row in rows if row.label is not None for part in row.label.split("|")}))


def file_bytes(path):
    """The bytes of a file, or of standard input for "-"."""
    return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()


def texts_of_file(path):
    """The first texts of a file, a tuple; "-" is standard input. Raises: as `read_rows`."""
    return tuple(row.text_a for row in read_rows(file_bytes(path), file_kind(path)).rows)


def labelled(rows, label):
    """The `TextRow`s that have a label, alone or among others, a tuple.

    Raises:
        InputError: none has it.
    """
    found = tuple(row for row in rows if row.label is not None and label in row.label.split("|"))
    if not found:
        known = ", ".join(labels_of(rows))
        told = f"its labels are {known:.120}" if known else "it has no labels"
        raise InputError(f"No row of the file is labelled {label!r:.40}: {told}.")
    return found


def format_row_numbers(chosen):
    """The short text of some row numbers, which `parse_row_numbers` reads: those that follow each other as a range."""
    spans = []
    for number in sorted(set(chosen)):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ".".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _lines(data):
    found = []
    for number, line in enumerate(data.splitlines(), 1):
        first, _, second = line.partition("\t")
        if line.strip():
            found.append((number, {"text_a": first, "text_b": second}))
    return found, []


def _objects(data):
    found, problems = [], []
    # Only "\n" ends a line here: JSON strings may hold other line ends as they are.
    for number, line in enumerate(data.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            problems.append((number, "This is not JSON."))
            continue
        if isinstance(record, dict):
            found.append((number, record))
        else:
            problems.append((number, f"A JSON object is expected, not a {type(record).__name__}."))
    return found, problems


def _table(data):
    head = data.split("\n", 1)[0]
    delimiter = max(",;\t", key=head.count)
    reader = csv.DictReader(io.StringIO(data, newline=""), delimiter=delimiter, restkey="")
    found = []
    try:
        for number, record in enumerate(reader, 1):
            record.pop("", None)
            found.append((number, record))
    except csv.Error as error:
        return found, [(len(found) + 1, f"The table cannot be read from here on: {error}.")]
    return found, []


def _trees(data):
    """The sentences of CoNLL-U by their numbers, from 1."""
    # Only "\n" ends a line here: words may hold other line ends.
    return dict(enumerate((one for one in read_conllu(data.split("\n")) if one.words), 1))


def _columns(columns, first, second):
    lower = {name.lower(): name for name in reversed(columns)}
    if first is None:
        others = [name for name in columns if name.lower() != _LABEL] or [*columns, None]
        first = next((lower[name] for name in _FIRST if name in lower), others[0])
    if second is None:
        second = next((lower[name] for name in _SECOND if name in lower and lower[name] != first), None)
    for name in (first, second):
        if name and name not in columns:
            known = ", ".join(columns)
            raise InputError(f"There is no column {name!r:.40} in the file; it has {known:.120}.")
    return first, second or None


def _row(number, record, first, second, max_characters):
    """A `TextRow`, a sentence that says why it is none, or None for an empty one."""
    text_a, text_b = record.get(first), record.get(second) if second else None
    if text_a is None or isinstance(text_a, str) and not text_a.strip():
        return None if not text_b else "Its first text is empty."
    for text in (text_a, text_b):
        if text is not None and not isinstance(text, str):
            return f"Its text is not a string but {text!r:.40}."
        if text is not None and len(text) > max_characters:
            return f"It has {len(text):,} characters; at most {max_characters:,} of a text are read."
    mask = record.get("mask") or ()
    mask = (mask,) if isinstance(mask, (str, int)) else mask
    if not isinstance(mask, (list, tuple)) or not all(type(one) in (str, int) for one in mask):
        return f"Its mask is neither a word nor a list of words: {mask!r:.40}."
    return TextRow(number, text_a, text_b if text_b and text_b.strip() else None, tuple(mask), _label(record))


def _label(record):
    """The label of a record as text, or None."""
    found = next((value for name, value in record.items() if name.lower() == _LABEL), None)
    parts = found if isinstance(found, list) else [found]
    return "|".join(str(part).strip() for part in parts if isinstance(part, (str, int, float))) or None
