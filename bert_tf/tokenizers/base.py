"""The interface that all tokenizers share, over the Rust library `tokenizers`.

Shapes: T tokens.
"""

import copy
import functools
import json
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from tokenizers import AddedToken, PreTokenizedString, normalizers, pre_tokenizers
from tokenizers import Tokenizer as RustTokenizer

from bert_tf.errors import TextError, VocabularyError
from bert_tf.tokenizers.batch_tokenizer import BatchTokenizer
from bert_tf.tokenizers.packing import Ids, PackedPair, Truncation, pack_pair


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of one text, without [CLS] and [SEP] around them.

    Attributes:
        ids: int32 [T]. The token ids.
        tokens: tuple of str. The pieces as the vocabulary spells them ("##ing"); "[UNK]" for an unknown word.
        offsets: tuple of (int, int). (start, end) in characters of the original text.
        word_ids: tuple of int. The number of the word that each piece belongs to. Spaces separate words;
            every punctuation mark, CJK ideograph and typed special token is one word. A piece of several ideographs
            belongs to the first. Byte-level tokenizers have the words of GPT-2, in which letters, digits and other
            characters are apart.
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
    """One text or pair, packed for the model. Every attribute but `truncated` has T entries.

    Attributes:
        token_ids: int32 [T]. The token ids.
        segment_ids: int32 [T]. 0 for [CLS] A [SEP], 1 for B [SEP].
        tokens: tuple of str. The pieces as the vocabulary spells them.
        offsets: tuple of (int, int) or None. (start, end) in characters of the token's text; None for the added
            [CLS] and [SEP].
        word_ids: tuple of int or None. The token's word, counted from 0 in A and from 0 in B; None for the added
            [CLS] and [SEP].
        sources: tuple of "a", "b" or None. The text of the token; None for the added [CLS] and [SEP].
        truncated: `Truncation`. How many tokens were cut from the end of A and of B.
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


# The attributes that decide how text is cut and packed, besides `cut_signature`.
_DECIDING = (
    *("vocab", "special_tokens", "pipeline", "lower_case", "strips_accents", "tokenize_chinese_chars"),
    *("separators_between", "second_segment"),
)


class BaseTokenizer:
    """Text to token ids and back. The subclasses split the text.

    Attributes:
        vocab: tuple of str. The V tokens in order of their ids, readable and all different. Rows of the embedding
            table that belong to no token have a placeholder at the end.
        token_count: int. The number of tokens without such placeholders.
        spellings: tuple of str. The same tokens in BERT's spelling: a piece that continues a word begins with "##".
        special_tokens: tuple of str. Padding, unknown, beginning, separator and mask token, in this order.
        pad_id, unk_id, cls_id, sep_id, mask_id: int. The ids of the special tokens.
        special_ids: frozenset of int. All ids of special tokens.
        lower_case: bool. Whether the text is lower-cased.
        pipeline: str or None. The ``tokenizer.json`` of a WordPiece tokenizer that cuts text otherwise than BERT's.
        separators_between: int. The number of separators between the texts of a pair.
        second_segment: int. The segment id of the second text.
    """

    separators_between = 1
    second_segment = 1
    lower_case = False
    pipeline: str | None = None

    def _set_up(
        self,
        rust: RustTokenizer,
        vocab: Sequence[str],
        special_tokens: Sequence[str],
        fast_options: dict[str, Any] | None = None,
    ) -> None:
        self.vocab = tuple(vocab)
        self._ids = {token: index for index, token in enumerate(self.vocab)}
        self.special_tokens = tuple(special_tokens)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            self._ids[token] for token in self.special_tokens
        )
        marked = {index for index, token in rust.get_added_tokens_decoder().items() if token.special}
        self.special_ids = frozenset(marked | {self._ids[token] for token in self.special_tokens})
        self.token_count = len(self.vocab)
        self.separators_between, self.second_segment = pair_packing(rust) or (
            self.separators_between,
            self.second_segment,
        )
        self._rust = rust
        self._batch = BatchTokenizer(rust, fast_options)

    def with_rows(self, rows: int) -> Self:
        """Return this tokenizer with placeholders, so that the vocabulary has `rows` entries.

        Embedding tables are often padded to a multiple of 8 or 64. No text becomes a placeholder.

        Args:
            rows: int. The rows of the token embedding table, at least `vocab_size`.
        """
        if rows == len(self.vocab):
            return self
        padded = copy.copy(self)
        padded._add_rows(tuple(f"[unused row {row}]" for row in range(len(self.vocab), rows)))
        return padded

    def with_words(self, words: Sequence[str]) -> Self:
        """Return this tokenizer, without placeholders, with more tokens, which are never split.

        A word of letters and digits is found only as a whole word; any other (such as "[E1]") also inside one.

        Args:
            words: sequence of str. Words that are no tokens yet; they get the next ids.
        """
        rust = RustTokenizer.from_str(self._rust.to_str())
        takes_space = self._words_take_space
        rust.add_tokens([AddedToken(word, single_word=word.isalnum(), lstrip=takes_space) for word in words])
        return self._with_pipeline(rust, (*self.vocab[: self.token_count], *words))

    #: Whether a space belongs to the token after it, so that an added word has to include it.
    _words_take_space = True

    def _with_pipeline(self, rust: RustTokenizer, vocab: tuple[str, ...]) -> Self:
        """This tokenizer with another pipeline and its vocabulary."""
        raise TypeError(f"{type(self).__name__} cannot be extended: use one of its subclasses.")

    def _add_rows(self, placeholders: tuple[str, ...]) -> None:
        self.vocab += placeholders

    def _arguments(self) -> tuple[Callable[..., "BaseTokenizer"], tuple[Any, ...]]:
        """A function and its arguments that make this tokenizer again, without placeholders."""
        raise TypeError(f"{type(self).__name__} cannot be copied: use one of its subclasses.")

    @property
    def cut_signature(self) -> str | None:
        """A hash of all that decides how text is cut; None for WordPiece, where `pipeline` and the options say it."""
        return None

    def cuts_alike(self, other: "BaseTokenizer") -> bool:
        """Return whether another tokenizer has the same tokens, and cuts and packs every text in the same way."""
        return (
            all(getattr(self, name, None) == getattr(other, name, None) for name in _DECIDING)
            and self.cut_signature == other.cut_signature  # last: it takes half a second for a large vocabulary
        )

    def __reduce__(self):
        # For worker processes: only the vocabulary and options are sent; locks and caches are created again.
        make, arguments = self._arguments()
        return _made_again, (make, arguments, len(self.vocab))

    @property
    def mask_token(self) -> str:
        """The token that replaces a masked word."""
        return self.vocab[self.mask_id]

    @property
    def spellings(self) -> tuple[str, ...]:
        """The V tokens in BERT's spelling, in order of their ids."""
        return self.vocab

    def spelling(self, token: str) -> str:
        """Return a token in BERT's spelling; a text that is not a token is returned unchanged."""
        index = self._ids.get(token)
        return token if index is None else self.spellings[index]

    @functools.cached_property
    def _ids_of_spellings(self) -> dict[str, int]:
        # From the end: of several tokens of one spelling the first counts.
        return {spelling: index for index, spelling in reversed(list(enumerate(self.spellings)))}

    def find_token(self, name: str) -> int | None:
        """Return the id of a token by its spelling in `spellings` or, if none is spelled so, in `vocab`; else None."""
        return self._ids_of_spellings.get(name, self._ids.get(name))

    def normalize_mask_token(self, text: str) -> str:
        """Return the text with "[MASK]" replaced by this vocabulary's mask token, if both have the same length.

        The number of characters does not change, so offsets stay valid.
        """
        return text.replace("[MASK]", self.mask_token) if len(self.mask_token) == len("[MASK]") else text

    @property
    def vocab_size(self) -> int:
        """Number of tokens in the vocabulary."""
        return len(self.vocab)

    def id_to_token(self, index: int) -> str:
        """Return the token with this id.

        Raises:
            TextError: the id is not in the vocabulary.
        """
        if not 0 <= index < len(self.vocab):
            raise TextError(f"There is no token with id {index}: ids run from 0 to {len(self.vocab) - 1}.")
        return self.vocab[index]

    def token_to_id(self, token: str) -> int:
        """Return the id of a token, or the id of [UNK] if the token is not in the vocabulary."""
        return self._ids.get(token, self.unk_id)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def tokenize(self, text: str) -> Tokens:
        """Split a text into pieces; see the subclasses."""
        raise TypeError(f"{type(self).__name__} cannot split a text: use one of its subclasses.")

    def save(self, folder: str | Path, model_max_length: int = 512) -> None:
        """Write the files that `read_tokenizer` reads; see the subclasses."""
        raise TypeError(f"{type(self).__name__} cannot be saved: use one of its subclasses.")

    def encode(self, text_a: str, text_b: str | None = None, max_length: int = 512) -> Encoding:
        """Tokenize and pack: ``[CLS] A [SEP]`` or ``[CLS] A [SEP] B [SEP]`` (RoBERTa: two separators between).

        Args:
            text_a: str. The first text.
            text_b: str or None. The second text; None or empty for a single text, as in Transformers.
            max_length: int. The largest number of tokens. A longer sequence is cut longest-first; the cut is
                reported in ``truncated``.

        Returns:
            `Encoding` of T tokens.

        Raises:
            TextError: a text is not valid text, or ``max_length`` is too small for the special tokens.
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
            extra = self.separators_between - 1
            tokens, offsets = tokens + sep * extra + b.tokens + sep, offsets + none * extra + b.offsets + none
            word_ids = word_ids + none * extra + b.word_ids + none
            sources = sources + none * extra + ("b",) * len(b) + none
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
        """Return the token ids of many texts, without [CLS] and [SEP]. They equal the ids of `tokenize`.

        Args:
            texts: iterable of str. The texts.
            path: str. "exact" uses the tokenizer of `tokenize`. "fast" uses tensorflow-text; texts that it could
                tokenize differently still take the exact path. "auto" chooses "fast" for large inputs if
                tensorflow-text is installed.

        Returns:
            List with one int32 [T] per text.

        Raises:
            TextError: a text is not valid text (the message names it), ``path`` is unknown, or ``path`` is "fast"
                and tensorflow-text is not installed or does not support this tokenizer.
        """
        return self._batch.ids(texts, path)

    def encode_batch(
        self, pairs: Iterable[str | tuple[str, str | None]], max_length: int = 512, path: str = "auto"
    ) -> list[PackedPair]:
        """Tokenize and pack many texts or pairs, ids only; see `encode` and `batch_ids`.

        Args:
            pairs: iterable of str or (str, str or None). Single texts, or pairs (text_a, text_b); text_b is None
                or empty for a single text. A str is one text.
            max_length: int. The largest number of tokens in each sequence.
            path: str. As in `batch_ids`.

        Returns:
            List with one `PackedPair` per text or pair: token ids, segment ids and truncation.

        Raises:
            TextError: a text is not valid text, an entry is no text and no pair, or ``max_length`` is too small.
        """
        flat: list[str] = []
        has_second = []
        for pair in [pairs] if isinstance(pairs, str) else pairs:
            try:
                text_a, text_b = (pair, None) if isinstance(pair, str) else pair
            except (TypeError, ValueError):
                raise TextError(f"Give texts or pairs (text_a, text_b), not {pair!r:.60}.") from None
            texts = [text_a] if text_b is None or text_b == "" else [text_a, text_b]
            has_second.append(len(texts) == 2)
            flat += texts
        ids = iter(self.batch_ids(flat, path))
        return [self.pack_pair(next(ids), next(ids) if second else None, max_length) for second in has_second]

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = False) -> str:
        """Join token ids to a readable text, as Transformers does. It can differ from the original text.

        Args:
            ids: iterable of int. The token ids.
            skip_special_tokens: bool. Whether to leave out [CLS], [SEP], [MASK], [PAD] and [UNK].

        Raises:
            TextError: an id is not in the vocabulary.
        """
        ids = [int(index) for index in ids]
        for index in ids:
            self.id_to_token(index)
        return self._rust.decode(ids, skip_special_tokens=skip_special_tokens)


def _made_again(make, arguments, rows):
    return make(*arguments).with_rows(rows)


def load_pipeline(settings: str) -> RustTokenizer:
    """Return the tokenizer of the library `tokenizers` for the content of a ``tokenizer.json``.

    Raises:
        VocabularyError: the library cannot use it.
    """
    try:
        rust = RustTokenizer.from_str(settings)
    except Exception as error:  # the Rust library raises plain Exception
        raise VocabularyError(f"This is not a tokenizer of the library tokenizers: {error}.") from None
    rust.no_truncation()
    rust.no_padding()
    return rust


def pair_packing(rust: RustTokenizer) -> tuple[int, int] | None:
    """Return the separators between the texts of a pair and the segment id of the second, as a tokenizer packs them.

    Returns:
        (int, int), or None if it has no post-processor that packs pairs.
    """
    if rust.post_processor is None:
        return None
    state = json.loads(rust.post_processor.__getstate__())
    for processor in (state, *state.get("processors", ())):
        if processor["type"] == "BertProcessing":
            return 1, 1
        if processor["type"] == "RobertaProcessing":
            return 2, 0
        if processor["type"] == "TemplateProcessing":
            (kinds, parts) = zip(*(next(iter(part.items())) for part in processor["pair"]), strict=True)
            places = [place for place, kind in enumerate(kinds) if kind == "Sequence"]
            if len(places) == 2:
                first, second = places
                return second - first - 1, parts[second]["type_id"]
    return None


# They put spaces around CJK ideographs, and then cut at spaces and punctuation; they change nothing else.
_PARTED = normalizers.BertNormalizer(clean_text=False, strip_accents=False, lowercase=False)
_AT_SPACES = pre_tokenizers.BertPreTokenizer()


def bert_words(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) of the words into which BERT cuts a text: each mark and CJK ideograph is one of them."""
    parts = PreTokenizedString(text)
    parts.normalize(_PARTED.normalize)
    _AT_SPACES.pre_tokenize(parts)
    return [span for _, span, _ in parts.get_splits()]


def extend_over_combining_marks(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Extend each offset over the combining marks that follow its token and that the tokenizer dropped or composed."""
    limits = [start for start, _ in offsets[1:]] + [len(text)]
    widened = []
    for (start, end), limit in zip(offsets, limits, strict=True):
        while end < limit and unicodedata.category(text[end]).startswith("M"):
            end += 1
        widened.append((start, end))
    return widened
