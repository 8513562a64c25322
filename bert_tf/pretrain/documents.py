"""Text files to documents, as they are or compressed (`.gz`, `.xz`, `.zst`).

A text file has one paragraph (or sentence) a line and a blank line between documents. A file of JSON lines
(`.jsonl`) has one document a line, its text in a field.

Sentences are split by `sentencex` (Wikimedia's splitter, written for encyclopaedic text in some 300
languages; fast, offline, and in use by its makers).
"""

import glob
import gzip
import json
import lzma
import zlib
from pathlib import Path

_COMPRESSED = (".gz", ".xz", ".zst")


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


def read_documents(paths, field="text", longest=None, open_file=open):
    """Documents of text files, one after the other, in constant memory.

    Args:
        paths: files of UTF-8 text or, by their name, of JSON lines. field: where JSON lines have their text.
        longest: characters after which a document is cut and goes on as another one; None for never.
        open_file: callable (path, "rb") -> binary file; another one than `open` where the files are not local.

    Yields: list of str, the paragraphs of a document.

    Raises: TextError naming the file, on text that is not UTF-8, a damaged archive, or a line that is not
        JSON or lacks the field.
    """
    for path in map(str, paths):
        try:
            with open_file(path, "rb") as raw, _decompressed(raw, path) as lines:
                read = _of_json_lines(lines, path, field) if is_json_lines(path) else _of_lines(lines)
                for paragraphs in read:
                    yield from _cut(paragraphs, longest) if longest else (paragraphs,)
        except UnicodeDecodeError as error:
            raise TextError(f"{path} is not UTF-8 text (byte {error.start}); convert it first.") from error
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, *_zstd_errors(path)) as error:
            raise TextError(f"{path} is a damaged archive: {error}.") from error


def is_json_lines(path):
    """Whether a file's name says JSON lines, compressed or not."""
    path = Path(path)
    return (path.with_suffix("") if path.suffix in _COMPRESSED else path).suffix == ".jsonl"


def _decompressed(raw, path):
    """The lines of text in an open binary file."""
    import io

    suffix = Path(path).suffix
    if suffix == ".gz":
        raw = gzip.open(raw)
    elif suffix == ".xz":
        raw = lzma.open(raw)
    elif suffix == ".zst":
        from backports import zstd

        raw = zstd.open(raw)
    # A byte-order mark is no part of the text.
    return io.TextIOWrapper(raw, encoding="utf-8-sig")


def _zstd_errors(path):
    if not path.endswith(".zst"):
        return ()
    from backports import zstd

    return (zstd.ZstdError,)


def _of_lines(lines):
    paragraphs = []
    for line in lines:
        line = line.strip()
        if line:
            paragraphs.append(line)
        elif paragraphs:
            yield paragraphs
            paragraphs = []
    if paragraphs:
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
            raise TextError(f"{path}, line {number}: no text in a field {field!r} (it has: {has or 'nothing'}); "
                            f"name the right one with --field.")
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
