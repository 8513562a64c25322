"""SentencePiece tokenizers of ALBERT, XLM-RoBERTa, CamemBERT and DeBERTa-v3: the most probable segmentation of a text
under a unigram model. mmBERT's is a byte-pair encoding of the same pieces.

The references are ``AlbertTokenizer``, ``XLMRobertaTokenizer`` and ``CamembertTokenizer`` of Transformers 5.23, and for
DeBERTa-v3 its ``DebertaV2Converter``, whose result Transformers 4 used. The word ids follow BERT: a punctuation mark
and a CJK ideograph are separate words, while SentencePiece joins them to what stands before. Sources: Kudo 2018; Lan et
al. 2020, section 4.1; Conneau et al. 2020; Martin et al. 2020; He et al. 2021.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

from tokenizers import Encoding as RustEncoding
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as RustTokenizer

from bert_tf.errors import VocabularyError
from bert_tf.tokenizers.base import bert_words
from bert_tf.tokenizers.rust_backed import RustBackedTokenizer, mark_special

MODEL_FILE, FAIRSEQ_MODEL_FILE = "spiece.model", "sentencepiece.bpe.model"
SPACE = "▁"


class SentencePieceTokenizer(RustBackedTokenizer):
    """ALBERT's SentencePiece tokenizer. A pair is packed as in BERT."""

    default_tokens = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    transformers_class = "AlbertTokenizer"
    model_type = "albert"
    model_file = MODEL_FILE
    #: Whether the text is lower-cased if no file says so.
    default_lower_case = True
    _model_bytes: bytes | None = None

    @classmethod
    def from_model(
        cls,
        path: Path,
        special_tokens: Sequence[str] | None = None,
        lower_case: bool = True,
        keep_accents: bool = False,
    ) -> "SentencePieceTokenizer":
        """Read a tokenizer from a ``spiece.model``.

        Args:
            path: path. The file.
            special_tokens: sequence of str or None. As in `RustBackedTokenizer`.
            lower_case: bool. Whether to lower-case the text.
            keep_accents: bool. Whether to keep accents and compatibility characters.

        Raises:
            VocabularyError: the file is not a SentencePiece unigram model, or a special token is missing.
        """
        data = path.read_bytes()
        tokens = special_tokens or cls.default_tokens
        rust = cls._rust_of(_parsed(data, path), tokens, lower_case, keep_accents)
        tokenizer = cls(rust.to_str(), tokens)
        tokenizer._model_bytes = data
        return tokenizer

    @classmethod
    def _rust_of(cls, proto: Any, tokens: Sequence[str], lower_case: bool, keep_accents: bool) -> RustTokenizer:
        vocabulary = [(piece.piece, piece.score) for piece in proto.pieces]
        steps: list[normalizers.Normalizer] = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
        if not keep_accents:
            steps += [normalizers.NFKD(), normalizers.StripAccents()]
        if lower_case:
            steps.append(normalizers.Lowercase())
        pair = "{first}:0 $A:0 {last}:0 $B:1 {last}:1"
        return _rust_from_proto(proto, vocabulary, tokens, steps, pair)

    def _further_settings(self):
        stated = {"do_lower_case": (self.lower_case, True), "keep_accents": (not self.strips_accents, False)}
        is_alberts = self.transformers_class == SentencePieceTokenizer.transformers_class
        return {name: value for name, (value, default) in stated.items() if is_alberts and value != default}

    def show(self, piece: str) -> str:
        """Return the text of a piece, with the space symbol replaced by a space."""
        return piece.replace(SPACE, " ")

    def words(self, text: str, offsets: Sequence[tuple[int, int]], rust_word_ids: Sequence[int]) -> Iterable[int]:
        """Return the word id of each piece, with words separated and counted as in BERT."""
        read = {
            place
            for start, end in offsets
            for place in ((start,) if text[start:end] in self.special_tokens else range(start, end))
        }
        starts = [start for start, end in bert_words(text) if not read.isdisjoint(range(start, end))]
        # A piece that covers two words counts for the first; the second keeps its number, which other tokenizers use.
        return [max(0, bisect_right(starts, start) - 1) for start, _ in offsets]

    def with_rows(self, rows: int) -> Self:
        """Return this tokenizer with placeholders, as every tokenizer does; the SentencePiece model stays with it."""
        padded = super().with_rows(rows)
        padded._model_bytes = self._model_bytes
        return padded

    def save(self, folder: str | Path, model_max_length: int = 512) -> None:
        """Write ``tokenizer.json``, ``tokenizer_config.json`` and, if it was read from one, the SentencePiece model."""
        super().save(folder, model_max_length)
        if self._model_bytes is not None:
            from bert_tf.files import atomic_write

            with atomic_write(Path(folder) / self.model_file) as temporary:
                temporary.write_bytes(self._model_bytes)


class XlmRobertaTokenizer(SentencePieceTokenizer):
    """XLM-RoBERTa's tokenizer. fairseq puts its own tokens before the pieces, so the ids are not those of the file.

    A pair is packed as <s> A </s></s> B </s>, all with segment id 0.

    Attributes:
        before: tuple of str. fairseq's tokens, in the order of their ids.
    """

    default_tokens = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
    transformers_class = "XLMRobertaTokenizer"
    model_type = "xlm-roberta"
    model_file = FAIRSEQ_MODEL_FILE
    separators_between = 2
    second_segment = 0
    before: tuple[str, ...] = ("<s>", "<pad>", "</s>", "<unk>")
    _replaced = 3  # pieces of the file that `before` replaces

    @classmethod
    def _rust_of(cls, proto: Any, tokens: Sequence[str], lower_case: bool, keep_accents: bool) -> RustTokenizer:
        pieces = [(piece.piece, piece.score) for piece in proto.pieces[cls._replaced :]]
        vocabulary = [*((token, 0.0) for token in cls.before), *pieces, (tokens[-1], 0.0)]
        pair = "{first}:0 $A:0 {last}:0 {last}:0 $B:0 {last}:0"
        return _rust_from_proto(proto, vocabulary, tokens, [], pair)


