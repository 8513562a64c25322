"""Tables of examples: CSV, TSV and JSON lines, row by row with their line numbers.

CSV follows RFC 4180 (quotes may hold commas and line breaks). In TSV a quote is a character like any other,
as in GLUE's files. A byte-order mark and CRLF are taken off.
"""

import csv
import json
import sys
from contextlib import nullcontext
from pathlib import Path

from bert_tf.finetune.errors import DataError

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".txt": "tsv",
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".ndjson": "jsonl",
}
_LONGEST_FIELD = 1 << 27


def table_format(path, name=None):
    """ "csv", "tsv" or "jsonl": the given name, or what the file's ending says. Raises: DataError."""
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


def read_rows(path, kind):
    """Yields (line number, list of fields) of a CSV or TSV file, blank lines left out.

    Raises: DataError (not UTF-8, a broken quote), OSError.
    """
    if kind == "tsv":
        for number, line in _lines(path):
            if line.strip():
                yield number, line.rstrip("\r\n").split("\t")
        return
    csv.field_size_limit(_LONGEST_FIELD)
    reader, begun = csv.reader((line for _, line in _lines(path)), strict=True), 1
    try:
        for fields in reader:
            if fields:
                yield begun, fields
            begun = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path} line {begun}: not CSV ({error}).") from error


def read_records(path, kind=None, columns=None):
    """Yields (line number, dict) of each row.

    Args:
        path: of the file. kind: "csv", "tsv", "jsonl", "lines" (a text each, whose column is the one of
            `columns`), or None to go by the ending. columns: names of the columns of a file without a header
            line, or None where its first line names them.

    Raises: DataError naming file and line, OSError.
    """
    for number, record in try_records(path, kind, columns):
        if isinstance(record, DataError):
            raise record
        yield number, record


def try_records(path, kind=None, columns=None):
    """As `read_records`, with the DataError of a bad row in its place, so that the reading can go on."""
    if kind == "lines":
        yield from (
            (number, {columns[0]: line.rstrip("\r\n")}) for number, line in _lines(path) if line.strip()
        )
        return
    kind = table_format(path, kind)
    if kind == "jsonl":
        for number, line in _lines(path):
            if line.strip():
                yield number, _json_record(path, number, line)
        return
    rows = read_rows(path, kind)
    if columns is None:
        _, columns = next(rows, (0, None))
        if columns is None:
            raise DataError(f"{path} is empty; it needs a header line and a row for each example.")
    for number, fields in rows:
        if len(fields) == len(columns):
            yield number, dict(zip(columns, fields))
        else:
            yield (
                number,
                DataError(
                    f"{path} line {number}: {len(fields)} fields, where {len(columns)} are "
                    f"expected ({', '.join(columns):.120})."
                ),
            )


def _json_record(path, number, line):
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return DataError(f"{path} line {number}: not JSON ({error}).")
    if isinstance(record, dict):
        return record
    return DataError(f"{path} line {number}: a JSON {type(record).__name__}, where an object is expected.")


def _lines(path):
    """(number, line with its end) of a UTF-8 file; "-" is standard input."""
    with _open(path) as file:
        for number, line in enumerate(file, 1):
            try:
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{path} line {number}: not UTF-8 ({error.reason}); save the file as UTF-8."
                ) from error


def _open(path):
    return nullcontext(sys.stdin.buffer) if str(path) == "-" else open(path, "rb")
