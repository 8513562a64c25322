"""GELU and layer normalisation, each in one pass over memory, for training on a processor.

TensorFlow runs them as a dozen operations that each read and write a whole tensor, forwards and again backwards. XLA
makes one of each, where it would be no faster with the matrix products between them.
"""

import math

import tensorflow as tf

from bert_tf.layers.common import LayerNorm, exact_gelu


def can_fuse(precision, strategy, jit_compile):
    """Whether `fuse` is for a training: on one processor, with products so fast that what is between them is most of a
    step, and not all of it XLA's."""
    one_processor = strategy is None and not tf.config.list_physical_devices("GPU")
    return one_processor and not jit_compile and precision == "bfloat16_products"


def fuse(model):
    """Lets a built float32 model's GELUs and layer normalisations run so; what they compute stays the same."""
    for layer in model._flatten_layers():
        if isinstance(layer, LayerNorm):
            layer.normalise = normalise
        elif getattr(layer, "activation", None) is exact_gelu:
            layer.activation = gelu


@tf.custom_gradient
def gelu(x):
    """`layers.common.exact_gelu` of a float32 tensor."""
    return _gelu(x), lambda slope: _gelu_back(x, slope)


def normalise(x, gamma, beta, epsilon):
    """`layers.common.normalise` of float32 tensors."""

    @tf.custom_gradient
    def normalised(x, gamma, beta):
        def back(slope):
            axes = list(range(x.shape.rank - 1))
            by_x, by_gamma = _normalise_back(x, gamma, slope, epsilon)
            return by_x, tf.reduce_sum(by_gamma, axes), tf.reduce_sum(slope, axes)

        return _normalise(x, gamma, beta, epsilon), back

    epsilon = tf.constant(epsilon, tf.float32)
    return normalised(x, gamma, beta)


def _one_pass(function):
    return tf.function(function, jit_compile=True, autograph=False)


@_one_pass
def _gelu(x):
    return x * _share_below(x)


@_one_pass
def _gelu_back(x, slope):
    density = tf.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return slope * (_share_below(x) + x * density)


def _share_below(x):
    return 0.5 * (1 + tf.math.erf(x / math.sqrt(2)))


@_one_pass
def _normalise(x, gamma, beta, epsilon):
    return _normal(x, epsilon)[0] * gamma + beta


@_one_pass
def _normalise_back(x, gamma, slope, epsilon):
    normal, scale = _normal(x, epsilon)
    inner = slope * gamma
    along = tf.reduce_mean(inner, -1, keepdims=True) + normal * tf.reduce_mean(inner * normal, -1, keepdims=True)
    return scale * (inner - along), slope * normal


def _normal(x, epsilon):
    """(x with mean 0 and variance 1 over the last axis, what it was multiplied by)."""
    centred = x - tf.reduce_mean(x, -1, keepdims=True)
    scale = tf.math.rsqrt(tf.reduce_mean(tf.square(centred), -1, keepdims=True) + epsilon)
    return centred * scale, scale
