"""Preparation of a model before training: weights copied from another model, and frozen layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bert_tf.models import BertModel


def copy_weights(model: BertModel, source: BertModel) -> set[str]:
    """Copies the weights that have the same name in two models.

    Args:
        model: the `BertModel` to copy to.
        source: the `BertModel` to copy from.

    Returns: set of the names of the copied weights.
    """
    from bert_tf.models import named_variables

    source_variables = named_variables(source)
    shared = {name: variable for name, variable in named_variables(model).items() if name in source_variables}
    for name, variable in shared.items():
        variable.assign(source_variables[name])
    return set(shared)


def freeze(model: BertModel, layers: int) -> None:
    """Freezes the embeddings and the lowest encoder layers: marks them as not trainable.

    Args:
        model: a `BertModel`.
        layers: int. The number of encoder layers to freeze; 0 freezes nothing, not even the embeddings.

    Raises: ValueError if the model has fewer layers, or if a frozen layer shares its weights with a trainable one.
    """
    count, possible = model.bert_config.num_hidden_layers, model.bert_config.max_frozen_layers
    if not 0 <= layers <= count:
        raise ValueError(f"--freeze-layers is {layers}; the model has {count} layers.")
    if layers not in possible:
        fewer = ", ".join(map(str, possible[:-1]))
        raise ValueError(
            f"--freeze-layers is {layers}, but layer {layers} shares its weights with layer {layers + 1}, "
            f"which is to learn; with this model it can be {fewer} or {count}."
        )
    if layers:
        for name in ("embeddings", *(f"layer_{index}" for index in range(layers))):
            model.bert_layers[name].trainable = False
