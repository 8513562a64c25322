"""Backward rules of LRP and DeepLIFT for the nonlinear steps of a model.

Dimension legend: B rows, T tokens, H hidden, K outcomes of a head.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from bert_tf.inference.hooked_model import frozen_norm, log_odds
from bert_tf.layers.hook_points import MASKED_SCORE

if TYPE_CHECKING:
    from bert_tf.layers.common import LayerNorm

#: For smaller differences the gradient at the midpoint is more exact than a quotient of rounded differences.
_SMALL_DIFFERENCE = 1e-3


class BackwardRules(ABC):
    """The backward rules of a method for nonlinear steps; each function returns the true value of its step.

    Attributes:
        name: str. Name of the method, a part of the keys of compiled functions.
        with_biases: bool. Whether biases receive a share of the attribution.
    """

    name = ""
    with_biases = False

    @abstractmethod
    def product(self, a: tf.Tensor, b: tf.Tensor, value: tf.Tensor | None = None) -> tf.Tensor:
        """The matrix product of two tensors that both depend on the input.

        Args:
            a: float32 [..., I, J].
            b: float32 [..., J, K].
            value: float32 [..., I, K] or None. The product, if it is already computed.
        """

    @abstractmethod
    def softmax(self, scores: tf.Tensor, value: tf.Tensor | None = None) -> tf.Tensor:
        """Softmax over the last axis; scores near `MASKED_SCORE` or below belong to masked keys.

        Args:
            scores: float32 [..., K].
            value: float32 [..., K] or None. The softmax, if it is already computed.
        """

    @abstractmethod
    def activation(self, function: Callable[[tf.Tensor], tf.Tensor], x: tf.Tensor) -> tf.Tensor:
        """An elementwise function of x."""

    def norm(self, layers: Sequence[LayerNorm], x: tf.Tensor) -> tf.Tensor:
        """The `LayerNorm`s of S stacks side by side, each over its part of the width of x [..., H]."""
        parts = zip(layers, tf.split(x, len(layers), axis=-1))
        normalised = [
            self.normalise(part, tf.convert_to_tensor(layer.gamma), tf.convert_to_tensor(layer.beta), layer.epsilon)
            for layer, part in parts
        ]
        return tf.concat(normalised, axis=-1)

    @abstractmethod
    def normalise(self, x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float) -> tf.Tensor:
        """Layer normalisation of x over its last axis."""

    @abstractmethod
    def highest(self, x: tf.Tensor) -> tf.Tensor:
        """The maximum over the tokens of x [B, T, H], [B, H]."""

    @abstractmethod
    def one_of_all(self, logits: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
        """The score [B] of outcome `wanted` of K exclusive outcomes, from their logits [B, K]."""

    @abstractmethod
    def yes_or_no(self, logit: tf.Tensor) -> tf.Tensor:
        """The score [B] of an outcome whose probability is the sigmoid of its logit [B]."""


class LRPRules(BackwardRules):
    """LRP (`lrp`): attention weights, standard deviations and the gates of activations are constants."""

    name, with_biases = "lrp", True

    def product(self, a: tf.Tensor, b: tf.Tensor, value: tf.Tensor | None = None) -> tf.Tensor:
        return tf.matmul(a, b) if value is None else value

    def softmax(self, scores: tf.Tensor, value: tf.Tensor | None = None) -> tf.Tensor:
        return tf.stop_gradient(tf.nn.softmax(scores) if value is None else value)

    def activation(self, function: Callable[[tf.Tensor], tf.Tensor], x: tf.Tensor) -> tf.Tensor:
        nonzero = tf.where(x == 0, 1e-6, x)  # avoids 0 / 0; the gate at 1e-6 is almost that at 0
        return x * tf.stop_gradient(function(nonzero) / nonzero)

    def normalise(self, x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float) -> tf.Tensor:
        return frozen_norm(x, gamma, beta, epsilon)

    def highest(self, x: tf.Tensor) -> tf.Tensor:
        return tf.reduce_max(x, axis=1)

    def one_of_all(self, logits: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
        return log_odds(logits, wanted)

    def yes_or_no(self, logit: tf.Tensor) -> tf.Tensor:
        return logit


class DeepLiftRules(BackwardRules):
    """DeepLIFT (`deeplift`): multipliers in place of gradients, from the differences between the second row and the
    first.

    The first row, the reference, is constant: its gradients have no meaning. Each step returns its true value plus a
    linear function, with the multipliers, of a difference that is 0 (`_zero`). (`tf.custom_gradient` would do too, but
    TensorFlow registers each function with one for ever, with the weights that it captures.)
    """

    name = "deeplift"

    def product(self, a: tf.Tensor, b: tf.Tensor, value: tf.Tensor | None = None) -> tf.Tensor:
        value = tf.matmul(a, b) if value is None else value
        mean_a, mean_b = (tf.stop_gradient(tf.reduce_mean(x, axis=0, keepdims=True)) for x in (a, b))
        return tf.stop_gradient(value) + tf.matmul(_zero(a), mean_b) + tf.matmul(mean_a, _zero(b))

    def softmax(self, scores: tf.Tensor, value: tf.Tensor | None = None) -> tf.Tensor:
        unmasked = tf.cast(scores[:1] > MASKED_SCORE / 2, tf.float32)
        logs = tf.stop_gradient(tf.nn.log_softmax(scores))
        return tf.exp(logs) + tf.exp(_log_between(*tf.split(logs, 2))) * _log_softmax_change(scores, unmasked)

    def activation(self, function: Callable[[tf.Tensor], tf.Tensor], x: tf.Tensor) -> tf.Tensor:
        y = tf.stop_gradient(function(x))
        midpoint = tf.stop_gradient(tf.reduce_mean(x, axis=0, keepdims=True))
        with tf.GradientTape() as tape:
            tape.watch(midpoint)
            value = function(midpoint)
        slope, change = tape.gradient(value, midpoint), x[1:] - x[:1]
        is_small = tf.abs(change) < _SMALL_DIFFERENCE
        multiplier = tf.where(is_small, slope, (y[1:] - y[:1]) / tf.where(is_small, 1.0, change))
        return y + tf.stop_gradient(multiplier) * _zero(x)

    def normalise(self, x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float) -> tf.Tensor:
        centred = tf.stop_gradient(x - tf.reduce_mean(x, axis=-1, keepdims=True))
        scale = tf.math.rsqrt(tf.reduce_mean(centred**2, axis=-1, keepdims=True) + epsilon)
        mean, (before, after) = tf.reduce_mean(centred, axis=0, keepdims=True), tf.split(scale, 2)
        at_centred = _zero(x) - tf.reduce_mean(_zero(x), axis=-1, keepdims=True)
        # Through the mean of the squares v, and through 1 / sqrt(v): the difference of the results divided by the
        # difference of v.
        at_squares = tf.reduce_mean(2 * mean * at_centred, axis=-1, keepdims=True)
        at_scale = -((before * after) ** 2) / (before + after) * at_squares
        return (centred * scale + at_centred * (before + after) / 2 + mean * at_scale) * gamma + beta

    def highest(self, x: tf.Tensor) -> tf.Tensor:
        """The maximum; the token that is highest in the row with the higher maximum receives the whole difference. Its
        own difference is at least as large."""
        maximum = tf.stop_gradient(tf.reduce_max(x, axis=1))
        before, after = tf.split(tf.argmax(x, axis=1, output_type=tf.int32), 2)
        change = maximum[1:] - maximum[:1]
        token = tf.one_hot(tf.where(change >= 0, after, before), tf.shape(x)[1], axis=1)
        token_change = tf.reduce_sum((x[1:] - x[:1]) * token, axis=1)
        share = tf.where(token_change == 0, 1.0, change / tf.where(token_change == 0, 1.0, token_change))
        return maximum + tf.stop_gradient(share) * tf.reduce_sum(token * _zero(x), axis=1)

    def one_of_all(self, logits: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
        """The log-probability."""
        value = tf.stop_gradient(tf.nn.log_softmax(logits))
        return tf.gather(value + _log_softmax_change(logits, tf.ones_like(logits[:1])), wanted, axis=1)

    def yes_or_no(self, logit: tf.Tensor) -> tf.Tensor:
        """The log-probability."""
        return self.activation(tf.math.log_sigmoid, logit)


def _zero(x: tf.Tensor) -> tf.Tensor:
    """Zeros, of which x has the gradient."""
    return x - tf.stop_gradient(x)


def _log_softmax_change(x: tf.Tensor, unmasked: tf.Tensor) -> tf.Tensor:
    """Zeros, of which x [2, ..., K] has the multipliers of x - log(sum(exp(x))) over the last axis.

    The Rescale rule applies to the logarithm and to each exp. Softmax does not change if a constant is added to all of
    x, so the mean over the unmasked entries is subtracted first.

    Args:
        x: float32 [2, ..., K].
        unmasked: float32 [1, ..., K]. 1 for unmasked entries, else 0.
    """
    count = tf.reduce_sum(unmasked, axis=-1, keepdims=True)

    def centre(x):
        return x - tf.reduce_sum(x * unmasked, axis=-1, keepdims=True) / count

    centred = tf.stop_gradient(centre(x))
    log_sum = _log_between(*tf.split(tf.reduce_logsumexp(centred, axis=-1, keepdims=True), 2))
    shares = tf.exp(_log_between(*tf.split(centred, 2)) - log_sum)
    change = centre(_zero(x))
    return change - tf.reduce_sum(shares * change, axis=-1, keepdims=True)


def _log_between(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """The logarithm of (exp(a) - exp(b)) / (a - b), which lies between exp(a) and exp(b)."""
    distance = tf.abs(a - b)
    is_small = distance < 1e-3
    safe = tf.where(is_small, 1.0, distance)
    return tf.maximum(a, b) + tf.where(is_small, -distance / 2, tf.math.log(-tf.math.expm1(-safe) / safe))
