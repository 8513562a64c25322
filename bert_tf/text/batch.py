"""Tokenizing many texts."""

from collections.abc import Iterable

import numpy as np

from bert_tf.text.errors import TextError


class BatchTokenizer:
    """Ids of many texts, by the exact path."""

    def __init__(self, exact):
        self._exact = exact

    def ids(self, texts: Iterable[str], path: str) -> list[np.ndarray]:
        """See `Tokenizer.batch_ids`."""
        if path not in ("auto", "exact", "fast"):
            raise TextError(f"path is {path!r}, but must be auto, exact or fast.")
        return [self._exact.tokenize(text).ids for text in texts]
