"""Sharded records on disk, written so that a killed run goes on and ends with the same files.

Beside the shards stands `progress.json`: how many chunks are in them and how long each shard was then. What was
written after it is cut off when a run goes on. When all is written, `manifest.json` takes its place.
"""

import hashlib
import io
import json
import os
import time
from pathlib import Path

import numpy as np

from bert_tf.files import atomic_write, write_json
from bert_tf.pretraining.data.documents import TextError, ends_digest
from bert_tf.pretraining.data.examples import CorpusCounts

MANIFEST, PROGRESS, TOKEN_COUNTS = "manifest.json", "progress.json", "token_counts.npy"
#: Begin and end of a shard's name; Beam puts the number between them.
PREFIX, SUFFIX = "examples", ".tfrecord"
_SECONDS_BETWEEN_SAVES = 10
# Of the manifest, what earlier versions did not note: there it may be anything.
_NOTED_SINCE = ("text_field", "file_ends")


def shard_name(number, count):
    """The file name of shard `number` of `count`."""
    return f"{PREFIX}-{number:05d}-of-{count:05d}{SUFFIX}"


def vocabulary_hash(tokenizer):
    """SHA-256 of a vocabulary and of how text is brought to it: hex."""
    names = ("lower_case", "strip_accents", "tokenize_chinese_chars")
    facts = json.dumps([getattr(tokenizer, name, None) for name in names])
    return hashlib.sha256("\n".join([facts, *tokenizer.vocab]).encode()).hexdigest()


def settings_manifest(settings, tokenizer, shards, files, text_field="text", open_file=open):
    """The part of the manifest that is known beforehand: dict.

    Args: files: list of (path, bytes). text_field, open_file: as in `documents.read_documents`; the rest as `prepare`.
    """
    return {
        "format": 1,
        "settings": settings.to_dict(),
        "vocabulary_sha256": vocabulary_hash(tokenizer),
        "vocabulary_size": tokenizer.vocab_size,
        "shards": shards,
        "files": [[Path(path).name, size] for path, size in files],
        "text_field": text_field,
        "file_ends": [ends_digest(path, size, open_file) for path, size in files],
    }


def check_sizes(folder, noted, longer=False):
    """Raises TextError unless every shard has the size that was noted, if one was: earlier versions did not.

    Args: noted: dict with "shards" and perhaps "sizes". longer: whether more is well too.
    """
    for number, size in enumerate(noted.get("sizes", ())):
        path = Path(folder) / shard_name(number, noted["shards"])
        found = path.stat().st_size if path.is_file() else 0
        if found < size or found > size and not longer:
            raise TextError(
                f"{path} has {found:,} bytes and had {size:,} when it was made; bring it back, or delete its "
                "folder and prepare the text again."
            )


def token_counts_bytes(counts):
    """The content of `token_counts.npy`."""
    buffer = io.BytesIO()
    np.save(buffer, counts.token_counts)
    return buffer.getvalue()


class ShardWriter:
    """Appends to the shards of a folder, from where an interrupted run with the same settings stopped.

    Args:
        folder: of the shards; made if need be. manifest: of `settings_manifest`.

    Attributes:
        chunks: how many are in the shards. counts: `CorpusCounts` of them. finished: whether nothing is left to do.

    Raises: TextError if the folder holds shards of other settings or other text, or a shard has lost something.
    """

    def __init__(self, folder, manifest):
        self.folder, self.manifest = Path(folder), manifest
        self._names = [shard_name(number, manifest["shards"]) for number in range(manifest["shards"])]
        self.folder.mkdir(parents=True, exist_ok=True)
        self.chunks, self.counts, self._sizes = 0, CorpusCounts(), [0] * len(self._names)
        self.finished = (self.folder / MANIFEST).is_file()
        if self.finished:
            self._take_over(_read(self.folder / MANIFEST))
        elif (self.folder / PROGRESS).is_file():
            self._go_on(_read(self.folder / PROGRESS))
        else:
            self._begin()
        self._saved = time.monotonic()

    def _check(self, found):
        for name, value in self.manifest.items():
            if found.get(name) != value and not (name in _NOTED_SINCE and name not in found):
                raise TextError(
                    f"{self.folder} holds records of another preparation ({name} differs); give "
                    f"another --output, or delete that folder."
                )

    def _take_over(self, manifest):
        self._check(manifest)
        check_sizes(self.folder, manifest)
        self.counts = CorpusCounts(
            **{name: manifest[name] for name in self.counts.numbers()}, token_counts=np.load(self.folder / TOKEN_COUNTS)
        )
        # A run that was killed at its very end left it.
        (self.folder / PROGRESS).unlink(missing_ok=True)

    def _begin(self):
        for name in self._names:
            (self.folder / name).write_bytes(b"")
        self.save()

    def discard(self):
        """Removes shards that are of no use, so that another text may come into the folder."""
        for name in (PROGRESS, *self._names):
            (self.folder / name).unlink(missing_ok=True)

    def _go_on(self, progress):
        if not progress["chunks"]:
            # Nothing is made yet: a run that failed at once is no reason against another text or other settings.
            for number in range(progress["shards"]):
                (self.folder / shard_name(number, progress["shards"])).unlink(missing_ok=True)
            return self._begin()
        self._check(progress)
        self.chunks, self._sizes = progress["chunks"], progress["sizes"]
        self.counts = CorpusCounts(**progress["counts"], token_counts=np.array(progress["token_counts"], np.int64))
        # What was written after the last note goes; what was written before must be there.
        check_sizes(self.folder, progress, longer=True)
        for name, size in zip(self._names, self._sizes, strict=True):
            os.truncate(self.folder / name, size)

    def append(self, parts, counts):
        """Adds the next chunk: bytes for each shard, and its `CorpusCounts`."""
        for number, part in enumerate(parts):
            if part:
                with open(self.folder / self._names[number], "ab") as file:
                    file.write(part)
                self._sizes[number] += len(part)
        self.chunks += 1
        self.counts += counts
        if time.monotonic() - self._saved > _SECONDS_BETWEEN_SAVES:
            self.save()

    def save(self):
        """Notes what is in the shards, after it has reached the disk."""
        self._sync()
        write_json(
            self.folder / PROGRESS,
            {
                **self.manifest,
                "chunks": self.chunks,
                "sizes": self._sizes,
                "counts": self.counts.numbers(),
                "token_counts": self.counts.token_counts.tolist(),
            },
        )
        self._saved = time.monotonic()

    def finish(self):
        """Writes what `RecordsFeed` needs beside the shards; the manifest last, as the sign that all is there."""
        self._sync()
        with atomic_write(self.folder / TOKEN_COUNTS) as temporary:
            temporary.write_bytes(token_counts_bytes(self.counts))
        write_json(self.folder / MANIFEST, {**self.manifest, "sizes": self._sizes, **self.counts.numbers()})
        (self.folder / PROGRESS).unlink(missing_ok=True)
        self.finished = True

    def _sync(self):
        for name in self._names:
            with open(self.folder / name, "rb") as file:
                os.fsync(file.fileno())


def read_manifest(folder):
    """The manifest of a folder of records.

    Raises: TextError if the folder holds none, or the preparation has not ended.
    """
    folder = Path(folder)
    if not (folder / MANIFEST).is_file():
        if (folder / PROGRESS).is_file():
            raise TextError(f"The preparation in {folder} has not ended; give its command again and it goes on.")
        raise TextError(f"{folder} holds no prepared records; make them with `python -m bert_tf prepare`.")
    return _read(folder / MANIFEST)


def _read(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TextError(f"{path} is damaged ({error}); delete its folder and prepare the text again.") from error
