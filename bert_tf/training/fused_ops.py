"""GELU and layer normalisation, each in one pass over memory, for training on a CPU.

TensorFlow runs each of them as a dozen operations, and each operation reads and writes a whole tensor, in the forward
and in the backward pass. Here XLA compiles each into one operation. XLA would not make the matrix products between
them faster, so they are not compiled with it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import tensorflow as tf

from bert_tf.layers.common import LayerNorm, exact_gelu

if TYPE_CHECKING:
    import keras


def can_fuse(precision: str, strategy: tf.distribute.Strategy | None, jit_compile: bool) -> bool:
    """Whether `fuse` makes a training faster.

    It does on one CPU with bfloat16 matrix products: these are so fast that the operations between them take most of a
    step. It does not if XLA compiles the whole step anyway.

    Args:
        precision: str. One of `training.precision.PRECISIONS`.
        strategy: `tf.distribute.Strategy`, or None for one device.
        jit_compile: bool. Whether XLA compiles the whole step.

    Returns: bool.
    """
    one_processor = strategy is None and not tf.config.list_physical_devices("GPU")
    return one_processor and not jit_compile and precision == "bfloat16_products"


def fuse(model: keras.Model) -> None:
    """Replaces the GELUs and layer normalisations of a built float32 model by the fused ones; the values stay the same.

    Args:
        model: a built Keras model.
    """
    for layer in model._flatten_layers():
        if isinstance(layer, LayerNorm):
            layer.normalise = normalise
        elif getattr(layer, "activation", None) is exact_gelu:
            layer.activation = gelu


@tf.custom_gradient
def gelu(x: tf.Tensor) -> tf.Tensor:
    """`layers.common.exact_gelu` of a float32 tensor."""
    return _gelu(x), lambda gradient: _gelu_back(x, gradient)


def normalise(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float) -> tf.Tensor:
    """`layers.common.normalise` of float32 tensors."""

    @tf.custom_gradient
    def normalised(x, gamma, beta):
        def back(gradient):
            axes = list(range(x.shape.rank - 1))
            x_gradient, gamma_gradient = _normalise_back(x, gamma, gradient, epsilon)
            return x_gradient, tf.reduce_sum(gamma_gradient, axes), tf.reduce_sum(gradient, axes)

        return _normalise(x, gamma, beta, epsilon), back

    epsilon = tf.constant(epsilon, tf.float32)
    return normalised(x, gamma, beta)


def _one_pass(function):
    return tf.function(function, jit_compile=True, autograph=False)


@_one_pass
def _gelu(x):
    return x * _normal_cdf(x)


@_one_pass
def _gelu_back(x, gradient):
    density = tf.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return gradient * (_normal_cdf(x) + x * density)


def _normal_cdf(x):
    """The cumulative distribution function of the standard normal distribution."""
    return 0.5 * (1 + tf.math.erf(x / math.sqrt(2)))


@_one_pass
def _normalise(x, gamma, beta, epsilon):
    return _standardise(x, epsilon)[0] * gamma + beta


@_one_pass
def _normalise_back(x, gamma, gradient, epsilon):
    """(gradient by x, gradient by gamma at each position before the sum over positions)."""
    standardised, scale = _standardise(x, epsilon)
    inner = gradient * gamma
    # The part of the gradient that would change the mean or the variance: normalisation takes it out.
    removed = tf.reduce_mean(inner, -1, keepdims=True) + standardised * tf.reduce_mean(
        inner * standardised, -1, keepdims=True
    )
    return scale * (inner - removed), gradient * standardised


def _standardise(x, epsilon):
    """(x with mean 0 and variance 1 over the last axis, the factor that x minus its mean was multiplied by)."""
    centred = x - tf.reduce_mean(x, -1, keepdims=True)
    scale = tf.math.rsqrt(tf.reduce_mean(tf.square(centred), -1, keepdims=True) + epsilon)
    return centred * scale, scale
