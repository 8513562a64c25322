"""Rules by which attributions go back through the steps of a model that are not linear.

Dimension legend: B rows, T tokens, H hidden, K possible answers.
"""

import tensorflow as tf

from bert_tf.inference.hooked_model import frozen_norm, log_odds
from bert_tf.layers.attention import MASKED_SCORE

_NEAR = 1e-3  # differences below which the gradient half-way is nearer to the truth than a quotient of rounded numbers


class BackwardRules:
    """How a method goes back through the steps that are not linear; each function gives the true value of its step.

    Attributes:
        name: of the method, for what is compiled.
        with_biases: whether biases have shares of their own.
    """

    name = ""
    with_biases = False

    def product(self, a, b, value=None):
        """A [..., I, J] times b [..., J, K], both of the input; value: what it makes, where that is known."""
        raise NotImplementedError

    def softmax(self, scores, value=None):
        """Over the last axis; keys with scores near `MASKED_SCORE` or below are not seen. value: as of `product`."""
        raise NotImplementedError

    def activation(self, function, x):
        """An elementwise function of x."""
        raise NotImplementedError

    def norm(self, layers, x):
        """The `LayerNorm`s of S layers side by side, each of its share of the width of x [..., H]."""
        shares = zip(layers, tf.split(x, len(layers), axis=-1))
        found = [
            self.normalise(share, *map(tf.convert_to_tensor, (layer.gamma, layer.beta)), layer.epsilon)
            for layer, share in shares
        ]
        return tf.concat(found, axis=-1)

    def normalise(self, x, gamma, beta, epsilon):
        """Layer normalisation of x over its last axis."""
        raise NotImplementedError

    def highest(self, x):
        """The maximum over the tokens of x [B, T, H], [B, H]."""
        raise NotImplementedError

    def one_of_all(self, logits, wanted):
        """The score [B] of one of K answers, of which one holds."""
        raise NotImplementedError

    def yes_or_no(self, logit):
        """The score [B] of an answer that holds with the sigmoid of its logit [B]."""
        raise NotImplementedError


class LRPRules(BackwardRules):
    """Layer-wise relevance (`lrp`): attention weights, standard deviations and activations' gates have no gradient."""

    name, with_biases = "lrp", True

    def product(self, a, b, value=None):
        return tf.matmul(a, b) if value is None else value

    def softmax(self, scores, value=None):
        return tf.stop_gradient(tf.nn.softmax(scores) if value is None else value)

    def activation(self, function, x):
        near = tf.where(x == 0, 1e-6, x)  # where the gate is as good as at 0
        return x * tf.stop_gradient(function(near) / near)

    def normalise(self, x, gamma, beta, epsilon):
        return frozen_norm(x, gamma, beta, epsilon)

    def highest(self, x):
        return tf.reduce_max(x, axis=1)

    def one_of_all(self, logits, wanted):
        return log_odds(logits, wanted)

    def yes_or_no(self, logit):
        return logit


