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

    The first row, the reference, is constant: its gradients have no meaning.
    """

    name = "deeplift"

    def product(self, a: tf.Tensor, b: tf.Tensor, value: tf.Tensor | None = None) -> tf.Tensor:
        @tf.custom_gradient
        def step(a, b):
            def back(gradient):
                mean_a, mean_b = (tf.reduce_mean(x, axis=0, keepdims=True) for x in (a, b))
                return tf.matmul(gradient, mean_b, transpose_b=True), tf.matmul(mean_a, gradient, transpose_a=True)

            return (tf.matmul(a, b) if value is None else tf.stop_gradient(value)), back

        return step(a, b)

    def softmax(self, scores: tf.Tensor, value: tf.Tensor | None = None) -> tf.Tensor:
        @tf.custom_gradient
        def step(scores):
            unmasked = tf.cast(scores > MASKED_SCORE / 2, tf.float32)
            logs = tf.nn.log_softmax(scores)

            def back(gradient):
                # Back through exp, then through the log-softmax.
                at_logs = gradient * tf.exp(_log_between(*tf.split(logs, 2)))
                return _log_softmax_back(scores, at_logs, unmasked[:1])

            return tf.exp(logs), back

        return step(scores)

    def activation(self, function: Callable[[tf.Tensor], tf.Tensor], x: tf.Tensor) -> tf.Tensor:
        @tf.custom_gradient
        def step(x):
            y = function(x)

            def back(gradient):
                midpoint = tf.reduce_mean(x, axis=0, keepdims=True)
                with tf.GradientTape() as tape:
                    tape.watch(midpoint)
                    value = function(midpoint)
                slope, change = tape.gradient(value, midpoint), x[1:] - x[:1]
                is_small = tf.abs(change) < _SMALL_DIFFERENCE
                return gradient * tf.where(is_small, slope, (y[1:] - y[:1]) / tf.where(is_small, 1.0, change))

            return y, back

        return step(x)

    def normalise(self, x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float) -> tf.Tensor:
        @tf.custom_gradient
        def step(x):
            centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
            scale = tf.math.rsqrt(tf.reduce_mean(centred**2, axis=-1, keepdims=True) + epsilon)

            def back(gradient):
                at_normal = gradient * gamma
                mean = tf.reduce_mean(centred, axis=0, keepdims=True)
                at_scale = tf.reduce_sum(at_normal * mean, axis=-1, keepdims=True)
                before, after = tf.split(scale, 2)
                # Back through 1 / sqrt(v): the difference of the results divided by the difference of v; then through
                # v, the mean of the squares.
                at_squares = -at_scale * (before * after) ** 2 / (before + after) / tf.cast(tf.shape(x)[-1], tf.float32)
                at_centred = at_normal * (before + after) / 2 + at_squares * 2 * mean
                return at_centred - tf.reduce_mean(at_centred, axis=-1, keepdims=True)

            return centred * scale * gamma + beta, back

        return step(x)

    def highest(self, x: tf.Tensor) -> tf.Tensor:
        """The maximum; the token that is highest in the row with the higher maximum receives the whole difference. Its
        own difference is at least as large."""

        @tf.custom_gradient
        def step(x):
            maximum = tf.reduce_max(x, axis=1)

            def back(gradient):
                before, after = tf.split(tf.argmax(x, axis=1, output_type=tf.int32), 2)
                change = maximum[1:] - maximum[:1]
                token = tf.one_hot(tf.where(change >= 0, after, before), tf.shape(x)[1], axis=1)
                token_change = tf.reduce_sum((x[1:] - x[:1]) * token, axis=1)
                share = tf.where(token_change == 0, 1.0, change / tf.where(token_change == 0, 1.0, token_change))
                return tf.expand_dims(gradient * share, 1) * token

            return maximum, back

        return step(x)

    def one_of_all(self, logits: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
        """The log-probability."""

        @tf.custom_gradient
        def step(logits):
            def back(gradient):
                at_logs = tf.expand_dims(gradient, 1) * tf.one_hot(wanted, tf.shape(logits)[1])
                return _log_softmax_back(logits, at_logs, tf.ones_like(logits[:1]))

            return tf.gather(tf.nn.log_softmax(logits), wanted, axis=1), back

        return step(logits)

    def yes_or_no(self, logit: tf.Tensor) -> tf.Tensor:
        """The log-probability."""
        return self.activation(tf.math.log_sigmoid, logit)


def _log_softmax_back(x: tf.Tensor, gradient: tf.Tensor, unmasked: tf.Tensor) -> tf.Tensor:
    """Multipliers at x [2, ..., K] from those at x - log(sum(exp(x))), over the last axis.

    The Rescale rule applies to the logarithm and to each exp. Softmax does not change if a constant is added to all of
    x, so the mean over the unmasked entries is subtracted first.

    Args:
        x: float32 [2, ..., K].
        gradient: float32 [1, ..., K] or [2, ..., K]. The multipliers at x - log(sum(exp(x))).
        unmasked: float32 [1, ..., K]. 1 for unmasked entries, else 0.
    """
    count = tf.reduce_sum(unmasked, axis=-1, keepdims=True)
    centred = x - tf.reduce_sum(x * unmasked, axis=-1, keepdims=True) / count
    log_sum = _log_between(*tf.split(tf.reduce_logsumexp(centred, axis=-1, keepdims=True), 2))
    shares = tf.exp(_log_between(*tf.split(centred, 2)) - log_sum)
    at_centred = gradient - shares * tf.reduce_sum(gradient, axis=-1, keepdims=True)
    return at_centred - unmasked / count * tf.reduce_sum(at_centred, axis=-1, keepdims=True)


def _log_between(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """The logarithm of (exp(a) - exp(b)) / (a - b), which lies between exp(a) and exp(b)."""
    distance = tf.abs(a - b)
    is_small = distance < 1e-3
    safe = tf.where(is_small, 1.0, distance)
    return tf.maximum(a, b) + tf.where(is_small, -distance / 2, tf.math.log(-tf.math.expm1(-safe) / safe))
