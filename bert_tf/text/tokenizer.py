"""WordPiece tokenization with character offsets and word ids.

What was matched: ``transformers.BertTokenizer`` of Transformers 5.23, token for token. That class is backed
by the Rust library `tokenizers`; so is this one, with the same parts (`BertNormalizer`, `BertPreTokenizer`,
`WordPiece`), which in turn follow ``tokenization.py`` of google-research/bert. As in Transformers, the
special tokens typed in a text ("[MASK]", "[SEP]", ...) become the special tokens themselves, in exactly
that spelling.

Offsets count characters (code points, so ``text[start:end]`` works) of the text as the user gave it, not of
its normalized form. They differ from those of `tokenizers` in one thing: combining marks that an uncased
tokenizer drops belong to the token they follow ("cafe" + U+0301 is one token of five characters, not four),
so that a page never marks half a letter. Pieces of one letter (the jamo of a Hangul syllable) share that
letter's offsets.

Shapes: T tokens. Sources: Devlin et al. 2018, section 3; Wu et al. 2016, section 4.1 (WordPiece).
"""

import functools
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as RustTokenizer

from bert_tf.text import vocabulary as vocabularies
from bert_tf.text.batch import BatchTokenizer
from bert_tf.text.errors import TextError, check_text
from bert_tf.text.packing import PackedPair, Truncation, pack_pair


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


