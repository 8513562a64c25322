"""A model folder, in any of the formats, made into a Keras model.

Everything that can be known from headers is checked before a variable exists; then one tensor after the other
is read and assigned. The model is new and nobody else's until `read` returns, so none is ever seen half
loaded.
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

# What a model with all heads, and one with fewer, gives when it is called as it comes.
_OUTPUTS = {head: f"{head}_logits" for head in HEADS if head != "pooler"}
_BLOCK_VALUES = 1 << 21


def read(folder: str | os.PathLike, dtype: str = "float32") -> tuple[BertConfig, BaseTokenizer, "BertModel"]:
    """Loads a model: our own folder, Hugging Face's (safetensors), Google's TF checkpoint, a KerasHub preset.

    Args:
        folder: path of the model folder.
        dtype: Keras dtype or dtype policy of the model ("float32", "bfloat16", "mixed_bfloat16").

    Returns: (BertConfig, Tokenizer, BertModel). The heads that the files have are in `model.bert_heads`.

    Raises:
        CheckpointError: a file is missing, truncated or of a format that is not read, a tensor is unknown,
            missing or of another shape, a weight is not finite, or the vocabulary is of another size.
        ConfigError, VocabularyError, OSError: the settings or the vocabulary cannot be used.
    """
    folder = Path(folder)
    config, tokenizer, tensors = open_folder(folder)
    tensors = {name: tensor for name, tensor in tensors.items() if not is_task_tensor(name)}
    heads = check(folder, config, tokenizer, tensors)
    return config, tokenizer, _load(config, heads, tensors, dtype)


def open_folder(folder: str | os.PathLike) -> tuple[BertConfig, BaseTokenizer, dict[str, StoredTensor]]:
    """Settings, tokenizer and the weights' headers of a folder in any of the formats.

    Returns: (BertConfig, Tokenizer, dict canonical name -> StoredTensor), a fine-tuned model's head included.

    Raises: as `read`.
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
    """Compares what is stored with what the settings ask for.

    Args:
        folder: for the messages. config: BertConfig. tokenizer: Tokenizer.
        tensors: dict canonical name -> StoredTensor.

    Returns: frozenset of the heads the checkpoint has.

    Raises:
        CheckpointError: naming the file, the tensor and both shapes.
    """
    if tokenizer.vocab_size != config.vocab_size:
        raise CheckpointError(
            f"{folder}: the vocabulary has {tokenizer.vocab_size} tokens, but the settings "
            f"say vocab_size {config.vocab_size}; they must be of the same model."
        )
    heads = heads_present(tensors)
    expected = tensor_shapes(config, heads | ({"pooler"} if heads & {"nsp", "sop"} else frozenset()))
    for name, tensor in tensors.items():
        if name not in expected:
            raise CheckpointError(
                f"{tensor.file}: {tensor.name} {tensor.shape} is no tensor of a "
                f"{config.architecture.title} model with "
                f"{config.num_hidden_layers} layers and its pre-training heads."
            )
        if tensor.shape != expected[name]:
            raise CheckpointError(
                f"{tensor.file}: {tensor.name} has shape {tensor.shape}, but the settings "
                f"of {folder} ask for {expected[name]}."
            )
    missing = [name for name in expected if name not in tensors]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise CheckpointError(
            f"{folder}: {missing[0]} {expected[missing[0]]}{more} is missing from the "
            "weights; the file is incomplete or of another model."
        )
    return heads


def _load(config, heads, tensors, dtype):
    # Keras and TensorFlow are imported here, so that a folder that is refused costs nothing.
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
    """Assigns a tensor; a large one in blocks of rows and in place.

    TensorFlow copies a NumPy array twice on its way into a variable and keeps the memory it freed: for the
    token table, a fifth of Base, that alone would be over half of the whole model again.
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
