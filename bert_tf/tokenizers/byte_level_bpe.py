"""RoBERTa's byte-level byte-pair encoding: every text is spelled from the 256 bytes, so nothing is unknown.

What was matched: ``transformers.RobertaTokenizer`` of Transformers 5.23, with the mask taking the space before
it along as in the released files. Numbers of words are the Rust library's: letters, digits and punctuation are
words apart. Sources: Radford et al. 2019, section 2.2; Liu et al. 2019, section 4.4.
"""

from pathlib import Path

from tokenizers import Tokenizer as RustTokenizer
from tokenizers import decoders, models, pre_tokenizers, processors

from bert_tf.errors import VocabularyError
from bert_tf.tokenizers.rust_backed import RustBackedTokenizer, mark_special
from bert_tf.tokenizers.vocabulary import read_json

VOCABULARY_FILE, MERGES_FILE = "vocab.json", "merges.txt"


class ByteLevelTokenizer(RustBackedTokenizer):
    """Byte-level pieces; a pair is packed as <s> A </s></s> B </s>, all of one segment."""

    default_tokens = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
    transformers_class = "RobertaTokenizer"
    separators_between = 2
    second_segment = 0

    @classmethod
    def from_files(cls, vocabulary: Path, merges: Path, special_tokens=None) -> "ByteLevelTokenizer":
        """From ``vocab.json`` and ``merges.txt``.

        Raises:
            VocabularyError: the files do not fit together, or a special token is missing.
        """
        ids = read_json(vocabulary)
        try:
            model = models.BPE(*models.BPE.read_file(str(vocabulary), str(merges)))
        except Exception as error:  # the Rust library raises nothing narrower
            names = f"{vocabulary} and {merges.name}"
            raise VocabularyError(f"{names} are no byte-pair encoding: {error}.") from None
        rust = RustTokenizer(model)
        rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        rust.decoder = decoders.ByteLevel()
        tokens = special_tokens or cls.default_tokens
        missing = [token for token in tokens if token not in ids]
        if missing:
            raise VocabularyError(f"{vocabulary} has no token {', '.join(missing)}, which the model needs.")
        mark_special(rust, tokens, mask=tokens[-1])
        _, _, cls_token, sep_token, _ = tokens
        rust.post_processor = processors.RobertaProcessing(
            (sep_token, ids[sep_token]), (cls_token, ids[cls_token]), True, False
        )
        return cls(rust.to_str(), tokens)

    def show(self, piece: str) -> str:
        r"""The text of a piece's bytes; bytes that are no whole character as \xNN."""
        if any(character not in _BYTES for character in piece):
            return piece
        text = bytes(_BYTES[character] for character in piece).decode("utf-8", errors="backslashreplace")
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

    def save(self, folder: str | Path, model_max_length: int = 512) -> None:
        """Write ``tokenizer.json``, ``tokenizer_config.json``, ``vocab.json`` and ``merges.txt``."""
        super().save(folder, model_max_length)
        self._rust.model.save(str(folder))


def _byte_of_character() -> dict[str, int]:
    """The character that stands for each byte (GPT-2's `bytes_to_unicode`): itself if it can be seen."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in seen]
    return {chr(byte): byte for byte in seen} | {chr(256 + place): byte for place, byte in enumerate(others)}


_BYTES = _byte_of_character()
