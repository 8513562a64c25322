"""The tokenizer of a model folder, whichever of the three kinds it is."""

from pathlib import Path

from bert_tf.tokenizers import vocabulary as vocabularies
from bert_tf.tokenizers.base import BaseTokenizer
from bert_tf.tokenizers.byte_level_bpe import MERGES_FILE, VOCABULARY_FILE, ByteLevelTokenizer
from bert_tf.tokenizers.rust_backed import special_tokens_of
from bert_tf.tokenizers.sentence_piece import MODEL_FILE, SentencePieceTokenizer
from bert_tf.tokenizers.wordpiece import Tokenizer

_KINDS = {"BPE": ByteLevelTokenizer, "Unigram": SentencePieceTokenizer}


def read_tokenizer(folder: str | Path) -> BaseTokenizer:
    """Read the tokenizer of a model folder.

    Read are ``vocab.txt`` (WordPiece), else ``tokenizer.json`` (of any kind), else ``vocab.json`` with
    ``merges.txt`` (byte-level) or a SentencePiece model (``spiece.model``, or the only ``*.model`` there is).

    Raises:
        FileNotFoundError: the folder holds none of them.
        VocabularyError: a file of the folder cannot be used.
    """
    folder = Path(folder)
    settings = folder / vocabularies.RUST_FILE
    if not (folder / vocabularies.VOCABULARY_FILE).is_file():
        if settings.is_file():
            model = vocabularies.read_json(settings).get("model")
            kind = _KINDS.get(model.get("type")) if isinstance(model, dict) else None
            if kind is not None:
                return kind.from_settings(settings, special_tokens_of(folder))
        elif (folder / VOCABULARY_FILE).is_file() and (folder / MERGES_FILE).is_file():
            return ByteLevelTokenizer.from_files(
                folder / VOCABULARY_FILE, folder / MERGES_FILE, special_tokens_of(folder)
            )
        elif (path := _model_file(folder)) is not None:
            options = folder / vocabularies.CONFIG_FILE
            known = vocabularies.read_json(options) if options.is_file() else {}
            lower_case, keep_accents = known.get("do_lower_case", True), known.get("keep_accents", False)
            return SentencePieceTokenizer.from_model(path, special_tokens_of(folder), lower_case, keep_accents)
    return Tokenizer.from_folder(folder)


def _model_file(folder: Path) -> Path | None:
    if (folder / MODEL_FILE).is_file():
        return folder / MODEL_FILE
    found = sorted(folder.glob("*.model"))
    return found[0] if len(found) == 1 else None
