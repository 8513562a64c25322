"""Folders in the layout of Hugging Face and of this project: config.json, vocab.txt, model.safetensors."""

import os
from pathlib import Path

import numpy as np

from bert_tf.checkpoints.formats.keras_h5 import H5_FILE, open_h5
from bert_tf.checkpoints.formats.safetensors_folder import has_safetensors, open_tensors
from bert_tf.checkpoints.stored_tensor import StoredTensor
from bert_tf.checkpoints.tensor_names import canonical_name, task_names, unread_pooler
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.parameters import OUTPUT_BIAS, OUTPUT_TABLE, REPEATED_BIAS
from bert_tf.tokenizers import BaseTokenizer, read_tokenizer

_TABLE = "bert.embeddings.word_embeddings.weight"


def open_huggingface(folder: str | os.PathLike) -> tuple[BertConfig, BaseTokenizer, dict[str, StoredTensor]]:
    """Read the settings, the tokenizer and the headers of the weights of a folder.

    Returns:
        (`BertConfig`, tokenizer, dict of canonical name -> `StoredTensor`).

    Raises:
        CheckpointError, ConfigError, VocabularyError, OSError: a file is missing or cannot be used.
    """
    folder = Path(folder)
    if not (folder / "config.json").is_file():
        raise CheckpointError(
            f"{folder} has no config.json; a model folder needs config.json, vocab.txt and model.safetensors."
        )
    config = BertConfig.from_json(folder / "config.json")
    tensors = _canonical(open_weights(folder), config.architecture)
    is_tied = _tied(tensors)
    return config.replace(tie_word_embeddings=is_tied), read_tokenizer(folder), tensors


def open_weights(folder: Path) -> dict[str, StoredTensor]:
    """Read the headers of a folder's weights: its safetensors, else its tf_model.h5; errors as `open_tensors`."""
    if not has_safetensors(folder) and (folder / H5_FILE).is_file():
        return open_h5(folder)
    return open_tensors(folder)


def _canonical(stored, architecture):
    tensors: dict[str, StoredTensor] = {}
    unread = unread_pooler(stored, architecture)
    for name, tensor in stored.items():
        if name.startswith("bert.") and architecture.prefix != "bert":
            raise CheckpointError(
                f"{tensor.file}: {name} is a tensor of BERT, but the settings say "
                f"model_type {architecture.model_type!r}; they must belong to the same model."
            )
        # Under its stored name it is the tensor of an unknown head, which is left out.
        canonical = unread.get(name) or canonical_name(name, architecture)
        if canonical in tensors:
            raise CheckpointError(f"{tensor.file} has {canonical} twice, as {tensors[canonical].name} and as {name}.")
        if canonical is not None:
            tensors[canonical] = tensor
    other = task_names(tensors, architecture)
    return {other.get(name, name): tensor for name, tensor in tensors.items()}


def _tied(tensors):
    """Remove what the output layer only repeats, and return whether its table is the token embedding table.

    Transformers reads the decoder's bias where it differs from the bias of the MLM head, and does not tie a table that
    differs from the token embeddings.
    """
    table, bias = tensors.get(OUTPUT_TABLE), tensors.pop(REPEATED_BIAS, None)
    if bias is not None:
        tensors[OUTPUT_BIAS] = bias
    original = tensors.get(_TABLE)
    if table is None or original is None:
        return True
    if table is not original:
        if table.shape != original.shape:
            raise CheckpointError(
                f"{table.file}: {table.name} {table.shape} and {original.name} {original.shape} have different shapes; "
                "both have one row for each token, so the file is damaged or belongs to another model."
            )
        if not np.array_equal(table.read(), original.read()):
            return False
    del tensors[OUTPUT_TABLE]
    return True
