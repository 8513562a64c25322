"""Reading a model folder of any supported format into a Keras model.

The headers are checked before a value is read.
"""

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from bert_tf.checkpoints.delta import base_model, open_delta
from bert_tf.checkpoints.formats.google import open_google
from bert_tf.checkpoints.formats.huggingface import open_huggingface
from bert_tf.checkpoints.formats.kerashub import is_preset, open_preset
from bert_tf.checkpoints.library import encoder_folder, find, is_google
from bert_tf.checkpoints.model_checksums import check_model_checksums
from bert_tf.checkpoints.stored_model import StoredModel, build_keras_model
from bert_tf.checkpoints.stored_tensor import StoredTensor
from bert_tf.checkpoints.tensor_names import heads_present, is_of_another_head, is_task_tensor, tensor_shapes
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.tokenizers import BaseTokenizer, Tokenizer

if TYPE_CHECKING:  # it imports Keras
    from bert_tf.models import BertModel


# Token embedding tables are padded to a multiple of one of these.
_PADDED_TO = (8, 64, 128)
# The most rows of a token embedding table without a token: multilingual DeBERTa has 898. With more, the vocabulary is
# another model's.
_MOST_PADDING = 1024
_log = logging.getLogger(__name__)


def read(folder: str | os.PathLike, dtype: str = "float32") -> tuple[BertConfig, BaseTokenizer, "BertModel"]:
    """Load a model from a folder of this project, of Hugging Face (safetensors), of Google (TF checkpoint) or a
    KerasHub preset.

    The tensors of a head that this project does not know are left out, and the log names them. It also tells how many
    rows of the token table have no token.

    Args:
        folder: str or path. The model folder.
        dtype: str. The Keras dtype or dtype policy of the model ("float32", "bfloat16", "mixed_bfloat16").

    Returns:
        (`BertConfig`, tokenizer, `BertModel`). `model.bert_heads` are the heads in the files.

    Raises:
        CheckpointError: a file is missing, truncated or of an unsupported format, a tensor of the encoder or of a known
            head is unknown, missing or has another shape, a weight is not finite, or the vocabulary has another size.
        ConfigError, VocabularyError, OSError: the settings or the vocabulary cannot be used.
    """
    config, tokenizer, heads, tensors = _checked_folder(folder)
    # Keras is imported here, so that a folder with an error is refused quickly. Nobody else holds the new model until
    # this function returns, so no caller sees a partly loaded one.
    return config, tokenizer, build_keras_model(config, heads, tensors, dtype)


def read_stored(folder: str | os.PathLike) -> tuple[BertConfig, BaseTokenizer, StoredModel]:
    """Load a model as `read` does, without TensorFlow and Keras: its weights stay as they are stored.

    Args:
        folder: str or path. The model folder.

    Returns:
        (`BertConfig`, tokenizer, `StoredModel`).

    Raises:
        As `read`.
    """
    config, tokenizer, heads, tensors = _checked_folder(folder)
    return config, tokenizer, StoredModel(config, heads, {name: tensor.weight() for name, tensor in tensors.items()})


def _checked_folder(folder):
    config, tokenizer, stored = open_folder(folder)
    tensors = {
        name: tensor for name, tensor in stored.items() if not (is_task_tensor(name) or is_of_another_head(name))
    }
    heads = check(Path(folder), config, tokenizer, tensors)
    for name, tensor in stored.items():
        if is_of_another_head(name):
            _log.warning(
                "%s: %s %s is left out: no head of this project reads it.", tensor.file, tensor.name, tensor.shape
            )
    if missing := tokenizer.vocab_size - tokenizer.token_count:
        _log.log(
            _level_of_padding(tokenizer, missing),
            "%s: %d of the %d rows of the token table have no token in the vocabulary; if its file was cut short, "
            "download it again.",
            folder,
            missing,
            tokenizer.vocab_size,
        )
    return config, tokenizer, heads, tensors


def _level_of_padding(tokenizer, missing):
    """Only a list of words can be cut short without an error, and it rarely ends just before a usual multiple."""
    is_usual = any(missing < multiple and tokenizer.vocab_size % multiple == 0 for multiple in _PADDED_TO)
    return logging.INFO if is_usual or not isinstance(tokenizer, Tokenizer) else logging.WARNING


def open_folder(folder: str | os.PathLike) -> tuple[BertConfig, BaseTokenizer, dict[str, StoredTensor]]:
    """Open a model folder of any supported format: read its settings, tokenizer and the headers of its weights.

    Args:
        folder: str or path. The model folder.

    Returns:
        (`BertConfig`, tokenizer, dict of canonical name -> `StoredTensor`), with the head of a fine-tuned model.

    Raises:
        As `read`.
    """
    if not isinstance(folder, (str, os.PathLike)):
        raise CheckpointError(f"Give the folder that holds the model's files, not {folder!r:.60}.")
    folder = Path(folder)
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is not a folder; give the folder that holds the model's files.")
    config, tokenizer, tensors = _open_format(encoder_folder(folder))
    if 0 < config.vocab_size - tokenizer.vocab_size <= _MOST_PADDING:
        tokenizer = tokenizer.with_rows(config.vocab_size)
    return config, tokenizer, tensors


def _open_format(folder):
    if base_model(folder):
        return open_delta(folder, open_folder)
    if is_preset(folder):
        return open_preset(folder)
    if is_google(folder):
        return open_google(folder)
    return open_huggingface(folder)


def check(
    folder: str | os.PathLike, config: BertConfig, tokenizer: BaseTokenizer, tensors: dict[str, StoredTensor]
) -> frozenset[str]:
    """Check that the stored tensors and the vocabulary fit the settings, and that no file has changed.

    Args:
        folder: str or path. The folder, for the messages.
        config: `BertConfig`. The settings.
        tokenizer: tokenizer. Its vocabulary size is checked.
        tensors: dict of canonical name -> `StoredTensor`.

    Returns:
        frozenset of str. The heads in the checkpoint.

    Raises:
        CheckpointError: they do not fit; the message names the file, the tensor and both shapes. Or a file of the
            folder or of its base model differs from its checksum.
    """
    if tokenizer.vocab_size != config.vocab_size:
        raise CheckpointError(
            f"{folder}: the vocabulary has {tokenizer.vocab_size} tokens, but the settings "
            f"say vocab_size {config.vocab_size}; they must belong to the same model."
        )
    heads = heads_present(tensors)
    expected = tensor_shapes(config, heads | ({"pooler"} if heads & {"nsp", "sop"} else frozenset()))
    for name, tensor in tensors.items():
        if name not in expected:
            raise CheckpointError(
                f"{tensor.file}: {tensor.name} {tensor.shape} is not a tensor of "
                f"{config.architecture.with_article} model with {config.num_hidden_layers} layers and its "
                "pre-training heads."
            )
        if tensor.shape != expected[name]:
            raise CheckpointError(
                f"{tensor.file}: {tensor.name} has shape {tensor.shape}, but the settings "
                f"of {folder} need {expected[name]}."
            )
    missing = [name for name in expected if name not in tensors]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise CheckpointError(
            f"{folder}: {missing[0]} {expected[missing[0]]}{more} is missing from the "
            "weights; the file is incomplete or belongs to another model."
        )
    for part in (folder, *([find(base)] if (base := base_model(folder)) else [])):
        check_model_checksums(part)
    return heads