class CamembertTokenizer(XlmRobertaTokenizer):
    """CamemBERT's tokenizer: fairseq's own tokens stand before <s> and </s>, which are pieces of the file."""

    transformers_class = "CamembertTokenizer"
    model_type = "camembert"
    before = ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED")
    _replaced = 1


class DebertaTokenizer(SentencePieceTokenizer):
    """DeBERTa-v3's tokenizer: cased, with a mask token after the pieces of the file. A pair is packed as in BERT.

    ``DebertaV2Tokenizer`` of Transformers 5 leaves the normalization of the file out, so that a ligature, say, is
    unknown to it. This class keeps it, and saves the class that has Transformers read ``tokenizer.json`` as it is.
    """

    default_tokens = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    transformers_class = "DebertaV2Tokenizer"
    saved_class = "PreTrainedTokenizerFast"
    model_type = "deberta-v2"
    model_file = "spm.model"
    default_lower_case = False

    @classmethod
    def _rust_of(cls, proto: Any, tokens: Sequence[str], lower_case: bool, keep_accents: bool) -> RustTokenizer:
        vocabulary = [(piece.piece, piece.score) for piece in proto.pieces]
        if tokens[-1] not in {name for name, _ in vocabulary}:
            vocabulary.append((tokens[-1], 0.0))
        steps: list[normalizers.Normalizer] = [normalizers.Lowercase()] if lower_case else []
        steps.append(normalizers.Strip())
        pair = "{first}:0 $A:0 {last}:0 $B:1 {last}:1"
        rust = _rust_from_proto(proto, vocabulary, tokens, steps, pair, mask_takes_space=False)
        rust.normalizer = normalizers.Sequence([rust.normalizer, normalizers.Replace(Regex(" {2,}"), " ")])
        rust.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme="always")
        return rust

    def spans(self, text: str, encoding: RustEncoding) -> list[tuple[int, int]]:
        """Return the spans of the pieces; a piece that is a space alone has the first character of its word."""
        spans = super().spans(text, encoding)
        return [
            (following[0], following[0] + 1) if following and text[slice(*span)].isspace() else span
            for span, following in zip(spans, [*spans[1:], None])
        ]

    def words(self, text: str, offsets: Sequence[tuple[int, int]], rust_word_ids: Sequence[int]) -> Iterable[int]:
        """Return the word id of each piece: a word begins where one of BERT begins, and at each space of the model."""
        parts = list(zip(super().words(text, offsets, rust_word_ids), rust_word_ids, strict=True))
        # Spaces of the model inside a word of BERT.
        are_further = (here[0] == before[0] and here[1] != before[1] for here, before in zip(parts[1:], parts))
        return [number + more for (number, _), more in zip(parts, accumulate(are_further, initial=0))]


class GemmaTokenizer(DebertaTokenizer):
    """mmBERT's tokenizer, which is Gemma's: a byte-pair encoding over SentencePiece's space symbol, cased.

    Characters without a piece are spelled by their bytes, as "<0xC3>". It is read from ``tokenizer.json`` alone, which
    also says how a pair is packed.
    """

    default_tokens = ("<pad>", "<unk>", "<bos>", "<eos>", "<mask>")
    transformers_class = "GemmaTokenizer"
    model_type = "modernbert"


def _parsed(data: bytes, path: Path) -> Any:
    from sentencepiece import sentencepiece_model_pb2

    protobuf_classes: Any = sentencepiece_model_pb2  # protobuf creates its classes at import
    proto = protobuf_classes.ModelProto()
    try:
        proto.ParseFromString(data)
    except Exception as error:  # protobuf has no single public name for DecodeError
        raise VocabularyError(f"{path} is not a SentencePiece model ({error}).") from None
    if not proto.pieces or proto.trainer_spec.model_type != proto.trainer_spec.UNIGRAM:
        raise VocabularyError(f"{path} is not a SentencePiece unigram model, which this tokenizer needs.")
    return proto


def _rust_from_proto(
    proto: Any,
    vocabulary: Sequence[tuple[str, float]],
    tokens: Sequence[str],
    steps: list[normalizers.Normalizer],
    pair: str,
    mask_takes_space: bool = True,
) -> RustTokenizer:
    """A tokenizer of the pieces in the order of their ids, with normalizers before the model's own and a template."""
    names = {name: index for index, (name, _) in enumerate(vocabulary)}
    missing = [token for token in tokens if token not in names]
    if missing:
        raise VocabularyError(f"The SentencePiece model has no token {', '.join(missing)}, which the model needs.")
    rust = RustTokenizer(models.Unigram(list(vocabulary), unk_id=names[tokens[1]], byte_fallback=False))
    if proto.normalizer_spec.precompiled_charsmap:
        steps = [*steps, normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)]
    rust.normalizer = normalizers.Sequence(steps)
    rust.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(SPACE, prepend_scheme="always")]
    )
    rust.decoder = decoders.Metaspace(SPACE, prepend_scheme="always")
    unused = [name for name, _ in vocabulary if name.endswith(">NOTUSED")]
    mark_special(rust, [*tokens, *unused], mask=tokens[-1] if mask_takes_space else "")
    first, last = tokens[2], tokens[3]
    rust.post_processor = processors.TemplateProcessing(
        single=f"{first}:0 $A:0 {last}:0",
        pair=pair.format(first=first, last=last),
        special_tokens=[(first, names[first]), (last, names[last])],
    )
    return rust
