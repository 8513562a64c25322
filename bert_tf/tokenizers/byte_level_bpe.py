"""The byte-level byte-pair encoding of RoBERTa and ModernBERT. The 256 bytes spell every text, so no text is unknown.

The references are ``transformers.RobertaTokenizer`` of Transformers 5.23 and, for ModernBERT,
``PreTrainedTokenizerFast``; as in the released files, the mask token includes the space before it. The word ids are
those of the Rust library: letters, digits and punctuation are separate words. Sources: Radford et al. 2019, section
2.2; Liu et al. 2019, section 4.4; Warner et al. 2024, section 2.1.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tokenizers import Encoding as RustEncoding
from tokenizers import Tokenizer as RustTokenizer
from tokenizers import decoders, models, pre_tokenizers, processors

from bert_tf.errors import VocabularyError
from bert_tf.tokenizers.rust_backed import RustBackedTokenizer, mark_special
from bert_tf.tokenizers.vocabulary import read_json

VOCABULARY_FILE, MERGES_FILE = "vocab.json", "merges.txt"


class ByteLevelTokenizer(RustBackedTokenizer):
    """RoBERTa's byte-level tokenizer. A pair is packed as <s> A </s></s> B </s>, all with segment id 0."""

    default_tokens = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
    transformers_class = "RobertaTokenizer"
    separators_between = 2
    second_segment = 0

    @classmethod
    def from_files(
        cls,
        vocabulary: Path,
        merges: Path,
        special_tokens: Sequence[str] | None = None,
        add_prefix_space: bool = False,
    ) -> "ByteLevelTokenizer":
        """Read a tokenizer from ``vocab.json`` and ``merges.txt``.

        Args:
            vocabulary: path. The ``vocab.json``.
            merges: path. The ``merges.txt``.
            special_tokens: sequence of str or None. As in `RustBackedTokenizer`.
            add_prefix_space: bool. Whether a space is put before the text, so that its first word has the tokens
                of a word after a space.

        Raises:
            VocabularyError: the files do not belong together, or a special token is missing.
        """
        ids = read_json(vocabulary)
        try:
            model = models.BPE(*models.BPE.read_file(str(vocabulary), str(merges)))
        except Exception as error:  # the Rust library raises plain Exception
            names = f"{vocabulary} and {merges.name}"
            raise VocabularyError(f"{names} are not a byte-pair encoding: {error}.") from None
        rust = RustTokenizer(model)
        rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
        rust.decoder = decoders.ByteLevel()
        tokens = special_tokens or cls.default_tokens
        missing = [token for token in tokens if token not in ids]
        if missing:
            raise VocabularyError(f"{vocabulary} has no token {', '.join(missing)}, which the model needs.")
        mark_special(rust, tokens, mask=tokens[-1])
        if any(character not in ids for character in _BYTES):
            raise VocabularyError(
                f"{vocabulary} has no token for some of the 256 bytes, so it is no byte-level vocabulary. Of another "
                "kind tokenizer.json is read, which Transformers writes for fast tokenizers."
            )
        _, _, cls_token, sep_token, _ = tokens
        rust.post_processor = processors.RobertaProcessing(
            (sep_token, ids[sep_token]), (cls_token, ids[cls_token]), True, add_prefix_space
        )
        return cls(rust.to_str(), tokens)

    def with_prefix_space(self, is_added: bool) -> Self:
        """Return this tokenizer with a space put before the text, or without."""
        if getattr(self._rust.pre_tokenizer, "add_prefix_space", is_added) == is_added:
            return self
        rust = RustTokenizer.from_str(self._rust.to_str())
        rust.pre_tokenizer = pre_tokenizers.ByteLevel(is_added, use_regex=rust.pre_tokenizer.use_regex)
        return self._with_pipeline(rust, self.vocab)

    def show(self, piece: str) -> str:
        r"""Return the text that a piece's bytes spell; bytes of an incomplete character are written as \xNN."""
        if any(character not in _BYTES for character in piece):
            return piece
        text = bytes(_BYTES[character] for character in piece).decode("utf-8", errors="backslashreplace")
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

    def spans(self, text: str, encoding: RustEncoding) -> list[tuple[int, int]]:
        """Return the spans of the pieces; a piece that is a word's space alone has the first character of the word."""
        spans, words = super().spans(text, encoding), encoding.word_ids
        for piece, (span, following) in enumerate(zip(spans, spans[1:])):
            starts_word = words[piece] == words[piece + 1] and not text[slice(*following)].isspace()
            if starts_word and text[slice(*span)].isspace():
                spans[piece] = following[0], following[0] + 1
        return spans

    def _further_settings(self):
        is_prefixed = getattr(self._rust.pre_tokenizer, "add_prefix_space", False)
        return {"add_prefix_space": True} if is_prefixed else {}

    def save(self, folder: str | Path, model_max_length: int = 512) -> None:
        """Write ``tokenizer.json``, ``tokenizer_config.json``, ``vocab.json`` and ``merges.txt``."""
        from bert_tf.files import write_text

        super().save(folder, model_max_length)
        # As `self._rust.model.save` writes them; on a full disk it would cut the files and raise plain Exception.
        model = json.loads(self._rust.to_str())["model"]
        vocabulary = json.dumps(model["vocab"], ensure_ascii=False, separators=(",", ":"))
        write_text(Path(folder) / VOCABULARY_FILE, vocabulary)
        merges = "".join(f"{left} {right}\n" for left, right in model["merges"])
        write_text(Path(folder) / MERGES_FILE, f"#version: 0.2\n{merges}")


class ModernBertTokenizer(ByteLevelTokenizer):
    """ModernBERT's byte-level tokenizer: everything, the packing of a pair too, is in its ``tokenizer.json``.

    The released file normalizes to NFC, has tokens for runs of spaces and packs a pair as [CLS] A [SEP] B [SEP].
    """

    default_tokens = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    transformers_class = "PreTrainedTokenizerFast"

    def save(self, folder: str | Path, model_max_length: int = 8192) -> None:
        """Write ``tokenizer.json`` and ``tokenizer_config.json``."""
        RustBackedTokenizer.save(self, folder, model_max_length)


def _byte_of_character() -> dict[str, int]:
    """The byte of each character (GPT-2's `bytes_to_unicode`, inverted). A visible character is its own byte."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(256 + index): byte for index, byte in enumerate(others)}


_BYTES = _byte_of_character()
