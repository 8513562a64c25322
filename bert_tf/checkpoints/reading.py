"""Reading a model folder of any supported format into a Keras model.

The headers are checked before a variable is created; then the tensors are read and assigned one by one. Nobody else
holds the new model until `read` returns, so no caller sees a partly loaded model.
"""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from bert_tf.checkpoints.delta import base_model, open_delta
from bert_tf.checkpoints.formats.google import find_prefix, open_google
from bert_tf.checkpoints.formats.huggingface import open_huggingface
from bert_tf.checkpoints.formats.kerashub import is_preset, open_preset
from bert_tf.checkpoints.formats.safetensors_folder import has_safetensors
from bert_tf.checkpoints.library import find
from bert_tf.checkpoints.model_checksums import check_model_checksums
from bert_tf.checkpoints.stored_tensor import StoredTensor
from bert_tf.checkpoints.tensor_names import (
    HEADS,
    heads_present,
    is_task_tensor,
    tensor_shapes,
)
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.tokenizers import BaseTokenizer

if TYPE_CHECKING:  # it imports Keras
    from bert_tf.models import BertModel

# The output of each head in the model that `read` returns.
_OUTPUTS = {head: f"{head}_logits" for head in HEADS if head != "pooler"}
_BLOCK_VALUES = 1 << 21


def read(folder: str | os.PathLike, dtype: str = "float32") -> tuple[BertConfig, BaseTokenizer, "BertModel"]:
    """Load a model from a folder of this project, of Hugging Face (safetensors), of Google (TF checkpoint) or a
    KerasHub preset.

    Args:
        folder: str or path. The model folder.
        dtype: str. The Keras dtype or dtype policy of the model ("float32", "bfloat16", "mixed_bfloat16").

    Returns:
        (`BertConfig`, tokenizer, `BertModel`). `model.bert_heads` are the heads in the files.

    Raises:
        CheckpointError: a file is missing, truncated or of an unsupported format, a tensor is unknown, missing or
            has another shape, a weight is not finite, or the vocabulary has another size.
        ConfigError, VocabularyError, OSError: the settings or the vocabulary cannot be used.
    """
    folder = Path(folder)
    config, tokenizer, tensors = open_folder(folder)
    tensors = {name: tensor for name, tensor in tensors.items() if not is_task_tensor(name)}
    heads = check(folder, config, tokenizer, tensors)
    return config, tokenizer, _load(config, heads, tensors, dtype)


def open_folder(folder: str | os.PathLike) -> tuple[BertConfig, BaseTokenizer, dict[str, StoredTensor]]:
    """Open a model folder of any supported format: read its settings, tokenizer and the headers of its weights.

    Args:
        folder: str or path. The model folder.

    Returns:
        (`BertConfig`, tokenizer, dict of canonical name -> `StoredTensor`), with the head of a fine-tuned model.

    Raises:
        As `read`.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is not a folder; give the folder that holds the model's files.")
    if base_model(folder):
        return open_delta(folder, open_folder)
    if is_preset(folder):
        return open_preset(folder)
    if not has_safetensors(folder) and find_prefix(folder):
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
                f"{tensor.file}: {tensor.name} {tensor.shape} is not a tensor of a "
                f"{config.architecture.title} model with "
                f"{config.num_hidden_layers} layers and its pre-training heads."
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


def _load(config, heads, tensors, dtype):
    # Keras and TensorFlow are imported here, so that a folder with an error is refused quickly.
    from bert_tf.layers.common import values_follow
    from bert_tf.models import build_pretraining_model, named_variables
    from bert_tf.parameters import is_transposed

    heads = tuple(head for head in HEADS if head in heads)
    outputs = [_OUTPUTS[head] for head in heads if head in _OUTPUTS]
    if not outputs:
        outputs = ["sequence_output", *(["pooled_output"] if "pooler" in heads else [])]
    with values_follow():
        model = build_pretraining_model(config, outputs=tuple(outputs), heads=heads, dtype=dtype)
    for name, variable in named_variables(model).items():
        if is_transposed(name):
            variable.assign(tensors[name].finite().T)
        else:
            _assign(variable, tensors[name])
    return model


def _assign(variable, tensor):
    """Assign a tensor to a variable; a large one in blocks of rows and in place.

    TensorFlow copies a NumPy array twice when it assigns it and keeps the freed memory. For the token embeddings, a
    fifth of Base, that would need more than half of the model's memory again.
    """
    import keras

    step = _BLOCK_VALUES // max(1, math.prod(tensor.shape[1:]))
    if keras.backend.backend() != "tensorflow" or not tensor.by_rows or tensor.shape[0] <= step:
        variable.assign(tensor.finite())
        return
    import tensorflow as tf

    for start in range(0, tensor.shape[0], step):
        stop = min(start + step, tensor.shape[0])
        block = keras.ops.cast(tensor.finite(slice(start, stop)), variable.dtype)
        variable.value.scatter_update(tf.IndexedSlices(block, tf.range(start, stop)))
