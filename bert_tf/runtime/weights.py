"""The weights of a graph: arrays that a Keras model holds, or that a file stored.

H_in and H_out are the widths of a dense layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from bert_tf.checkpoints.stored_model import StoredModel
from bert_tf.checkpoints.stored_tensor import Weight
from bert_tf.parameters import is_transposed

if TYPE_CHECKING:
    from bert_tf.models import BertModel


#: What a `Runtime` runs. Both have `bert_config`, `bert_heads` and `nbytes`.
RunnableModel: TypeAlias = "BertModel | StoredModel"


@dataclass(frozen=True)
class GraphWeight:
    """One weight of a graph.

    Attributes:
        weight: `Weight`. The values.
        is_out_in: bool. Whether a matrix of a dense layer is [H_out, H_in]; else it is [H_in, H_out].
    """

    weight: Weight
    is_out_in: bool


def graph_weights(model: RunnableModel) -> Callable[[str], GraphWeight]:
    """Return a function from a canonical name to the weight of a model.

    Args:
        model: `BertModel` or `StoredModel`. Float32 weights share its memory.

    Returns:
        callable. It raises KeyError if the model has no weight of this name.
    """
    if isinstance(model, StoredModel):
        return lambda name: GraphWeight(model.weights[name], True)
    from bert_tf.models import named_variables

    variables = named_variables(model)
    return lambda name: GraphWeight(Weight(_memory(variables[name])), not is_transposed(name))


def parameter(model: RunnableModel, name: str) -> Weight:
    """Return one weight of a model, whether its Keras model was built or not.

    Args:
        model: `BertModel` or `StoredModel`.
        name: str. The canonical name (see `checkpoints.tensor_names`).

    Returns:
        `Weight`; a matrix of a dense layer is [H_out, H_in].

    Raises:
        KeyError: the model has no weight of this name.
    """
    stored = graph_weights(model)(name)
    return stored.weight if stored.is_out_in else Weight(stored.weight.values.T)


def keras_model(model: RunnableModel) -> BertModel:
    """Return the Keras model of a `BertModel` (itself) or of a `StoredModel`."""
    return model.model if isinstance(model, StoredModel) else model


def _memory(variable):
    """A float32 array over the memory of the variable; a copy only if the variable has another dtype."""
    import keras

    if keras.backend.backend() != "tensorflow":
        return np.asarray(keras.ops.convert_to_numpy(variable.value), np.float32)
    tensor = variable.value.read_value()
    if tensor.dtype != "float32":
        return np.asarray(tensor).astype(np.float32)
    return np.asarray(memoryview(tensor))
