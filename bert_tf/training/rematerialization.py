"""Rematerialisation: the backward pass computes encoder layers again instead of storing them (Chen et al. 2016).

Memory then holds the activations of one layer instead of all layers, and a step takes about a third more time.

`keras.remat` is not used alone: a layer with dropout would draw another mask the second time, and its gradients would
be those of another network. Here the second computation gets the weights and seeds of the first one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras
import tensorflow as tf

if TYPE_CHECKING:
    from bert_tf.models import BertModel


def rematerialise(model: BertModel) -> None:
    """Makes a `BertModel` compute its encoder layers twice in training; values and gradients stay the same.

    Args:
        model: a `BertModel`.
    """
    # Layers that share their weights are one object, which must be changed only once.
    for layer in {id(layer): layer for name, layer in model.bert_layers.items() if name.startswith("layer_")}.values():
        _rematerialise_layer(layer)


def _rematerialise_layer(layer):
    plain = layer.call
    seeds = _seed_states(layer)

    def call(x, bias, training=False, **others):
        if not training or any(others.values()):
            return plain(x, bias, training=training, **others)
        variables = [*layer.trainable_variables, *seeds]
        drawn: list = []

        @tf.recompute_grad
        def compute(x, *values):
            with keras.StatelessScope(state_mapping=list(zip(variables, values))) as scope:
                y = plain(x, bias, training=True)
            if not drawn:
                drawn.extend(scope.get_current_value(seed) for seed in seeds)
            return y

        y = compute(x, *(tf.convert_to_tensor(variable.value) for variable in variables))
        for seed, value in zip(seeds, drawn):
            seed.assign(value)
        return y

    layer.call = call


def _seed_states(layer):
    weights = {id(variable) for variable in layer.weights}
    return [variable for variable in layer.variables if id(variable) not in weights]