class DeepLiftRules(BackwardRules):
    """DeepLift (`deeplift`): multipliers in the place of gradients, from the differences between the second row and the
    first.

    The reference does not vary: what comes back for it has no meaning.
    """

    name = "deeplift"

    def product(self, a, b, value=None):
        @tf.custom_gradient
        def step(a, b):
            def back(gradient):
                half_a, half_b = (tf.reduce_mean(x, axis=0, keepdims=True) for x in (a, b))
                return tf.matmul(gradient, half_b, transpose_b=True), tf.matmul(half_a, gradient, transpose_a=True)

            return (tf.matmul(a, b) if value is None else tf.stop_gradient(value)), back

        return step(a, b)

    def softmax(self, scores, value=None):
        @tf.custom_gradient
        def step(scores):
            seen = tf.cast(scores > MASKED_SCORE / 2, tf.float32)
            logs = tf.nn.log_softmax(scores)

            def back(gradient):
                # Through exp, then through what `_log_softmax_back` goes through.
                passed = gradient * tf.exp(_log_between(*tf.split(logs, 2)))
                return _log_softmax_back(scores, passed, seen[:1])

            return tf.exp(logs), back

        return step(scores)

    def activation(self, function, x):
        @tf.custom_gradient
        def step(x):
            y = function(x)

            def back(gradient):
                middle = tf.reduce_mean(x, axis=0, keepdims=True)
                with tf.GradientTape() as tape:
                    tape.watch(middle)
                    there = function(middle)
                near, change = tape.gradient(there, middle), x[1:] - x[:1]
                is_near = tf.abs(change) < _NEAR
                return gradient * tf.where(is_near, near, (y[1:] - y[:1]) / tf.where(is_near, 1.0, change))

            return y, back

        return step(x)

    def normalise(self, x, gamma, beta, epsilon):
        @tf.custom_gradient
        def step(x):
            centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
            scale = tf.math.rsqrt(tf.reduce_mean(centred**2, axis=-1, keepdims=True) + epsilon)

            def back(gradient):
                wide = gradient * gamma
                middle = tf.reduce_mean(centred, axis=0, keepdims=True)
                of_scale = tf.reduce_sum(wide * middle, axis=-1, keepdims=True)
                before, after = tf.split(scale, 2)
                # 1 / sqrt(v): the difference over that of v; then of v, the mean of the squares.
                of_squares = -of_scale * (before * after) ** 2 / (before + after) / tf.cast(tf.shape(x)[-1], tf.float32)
                found = wide * (before + after) / 2 + of_squares * 2 * middle
                return found - tf.reduce_mean(found, axis=-1, keepdims=True)

            return centred * scale * gamma + beta, back

        return step(x)

    def highest(self, x):
        """All of the difference goes to the token that is highest in the row with the higher maximum: its own
        difference is at least as large."""

        @tf.custom_gradient
        def step(x):
            found = tf.reduce_max(x, axis=1)

            def back(gradient):
                before, after = tf.split(tf.argmax(x, axis=1, output_type=tf.int32), 2)
                change = found[1:] - found[:1]
                chosen = tf.where(change >= 0, after, before)
                there = tf.one_hot(chosen, tf.shape(x)[1], axis=1)
                own = tf.reduce_sum((x[1:] - x[:1]) * there, axis=1)
                share = tf.where(own == 0, 1.0, change / tf.where(own == 0, 1.0, own))
                return tf.expand_dims(gradient * share, 1) * there

            return found, back

        return step(x)

    def one_of_all(self, logits, wanted):
        """The log-probability."""

        @tf.custom_gradient
        def step(logits):
            def back(gradient):
                passed = tf.expand_dims(gradient, 1) * tf.one_hot(wanted, tf.shape(logits)[1])
                return _log_softmax_back(logits, passed, tf.ones_like(logits[:1]))

            return tf.gather(tf.nn.log_softmax(logits), wanted, axis=1), back

        return step(logits)

    def yes_or_no(self, logit):
        """The log-probability."""
        return self.activation(tf.math.log_sigmoid, logit)


def _log_softmax_back(x, gradient, seen):
    """Multipliers at x [2, ..., K] from those at x - log(sum(exp(x))), over the last axis.

    The logarithm of the sum goes through the logarithm and each exp by the Rescale rule. As softmax is the same
    whatever is added to all of x, the mean over what is seen is taken away before.

    Args: seen: float32 [1, ..., K], 1 where x counts at all.
    """
    mean = tf.reduce_sum(seen, axis=-1, keepdims=True)
    centred = x - tf.reduce_sum(x * seen, axis=-1, keepdims=True) / mean
    whole = _log_between(*tf.split(tf.reduce_logsumexp(centred, axis=-1, keepdims=True), 2))
    shares = tf.exp(_log_between(*tf.split(centred, 2)) - whole)
    found = gradient - shares * tf.reduce_sum(gradient, axis=-1, keepdims=True)
    return found - seen / mean * tf.reduce_sum(found, axis=-1, keepdims=True)


def _log_between(a, b):
    """The logarithm of (exp(a) - exp(b)) / (a - b), which lies between exp(a) and exp(b)."""
    apart = tf.abs(a - b)
    near = apart < 1e-3
    safe = tf.where(near, 1.0, apart)
    return tf.maximum(a, b) + tf.where(near, -apart / 2, tf.math.log(-tf.math.expm1(-safe) / safe))
