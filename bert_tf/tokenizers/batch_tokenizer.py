"""Token ids of many texts: tensorflow-text's FastBertTokenizer where it agrees with the exact tokenizer.

FastBertTokenizer differs from BERT's original code in these cases, as a comparison over every Unicode
character showed: control and format characters (it replaces control characters by spaces and keeps zero-width
ones), compatibility characters in uncased text (it folds "ﬁ", "²", "ß" and "…" to "fi", "2", "ss" and
"..."), punctuation, marks and ideographs of newer Unicode versions, special tokens typed in the text (it
splits them), and words of over 100 bytes (BERT counts characters). A text takes the fast path only if it
consists of characters that both tokenizers treat equally and holds no special token and no long word. All
other texts take the exact path.

Source: Song et al. 2021, "Fast WordPiece Tokenization".
"""

import importlib.util
import itertools
import re
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np
from tokenizers import Tokenizer as RustTokenizer

from bert_tf.errors import TextError, check_text
from bert_tf.tokenizers.vocabulary import SPECIAL_TOKENS

# Characters that both tokenizers treat equally, alone and together; tests/tokenizers/test_text_batch.py tries each.
FAST_PATH_CHARACTERS = (
    "\t\n\r -~"
    "¡-§©«¬®°±¶·»¿-Þà-ÿ"  # Latin-1 without the characters that NFKC folds
    "Ā-ıĴ-ľŁ-ňŊ-žȘ-țẠ-ỹ"  # Latin Extended-A, Romanian, Vietnamese
    "ΆΈ-ΊΌΎ-ΡΣ-ρσ-ώЀ-џ"  # Greek without the final sigma, Cyrillic
    "א-תء-غف-ي"  # Hebrew and Arabic letters
    "‐‒-―‘-•′€−"
    "ぁ-ゖァ-ヺ一-鿕"  # kana, CJK ideographs
)
_OTHER_CHARACTERS = re.compile(f"[^{FAST_PATH_CHARACTERS}]")
FastTokenizer = Callable[[list[bytes]], list[np.ndarray]]
_LONGEST_WORD_BYTES = 100
_BYTES_A_CALL = 4_000_000
# Characters below which the exact path ends before tensorflow-text starts: it must be imported, it is imported.
_MUCH_TEXT, _MUCH_TEXT_IF_LOADED = 8_000_000, 200_000


class FastPathError(TextError):
    """The fast path does not support this tokenizer; the exact path gives the same ids."""


