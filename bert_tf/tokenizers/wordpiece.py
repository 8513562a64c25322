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
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as RustTokenizer

from bert_tf.errors import check_text
from bert_tf.tokenizers import vocabulary as vocabularies
from bert_tf.tokenizers.base import BaseTokenizer, Tokens, extend_over_combining_marks


class Tokenizer(BaseTokenizer):
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
        if isinstance(vocab, (str, Path)):
            vocab = vocabularies.read_vocabulary(vocab)
        else:
            vocab = vocabularies.check_vocabulary(vocab)
        guess = lower_case is None
        self.lower_case = vocabularies.guess_lower_case(vocab) if guess else bool(lower_case)
        self.strip_accents = strip_accents
        self.tokenize_chinese_chars = tokenize_chinese_chars
        self._drops_marks = self.lower_case if strip_accents is None else strip_accents
        self._set_up(self._build_rust(vocab), vocab, vocabularies.SPECIAL_TOKENS, self._fast_options(vocab))

    def _build_rust(self, vocab: Sequence[str]) -> RustTokenizer:
        ids = {token: index for index, token in enumerate(vocab)}
        rust = RustTokenizer(models.WordPiece(ids, unk_token=vocabularies.UNK))
        rust.normalizer = normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=self.tokenize_chinese_chars,
            strip_accents=self.strip_accents,
            lowercase=self.lower_case,
        )
        rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        rust.decoder = decoders.WordPiece(prefix="##")
        rust.add_special_tokens([AddedToken(token, special=True) for token in vocabularies.SPECIAL_TOKENS])
        return rust

    def _fast_options(self, vocab: Sequence[str]) -> dict | None:
        # FastBertTokenizer has one switch for lower-casing and accents together, always splits CJK, and would
        # find a token with a space in it across two words.
        spaced = any(token.split() != [token] for token in vocab)
        if spaced or self._drops_marks != self.lower_case or not self.tokenize_chinese_chars:
            return None
        return {"vocab": list(vocab), "lower_case_nfd_strip_accents": self.lower_case}

    def __reduce__(self):
        # For worker processes: the vocabulary is sent and the rest, which holds locks and caches, made anew.
        make = functools.partial(
            type(self), strip_accents=self.strip_accents, tokenize_chinese_chars=self.tokenize_chinese_chars
        )
        return make, (self.vocab, self.lower_case)

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

    def __repr__(self) -> str:
        return f"Tokenizer({self.vocab_size} tokens, {'uncased' if self.lower_case else 'cased'})"

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
            offsets = extend_over_combining_marks(text, offsets)
        return Tokens(
            ids=np.array(encoding.ids, dtype=np.int32),
            tokens=tuple(encoding.tokens),
            offsets=tuple(offsets),
            word_ids=tuple(cast(list[int], encoding.word_ids)),  # None is of special tokens alone
        )