class Tokenizer:
    """BERT's WordPiece tokenizer, cased or uncased."""

    def __init__(
        self,
        vocab: Sequence[str] | str | Path,
        lower_case: bool | None = None,
        *,
        strip_accents: bool | None = None,
        tokenize_chinese_chars: bool = True,
    ):
        """Make a tokenizer.

        Args:
            vocab: the tokens in order of their ids, or the path of a ``vocab.txt``.
            lower_case: True for uncased models, False for cased ones; None guesses from the vocabulary.
            strip_accents: drop accents; None does so when ``lower_case`` is True, as the original.
            tokenize_chinese_chars: make every CJK ideograph a word of its own, as the original.

        Raises:
            FileNotFoundError: there is no such file.
            VocabularyError: the vocabulary cannot be used (a blank or repeated line, no [MASK], ...).
        """
        is_path = isinstance(vocab, (str, Path))
        self.vocab = vocabularies.read_vocabulary(vocab) if is_path else vocabularies.check_vocabulary(vocab)
        guess = lower_case is None
        self.lower_case = vocabularies.guess_lower_case(self.vocab) if guess else bool(lower_case)
        self.strip_accents = strip_accents
        self.tokenize_chinese_chars = tokenize_chinese_chars
        self._ids = {token: index for index, token in enumerate(self.vocab)}
        self.special_tokens = vocabularies.SPECIAL_TOKENS
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self._ids[token] for token in self.special_tokens
        )
        self.special_ids = frozenset(self._ids[token] for token in self.special_tokens)
        self._drops_marks = self.lower_case if strip_accents is None else strip_accents
        self._rust = self._build_rust()
        self._batch = BatchTokenizer(self._rust, self._fast_options())

    def _build_rust(self) -> RustTokenizer:
        rust = RustTokenizer(models.WordPiece(self._ids, unk_token=vocabularies.UNK))
        rust.normalizer = normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=self.tokenize_chinese_chars,
            strip_accents=self.strip_accents,
            lowercase=self.lower_case,
        )
        rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        rust.decoder = decoders.WordPiece(prefix="##")
        rust.add_special_tokens([AddedToken(token, special=True) for token in self.special_tokens])
        return rust

    def _fast_options(self) -> dict | None:
        # FastBertTokenizer has one switch for lower-casing and accents together, always splits CJK, and would
        # find a token with a space in it across two words.
        spaced = any(token.split() != [token] for token in self.vocab)
        if spaced or self._drops_marks != self.lower_case or not self.tokenize_chinese_chars:
            return None
        return {"vocab": list(self.vocab), "lower_case_nfd_strip_accents": self.lower_case}

    def __reduce__(self):
        # For worker processes: the vocabulary is sent and the rest, which holds locks and caches, made anew.
        options = {"strip_accents": self.strip_accents, "tokenize_chinese_chars": self.tokenize_chinese_chars}
        return functools.partial(type(self), **options), (self.vocab, self.lower_case)

    @classmethod
    def from_folder(cls, folder: str | Path) -> "Tokenizer":
        """Read the tokenizer of a model folder.

        Read are ``vocab.txt`` (without it, ``tokenizer.json``) and ``tokenizer_config.json``. Whether to
        lower-case is taken from ``do_lower_case`` when a file says so, else guessed from the vocabulary.

        Raises:
            FileNotFoundError: the folder holds no vocabulary.
            VocabularyError: a file of the folder cannot be used.
        """
        tokens, options = vocabularies.read_folder(folder)
        return cls(
            tokens,
            options.get("do_lower_case"),
            strip_accents=options.get("strip_accents"),
            tokenize_chinese_chars=options.get("tokenize_chinese_chars", True),
        )

    def save(self, folder: str | Path, model_max_length: int = 512) -> None:
        """Write ``vocab.txt`` and ``tokenizer_config.json``; Transformers and `from_folder` read them."""
        options: dict = {"do_lower_case": self.lower_case, "model_max_length": model_max_length}
        if self.strip_accents is not None:
            options["strip_accents"] = self.strip_accents
        if not self.tokenize_chinese_chars:
            options["tokenize_chinese_chars"] = False
        vocabularies.write_folder(folder, self.vocab, options | {"tokenizer_class": "BertTokenizer"})

    @property
    def vocab_size(self) -> int:
        """Number of tokens in the vocabulary."""
        return len(self.vocab)

    def __repr__(self) -> str:
        return f"Tokenizer({self.vocab_size} tokens, {'uncased' if self.lower_case else 'cased'})"

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
        """Split a text into word pieces.

        Args:
            text: any text.

        Returns:
            Ids, pieces, offsets and word ids; no [CLS] and [SEP] added.

        Raises:
            TextError: not a str, or half a surrogate pair in it (which is no text and has no UTF-8 form).
        """
        check_text(text)
        encoding = self._rust.encode(text, add_special_tokens=False)
        offsets = encoding.offsets
        if offsets and self._drops_marks and not text.isascii():
            offsets = _over_dropped_marks(text, offsets)
        return Tokens(
            ids=np.array(encoding.ids, dtype=np.int32),
            tokens=tuple(encoding.tokens),
            offsets=tuple(offsets),
            word_ids=tuple(encoding.word_ids),
        )

    def encode(self, text_a: str, text_b: str | None = None, max_length: int = 512) -> Encoding:
        """Tokenize and pack: ``[CLS] A [SEP]``, or ``[CLS] A [SEP] B [SEP]``.

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
        cls, sep, none = (vocabularies.CLS,), (vocabularies.SEP,), (None,)
        tokens, offsets = cls + a.tokens + sep, none + a.offsets + none
        word_ids, sources = none + a.word_ids + none, none + ("a",) * len(a) + none
        if b is not None:
            b = b[: len(b) - packed.truncated.tokens_b]
            tokens, offsets = tokens + b.tokens + sep, offsets + b.offsets + none
            word_ids, sources = word_ids + b.word_ids + none, sources + ("b",) * len(b) + none
        ids, segments, truncated = packed
        return Encoding(ids, segments, tokens, offsets, word_ids, sources, truncated)

    def pack_pair(
        self, ids_a: Sequence[int], ids_b: Sequence[int] | None = None, max_length: int = 512
    ) -> PackedPair:
        """Pack token ids with this vocabulary's [CLS] and [SEP]; see `bert_tf.text.packing.pack_pair`."""
        return pack_pair(ids_a, ids_b, max_length, cls_id=self.cls_id, sep_id=self.sep_id)

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
            has_second.append(text_b is not None and text_b != "")
            flat += [text_a, text_b] if has_second[-1] else [text_a]
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


def _over_dropped_marks(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    limits = [start for start, _ in offsets[1:]] + [len(text)]
    widened = []
    for (start, end), limit in zip(offsets, limits, strict=True):
        while end < limit and unicodedata.category(text[end]) == "Mn":
            end += 1
        widened.append((start, end))
    return widened
