"""Splits text files into chunks of documents: a chunk is the unit of work of `prepare`.

The content of a chunk depends on the files alone, so one process, several processes and a Beam pipeline make the same
examples. Files are read in groups: a small file alone would give a chunk of one document, which has no other document
to take a random second segment from.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from bert_tf.pretraining.data.documents import read_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


#: The least number of characters and of documents of a chunk. A chunk of the longest length may have fewer documents.
CHUNK_CHARACTERS, CHUNK_DOCUMENTS, LONGEST_CHUNK = 2_000_000, 8, 16_000_000
#: The least size of a group of files in bytes (before decompression); the last group may be smaller.
GROUP_BYTES = 16_000_000


@dataclass(frozen=True)
class Chunk:
    """Consecutive documents of a text.

    Attributes:
        group: int. The number of the group of files.
        number: int. The number of the chunk in its group.
        documents: list of lists of str. The paragraphs of each document.
        sources: list of int, ascending. Parts of one document have equal numbers; None if every document is complete.
        continues_document: bool. Whether the first document is a later part of a document of the previous chunk.
    """

    group: int
    number: int
    documents: list = field(repr=False)
    sources: list | None = field(default=None, repr=False)
    continues_document: bool = False


def group_files(files: Iterable[tuple[str, int]]) -> list[list[str]]:
    """Groups consecutive files; each group has at least `GROUP_BYTES`, except the last.

    Args:
        files: list of (path, bytes).

    Returns: list of lists of paths.
    """
    groups: list[list[str]] = []
    size = GROUP_BYTES
    for path, number in files:
        if size >= GROUP_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(path)
        size += number
    return groups


def read_chunks(
    group: int, paths: Sequence[str], text_field: str = "text", open_file: Callable[..., IO[bytes]] = open
) -> Iterator[Chunk]:
    """The chunks of a group of files. The memory use does not grow with the files.

    Args:
        group: int. The number of the group.
        paths: list of str. The files.
        text_field: as in `documents.read_parts`.
        open_file: as in `documents.read_parts`.

    Yields: `Chunk`s; a short end of the text is added to the chunk before it.
    """
    previous, current, size, number = None, [], 0, 0
    for part in _numbered(read_parts(paths, LONGEST_CHUNK, text_field, open_file)):
        current.append(part)
        size += sum(map(len, part.paragraphs))
        if size >= CHUNK_CHARACTERS and (len(current) >= CHUNK_DOCUMENTS or size >= LONGEST_CHUNK):
            if previous:
                yield _chunk(group, number, previous)
                number += 1
            previous, current, size = current, [], 0
    if previous and current and size >= CHUNK_CHARACTERS // 2 and len(current) >= CHUNK_DOCUMENTS:
        yield _chunk(group, number, previous)
        yield _chunk(group, number + 1, current)
    elif previous or current:
        yield _chunk(group, number, [*(previous or []), *current])


@dataclass(frozen=True)
class _Part:
    """A document, or a part of a document of more than `LONGEST_CHUNK` characters.

    Attributes:
        source: int. The number of the document.
        number: int. The number of the part in the document.
        paragraphs: list of str.
    """

    source: int
    number: int
    paragraphs: list


def _numbered(parts):
    source = -1
    for number, paragraphs in parts:
        source += number == 0
        yield _Part(source, number, paragraphs)


def _chunk(group, number, parts):
    return Chunk(
        group, number, [part.paragraphs for part in parts], [part.source for part in parts], parts[0].number > 0
    )


class ByteCountingOpener:
    """Opens files and counts the bytes read, for a progress bar.

    Attributes:
        done: int. The bytes read so far, from all files.

    Example:
        open_file = ByteCountingOpener()
        chunks = list(read_chunks(0, ["text.txt"], open_file=open_file))
        print(open_file.done)
    """

    def __init__(self) -> None:
        self.done = 0

    def __call__(self, path: str, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_CountingFile(path, self))


class _CountingFile(io.FileIO):
    """A file that adds the bytes read from it to a counter."""

    def __init__(self, path, counter):
        super().__init__(path)
        self._counter = counter

    def readinto(self, buffer):
        count = super().readinto(buffer)
        self._counter.done += count or 0
        return count