class BatchTokenizer:
    """Token ids of many texts, by an exact path and a fast path that give the same ids."""

    def __init__(self, rust: RustTokenizer, fast_options: dict[str, Any] | None):
        """Store the exact tokenizer; the fast tokenizer is created at its first use.

        Args:
            rust: `tokenizers.Tokenizer`. The exact tokenizer.
            fast_options: dict or None. The arguments of an equivalent FastBertTokenizer; None if there is none.
        """
        self._rust = rust
        self._fast_options = fast_options
        self._fast: FastTokenizer | None = None
        self._lock = threading.Lock()

    def ids(self, texts: Iterable[str], path: str = "auto") -> list[np.ndarray]:
        """Return the token ids of many texts; see `bert_tf.tokenizers.Tokenizer.batch_ids`."""
        texts = [texts] if isinstance(texts, str) else list(texts)
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                check_text(text, f"Text {number} of {len(texts)}")
        if path not in ("auto", "exact", "fast"):
            raise TextError(f'path is {path!r}, but must be "auto", "exact" or "fast".')
        if path == "exact" or (path == "auto" and not self._fast_path_pays(texts)):
            return self._exact_ids(texts)
        try:
            fast = self._fast_tokenizer()
        except FastPathError:
            if path == "fast":
                raise
            return self._exact_ids(texts)
        return self._fast_ids(texts, fast)

    def _fast_path_pays(self, texts: Sequence[str]) -> bool:
        if self._fast_options is None:
            return False
        threshold = _MUCH_TEXT_IF_LOADED if "tensorflow_text" in sys.modules else _MUCH_TEXT
        if sum(map(len, texts)) < threshold:
            return False
        return importlib.util.find_spec("tensorflow_text") is not None

    def _exact_ids(self, texts: Sequence[str], numbers: Sequence[int] | None = None) -> list[np.ndarray]:
        try:
            encodings = self._rust.encode_batch_fast(texts, add_special_tokens=False)
        except (TypeError, UnicodeEncodeError):
            for number, text in zip(numbers or range(len(texts)), texts, strict=True):
                check_text(text, f"Text {number}")
            raise
        return [np.array(encoding.ids, dtype=np.int32) for encoding in encodings]

    def _fast_ids(self, texts: Sequence[str], fast: FastTokenizer) -> list[np.ndarray]:
        result: list[np.ndarray | None] = [None] * len(texts)
        exact_numbers, numbers, chunk, size = [], [], [], 0
        for number, text in enumerate(texts):
            data = fast_path_bytes(text)
            if data is None:
                exact_numbers.append(number)
                continue
            numbers.append(number)
            chunk.append(data)
            size += len(data)
            if size >= _BYTES_A_CALL:
                _scatter(fast(chunk), numbers, result)
                numbers, chunk, size = [], [], 0
        if chunk:
            _scatter(fast(chunk), numbers, result)
        if exact_numbers:
            exact_ids = self._exact_ids([texts[number] for number in exact_numbers], exact_numbers)
            _scatter(exact_ids, exact_numbers, result)
        return cast(list[np.ndarray], result)  # every place is filled

    def _fast_tokenizer(self) -> FastTokenizer:
        with self._lock:
            if self._fast is None:
                self._fast = _make_fast(self._fast_options)
            return self._fast


def fast_path_bytes(text: str) -> bytes | None:
    """Return the UTF-8 bytes of a text that both tokenizers treat equally, None for any other text."""
    if not (text.isascii() and text.isprintable()) and _OTHER_CHARACTERS.search(text):
        return None
    if "[" in text and any(token in text for token in SPECIAL_TOKENS):
        return None
    data = text.encode("utf-8")
    end = len(data)
    start = 0
    while end - start > _LONGEST_WORD_BYTES:
        # If every window of 101 bytes holds a space, no word is longer than 100 bytes.
        start = data.rfind(b" ", start, start + _LONGEST_WORD_BYTES + 1) + 1
        if start == 0:
            return None
    return data


def _scatter(values: Iterable[np.ndarray], numbers: Sequence[int], result: list[np.ndarray | None]) -> None:
    for number, ids in zip(numbers, values, strict=True):
        result[number] = ids


def _make_fast(options: dict[str, Any] | None) -> FastTokenizer:
    if options is None:
        raise FastPathError(
            "The fast path cannot strip accents without lower-casing, lower-case without stripping accents, keep "
            'Chinese characters together, or use tokens that contain spaces: use path="exact" here.'
        )
    try:
        import tensorflow as tf
        import tensorflow_text
    except ImportError as error:
        raise FastPathError(f'The fast path needs tensorflow-text ({error}): install it or use path="exact".') from None
    try:
        with tf.device("/CPU:0"):
            tokenizer = tensorflow_text.FastBertTokenizer(token_out_type=tf.int32, **options)
    except RuntimeError as error:
        raise FastPathError(
            f'tensorflow-text cannot use this vocabulary ({error}): use path="exact" with it.'
        ) from None

    def tokenize(chunk: list[bytes]) -> list[np.ndarray]:
        with tf.device("/CPU:0"):
            ragged = tokenizer.tokenize(tf.constant(chunk, dtype=tf.string))
            flat, ends = ragged.flat_values.numpy(), ragged.row_splits.numpy().tolist()
        return [flat[start:end] for start, end in itertools.pairwise(ends)]

    return tokenize
