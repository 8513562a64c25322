"""Text files in chunks of documents: the unit of work of `prepare`, whoever does it.

A chunk's content depends on the files alone, so that one process, several, and a Beam pipeline make the same
examples. Files are taken in groups, as small files would give chunks of one document, which has no other
document to take a random second segment from.
"""

import io
from dataclasses import dataclass, field

from bert_tf.pretraining.data.documents import read_parts

#: Characters of a chunk, and the documents that it has at least, unless it gets several times longer so.
CHUNK_CHARACTERS, CHUNK_DOCUMENTS, LONGEST_CHUNK = 2_000_000, 8, 16_000_000
#: Bytes of files (compressed ones as they are) that a group has at least, unless they are the last.
GROUP_BYTES = 16_000_000


@dataclass(frozen=True)
class Chunk:
    """Some documents that follow one another.

    Attributes:
        group, number: its place in the text. documents: list of lists of str, the paragraphs of each.
        sources: list of int, ascending: equal for parts of one document; None where each is a whole one.
        continues_document: whether the first document is a later part of one that began in the chunk before.
    """

    group: int
    number: int
    documents: list = field(repr=False)
    sources: list | None = field(default=None, repr=False)
    continues_document: bool = False


def group_files(files):
    """Files that follow one another, together until they have `GROUP_BYTES`.

    Args:
        files: list of (path, bytes).

    Returns: list of lists of paths.
    """
    groups, size = [], GROUP_BYTES
    for path, number in files:
        if size >= GROUP_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(path)
        size += number
    return groups


def read_chunks(group, paths, text_field="text", open_file=open):
    """The chunks of a group of files, in memory that does not grow with them.

    Args:
        group: its number. paths: the files. text_field, open_file: as in `documents.read_parts`.

    Yields: `Chunk`s; the end of the text goes into the chunk before it where it is short.
    """
    waiting, now, size, number = None, [], 0, 0
    for part in _numbered(read_parts(paths, LONGEST_CHUNK, text_field, open_file)):
        now.append(part)
        size += sum(map(len, part.paragraphs))
        if size >= CHUNK_CHARACTERS and (len(now) >= CHUNK_DOCUMENTS or size >= LONGEST_CHUNK):
            if waiting:
                yield _chunk(group, number, waiting)
                number += 1
            waiting, now, size = now, [], 0
    if waiting and now and size >= CHUNK_CHARACTERS // 2 and len(now) >= CHUNK_DOCUMENTS:
        yield _chunk(group, number, waiting)
        yield _chunk(group, number + 1, now)
    elif waiting or now:
        yield _chunk(group, number, [*(waiting or []), *now])


@dataclass(frozen=True)
class _Part:
    """A document or, where it has over `LONGEST_CHUNK` characters, a part of one: which one, and which of its parts."""

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
    """Opens files and counts the bytes that are read of them, for a progress bar.

    Attributes: done: bytes so far, over all files.
    """

    def __init__(self):
        self.done = 0

    def __call__(self, path, mode):
        return io.BufferedReader(_Counted(path, self))


class _Counted(io.FileIO):
    """A file that tells how much was read of it."""

    def __init__(self, path, counter):
        super().__init__(path)
        self._counter = counter

    def readinto(self, buffer):
        count = super().readinto(buffer)
        self._counter.done += count or 0
        return count
