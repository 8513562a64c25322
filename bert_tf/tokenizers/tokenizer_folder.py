"""Reading the tokenizer of a model folder: WordPiece, byte-level BPE or SentencePiece."""

import json
from pathlib import Path

from bert_tf.errors import VocabularyError
from bert_tf.tokenizers import vocabulary as vocabularies
from bert_tf.tokenizers.base import BaseTokenizer
from bert_tf.tokenizers.byte_level_bpe import MERGES_FILE, VOCABULARY_FILE, ByteLevelTokenizer, ModernBertTokenizer
from bert_tf.tokenizers.rust_backed import RustBackedTokenizer, special_tokens_of
from bert_tf.tokenizers.sentence_piece import (
    FAIRSEQ_MODEL_FILE,
    MODEL_FILE,
    SPACE,
    CamembertTokenizer,
    DebertaTokenizer,
    GemmaTokenizer,
    SentencePieceTokenizer,
    XlmRobertaTokenizer,
)
from bert_tf.tokenizers.wordpiece import Tokenizer
from bert_tf.tokenizers.wordpiece_files import GENERIC_CLASSES, optional_json

_PIECES: tuple[type[SentencePieceTokenizer], ...] = (
    SentencePieceTokenizer,
    XlmRobertaTokenizer,
    CamembertTokenizer,
    DebertaTokenizer,
)

# Transformers' classes whose files without tokenizer.json are read as they read them.
_KNOWN_CLASSES = {
    ByteLevelTokenizer.transformers_class,
    *(kind.transformers_class for kind in _PIECES),
    *(f"{name}Tokenizer" for name in ("Bert", "ConvBert", "DistilBert", "Electra", "LayoutLM", "Longformer", "Lxmert")),
    *(f"{name}Tokenizer" for name in ("MobileBert", "RetriBert", "SqueezeBert")),
    *GENERIC_CLASSES,
}


def read_tokenizer(folder: str | Path) -> BaseTokenizer:
    """Read the tokenizer of a model folder.

    The first of these that exists is read: ``tokenizer.json`` (any tokenizer), ``vocab.txt`` (WordPiece),
    ``vocab.json`` with ``merges.txt`` (byte-level), a SentencePiece model (``spiece.model``,
    ``sentencepiece.bpe.model``, or the only ``*.model`` in the folder). Beside a vocabulary or such a model, the
    files that add tokens are read too.

    Args:
        folder: str or path. The model folder.

    Returns:
        The tokenizer.

    Raises:
        FileNotFoundError: the folder holds none of these files.
        VocabularyError: a file of the folder cannot be used.
    """
    folder = Path(folder)
    settings = folder / vocabularies.RUST_FILE
    config = optional_json(folder / vocabularies.CONFIG_FILE)
    named = _named_class(folder, config)
    if settings.is_file():
        tokenizer_class = _class_of(vocabularies.read_json(settings))
        if tokenizer_class is not None:
            tokenizer = tokenizer_class.from_settings(settings, special_tokens_of(folder))
            if type(tokenizer) is ByteLevelTokenizer and named not in GENERIC_CLASSES:
                # Transformers' RobertaTokenizer takes it from its settings, and without them adds none.
                tokenizer = tokenizer.with_prefix_space(bool(config.get("add_prefix_space", False)))
            return tokenizer.with_tokens_of(folder)
    elif named and named not in _KNOWN_CLASSES:
        raise VocabularyError(
            f"{folder} names the tokenizer {named}, whose files are not read. If it has a fast tokenizer, save that "
            f"one with Transformers: it writes {vocabularies.RUST_FILE}, which is read."
        )
    elif not (folder / vocabularies.VOCABULARY_FILE).is_file():
        if (folder / VOCABULARY_FILE).is_file() and (folder / MERGES_FILE).is_file():
            add_prefix_space = bool(config.get("add_prefix_space", False))
            return ByteLevelTokenizer.from_files(
                folder / VOCABULARY_FILE, folder / MERGES_FILE, special_tokens_of(folder), add_prefix_space
            ).with_tokens_of(folder)
        if (path := _model_file(folder)) is not None:
            kind = _pieces_class(folder, named, path.name == FAIRSEQ_MODEL_FILE)
            lower_case = config.get("do_lower_case", kind.default_lower_case)
            keep_accents = config.get("keep_accents", False)
            return kind.from_model(path, special_tokens_of(folder), lower_case, keep_accents).with_tokens_of(folder)
    return Tokenizer.from_folder(folder)


def _class_of(settings: dict) -> type[RustBackedTokenizer] | None:
    """The class for the content of a tokenizer.json; None for a WordPiece tokenizer."""
    model, packing = settings.get("model"), settings.get("post_processor")
    if not isinstance(model, dict):
        return None
    if model.get("type") == "BPE":
        if not isinstance(packing, dict) or packing.get("type") != "TemplateProcessing":
            return ByteLevelTokenizer
        # A step writes each space as SentencePiece's symbol; a byte-level encoding has no such step.
        steps = json.dumps([settings.get("normalizer"), settings.get("pre_tokenizer")], ensure_ascii=False)
        return GemmaTokenizer if SPACE in steps else ModernBertTokenizer
    if model.get("type") != "Unigram":
        return None
    pieces = model.get("vocab")
    names = {piece[0] for piece in pieces if isinstance(piece, list) and piece} if isinstance(pieces, list) else set()
    for kind in (CamembertTokenizer, XlmRobertaTokenizer):
        if names.issuperset((*kind.before, *kind.default_tokens)):
            return kind
    is_deberta = names.issuperset(DebertaTokenizer.default_tokens[:-1])  # the mask token can stand outside the pieces
    return DebertaTokenizer if is_deberta else SentencePieceTokenizer


def _named_class(folder: Path, config: dict) -> str:
    """Transformers' tokenizer class as the files of a folder name it, without "Fast"; "" if they name none."""
    named = config.get("tokenizer_class") or optional_json(folder / "config.json").get("tokenizer_class")
    return named.removesuffix("Fast") if isinstance(named, str) else ""


def _pieces_class(folder: Path, named: str, is_fairseq: bool) -> type[SentencePieceTokenizer]:
    """The class for a SentencePiece model: its pieces alone do not tell which ids fairseq gave them."""
    model_type = optional_json(folder / "config.json").get("model_type")
    for kind in _PIECES:
        if kind.transformers_class == named or not named and kind.model_type == model_type:
            return kind
    return XlmRobertaTokenizer if is_fairseq else SentencePieceTokenizer


def _model_file(folder: Path) -> Path | None:
    for name in (MODEL_FILE, FAIRSEQ_MODEL_FILE):
        if (folder / name).is_file():
            return folder / name
    paths = sorted(folder.glob("*.model"))
    return paths[0] if len(paths) == 1 else None
