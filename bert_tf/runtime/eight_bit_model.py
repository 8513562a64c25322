"""A Keras model whose dense layers store their matrices in eight bits, by Keras' own quantization.

Each row [in] of a matrix, in our orientation [out, in], has one scale, as in `bert_tf.checkpoints.quantize`: a model
whose folder has eight bits keeps its numbers. Products are computed in float32. The tables of embeddings stay float32,
as Keras quantizes layers and these tables are weights of ours.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import keras

from bert_tf.layers.common import register
from bert_tf.models import BertModel


@register
class EightBitModel(keras.Model):
    """A functional model with dense layers in eight bits; Keras loads it with them.

    Args:
        inputs, outputs, name: As for `keras.Model`.

    Call arguments and returns are those of the model that was given to `eight_bit_copy`.
    """

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> keras.Model:
        model = super().from_config(config, custom_objects)
        _quantize(model)
        return model


def eight_bit_copy(model: keras.Model) -> EightBitModel:
    """Copy a functional model and quantize the dense layers of the copy.

    Args:
        model: `BertModel` or `TaskNetwork`. It is not changed.

    Returns:
        `EightBitModel` with inputs and outputs of the same names.
    """
    if isinstance(model, BertModel):
        # As one layer: it recreates from its settings what its layers share.
        copy = BertModel.from_config(model.get_config())
        copy.set_weights(model.get_weights())
        inputs = {
            name: keras.Input(tensor.shape[1:], dtype=tensor.dtype, name=name) for name, tensor in model.input.items()
        }
        outputs = copy(inputs)
    else:
        plain = keras.Model(inputs=model.input, outputs=model.output, name=model.name)
        copy = keras.Model.from_config(plain.get_config())
        copy.set_weights(model.get_weights())
        inputs, outputs = copy.input, copy.output
    result = EightBitModel(inputs=inputs, outputs=outputs, name=model.name)
    _quantize(result)
    return result


def _quantize(model):
    settings = keras.quantizers.Int8QuantizationConfig(activation_quantizer=None)
    with existing_objects_frozen():
        for layer in model._flatten_layers():
            if isinstance(layer, keras.layers.Dense) and layer.quantization_mode is None:
                layer.quantize("int8", config=settings)


@contextlib.contextmanager
def existing_objects_frozen() -> Iterator[None]:
    """A context in which Keras quantizes layers quickly.

    Keras looks for garbage among all objects of the process after each layer, half a second each. While the objects
    that exist are frozen, it looks among the new ones alone.
    """
    frozen_before = gc.get_freeze_count()
    gc.freeze()
    try:
        yield
    finally:
        if not frozen_before:
            gc.unfreeze()
