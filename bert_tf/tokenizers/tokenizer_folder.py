"""Reading the tokenizer of a model folder: WordPiece, byte-level BPE or SentencePiece."""

from pathlib import Path
from typing import Any

from bert_tf.tokenizers import vocabulary as vocabularies
from bert_tf.tokenizers.base import BaseTokenizer
from bert_tf.tokenizers.byte_level_bpe import MERGES_FILE, VOCABULARY_FILE, ByteLevelTokenizer, ModernBertTokenizer
from bert_tf.tokenizers.rust_backed import RustBackedTokenizer, special_tokens_of
from bert_tf.tokenizers.sentence_piece import MODEL_FILE, SentencePieceTokenizer
from bert_tf.tokenizers.wordpiece import Tokenizer


def read_tokenizer(folder: str | Path) -> BaseTokenizer:
    """Read the tokenizer of a model folder.

    The first of these that exists is read: ``vocab.txt`` (WordPiece), ``tokenizer.json`` (any tokenizer),
    ``vocab.json`` with ``merges.txt`` (byte-level), a SentencePiece model (``spiece.model``, or the only
    ``*.model`` in the folder).

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
    if not (folder / vocabularies.VOCABULARY_FILE).is_file():
        if settings.is_file():
            tokenizer_class = _class(vocabularies.read_json(settings))
            if tokenizer_class is not None:
                return tokenizer_class.from_settings(settings, special_tokens_of(folder))
        elif (folder / VOCABULARY_FILE).is_file() and (folder / MERGES_FILE).is_file():
            return ByteLevelTokenizer.from_files(
                folder / VOCABULARY_FILE, folder / MERGES_FILE, special_tokens_of(folder)
            )
        elif (path := _model_file(folder)) is not None:
            config_path = folder / vocabularies.CONFIG_FILE
            config = vocabularies.read_json(config_path) if config_path.is_file() else {}
            lower_case, keep_accents = config.get("do_lower_case", True), config.get("keep_accents", False)
            return SentencePieceTokenizer.from_model(path, special_tokens_of(folder), lower_case, keep_accents)
    return Tokenizer.from_folder(folder)


def _class(data: dict[str, Any]) -> type[RustBackedTokenizer] | None:
    """The class for the content of a ``tokenizer.json``; None for WordPiece."""
    model, packing = data.get("model"), data.get("post_processor")
    kind = model.get("type") if isinstance(model, dict) else None
    if kind == "BPE":
        is_template = isinstance(packing, dict) and packing.get("type") == "TemplateProcessing"
        return ModernBertTokenizer if is_template else ByteLevelTokenizer
    return SentencePieceTokenizer if kind == "Unigram" else None


def _model_file(folder: Path) -> Path | None:
    if (folder / MODEL_FILE).is_file():
        return folder / MODEL_FILE
    paths = sorted(folder.glob("*.model"))
    return paths[0] if len(paths) == 1 else None
