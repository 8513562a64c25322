"""A tokenized corpus on disk: the sentences of every document as token ids, in memory-mapped files.

A corpus has a manifest and three flat NumPy files: `tokens.npy` (uint16 or int32), `sentence_ends.npy` (int64, counted
in tokens) and `document_ends.npy` (int64, counted in sentences). A training run reads documents in any order without
loading the corpus into memory. The files of a corpus are replaced, never overwritten, so a run that has opened the old
files can still read them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.checksums import checksum, file_damage
from bert_tf.files import atomic_write, write_json
from bert_tf.pretraining.data.documents import (
    TextError,
    ends_digest,
    read_documents,
    sentences,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from bert_tf.tokenizers.base import BaseTokenizer


# Characters of the documents that are tokenized at once.
_BATCH_CHARACTERS = 2_000_000
# Tokens that are counted at once: `bincount` makes a copy with 8 bytes per token.
_COUNTED_AT_ONCE = 1 << 22
_MANIFEST, _LOCK = "manifest.json", ".lock"
_ARRAYS = ("tokens.npy", "sentence_ends.npy", "document_ends.npy")


class TokenCorpus:
    """A tokenized corpus in a folder: documents as lists of sentences of token ids.

    Args:
        folder: str or Path. A folder made by `prepare_corpus`.

    Attributes:
        manifest: dict. The content of the manifest.

    Raises: TextError if the folder is not a prepared corpus.

    Example:
        corpus = TokenCorpus("run/corpus")
        first_sentence = corpus.document(0)[0]
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self.manifest = json.loads((self.folder / _MANIFEST).read_text(encoding="utf-8"))
            if not isinstance(self.manifest, dict):
                raise ValueError(f"{_MANIFEST} holds no object")
            self._tokens, self._sentence_ends, self._document_ends = (
                np.asarray(np.load(self.folder / name, mmap_mode="r")) for name in _ARRAYS
            )
        except (OSError, ValueError) as error:
            raise TextError(
                f"{folder} is not a prepared corpus ({error}); make one with "
                f"`python -m bert_tf pretrain --text FILE …`."
            ) from error

    def __len__(self) -> int:
        return len(self._document_ends)

    @cached_property
    def document_tokens(self) -> np.ndarray:
        """The number of tokens of each document: int64 [documents]."""
        return np.diff(self._sentence_ends[self._document_ends - 1], prepend=0)

    def document(self, number: int) -> Sequence[np.ndarray]:
        """The sentences of one document: a sequence of int32 arrays [tokens of the sentence].

        Each sentence is read when it is accessed, because often only a few sentences of a long document are used.

        Args:
            number: int. The number of the document, from 0.
        """
        first = self._document_ends[number - 1] if number else 0
        start = self._sentence_ends[first - 1] if first else 0
        return _Sentences(self._tokens, start, self._sentence_ends[first : self._document_ends[number]])

    def log_frequencies(self, vocab_size: int) -> np.ndarray:
        """The natural logarithm of the frequency of each token, for the initial bias of an MLM head.

        Args:
            vocab_size: int. V.

        Returns: float32 [V]; frequencies have add-one smoothing.
        """
        counts = np.ones(vocab_size)
        for start in range(0, len(self._tokens), _COUNTED_AT_ONCE):
            counts += np.bincount(self._tokens[start : start + _COUNTED_AT_ONCE], minlength=vocab_size)
        return np.log(counts / counts.sum()).astype(np.float32)


class _Sentences(Sequence):
    """Consecutive sentences in a flat array of tokens.

    Args:
        tokens: integer array. The tokens of all sentences.
        start: int. The start of the first sentence.
        ends: int array. The end of each sentence.
    """

    def __init__(self, tokens, start, ends):
        self._tokens, self._start, self._ends = tokens, start, ends

    def __len__(self):
        return len(self._ends)

    def __getitem__(self, index):
        number = range(len(self))[index]
        start = self._ends[number - 1] if number else self._start
        return np.array(self._tokens[start : self._ends[number]], np.int32)


