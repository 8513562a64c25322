"""How exactly a model computes while it trains."""

import keras

PRECISIONS = ("float32", "bfloat16_products", "mixed_bfloat16", "mixed_float16")


def build_policy(precision):
    """The Keras dtype policy to build a model with.

    Raises: ValueError if the precision is not one of `PRECISIONS`.
    """
    _check(precision)
    return precision if precision.startswith("mixed_") else "float32"


def products_dtype(precision):
    """Dtype in which an optimiser may multiply matrices: narrow where the model's own products are.

    Float16 has too few exponents for them, and machines that are fast in it alone do well in float32."""
    _check(precision)
    return "bfloat16" if "bfloat16" in precision else "float32"


def with_loss_scale(optimizer, variables, precision, initial_scale=2.0**15, growth_steps=2000):
    """The optimiser with a dynamic loss scale where the precision needs one (Micikevicius et al. 2018,
    section 3.2).

    A step with a gradient that is not finite is left out and halves the scale; `growth_steps` good ones in a
    row double it. Keras' wrapper looks at one replica's gradients only, so it is right just because
    `training.step` hands it the sum over all replicas: an inf or nan of any is one of the sum.

    Args:
        optimizer: a built Keras optimiser. variables: those it was built with. precision: one of
            `PRECISIONS`.

    Returns: for `mixed_float16` a built `keras.optimizers.LossScaleOptimizer` around it, else itself.
    """
    if precision != "mixed_float16":
        return optimizer
    optimizer = keras.optimizers.LossScaleOptimizer(
        optimizer, initial_scale=initial_scale, dynamic_growth_steps=growth_steps
    )
    optimizer.build(variables)
    return optimizer


def apply_precision(model, precision):
    """Sets how a built model computes; its variables stay float32.

    `bfloat16_products` runs the matrix products of the Dense layers (and of the tied output table, which
    follows the transform before it) in bfloat16 and all else in float32. On CPUs with AVX512-BF16 the
    products are twice as fast, while elementwise bfloat16 is several times slower than float32: that is why
    `mixed_bfloat16`, right for GPU and TPU, is the wrong choice there. `mixed_float16` is for older GPUs and
    needs `with_loss_scale`.
    """
    _check(precision)
    if precision == "bfloat16_products":
        for layer in model._flatten_layers():
            if isinstance(layer, keras.layers.Dense):
                layer.dtype_policy = keras.DTypePolicy("mixed_bfloat16")


def _check(precision):
    if precision not in PRECISIONS:
        raise ValueError(f"There is no precision {precision!r}; choose from {', '.join(PRECISIONS)}.")
