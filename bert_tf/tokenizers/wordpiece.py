"""WordPiece tokenization with character offsets and word ids.

The reference is ``transformers.BertTokenizer`` of Transformers 5.23, token for token. Both classes use the Rust
library `tokenizers` with the same parts (`BertNormalizer`, `BertPreTokenizer`, `WordPiece`), which follow
``tokenization.py`` of google-research/bert. As in Transformers, a special token typed in a text ("[MASK]",
"[SEP]", ...) becomes the special token, if it is spelled exactly so.

Offsets count characters (code points, so ``text[start:end]`` works) of the original text, not of its normalized
form. They differ from the offsets of `tokenizers` in one case: combining marks that an uncased tokenizer drops
belong to the token before them ("cafe" + U+0301 is one token of five characters, not four), so that a page never
highlights half a letter. Pieces of one letter (the jamo of a Hangul syllable) share that letter's offsets.

Shapes: T tokens. Sources: Devlin et al. 2018, section 3; Wu et al. 2016, section 4.1 (WordPiece).
"""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as RustTokenizer

from bert_tf.errors import check_text
from bert_tf.tokenizers import vocabulary as vocabularies
from bert_tf.tokenizers.base import BaseTokenizer, Tokens, extend_over_combining_marks, load_pipeline
from bert_tf.tokenizers.wordpiece_files import berts_packing, read_wordpiece_files