class MemoryCorpus:
    """A tokenized corpus in memory: documents as lists of sentences of token ids.

    Args:
        documents: list of lists of integer arrays.
        sources: list of int, ascending, one for each document. Parts of one document have equal numbers; None if every
            document is complete.

    Example:
        corpus = MemoryCorpus([[np.array([5, 6]), np.array([7])]])
        first_sentence = corpus.document(0)[0]
    """

    def __init__(self, documents: Sequence[Sequence[np.ndarray]], sources: Sequence[int] | None = None) -> None:
        self._documents, self.sources = documents, sources

    def __len__(self) -> int:
        return len(self._documents)

    def document(self, number: int) -> Sequence[np.ndarray]:
        """The sentences of one document: list of integer arrays [tokens of the sentence].

        Args:
            number: int. The number of the document, from 0.
        """
        return self._documents[number]


def tokenize_documents(
    documents: Iterable[list[str]], tokenizer: BaseTokenizer, language: str = "en"
) -> list[list[np.ndarray]]:
    """Tokenizes documents; sentences and documents without a token are left out.

    Args:
        documents: iterable of lists of str. The paragraphs of each document.
        tokenizer: a `Tokenizer`.
        language: str. The language code of the sentence splitter, for example "en".

    Returns: list of lists of int32 arrays, the token ids of each sentence.
    """
    return [document for document in tokenize_all(documents, tokenizer, language) if document]


def tokenize_all(
    documents: Iterable[list[str]], tokenizer: BaseTokenizer, language: str = "en"
) -> list[list[np.ndarray]]:
    """As `tokenize_documents`, but a document without a token gives an empty list.

    Args: as `tokenize_documents`.

    Returns: list of lists of int32 arrays, one for each document.
    """
    split = [[s for paragraph in document for s in sentences(paragraph, language)] for document in documents]
    ids = iter(tokenizer.batch_ids([s for document in split for s in document]))
    return [[row for row in itertools.islice(ids, len(document)) if len(row)] for document in split]


def prepare_corpus(
    paths: Iterable[str | Path],
    tokenizer: BaseTokenizer,
    folder: str | Path,
    max_documents: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    text_field: str = "text",
    language: str = "en",
) -> TokenCorpus:
    """Tokenizes text files into a `TokenCorpus`; does nothing if the folder holds it already with the same settings.

    If several processes call it at once, one tokenizes and the others wait.

    Args:
        paths: list of str or Path. The files for `read_documents`.
        tokenizer: a `Tokenizer`.
        folder: str or Path. The folder to write to.
        max_documents: int. The largest number of documents; None for all.
        progress: callable (documents, tokens) that is called after each batch of documents; or None.
        text_field: str. The field of JSON lines that holds the text.
        language: str. The language code of the sentence splitter, for example "en".

    Returns: the `TokenCorpus`.

    Raises: TextError if the files hold no text.
    """
    from filelock import FileLock

    folder = Path(folder)
    keys = corpus_keys(paths, tokenizer, max_documents, text_field, language)
    if (corpus := _existing_corpus(folder, keys)) is None:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / _LOCK):
            if (corpus := _existing_corpus(folder, keys)) is None:
                _make(folder, keys[0], paths, tokenizer, max_documents, progress, text_field, language)
                corpus = TokenCorpus(folder)
    return corpus


def _existing_corpus(folder, keys):
    """The `TokenCorpus` in a folder; None if there is none, or one of another text, or a damaged one."""
    try:
        corpus = TokenCorpus(folder)
        # Read twice: another process may have replaced the files while they were opened.
        key, second_key = corpus.manifest.get("key"), TokenCorpus(folder).manifest.get("key")
    except TextError:
        return None
    if key != second_key or key not in keys:
        return None
    for name, recorded in corpus.manifest.get("checksums", {}).items():  # earlier versions wrote none
        if damage := file_damage(Path(folder) / name, recorded):
            print(f"Warning: {damage} The text is tokenized again.", file=sys.stderr, flush=True)
            return None
    return corpus


