"""Text files to documents, as they are or compressed (`.gz`, `.xz`, `.zst`).

A text file has one paragraph (or sentence) a line and a blank line between documents. A file of JSON lines
(`.jsonl`) has one document a line, its text in a field.

Sentences are split by `sentencex` (Wikimedia's splitter, written for encyclopaedic text in some 300
languages; fast, offline, and in use by its makers).
"""

import codecs
import glob
import gzip
import hashlib
import io
import itertools
import json
import lzma
import math
import zlib
from pathlib import Path

_COMPRESSED = (".gz", ".xz", ".zst")
_READ_AT_ONCE, _DIGESTED = 1 << 20, 1 << 16


class TextError(ValueError):
    """A text file that cannot be read or holds nothing to learn from."""


def find_files(patterns):
    """Sorted paths for files or glob patterns.

    Raises: TextError naming the pattern that matches nothing.
    """
    found = []
    for pattern in patterns:
        matches = sorted(glob.glob(str(pattern), recursive=True)) or [str(pattern)]
        found += [Path(match) for match in matches]
    for path in found:
        if not path.is_file():
            raise TextError(f"There is no text file {path}.")
    return found


def read_documents(paths, field="text", open_file=open):
    """Documents of text files, one after the other, each whole in memory. Args and errors: as `read_parts`.

    Yields: list of str, the paragraphs of a document.
    """
    for _, paragraphs in read_parts(paths, math.inf, field, open_file):
        yield paragraphs


def read_parts(paths, longest, field="text", open_file=open):
    """Documents of text files, one after the other, long ones in parts: in constant memory, but for the longest
    paragraph (in JSON lines, the longest document).

    Args:
        paths: files of UTF-8 text or, by their name, of JSON lines. longest: characters that a part has at most; more
            only where one paragraph has more. field: where JSON lines have their text.
        open_file: callable (path, "rb") -> binary file; another one than `open` where the files are not local.

    Yields: (which part of its document it is, from 0; list of str, its paragraphs).

    Raises: TextError naming the file, on text that is not UTF-8 or holds NULs, a damaged archive, or a line that is
        not JSON or lacks the field.
    """
    for path in map(str, paths):
        try:
            # A byte-order mark is no part of the text.
            with (
                open_file(path, "rb") as raw,
                _decompressed(raw, path) as data,
                io.TextIOWrapper(data, encoding="utf-8-sig") as text,
            ):
                lines = _without_nuls(text, path)
                for document in _of_json_lines(lines, path, field) if is_json_lines(path) else _of_lines(lines):
                    yield from enumerate(_cut(document, longest))
        except UnicodeDecodeError as error:
            raise TextError(
                f"{path} is not UTF-8 text ({_first_bad_byte(path, open_file)}); convert it first."
            ) from error
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, *_zstd_errors(path)) as error:
            raise TextError(f"{path} is a damaged archive: {error}.") from error


def ends_digest(path, size, open_file=open):
    """SHA-256 of a file's first and last 64 KiB: hex. With its size it tells most texts apart, at no cost."""
    with open_file(path, "rb") as file:
        digest = hashlib.sha256(file.read(_DIGESTED))
        file.seek(max(0, size - _DIGESTED))
        digest.update(file.read(_DIGESTED))
    return digest.hexdigest()


def is_json_lines(path):
    """Whether a file's name says JSON lines, compressed or not."""
    path = Path(path)
    return (path.with_suffix("") if path.suffix in _COMPRESSED else path).suffix == ".jsonl"


def _decompressed(raw, path):
    """The bytes of the text in an open binary file: another one."""
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
    """Where a file stops being UTF-8, as "byte N, line M", N from 0 in the decompressed text."""
    decoder, done, line = codecs.getincrementaldecoder("utf-8")(), 0, 1
    with open_file(path, "rb") as raw, _decompressed(raw, path) as data:
        while True:
            block = data.read(_READ_AT_ONCE)
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                # The decoder kept the beginning of a letter that the block before ended in.
                kept = len(error.object) - len(block)
                lines = error.object[: error.start].count(b"\n")
                return f"byte {done - kept + error.start:,}, line {line + lines:,}"
            if not block:
                return "where cannot be said, as it has changed meanwhile"
            done, line = done + len(block), line + block.count(b"\n")


def _without_nuls(lines, path):
    """The same lines. Raises TextError on a NUL, which UTF-16 without a mark has in every second byte."""
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise TextError(
                f"{path}, line {number:,}, holds NUL characters, as text in UTF-16 does; convert it to UTF-8 first."
            )
        yield line


def _zstd_errors(path):
    if not path.endswith(".zst"):
        return ()
    from backports import zstd

    return (zstd.ZstdError,)


def _of_lines(lines):
    """Iterators over the paragraphs of each document, to be used up one after the other."""
    for is_text, paragraphs in itertools.groupby(map(str.strip, lines), key=bool):
        if is_text:
            yield paragraphs


def _of_json_lines(lines, path, field):
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
        if paragraphs := [part for part in map(str.strip, text.split("\n")) if part]:
            yield paragraphs


def _cut(paragraphs, longest):
    """The paragraphs in lists of at most `longest` characters (more only where one paragraph has more)."""
    part, size = [], 0
    for paragraph in paragraphs:
        if part and size + len(paragraph) > longest:
            yield part
            part, size = [], 0
        part.append(paragraph)
        size += len(paragraph)
    yield part


def sentences(paragraph, language="en"):
    """The sentences of a paragraph, stripped, none empty."""
    import sentencex

    return [sentence for sentence in map(str.strip, sentencex.segment(language, paragraph)) if sentence]
