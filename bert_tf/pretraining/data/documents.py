"""Reads documents from text files, plain or compressed (`.gz`, `.xz`, `.zst`).

A text file has one paragraph (or sentence) a line and a blank line between documents. A file of JSON lines (`.jsonl`)
has one document a line; a field of the line holds the text.

`sentencex` splits paragraphs into sentences. It is Wikimedia's splitter for encyclopaedic text in some 300 languages;
it is fast, works offline, and Wikimedia uses it.
"""

from __future__ import annotations

import codecs
import functools
import glob
import gzip
import hashlib
import io
import itertools
import json
import lzma
import math
import re
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING

from bert_tf.errors import check_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


_COMPRESSED = (".gz", ".xz", ".zst")
_TABLES = (".csv", ".tsv")
_READ_AT_ONCE, _DIGESTED = 1 << 20, 1 << 16
#: Characters of a line of text that are read at once: a longer line is cut at a space, so that the memory is bounded.
LONGEST_LINE = 1 << 20
#: The largest number of characters of a line of JSON, which cannot be cut.
LONGEST_JSON_LINE = 1 << 24


class TextError(ValueError):
    """A text file cannot be read, or holds no text to train on."""


def find_files(patterns: Iterable[str | Path]) -> list[Path]:
    """The files of paths or glob patterns; a file of exactly this name is meant before what the pattern matches.

    Args:
        patterns: iterable of str or Path.

    Returns: list of Path; the files of each pattern are sorted.

    Raises: TextError if a pattern matches no file, or a table; the message names it.
    """
    paths = []
    for pattern in patterns:
        matches = [] if Path(pattern).is_file() else sorted(glob.glob(str(pattern), recursive=True))
        paths += [Path(match) for match in matches or [str(pattern)]]
    for path in paths:
        if not path.is_file():
            raise TextError(f"There is no text file {path}.")
        _refuse_table(path)
    return paths


def read_documents(
    paths: Iterable[str | Path], field: str = "text", open_file: Callable[..., IO[bytes]] = open
) -> Iterator[list[str]]:
    """Reads the documents of text files one after the other; each is complete in memory.

    Args: as `read_parts`.

    Yields: list of str, the paragraphs of a document.

    Raises: as `read_parts`.
    """
    for _, paragraphs in read_parts(paths, math.inf, field, open_file):
        yield paragraphs


def read_parts(
    paths: Iterable[str | Path], longest: float, field: str = "text", open_file: Callable[..., IO[bytes]] = open
) -> Iterator[tuple[int, list[str]]]:
    """Reads the documents of text files one after the other, long documents in parts.

    The memory use is constant: a line of over `LONGEST_LINE` characters becomes several paragraphs, cut at spaces where
    there are some, and a line of JSON of over `LONGEST_JSON_LINE` characters is an error.

    Args:
        paths: iterable of str or Path. Files of UTF-8 text, or of JSON lines if the name ends so.
        longest: int. The largest number of characters of a part; a part of one paragraph may have more.
        field: str. The field of JSON lines that holds the text.
        open_file: callable (path, "rb") -> binary file. It replaces `open` if the files are not local.

    Yields: (the number of the part in its document, from 0; list of str, the paragraphs of the part).

    Raises: TextError, which names the file, if it is a table, if the text is not UTF-8 or holds NULs, if the archive is
        damaged, or if a line is not JSON, is too long, lacks the field or holds half a surrogate pair.
    """
    for path in map(str, paths):
        _refuse_table(path)
        try:
            # "utf-8-sig" skips a byte-order mark.
            with (
                open_file(path, "rb") as raw,
                _decompressed(raw, path) as data,
                io.TextIOWrapper(data, encoding="utf-8-sig") as text,
            ):
                if is_json_lines(path):
                    documents = _json_documents(_json_lines(text, path), path, field)
                else:
                    documents = _documents(_bounded_lines(text, path))
                for document in documents:
                    yield from enumerate(_cut(document, longest))
        except UnicodeDecodeError as error:
            raise TextError(
                f"{path} is not UTF-8 text ({_first_bad_byte(path, open_file)}); convert it first."
            ) from error
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, *_zstd_errors(path)) as error:
            raise TextError(f"{path} is a damaged archive: {error}.") from error


def ends_digest(path: str | Path, size: int, open_file: Callable[..., IO[bytes]] = open) -> str:
    """The SHA-256 of the first and last 64 KiB of a file. With the size it distinguishes most texts at little cost.

    Args:
        path: str or Path. The file.
        size: int. The size of the file in bytes.
        open_file: as in `read_parts`.

    Returns: str, hexadecimal.
    """
    with open_file(path, "rb") as file:
        digest = hashlib.sha256(file.read(_DIGESTED))
        file.seek(max(0, size - _DIGESTED))
        digest.update(file.read(_DIGESTED))
    return digest.hexdigest()


def is_json_lines(path: str | Path) -> bool:
    """Whether the name of a file is that of JSON lines, compressed or not."""
    return _ending(path).lower() in (".jsonl", ".ndjson", ".json")


def _ending(path):
    """The ending of a file's name without that of its compression."""
    path = Path(path)
    return (path.with_suffix("") if path.suffix in _COMPRESSED else path).suffix