class Tokenizer(BaseTokenizer):
    """BERT's WordPiece tokenizer, cased or uncased.

    Example:
        >>> tokenizer = Tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "play", "##ing"])
        >>> tokenizer.tokenize("Playing").tokens
        ('play', '##ing')
    """

    _words_take_space = False

    def __init__(
        self,
        vocab: Sequence[str] | str | Path,
        lower_case: bool | None = None,
        *,
        strip_accents: bool | None = None,
        tokenize_chinese_chars: bool = True,
        special_tokens: Sequence[str] = vocabularies.SPECIAL_TOKENS,
        pipeline: str | None = None,
    ):
        """Make a tokenizer.

        Args:
            vocab: sequence of str, or path. The tokens in order of their ids, or the path of a ``vocab.txt``.
            lower_case: bool or None. True for uncased models, False for cased models; None derives it from the
                vocabulary.
            strip_accents: bool or None. Whether to drop accents; None drops them if ``lower_case`` is True, as
                BERT's original code does.
            tokenize_chinese_chars: bool. Whether every CJK ideograph is a separate word, as in BERT's original
                code.
            special_tokens: sequence of str. The padding, unknown, beginning, separator and mask token.
            pipeline: str or None. The content of a ``tokenizer.json`` with the same tokens, which then decides how
                text is cut; the options before describe it.

        Raises:
            FileNotFoundError: the file does not exist.
            VocabularyError: the vocabulary cannot be used (a repeated line, no [MASK], ...).
        """
        if isinstance(vocab, (str, Path)):
            vocab = vocabularies.read_vocabulary(vocab, special_tokens)
        else:
            vocab = vocabularies.check_vocabulary(vocab, special_tokens=special_tokens)
        self.lower_case = vocabularies.guess_lower_case(vocab) if lower_case is None else bool(lower_case)
        self.strip_accents = strip_accents
        self.tokenize_chinese_chars = tokenize_chinese_chars
        #: Whether accents are dropped: `strip_accents`, or what it is by default.
        self.strips_accents = self.lower_case if strip_accents is None else strip_accents
        self.pipeline = pipeline
        if pipeline is None and tuple(special_tokens) == vocabularies.SPECIAL_TOKENS:
            self._set_up(self._build_rust(vocab), vocab, special_tokens, self._fast_options(vocab))
        else:
            rust = self._build_rust(vocab, special_tokens) if pipeline is None else load_pipeline(pipeline)
            self._set_up(rust, vocab, special_tokens)

    def _build_rust(
        self, vocab: Sequence[str], special_tokens: Sequence[str] = vocabularies.SPECIAL_TOKENS
    ) -> RustTokenizer:
        ids = {token: index for index, token in enumerate(vocab)}
        rust = RustTokenizer(models.WordPiece(ids, unk_token=special_tokens[1]))
        rust.normalizer = normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=self.tokenize_chinese_chars,
            strip_accents=self.strip_accents,
            lowercase=self.lower_case,
        )
        rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        rust.decoder = decoders.WordPiece(prefix="##")
        rust.add_special_tokens([AddedToken(token, special=True) for token in special_tokens])
        return rust

    def _fast_options(self, vocab: Sequence[str]) -> dict[str, Any] | None:
        # FastBertTokenizer has one option for lower-casing and accents together, always splits CJK, and would
        # match a token that contains a space across two words.
        has_spaces = any(token.split() != [token] for token in vocab)
        if has_spaces or self.strips_accents != self.lower_case or not self.tokenize_chinese_chars:
            return None
        return {"vocab": list(vocab), "lower_case_nfd_strip_accents": self.lower_case}

    def _with_pipeline(self, rust, vocab):
        if rust.post_processor is None:
            rust.post_processor = berts_packing(self.special_tokens, vocab)
        make, _ = self._arguments()
        return make(vocab, self.lower_case, pipeline=rust.to_str())

    def _arguments(self):
        make = functools.partial(
            type(self),
            strip_accents=self.strip_accents,
            tokenize_chinese_chars=self.tokenize_chinese_chars,
            special_tokens=self.special_tokens,
            pipeline=self.pipeline,
        )
        return make, (self.vocab[: self.token_count], self.lower_case)

    @classmethod
    def from_folder(cls, folder: str | Path) -> "Tokenizer":
        """Read the tokenizer of a model folder.

        It reads ``tokenizer.json``, or ``vocab.txt`` if there is none, with ``tokenizer_config.json`` and the files
        that add tokens. ``do_lower_case`` in these files decides whether to lower-case; without it, the vocabulary
        decides.

        Args:
            folder: str or path. The model folder.

        Raises:
            FileNotFoundError: the folder holds no vocabulary.
            VocabularyError: a file of the folder cannot be used.
        """
        files = read_wordpiece_files(folder)
        return cls(
            files.vocab,
            files.options.get("do_lower_case"),
            strip_accents=files.options.get("strip_accents"),
            tokenize_chinese_chars=files.options.get("tokenize_chinese_chars", True),
            special_tokens=files.special_tokens,
            pipeline=files.pipeline,
        )

    def save(self, folder: str | Path, model_max_length: int = 512) -> None:
        """Write ``vocab.txt`` and ``tokenizer_config.json``, which Transformers and `from_folder` read.

        ``tokenizer.json`` is written too if text is cut otherwise than BERT cuts it.
        """
        from bert_tf.files import write_text

        options: dict[str, Any] = {"do_lower_case": self.lower_case, "model_max_length": model_max_length}
        if self.strip_accents is not None:
            options["strip_accents"] = self.strip_accents
        if not self.tokenize_chinese_chars:
            options["tokenize_chinese_chars"] = False
        if self.special_tokens != vocabularies.SPECIAL_TOKENS:
            options |= dict(zip(vocabularies.ROLES, self.special_tokens, strict=True))
        options["tokenizer_class"] = "BertTokenizer"
        if self.pipeline is not None:  # Transformers' BertTokenizer would build BERT's own pipeline
            options["tokenizer_class"] = "PreTrainedTokenizerFast"
            options["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
            options |= dict(zip(vocabularies.ROLES, self.special_tokens, strict=True))
        vocabularies.write_folder(folder, self.vocab[: self.token_count], options)
        if self.pipeline is not None:
            write_text(Path(folder) / vocabularies.RUST_FILE, self.pipeline)

    def __repr__(self) -> str:
        return f"Tokenizer({self.vocab_size} tokens, {'uncased' if self.lower_case else 'cased'})"

    def tokenize(self, text: str) -> Tokens:
        """Split a text into word pieces.

        Args:
            text: str. Any text.

        Returns:
            `Tokens`: ids, pieces, offsets and word ids, without [CLS] and [SEP].

        Raises:
            TextError: the text is not a str, or holds half a surrogate pair (which has no UTF-8 encoding).
        """
        check_text(text)
        encoding = self._rust.encode(text, add_special_tokens=False)
        offsets = encoding.offsets
        if offsets and self.strips_accents and not text.isascii():
            offsets = extend_over_combining_marks(text, offsets)
        return Tokens(
            ids=np.array(encoding.ids, dtype=np.int32),
            tokens=tuple(self.vocab[index] for index in encoding.ids),  # an added token as the vocabulary spells it
            offsets=tuple(offsets),
            word_ids=tuple(cast(list[int], encoding.word_ids)),  # only added special tokens have None
        )
