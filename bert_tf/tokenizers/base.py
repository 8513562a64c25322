"""What every tokenizer of the family does alike: one interface over the Rust library `tokenizers`.

Shapes: T tokens.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer as RustTokenizer

from bert_tf.errors import TextError
from bert_tf.tokenizers.batch_tokenizer import BatchTokenizer
from bert_tf.tokenizers.packing import Ids, PackedPair, Truncation, pack_pair


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of one text, without [CLS] and [SEP] around them.

    Attributes:
        ids: int32 [T].
        tokens: the pieces as they stand in the vocabulary ("##ing"), "[UNK]" for what cannot be spelled.
        offsets: (start, end) in characters of the user's own text.
        word_ids: number of the word each piece belongs to. Spaces separate words; a punctuation mark, a CJK
            character and a typed special token is a word of its own.
    """

    ids: np.ndarray
    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]
    word_ids: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, part: slice) -> "Tokens":
        return Tokens(self.ids[part], self.tokens[part], self.offsets[part], self.word_ids[part])


@dataclass(frozen=True, eq=False)
class Encoding:
    """One text or pair, packed for the model; everything has T entries, in order.

    Attributes:
        token_ids: int32 [T].
        segment_ids: int32 [T]: 0 for [CLS] A [SEP], 1 for B [SEP].
        tokens: the pieces as they stand in the vocabulary.
        offsets: (start, end) in characters of the token's text; None for the added [CLS] and [SEP].
        word_ids: the token's word, counted from 0 in A and again in B; None for the added [CLS] and [SEP].
        sources: "a", "b", or None for the added [CLS] and [SEP].
        truncated: how many tokens were cut from the end of A and of B.
    """

    token_ids: np.ndarray
    segment_ids: np.ndarray
    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int] | None, ...]
    word_ids: tuple[int | None, ...]
    sources: tuple[str | None, ...]
    truncated: Truncation

    @property
    def length(self) -> int:
        """T, the number of tokens with [CLS] and [SEP]."""
        return len(self.tokens)