def _refuse_table(path):
    """Raises TextError for a file of rows and columns, whose numbers and delimiters would be read as text."""
    if _ending(path).lower() in _TABLES:
        raise TextError(
            f"{path} is a table, where plain text (.txt) or JSON lines (.jsonl) are expected: write its texts to a "
            ".txt file, or its rows to a .jsonl file and name the column of the text with --field."
        )


def _decompressed(raw, path):
    """A binary file with the decompressed bytes of an open file."""
    suffix = Path(path).suffix
    if suffix == ".gz":
        return gzip.open(raw)
    if suffix == ".xz":
        return lzma.open(raw)
    if suffix == ".zst":
        from backports import zstd

        return zstd.open(raw)
    return raw


def _first_bad_byte(path, open_file):
    """The first byte that is not UTF-8, as "byte N, line M", with N from 0 in the decompressed text."""
    decoder, done, line = codecs.getincrementaldecoder("utf-8")(), 0, 1
    with open_file(path, "rb") as raw, _decompressed(raw, path) as data:
        while True:
            block = data.read(_READ_AT_ONCE)
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                # The decoder has kept the start of a character that continues in this block.
                kept = len(error.object) - len(block)
                lines = error.object[: error.start].count(b"\n")
                return f"byte {done - kept + error.start:,}, line {line + lines:,}"
            if not block:
                return "the position is unknown, as the file has changed meanwhile"
            done, line = done + len(block), line + block.count(b"\n")


def _bounded_lines(text, path):
    """Yields the lines of an open file; one of over `LONGEST_LINE` characters in parts, of which none is blank."""
    number, rest, has_text = 1, "", False  # has_text: an earlier part of this line was yielded
    while piece := text.readline(LONGEST_LINE):
        _refuse_nuls(piece, path, number)
        piece = rest + piece
        if piece.endswith("\n"):
            if piece.strip() or not has_text:
                yield piece
            number, rest, has_text = number + 1, "", False
        elif len(piece) < LONGEST_LINE:
            rest = piece  # the file ends without a line break
        else:
            end = piece.rfind(" ") + 1 or len(piece)
            if part := piece[:end].strip():
                yield part
                has_text = True
            rest = piece[end:]
    if rest.strip():
        yield rest


def _json_lines(text, path):
    """Yields the lines of an open file."""
    for number in itertools.count(1):
        line = text.readline(LONGEST_JSON_LINE + 1)
        if len(line) > LONGEST_JSON_LINE:
            raise TextError(
                f"{path}, line {number:,}, has over {LONGEST_JSON_LINE:,} characters: write its documents on lines of "
                f"their own, or as text."
            )
        if not line:
            return
        _refuse_nuls(line, path, number)
        yield line


def _refuse_nuls(line, path, number):
    """Raises TextError on a NUL. UTF-16 without a byte-order mark has NULs in every second byte."""
    if "\0" in line:
        raise TextError(
            f"{path}, line {number:,}, holds NUL characters, as text in UTF-16 does; convert it to UTF-8 first."
        )


def _zstd_errors(path):
    if not path.endswith(".zst"):
        return ()
    from backports import zstd

    return (zstd.ZstdError,)


def _documents(lines):
    """Yields an iterator over the paragraphs of each document; read each to its end before the next one."""
    for is_text, paragraphs in itertools.groupby(map(str.strip, lines), key=bool):
        if is_text:
            yield paragraphs


def _json_documents(lines, path, field):
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise TextError(f"{path}, line {number}: not JSON ({error}).") from error
        text = record.get(field) if isinstance(record, dict) else None
        if not isinstance(text, str):
            has = ", ".join(record)[:80] if isinstance(record, dict) else type(record).__name__
            raise TextError(
                f"{path}, line {number}: no text in a field {field!r} (it has: {has or 'nothing'}); "
                f"name the right one with --field."
            )
        try:
            check_text(text, f"{path}, line {number}: the text")
        except ValueError as error:
            raise TextError(str(error)) from None
        if paragraphs := [part for part in map(str.strip, text.split("\n")) if part]:
            yield paragraphs


def _cut(paragraphs, longest):
    """Splits paragraphs into lists of at most `longest` characters; a list of one paragraph may have more."""
    part: list[str] = []
    size = 0
    for paragraph in paragraphs:
        if part and size + len(paragraph) > longest:
            yield part
            part, size = [], 0
        part.append(paragraph)
        size += len(paragraph)
    yield part


def sentences(paragraph: str, language: str = "en") -> list[str]:
    """Splits a paragraph into sentences.

    Args:
        paragraph: str.
        language: str. A language, as `language_code` reads it; one that the splitter does not know has English's rules.

    Returns: list of str, without surrounding spaces and without empty sentences.

    Raises: TextError if `language` is no code.
    """
    import sentencex

    parts = sentencex.segment(language_code(language), paragraph)
    return [sentence for sentence in map(str.strip, parts) if sentence]


@functools.cache
def language_code(language: str) -> str:
    """The two or three letters of a language such as "de", "DE" or "de-AT", in small ones.

    Raises: TextError if there are none.
    """
    code = re.split("[-_]", language.lower())[0]
    if not re.fullmatch("[a-z]{2,3}", code):
        raise TextError(f"The language is {language!r:.40}; it must be a code of two or three letters, such as de.")
    return code
