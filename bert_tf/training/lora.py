"""LoRA: low-rank updates of the encoder's dense layers (Hu et al. 2021), by Keras' own `enable_lora`.

The matrix of a dense layer is W + A B; W is frozen, A [in, R] and B [R, out] are trained. B starts with zeros, so that
the model is at first the one it starts from.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.checkpoints.lora_tensors import lora_names
from bert_tf.parameters import parameter_spec

if TYPE_CHECKING:
    import keras

    from bert_tf.models import BertModel


def add_lora(model: BertModel, rank: int, frozen_layers: int = 0) -> None:
    """Freezes the embeddings and the encoder layers, and adds a trained low-rank update to each of their dense layers.

    The pooler stays trainable: with it a head reads the first token.

    Args:
        model: a built `BertModel`, or a network with its layers.
        rank: int. R, from 1 to the smaller side of the matrices.
        frozen_layers: int. The number of the lowest layers that get no update.

    Raises: ValueError if the rank is out of range.
    """
    dense_layers = _dense_layers(model)
    most = min(min(layer.kernel.shape) for _, layer in dense_layers.values())
    if not 1 <= rank <= most:
        raise ValueError(f"--lora is {rank}; the rank of the updates must be from 1 to {most} in this model.")
    skipped = {f"layer_{index}" for index in range(frozen_layers)}
    for name, layer in model.bert_layers.items():
        if name == "embeddings" or name.startswith("layer_"):
            for variable in layer.trainable_variables:
                variable.trainable = False
    for layer_name, dense in dense_layers.values():
        if layer_name not in skipped:
            dense.enable_lora(rank)


def lora_values(model: BertModel) -> dict[str, np.ndarray]:
    """The values of the updates of a model, by the names and in the orientation of `checkpoints.lora_tensors`.

    Returns: dict str -> float32 array; empty for a model without LoRA.
    """
    values = {}
    for name, (_, dense) in _dense_layers(model).items():
        if dense.lora_enabled:
            down, up = lora_names(name)
            values[down] = np.asarray(dense.lora_kernel_a, np.float32).T
            # Keras' scale is 1, as its alpha is the rank.
            values[up] = np.asarray(dense.lora_kernel_b, np.float32).T
    return values


def _dense_layers(model: BertModel) -> dict[str, tuple[str, keras.layers.Dense]]:
    """Name of a matrix of the encoder -> (name of its layer in `bert_layers`, the dense layer)."""
    return {
        parameter.name: (
            parameter.layer,
            attrgetter(parameter.attribute.removesuffix(".kernel"))(model.bert_layers[parameter.layer]),
        )
        for parameter in parameter_spec(model.bert_config, ())
        if parameter.layer.startswith("layer_") and parameter.attribute.endswith(".kernel")
    }
