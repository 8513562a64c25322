"""Reads tables of examples (CSV, TSV and JSON lines) row by row with their line numbers.

CSV follows RFC 4180 (quoted fields may contain commas and line breaks); a header line with semicolons or tabs makes
these the delimiter. In TSV a quote is an ordinary character, as in GLUE's files. A byte-order mark and CRLF are
removed.
"""

from __future__ import annotations

import codecs
import csv
import json
import sys
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bert_tf.errors import DataError, RowError, json_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "tsv",
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".ndjson": "jsonl",
}
#: What a JSON string may escape though it is no character.
HALF_PAIR = "half of a surrogate pair (such as \\ud83d alone), which is no text"
# The first bytes of a file that gzip made.
_GZIP = b"\x1f\x8b"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# A quote that is not closed reads the rest of the file as one field, up to this length.
_LONGEST_FIELD = 1 << 24
#: Characters that may be read again after quotes that are not closed: some seconds.
MOST_READ_AGAIN = 1 << 26
#: The end of a message about such a file.
CLOSE_QUOTES = "close them, or save the file as TSV, where a quote is a character like any other."


@dataclass
class BlankLines:
    """Counts the blank lines that a reader leaves out.

    Attributes:
        count: int. The number so far.
    """

    count: int = 0


def column_names(option: str | None) -> tuple[str, ...] | None:
    """The names of --columns, which have commas between them; None if it was not given."""
    return tuple(name.strip() for name in option.split(",")) if option else None


def table_format(path: str | Path, name: str | None = None) -> str:
    """The format of a table.

    Args:
        path: str or Path. The file; "-" is standard input.
        name: str. The format; None for the format of the file's ending.

    Returns: "csv", "tsv" or "jsonl".

    Raises: DataError on an unknown format or ending.
    """
    if name is not None:
        if name not in FORMATS.values():
            raise DataError(f"There is no format {name!r}; choose from csv, tsv, jsonl.")
        return name
    if str(path) == "-":
        return "jsonl"
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise DataError(
            f"{path}: its ending {ending!r} tells no format; name it .csv, .tsv or .jsonl, or give --format."
        )
    return FORMATS[ending]


def lines_hint(path: str | Path, name: str | None = None) -> str:
    """The end of an error message about a .txt file, which is read as a table unless `name` is a format; else ""."""
    if name is not None or Path(path).suffix.lower() != ".txt":
        return ""
    return " A file with one text on each line needs --format lines."


def refuse_columns(path: str | Path, kind: str | None, columns: Sequence[str] | None) -> None:
    """Raises DataError if columns are named for a file without any: one of format "lines" or "jsonl"."""
    read_as = {"lines": "a text on each line", "jsonl": "JSON lines"}.get(kind or "")
    if columns and read_as:
        raise DataError(
            f"{path} is read as {read_as}, where --columns has no effect: leave it out, or give --format csv or tsv if "
            "the file is a table."
        )


def delimiter_of(header: str) -> str:
    """The delimiter of a CSV file: of comma, semicolon and tab the one that its header line has most of."""
    return max(",;\t", key=header.count)


def _delimiter_between(line, width):
    """Of comma, semicolon and tab the first one that cuts a line into so many fields; the comma if none does."""
    return next((one for one in ",;\t" if len(next(csv.reader([line], delimiter=one), [])) == width), ",")


def tsv_fields(line: str) -> list[str]:
    """The fields of a line of a TSV file, without its line break: a quote is a character like any other."""
    return line.rstrip("\r\n").split("\t")


def read_rows(path: str | Path, kind: str) -> Iterator[tuple[int, list[str]]]:
    """Yields (line number, list of fields) of a CSV or TSV file, blank lines left out.

    Raises: DataError (not UTF-8, a broken quote), OSError.
    """
    for number, fields in _try_rows(path, kind):
        if isinstance(fields, DataError):
            raise fields
        yield number, fields