class BaseTokenizer:
    """Text to token ids and back; the ways of splitting a text are its subclasses.

    Attributes:
        vocab: the V tokens in order of their ids, readable and each another.
        spellings: the same in BERT's spelling: a piece that goes on a word begins with "##".
        special_tokens: padding, unknown, beginning, separator, mask, in this order.
        pad_id, unk_id, cls_id, sep_id, mask_id: their ids; `special_ids` all of them.
        lower_case: whether capital letters are lost.
        separators_between: separators between the texts of a pair. second_segment: segment id of the second.
    """

    separators_between = 1
    second_segment = 1
    lower_case = False

    def _set_up(
        self, rust: RustTokenizer, vocab: Sequence[str], special_tokens: Sequence[str], fast_options: dict | None = None
    ) -> None:
        self.vocab = tuple(vocab)
        self._ids = {token: index for index, token in enumerate(self.vocab)}
        self.special_tokens = tuple(special_tokens)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self._ids[token] for token in self.special_tokens
        )
        self.special_ids = frozenset(self._ids[token] for token in self.special_tokens)
        self._rust = rust
        self._batch = BatchTokenizer(rust, fast_options)

    @property
    def mask_token(self) -> str:
        """What stands in a text for a hidden word."""
        return self.vocab[self.mask_id]

    @property
    def spellings(self) -> tuple[str, ...]:
        return self.vocab

    def spelling(self, token: str) -> str:
        """A token in BERT's spelling; text that is no token stays as it is."""
        index = self._ids.get(token)
        return token if index is None else self.spellings[index]

    def normalize_mask_token(self, text: str) -> str:
        """The text with "[MASK]" as this vocabulary writes it; as many characters as before."""
        return text.replace("[MASK]", self.mask_token) if len(self.mask_token) == len("[MASK]") else text

    @property
    def vocab_size(self) -> int:
        """Number of tokens in the vocabulary."""
        return len(self.vocab)

    def id_to_token(self, index: int) -> str:
        """Return the token with this id.

        Raises:
            TextError: the vocabulary has no such id.
        """
        if not 0 <= index < len(self.vocab):
            raise TextError(f"There is no token with id {index}: ids run from 0 to {len(self.vocab) - 1}.")
        return self.vocab[index]

    def token_to_id(self, token: str) -> int:
        """Return the id of a token; the id of [UNK] when it is not in the vocabulary."""
        return self._ids.get(token, self.unk_id)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def tokenize(self, text: str) -> Tokens:
        """Split a text into pieces; see the subclasses."""
        raise TypeError(f"{type(self).__name__} splits no text: use one of its subclasses.")

    def save(self, folder: str | Path, model_max_length: int = 512) -> None:
        """Write the files that `read_tokenizer` reads; see the subclasses."""
        raise TypeError(f"{type(self).__name__} has no files: use one of its subclasses.")

    def encode(self, text_a: str, text_b: str | None = None, max_length: int = 512) -> Encoding:
        """Tokenize and pack: ``[CLS] A [SEP]``, or ``[CLS] A [SEP] B [SEP]`` (two [SEP] between in RoBERTa).

        Args:
            text_a: first text.
            text_b: second text; None or empty for a single text, as in Transformers.
            max_length: greatest number of tokens; what is over is cut longest-first, see ``truncated``.

        Raises:
            TextError: something that is no text, or ``max_length`` too small for the special tokens.
        """
        a = self.tokenize(text_a)
        b = None if text_b is None or text_b == "" else self.tokenize(text_b)
        packed = self.pack_pair(a.ids, None if b is None else b.ids, max_length)
        a = a[: len(a) - packed.truncated.tokens_a]
        cls, sep, none = (self.vocab[self.cls_id],), (self.vocab[self.sep_id],), (None,)
        tokens, offsets = cls + a.tokens + sep, none + a.offsets + none
        word_ids, sources = none + a.word_ids + none, none + ("a",) * len(a) + none
        if b is not None:
            b = b[: len(b) - packed.truncated.tokens_b]
            more = self.separators_between - 1
            tokens, offsets = tokens + sep * more + b.tokens + sep, offsets + none * more + b.offsets + none
            word_ids = word_ids + none * more + b.word_ids + none
            sources = sources + none * more + ("b",) * len(b) + none
        ids, segments, truncated = packed
        return Encoding(ids, segments, tokens, offsets, word_ids, sources, truncated)

    def pack_pair(self, ids_a: Ids, ids_b: Ids | None = None, max_length: int = 512) -> PackedPair:
        """Pack token ids with this vocabulary's [CLS] and [SEP]; see `bert_tf.tokenizers.packing.pack_pair`."""
        return pack_pair(
            ids_a,
            ids_b,
            max_length,
            cls_id=self.cls_id,
            sep_id=self.sep_id,
            between=self.separators_between,
            second_segment=self.second_segment,
        )

    def batch_ids(self, texts: Iterable[str], path: str = "auto") -> list[np.ndarray]:
        """Tokenize many texts, ids only, no [CLS] and [SEP]; the ids are those of `tokenize`.

        Args:
            texts: the texts.
            path: "exact" for the tokenizer of `tokenize`, "fast" for tensorflow-text (texts in which it could
                differ still take the exact path), "auto" for "fast" when there is much text and
                tensorflow-text is installed.

        Returns:
            For every text int32 [T].

        Raises:
            TextError: something that is no text (the message tells which one), an unknown ``path``, or "fast"
                when tensorflow-text is not installed or cannot do what this tokenizer does.
        """
        return self._batch.ids(texts, path)

    def encode_batch(
        self, pairs: Iterable[str | tuple[str, str | None]], max_length: int = 512, path: str = "auto"
    ) -> list[PackedPair]:
        """Tokenize and pack many texts or pairs, ids only; see `encode` and `batch_ids`.

        Args:
            pairs: single texts, or (text_a, text_b) with text_b None or empty for a single text.
            max_length: greatest number of tokens of each.
            path: as in `batch_ids`.

        Returns:
            For every pair the token ids, segment ids and truncation.

        Raises:
            TextError: something that is no text, or ``max_length`` too small.
        """
        flat: list[str] = []
        has_second = []
        for pair in pairs:
            text_a, text_b = (pair, None) if isinstance(pair, str) else pair
            texts = [text_a] if text_b is None or text_b == "" else [text_a, text_b]
            has_second.append(len(texts) == 2)
            flat += texts
        ids = iter(self.batch_ids(flat, path))
        return [self.pack_pair(next(ids), next(ids) if second else None, max_length) for second in has_second]

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = False) -> str:
        """Join token ids to a readable text, as Transformers does; not always the text they came from.

        Args:
            ids: token ids.
            skip_special_tokens: leave out [CLS], [SEP], [MASK], [PAD] and [UNK].

        Raises:
            TextError: the vocabulary has no such id.
        """
        ids = [int(index) for index in ids]
        for index in ids:
            self.id_to_token(index)
        return self._rust.decode(ids, skip_special_tokens=skip_special_tokens)


def extend_over_combining_marks(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Offsets that go on over the combining marks after each token, which the tokenizer dropped."""
    limits = [start for start, _ in offsets[1:]] + [len(text)]
    widened = []
    for (start, end), limit in zip(offsets, limits, strict=True):
        while end < limit and unicodedata.category(text[end]) == "Mn":
            end += 1
        widened.append((start, end))
    return widened
