"""A tokenized corpus on disk: every document's sentences as token ids, memory-mapped, found by number.

Three flat NumPy files beside a manifest: `tokens.npy` (uint16 or int32), `sentence_ends.npy` and
`document_ends.npy` (int64; ends counted in tokens and in sentences). A training run reads it in any order
without holding it in memory. The files of a corpus are replaced, never written over: a run that reads the old ones
goes on with them.
"""

import hashlib
import itertools
import json
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from bert_tf.files import atomic_write, write_json
from bert_tf.pretraining.data.documents import (
    TextError,
    ends_digest,
    read_documents,
    sentences,
)

# Characters of documents that are tokenized at once.
_BATCH_CHARACTERS = 2_000_000
# Tokens that are counted at once: NumPy counts in a copy of 8 bytes each.
_COUNTED_AT_ONCE = 1 << 22
_MANIFEST, _LOCK = "manifest.json", ".lock"


class TokenCorpus:
    """Documents as lists of sentences of token ids.

    Args:
        folder: made by `prepare_corpus`.

    Raises: TextError if the folder is not a prepared corpus.
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        try:
            self.manifest = json.loads((self.folder / _MANIFEST).read_text(encoding="utf-8"))
            if not isinstance(self.manifest, dict):
                raise ValueError(f"{_MANIFEST} holds no object")
            self._tokens, self._sentence_ends, self._document_ends = (
                np.asarray(np.load(self.folder / f"{name}.npy", mmap_mode="r"))
                for name in ("tokens", "sentence_ends", "document_ends")
            )
        except (OSError, ValueError) as error:
            raise TextError(
                f"{folder} is not a prepared corpus ({error}); make one with "
                f"`python -m bert_tf pretrain --text FILE …`."
            ) from error

    def __len__(self):
        return len(self._document_ends)

    @cached_property
    def document_tokens(self):
        """The number of tokens of each document: int64 [documents]."""
        return np.diff(self._sentence_ends[self._document_ends - 1], prepend=0)

    def document(self, number):
        """The sentences of one document: a sequence of int32 arrays [tokens of the sentence].

        They are read when they are asked for: of a whole book often a few are.
        """
        first = self._document_ends[number - 1] if number else 0
        start = self._sentence_ends[first - 1] if first else 0
        return _Sentences(self._tokens, start, self._sentence_ends[first : self._document_ends[number]])

    def log_frequencies(self, vocab_size):
        """Natural log of each token's share, add-one smoothed: float32 [V]. The start of an MLM head's bias."""
        counts = np.ones(vocab_size)
        for start in range(0, len(self._tokens), _COUNTED_AT_ONCE):
            counts += np.bincount(self._tokens[start : start + _COUNTED_AT_ONCE], minlength=vocab_size)
        return np.log(counts / counts.sum()).astype(np.float32)


class _Sentences(Sequence):
    """Sentences that follow one another in a flat array.

    Args: tokens: of all. start: where the first one begins. ends: int array, where each ends.
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
    """Documents as lists of sentences of token ids, in memory: list of lists of integer arrays.

    Args: documents: those. sources: None, or a number for each, ascending, equal for parts of what was one document.
    """

    def __init__(self, documents, sources=None):
        self._documents, self.sources = documents, sources

    def __len__(self):
        return len(self._documents)

    def document(self, number):
        """The sentences of one document: list of integer arrays [tokens of the sentence]."""
        return self._documents[number]


def tokenize_documents(documents, tokenizer, language="en"):
    """The sentences of documents as token ids; those without a token are left out, and documents too.

    Args:
        documents: lists of str, the paragraphs of each. tokenizer: a `text.Tokenizer`.
        language: of the sentence splitter, a code like "en".

    Returns: list of lists of int32 arrays.
    """
    return [document for document in tokenize_all(documents, tokenizer, language) if document]


def tokenize_all(documents, tokenizer, language="en"):
    """`tokenize_documents`, with an empty list for a document that has no token."""
    split = [[s for paragraph in document for s in sentences(paragraph, language)] for document in documents]
    ids = iter(tokenizer.batch_ids([s for document in split for s in document]))
    return [[row for row in itertools.islice(ids, len(document)) if len(row)] for document in split]


def prepare_corpus(paths, tokenizer, folder, max_documents=None, progress=None, text_field="text", language="en"):
    """Tokenizes text files into a `TokenCorpus`; does nothing if that was done already with the same settings.

    Of several processes at once one tokenizes, and the others wait for it.

    Args:
        paths: files for `read_documents`. tokenizer: a `text.Tokenizer`. folder: where to write.
        max_documents: stop after so many. progress: called with (documents, tokens) now and then.
        text_field: where JSON lines have their text. language: of the sentence splitter, a code like "en".

    Returns: the `TokenCorpus`.

    Raises: TextError if the files hold no text.
    """
    from filelock import FileLock

    folder = Path(folder)
    keys = corpus_keys(paths, tokenizer, max_documents, text_field, language)
    if (found := _made(folder, keys)) is None:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / _LOCK):
            if (found := _made(folder, keys)) is None:
                _make(folder, keys[0], paths, tokenizer, max_documents, progress, text_field, language)
                found = TokenCorpus(folder)
    return found


def _made(folder, keys):
    """The `TokenCorpus` of a folder, None where there is none or one of other text."""
    try:
        found = TokenCorpus(folder)
        # Looked at again: another process may have replaced the files while they were opened.
        key, again = found.manifest.get("key"), TokenCorpus(folder).manifest.get("key")
    except TextError:
        return None
    return found if key == again and key in keys else None


def _make(folder, key, paths, tokenizer, max_documents, progress, text_field, language):
    dtype = np.uint16 if tokenizer.vocab_size <= 1 << 16 else np.int32
    lengths, per_document = [], []
    try:
        with open(folder / "tokens.raw", "wb") as raw:
            documents = itertools.islice(read_documents(paths, text_field), max_documents)
            for batch in _batches(documents):
                for kept in tokenize_documents(batch, tokenizer, language):
                    np.concatenate(kept).astype(dtype).tofile(raw)
                    lengths += map(len, kept)
                    per_document.append(len(kept))
                if progress:
                    progress(len(per_document), raw.tell() // dtype().itemsize)
        if not per_document:
            raise TextError(f"No text in {', '.join(map(str, paths))}.")
        # The manifest says that all the files beside it are of one text.
        (folder / _MANIFEST).unlink(missing_ok=True)
        _save(folder / "tokens.npy", np.memmap(folder / "tokens.raw", dtype=dtype, mode="r"))
    finally:
        (folder / "tokens.raw").unlink(missing_ok=True)
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
        },
    )


def _batches(documents):
    """Documents that follow one another, in lists of `_BATCH_CHARACTERS` or just over."""
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


def corpus_keys(paths, tokenizer, max_documents=None, text_field="text", language="en"):
    """Texts that change with the files' names, sizes and ends, the vocabulary, the limit, the field, or the language.

    Args: as `prepare_corpus`.

    Returns: (the key of a corpus made now, the one that earlier versions noted, without the files' ends).
    """
    sizes = [(Path(path).name, os.path.getsize(path)) for path in paths]
    ends = [[*one, ends_digest(path, one[1])] for path, one in zip(paths, sizes)]
    # What is as ever stays out, so that corpora of before are found again.
    other = [] if text_field == "text" else [text_field]
    other += [] if language == "en" else [f"language {language}"]
    rest = "\n".join(tokenizer.vocab)
    return tuple(
        hashlib.sha256((json.dumps([facts, tokenizer.lower_case, max_documents, *other]) + rest).encode()).hexdigest()
        for facts in (ends, sizes)
    )