def _try_rows(path, kind, has_header=False, blank=None, width=None):
    """As `read_rows`, but yields the DataError of a bad row.

    The header line decides the delimiter of a CSV file; without one the first line, if the number of fields is known.
    """
    blank = BlankLines() if blank is None else blank
    if kind == "csv":
        yield from _try_csv(path, has_header, blank, width)
        return
    for number, line in numbered_lines(path):
        if isinstance(line, DataError):
            yield number, line
        elif line.strip():
            yield number, tsv_fields(line)
        else:
            blank.count += 1


def _try_csv(path, has_header, blank, width):
    """The rows of a CSV file. Only the first line of a bad row is skipped: a missing quote would skip good rows too."""
    csv.field_size_limit(_LONGEST_FIELD)
    source = numbered_lines(path)
    delimiter = ","
    if has_header or width:
        first = next(source, (1, ""))
        if isinstance(first[1], str):
            delimiter = delimiter_of(first[1]) if has_header else _delimiter_between(first[1], width)
        source = chain([first], source)
    taken: list[tuple] = []
    again: deque[tuple] = deque()
    read_again = 0

    def lines():
        while numbered_line := again.popleft() if again else next(source, None):
            taken.append(numbered_line)
            if isinstance(numbered_line[1], DataError):
                raise numbered_line[1]
            yield numbered_line[1]

    while True:
        try:
            for fields in csv.reader(lines(), delimiter=delimiter, strict=True):
                number = taken[0][0]
                taken.clear()
                if fields:
                    yield number, fields
                else:
                    blank.count += 1
            return
        except (csv.Error, DataError) as error:
            (number, _), *rest = taken
            read_again += sum(len(line) for _, line in rest if isinstance(line, str))
            if read_again > MOST_READ_AGAIN:
                raise DataError(f"{path}: many quotes up to line {number} are not closed: {CLOSE_QUOTES}") from None
            again.extendleft(reversed(rest))
            taken.clear()
            reason = "a CR without LF outside quotes" if str(error).startswith("new-line character") else error
            row_error = (
                error if isinstance(error, DataError) else DataError(f"{path} line {number}: not CSV ({reason}).")
            )
        yield number, row_error


