"""Writes sharded records so that a killed run can be resumed and ends with the same files.

`progress.json` in the folder has the number of chunks in the shards and the size of each shard at that time. A resumed
run cuts off the bytes written later. When all records are written, `manifest.json` replaces it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from bert_tf.files import atomic_write, write_json
from bert_tf.pretraining.data.documents import TextError, ends_digest
from bert_tf.pretraining.data.examples import CorpusCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bert_tf.pretraining.data.examples import ExampleSettings
    from bert_tf.tokenizers.base import BaseTokenizer


MANIFEST, PROGRESS, TOKEN_COUNTS = "manifest.json", "progress.json", "token_counts.npy"
#: The start and the end of a shard's name; Beam puts the number between them.
PREFIX, SUFFIX = "examples", ".tfrecord"
_SECONDS_BETWEEN_SAVES = 10
# Keys that the manifests of earlier versions lack; there they are not compared.
_LATER_KEYS = ("text_field", "file_ends", "cut_signature")


def shard_name(number: int, count: int) -> str:
    """The file name of shard `number` of `count`."""
    return f"{PREFIX}-{number:05d}-of-{count:05d}{SUFFIX}"


def vocabulary_hash(tokenizer: BaseTokenizer) -> str:
    """The SHA-256 of a vocabulary and of the text normalization.

    Args:
        tokenizer: a `Tokenizer`.

    Returns: str, hexadecimal.
    """
    names = ("lower_case", "strip_accents", "tokenize_chinese_chars")
    own_pipeline = [] if tokenizer.pipeline is None else [tokenizer.pipeline]
    options = json.dumps([getattr(tokenizer, name, None) for name in names] + own_pipeline)
    return hashlib.sha256("\n".join([options, *tokenizer.vocab]).encode()).hexdigest()


def settings_manifest(
    settings: ExampleSettings,
    tokenizer: BaseTokenizer,
    shards: int,
    files: Sequence[tuple[str | Path, int]],
    text_field: str = "text",
    open_file: Callable[..., IO[bytes]] = open,
) -> dict[str, Any]:
    """The part of the manifest that is known before the records are written.

    Args:
        settings: as `prepare.prepare`.
        tokenizer: as `prepare.prepare`.
        shards: as `prepare.prepare`.
        files: list of (path, bytes).
        text_field: as in `documents.read_documents`.
        open_file: as in `documents.read_documents`.

    Returns: dict of JSON values.
    """
    return {
        "format": 1,
        "settings": settings.to_dict(),
        "vocabulary_sha256": vocabulary_hash(tokenizer),
        "cut_signature": tokenizer.cut_signature,
        "vocabulary_size": tokenizer.vocab_size,
        "shards": shards,
        "files": [[Path(path).name, size] for path, size in files],
        "text_field": text_field,
        "file_ends": [ends_digest(path, size, open_file) for path, size in files],
    }


def check_sizes(folder: str | Path, noted: dict[str, Any], longer: bool = False) -> None:
    """Checks the sizes of the shards; the manifests of earlier versions have no sizes and are not checked.

    Args:
        folder: str or Path. The folder of the shards.
        noted: dict with "shards" and perhaps "sizes".
        longer: bool. Whether a shard may be longer.

    Raises: TextError if the size of a shard differs.
    """
    for number, size in enumerate(noted.get("sizes", ())):
        path = Path(folder) / shard_name(number, noted["shards"])
        actual = path.stat().st_size if path.is_file() else 0
        if actual < size or actual > size and not longer:
            raise TextError(
                f"{path} has {actual:,} bytes and had {size:,} when it was made; bring it back, or delete its "
                "folder and prepare the text again."
            )


def token_counts_bytes(counts: CorpusCounts) -> bytes:
    """The content of `token_counts.npy`, bytes.

    Args:
        counts: `CorpusCounts`.
    """
    buffer = io.BytesIO()
    np.save(buffer, counts.token_counts)
    return buffer.getvalue()


class ShardWriter:
    """Appends to the shards of a folder; resumes an interrupted run with the same settings.

    Args:
        folder: str or Path. The folder of the shards; it is created if it does not exist.
        manifest: dict from `settings_manifest`.

    Attributes:
        chunks: int. The number of chunks in the shards.
        counts: the `CorpusCounts` of these chunks.
        finished: bool. Whether all records are written.

    Raises: TextError if the folder holds shards of other settings or another text, or if a shard is too short.
    """

    def __init__(self, folder: str | Path, manifest: dict[str, Any]) -> None:
        self.folder, self.manifest = Path(folder), manifest
        self._names = [shard_name(number, manifest["shards"]) for number in range(manifest["shards"])]
        self.folder.mkdir(parents=True, exist_ok=True)
        self.chunks, self.counts, self._sizes = 0, CorpusCounts(), [0] * len(self._names)
        self.finished = (self.folder / MANIFEST).is_file()
        if self.finished:
            self._load_finished(_read(self.folder / MANIFEST))
        elif (self.folder / PROGRESS).is_file():
            self._resume(_read(self.folder / PROGRESS))
        else:
            self._start()
        self._saved = time.monotonic()

    def _check(self, saved):
        for name, value in self.manifest.items():
            if saved.get(name) != value and not (name in _LATER_KEYS and name not in saved):
                raise TextError(
                    f"{self.folder} holds records of another preparation ({name} differs); give "
                    f"another --output, or delete that folder."
                )

    def _load_finished(self, manifest):
        self._check(manifest)
        check_sizes(self.folder, manifest)
        self.counts = CorpusCounts(
            **{name: manifest[name] for name in self.counts.numbers()}, token_counts=np.load(self.folder / TOKEN_COUNTS)
        )
        # A run that was killed just before its end leaves this file.
        (self.folder / PROGRESS).unlink(missing_ok=True)

    def _start(self):
        for name in self._names:
            (self.folder / name).write_bytes(b"")
        self.save()

    def discard(self) -> None:
        """Removes the shards, so that another text can be written to the folder."""
        for name in (PROGRESS, *self._names):
            (self.folder / name).unlink(missing_ok=True)

    def _resume(self, progress):
        if not progress["chunks"]:
            # Nothing is written yet, so another text or other settings are allowed.
            for number in range(progress["shards"]):
                (self.folder / shard_name(number, progress["shards"])).unlink(missing_ok=True)
            return self._start()
        self._check(progress)
        self.chunks, self._sizes = progress["chunks"], progress["sizes"]
        self.counts = CorpusCounts(**progress["counts"], token_counts=np.array(progress["token_counts"], np.int64))
        # Bytes written after the last save are cut off; all bytes written before must exist.
        check_sizes(self.folder, progress, longer=True)
        for name, size in zip(self._names, self._sizes, strict=True):
            os.truncate(self.folder / name, size)

    def append(self, parts: Sequence[bytes], counts: CorpusCounts) -> None:
        """Adds the next chunk.

        Args:
            parts: list of bytes, one for each shard.
            counts: the `CorpusCounts` of the chunk.
        """
        for number, part in enumerate(parts):
            if part:
                with open(self.folder / self._names[number], "ab") as file:
                    file.write(part)
                self._sizes[number] += len(part)
        self.chunks += 1
        self.counts += counts
        if time.monotonic() - self._saved > _SECONDS_BETWEEN_SAVES:
            self.save()

    def save(self) -> None:
        """Writes `progress.json`, after the shards have reached the disk."""
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

    def finish(self) -> None:
        """Writes the other files for `RecordsFeed`; the manifest is the last one and marks the folder as complete."""
        self._sync()
        with atomic_write(self.folder / TOKEN_COUNTS) as temporary:
            temporary.write_bytes(token_counts_bytes(self.counts))
        write_json(self.folder / MANIFEST, {**self.manifest, "sizes": self._sizes, **self.counts.numbers()})
        (self.folder / PROGRESS).unlink(missing_ok=True)
        self.finished = True

    def _sync(self):
        for name in self._names:
            # "r+b": Windows syncs only files that are open for writing.
            with open(self.folder / name, "r+b") as file:
                os.fsync(file.fileno())


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """Reads the manifest of a folder of records.

    Args:
        folder: str or Path.

    Returns: dict.

    Raises: TextError if there is no manifest, or if the preparation has not ended.
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
