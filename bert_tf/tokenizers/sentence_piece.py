"""ALBERT's SentencePiece tokenizer: the likeliest division of a text under a unigram model.

What was matched: ``transformers.AlbertTokenizer`` of Transformers 5.23. Numbers of words are BERT's: a
punctuation mark is a word of its own, though SentencePiece counts it to the word before. Sources: Kudo 2018; Lan
et al. 2020, section 4.1.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer as RustTokenizer
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from bert_tf.errors import VocabularyError
from bert_tf.tokenizers.rust_backed import RustBackedTokenizer, mark_special

MODEL_FILE = "spiece.model"
_SPACE = "▁"


class SentencePieceTokenizer(RustBackedTokenizer):
    """SentencePiece's pieces; a pair is packed as BERT's."""

    default_tokens = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    transformers_class = "AlbertTokenizer"
    _stored: bytes | None = None

    @classmethod
    def from_model(
        cls, path: Path, special_tokens=None, lower_case=True, keep_accents=False
    ) -> "SentencePieceTokenizer":
        """From a ``spiece.model``.

        Args:
            path: the file. special_tokens: as in `RustBackedTokenizer`.
            lower_case: lose capital letters. keep_accents: keep accents and compatibility characters.

        Raises:
            VocabularyError: not a SentencePiece unigram model, or a special token is missing.
        """
        data = path.read_bytes()
        tokens = special_tokens or cls.default_tokens
        rust = _rust_from_proto(_parsed(data, path), tokens, lower_case, keep_accents)
        made = cls(rust.to_str(), tokens)
        made._stored = data
        return made

    def show(self, piece: str) -> str:
        """The text of a piece; the sign for a space as a space."""
        return piece.replace(_SPACE, " ")

    def words(self, text: str, offsets: Sequence[tuple[int, int]], found: Sequence[int]) -> Iterable[int]:
        spans = pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text)
        starts = [start for _, (start, _) in spans]
        numbers = [max(0, bisect_right(starts, start) - 1) for start, _ in offsets]
        # A piece of two words is the first one's, and no number is left out.
        order = {number: place for place, number in enumerate(dict.fromkeys(sorted(numbers)))}
        return [order[number] for number in numbers]

    def save(self, folder: str | Path, model_max_length: int = 512) -> None:
        """Write ``tokenizer.json``, ``tokenizer_config.json`` and, if it came from one, ``spiece.model``."""
        super().save(folder, model_max_length)
        if self._stored is not None:
            from bert_tf.files import atomic_write

            with atomic_write(Path(folder) / MODEL_FILE) as temporary:
                temporary.write_bytes(self._stored)


def _parsed(data: bytes, path: Path):
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto()
    try:
        proto.ParseFromString(data)
    except Exception as error:  # protobuf's own DecodeError is not public under one name
        raise VocabularyError(f"{path} is no SentencePiece model ({error}).") from None
    if not proto.pieces or proto.trainer_spec.model_type != proto.trainer_spec.UNIGRAM:
        raise VocabularyError(f"{path} is no SentencePiece model of the unigram kind, which ALBERT has.")
    return proto


def _rust_from_proto(proto, tokens, lower_case, keep_accents) -> RustTokenizer:
    vocabulary = [(piece.piece, piece.score) for piece in proto.pieces]
    names = {name: index for index, (name, _) in enumerate(vocabulary)}
    missing = [token for token in tokens if token not in names]
    if missing:
        raise VocabularyError(f"The SentencePiece model lacks {', '.join(missing)}, which ALBERT needs.")
    rust = RustTokenizer(models.Unigram(vocabulary, unk_id=names[tokens[1]], byte_fallback=False))
    steps = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if not keep_accents:
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if lower_case:
        steps.append(normalizers.Lowercase())
    if proto.normalizer_spec.precompiled_charsmap:
        steps.append(normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap))
    rust.normalizer = normalizers.Sequence(steps)
    rust.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(_SPACE, prepend_scheme="always")]
    )
    rust.decoder = decoders.Metaspace(_SPACE, prepend_scheme="always")
    mark_special(rust, tokens, mask=tokens[-1])
    first, last = tokens[2], tokens[3]
    rust.post_processor = processors.TemplateProcessing(
        single=f"{first}:0 $A:0 {last}:0",
        pair=f"{first}:0 $A:0 {last}:0 $B:1 {last}:1",
        special_tokens=[(first, names[first]), (last, names[last])],
    )
    return rust
