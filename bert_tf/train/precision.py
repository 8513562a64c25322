"""How exactly a model computes while it trains."""

import keras

PRECISIONS = ("float32", "bfloat16_products", "mixed_bfloat16")


def build_policy(precision):
    """The Keras dtype policy to build a model with."""
    return "mixed_bfloat16" if precision == "mixed_bfloat16" else "float32"


def apply_precision(model, precision):
    """Sets how a built model computes; its variables stay float32.

    `bfloat16_products` runs the matrix products of the Dense layers (and of the tied output table, which
    follows the transform before it) in bfloat16 and all else in float32. On CPUs with AVX512-BF16 the
    products are twice as fast, while elementwise bfloat16 is several times slower than float32: that is why
    `mixed_bfloat16`, right for GPU and TPU, is the wrong choice there.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"There is no precision {precision!r}; choose from {', '.join(PRECISIONS)}.")
    if precision == "bfloat16_products":
        for layer in model._flatten_layers():
            if isinstance(layer, keras.layers.Dense):
                layer.dtype_policy = keras.DTypePolicy("mixed_bfloat16")