def _make(folder, key, paths, tokenizer, max_documents, progress, text_field, language):
    dtype = np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.int32
    lengths: list[int] = []
    per_document: list[int] = []
    try:
        with open(folder / "tokens.raw", "wb") as raw:
            documents = itertools.islice(read_documents(paths, text_field), max_documents)
            for batch in _batches(documents):
                for document in tokenize_documents(batch, tokenizer, language):
                    np.concatenate(document).astype(dtype).tofile(raw)
                    lengths += map(len, document)
                    per_document.append(len(document))
                if progress:
                    progress(len(per_document), raw.tell() // dtype().itemsize)
        if not per_document:
            raise TextError(f"No text in {', '.join(map(str, paths))}.")
        # A manifest means that all files of the folder are of one text, so the old one is removed first.
        (folder / _MANIFEST).unlink(missing_ok=True)
        _save(folder / "tokens.npy", np.memmap(folder / "tokens.raw", dtype=dtype, mode="r"))
    finally:
        # After an error the file is still mapped into memory, and Windows does not delete it; the error counts.
        with suppress(OSError):
            (folder / "tokens.raw").unlink()
    _save(folder / "sentence_ends.npy", np.cumsum(lengths, dtype=np.int64))
    _save(folder / "document_ends.npy", np.cumsum(per_document, dtype=np.int64))
    write_json(
        folder / _MANIFEST,
        {
            "key": key,
            "documents": len(per_document),
            "sentences": len(lengths),
            "tokens": int(np.sum(lengths)),
            "files": [Path(path).name for path in paths],
            "checksums": {name: checksum(folder / name) for name in _ARRAYS},
        },
    )


def _batches(documents):
    """Lists of consecutive documents with just over `_BATCH_CHARACTERS` characters each."""
    batch, size = [], 0
    for document in documents:
        batch.append(document)
        size += sum(map(len, document))
        if size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _save(path, array):
    with atomic_write(path) as temporary:
        np.save(temporary, array)


def corpus_keys(
    paths: Iterable[str | Path],
    tokenizer: BaseTokenizer,
    max_documents: int | None = None,
    text_field: str = "text",
    language: str = "en",
) -> tuple[str, ...]:
    """Hashes of the text and the settings of a corpus.

    They depend on the names, sizes and ends of the files, the tokenizer, the limit, the field and the language.

    Args: as `prepare_corpus`.

    Returns: tuple of three str, the key of a new corpus and the keys that earlier versions saved: without the file
        ends, and without the signature of the tokenizer.
    """
    sizes = [(Path(path).name, os.path.getsize(path)) for path in paths]
    ends = [[name, size, ends_digest(path, size)] for path, (name, size) in zip(paths, sizes)]
    # Default values are left out, so that the corpora of earlier versions are found.
    other = [] if text_field == "text" else [text_field]
    other += [] if language == "en" else [f"language {language}"]
    other += [] if tokenizer.pipeline is None else [tokenizer.pipeline]
    strips_accents = getattr(tokenizer, "strip_accents", None)
    other += [] if strips_accents in (None, tokenizer.lower_case) else [f"strip_accents {strips_accents}"]
    other += [] if getattr(tokenizer, "tokenize_chinese_chars", True) else ["tokenize_chinese_chars False"]
    signature = [] if tokenizer.cut_signature is None else [tokenizer.cut_signature]
    vocabulary = "\n".join(tokenizer.vocab)
    return tuple(
        hashlib.sha256(
            (json.dumps([facts, tokenizer.lower_case, max_documents, *other, *last]) + vocabulary).encode()
        ).hexdigest()
        for facts, last in ((ends, signature), (sizes, []), (ends, []))
    )
