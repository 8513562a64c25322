"""Folders in the layout of Hugging Face and of this project: config.json, vocab.txt, model.safetensors."""

import os
from pathlib import Path

import numpy as np

from bert_tf.checkpoints.formats.safetensors_folder import open_tensors
from bert_tf.checkpoints.stored_tensor import StoredTensor
from bert_tf.checkpoints.tensor_names import canonical_name, task_names
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.tokenizers import BaseTokenizer, read_tokenizer

_TABLE = "bert.embeddings.word_embeddings.weight"
_BIAS = "cls.predictions.bias"
_DECODER_TABLE, _DECODER_BIAS = "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"


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
    tensors = _canonical(open_tensors(folder), config.architecture)
    return config, read_tokenizer(folder), _tied(tensors)


def _canonical(stored, architecture):
    tensors: dict[str, StoredTensor] = {}
    for name, tensor in stored.items():
        if name.startswith("bert.") and architecture.prefix != "bert":
            raise CheckpointError(
                f"{tensor.file}: {name} is a tensor of BERT, but the settings say "
                f"model_type {architecture.model_type!r}; they must belong to the same model."
            )
        canonical = canonical_name(name, architecture)
        if canonical in tensors:
            raise CheckpointError(f"{tensor.file} has {canonical} twice, as {tensors[canonical].name} and as {name}.")
        if canonical is not None:
            tensors[canonical] = tensor
    other = task_names(tensors, architecture)
    return {other.get(name, name): tensor for name, tensor in tensors.items()}


def _tied(tensors):
    """Remove the decoder: its matrix equals the token embeddings, its bias the bias of the MLM head."""
    matrix, bias = tensors.pop(_DECODER_TABLE, None), tensors.pop(_DECODER_BIAS, None)
    if matrix is not None and _TABLE in tensors:
        _check_equal(matrix, tensors[_TABLE])
    if bias is not None:
        _check_equal(bias, tensors.setdefault(_BIAS, bias))
    return tensors


def _check_equal(tensor, original):
    if tensor is original:
        return
    if tensor.shape != original.shape or not np.array_equal(tensor.read(), original.read()):
        raise CheckpointError(
            f"{tensor.file}: {tensor.name} {tensor.shape} is not the same as {original.name} "
            f"{original.shape}; in this model they are one tensor (BERT's tied output embeddings), so a checkpoint "
            "with two different tensors cannot be read."
        )