def read_records(
    path: str | Path, kind: str | None = None, columns: Sequence[str] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields (line number, dict) of each row.

    Args:
        path: str or Path. The file.
        kind: str. "csv", "tsv", "jsonl", or "lines" (one text a line, in the column that `columns` names); None for the
            format of the file's ending.
        columns: tuple of str. The columns of a file without a header line; None if its first line names them.

    Raises: DataError, which names file and line, or OSError.
    """
    for number, record in records_or_errors(path, kind, columns):
        if isinstance(record, DataError):
            raise record
        yield number, record


def repeated_name(columns: Sequence[str]) -> str | None:
    """The first name that several columns of a table have; None if there is none. Columns may be without a name."""
    return next((name for name in columns if name.strip() and columns.count(name) > 1), None)


def records_or_errors(
    path: str | Path,
    kind: str | None = None,
    columns: Sequence[str] | None = None,
    blank: BlankLines | None = None,
) -> Iterator[tuple[int, dict[str, Any] | DataError]]:
    """As `read_records`, but yields the DataError of a bad row, so that the following rows can be read.

    Args:
        path, kind, columns: as in `read_records`.
        blank: `BlankLines` that counts the blank lines, which are left out; None if nobody asks.

    Raises: DataError if the header cannot be read or names a column twice; OSError.
    """
    if kind == "lines":
        column = columns[0] if columns else ""
        yield from _of_lines(path, lambda number, line: {column: line.rstrip("\r\n")}, blank)
        return
    kind = table_format(path, kind)
    refuse_columns(path, kind, columns)
    if kind == "jsonl":
        yield from _of_lines(path, lambda number, line: _json_record(path, number, line), blank)
        return
    named = None if columns is None else list(columns)
    rows = _try_rows(path, kind, columns is None, blank, len(columns or ()))
    if columns is None:
        _, columns = next(rows, (0, None))
        if columns is None:
            raise DataError(f"{path} is empty; it needs a header line and a row for each example.")
        if isinstance(columns, DataError):
            raise columns
        # A space after the comma is no part of a name: with it the column of a second text would not be found.
        columns = [name.strip() for name in columns]
    twice = repeated_name(columns)
    if twice is not None:
        raise DataError(f"{path}: two columns are named {twice!r} ({', '.join(columns):.120}); rename one of them.")
    for number, fields in rows:
        if isinstance(fields, DataError):
            yield number, fields
        elif list(fields) == named:
            raise DataError(f"{path} line {number} is the header {', '.join(fields):.120}: leave --columns out.")
        elif len(fields) == len(columns):
            yield number, dict(zip(columns, fields))
        else:
            yield (
                number,
                RowError(
                    f"{path} line {number}: {len(fields)} fields, where {len(columns)} are "
                    f"expected ({', '.join(columns):.120})."
                ),
            )


def _of_lines(path, record, blank):
    """(number, record(number, line)) of each line that is not blank, or (number, DataError) of a bad line."""
    for number, line in numbered_lines(path):
        if isinstance(line, DataError):
            yield number, line
        elif line.strip():
            yield number, record(number, line)
        elif blank is not None:
            blank.count += 1


def _json_record(path, number, line):
    try:
        return json_object(line, f"{path} line {number}")
    except DataError as error:
        return error


def json_object(line: str, where: str) -> dict[str, Any]:
    """The object of one line of JSON.

    Args:
        line: str. The line, decoded from UTF-8.
        where: str. File and line, for messages.

    Raises: DataError if the line is not JSON, is another value, or holds half of a surrogate pair.
    """
    try:
        record = json.loads(line)
        is_text = "\\u" not in line or can_be_written(record)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON ({error}); write one object per line.") from None
    if not isinstance(record, dict):
        raise DataError(f"{where}: a JSON {json_kind(record)}; write one object per line.")
    if not is_text:
        raise DataError(f"{where}: it holds {HALF_PAIR}; write the whole character.")
    return record


def can_be_written(record: Any) -> bool:
    """Whether all keys and texts of a JSON value can be written as UTF-8: half of a surrogate pair cannot."""
    try:
        json.dumps(record, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def numbered_lines(path: str | Path) -> Iterator[tuple[int, str | DataError]]:
    """Yields (number, line with its line break, or a DataError if it is not UTF-8); "-" is standard input."""
    with open_lines(path) as file:
        for number, line in enumerate(file, 1):
            try:
                text: str | DataError = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                text = DataError(f"{path} line {number}: not UTF-8 ({error.reason}); save the file as UTF-8.")
            yield number, text


def open_lines(path: str | Path) -> AbstractContextManager[IO[bytes]]:
    """Opens a file of lines; "-" is standard input, which stays open.

    Raises: DataError if the file begins as no text in UTF-8 with LF or CRLF does; OSError.
    """
    if str(path) == "-":
        return nullcontext(sys.stdin.buffer)
    file = open(path, "rb")
    if refusal := _refusal(file.peek()):
        file.close()
        raise DataError(f"{path} {refusal}")
    return file


def _refusal(head):
    """Why no line of a file that begins with these bytes can be read; None if some may be. The file's name precedes."""
    if head.startswith(_GZIP):
        return "is compressed with gzip, and a plain file is read here: decompress it first."
    if head.startswith(_UTF16) or head.count(0) > len(head) / 4:
        return "is text in UTF-16: save the file as UTF-8."
    if 0 in head and not _is_utf8(head):
        return "is not a text file: export its texts as UTF-8."
    if b"\r" in head and b"\n" not in head:
        return "ends its lines with CR alone, as old Macs did: save it with LF or CRLF at the end of each line."
    return None


def _is_utf8(head):
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the last character may be cut
    except UnicodeDecodeError:
        return False
    return True
