"""The numerical precision of training: the data types of matrix products and of the other operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras

if TYPE_CHECKING:
    from collections.abc import Sequence


PRECISIONS = ("float32", "bfloat16_products", "mixed_bfloat16", "mixed_float16")


def build_policy(precision: str) -> str:
    """The name of the Keras dtype policy to build a model with.

    Args:
        precision: str. One of `PRECISIONS`.

    Returns: str.

    Raises: ValueError if the precision is not one of `PRECISIONS`.
    """
    _check(precision)
    return precision if precision.startswith("mixed_") else "float32"


def products_dtype(precision: str) -> str:
    """The dtype in which an optimiser multiplies matrices: bfloat16 if the model's own products are in bfloat16.

    With float16 the optimiser uses float32: the exponent range of float16 is too small for these products, and GPUs
    that are fast in float16 only are fast enough in float32.

    Args:
        precision: str. One of `PRECISIONS`.

    Returns: "bfloat16" or "float32".

    Raises: ValueError if the precision is not one of `PRECISIONS`.
    """
    _check(precision)
    return "bfloat16" if "bfloat16" in precision else "float32"


def with_loss_scale(
    optimizer: keras.optimizers.Optimizer,
    variables: Sequence[keras.Variable],
    precision: str,
    initial_scale: float = 2.0**15,
) -> keras.optimizers.Optimizer:
    """Adds a dynamic loss scale to an optimiser if the precision needs one (Micikevicius et al. 2018, section 3.2).

    A step with a gradient that is not finite is skipped and halves the scale; 2,000 finite steps in a row
    double it. Keras' wrapper checks the gradients of one replica only. That is enough here, because `training.step`
    passes the sum over all replicas: an inf or nan of any replica makes the sum inf or nan.

    Args:
        optimizer: a built Keras optimiser.
        variables: list of the Keras variables that it was built with.
        precision: str. One of `PRECISIONS`.
        initial_scale: float. The loss scale of the first step.

    Returns: for `mixed_float16` a built `keras.optimizers.LossScaleOptimizer` around the optimiser, else the optimiser.
    """
    if precision != "mixed_float16":
        return optimizer
    optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale, dynamic_growth_steps=2000)
    optimizer.build(variables)
    return optimizer


def apply_precision(model: keras.Model, precision: str) -> None:
    """Sets the compute dtype of a built model; its variables stay float32.

    `bfloat16_products` runs the matrix products of the Dense layers (and of the tied output table, which follows the
    transform before it) in bfloat16 and everything else in float32. On CPUs with AVX512-BF16 the products are twice as
    fast, but elementwise bfloat16 operations are several times slower than in float32. So `mixed_bfloat16`, the right
    choice for GPU and TPU, is the wrong choice there. `mixed_float16` is for older GPUs and needs `with_loss_scale`.

    Args:
        model: a built Keras model.
        precision: str. One of `PRECISIONS`.

    Raises: ValueError if the precision is not one of `PRECISIONS`.
    """
    _check(precision)
    if precision == "bfloat16_products":
        for layer in model._flatten_layers():
            if isinstance(layer, keras.layers.Dense):
                layer.dtype_policy = keras.DTypePolicy("mixed_bfloat16")


def _check(precision):
    if precision not in PRECISIONS:
        raise ValueError(f"There is no precision {precision!r}; choose from {', '.join(PRECISIONS)}.")
