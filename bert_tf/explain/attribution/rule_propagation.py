"""Gradients of a BERT with the backward rules of a method for its nonlinear steps.

Linear steps (matrices, biases, sums, means) keep their own gradient. Nonlinear steps, which are products of two tensors
that both depend on the input, softmax, activations, normalisations and maxima, follow the rules. Hooks at the hook
points of the encoder layers apply the rules; a layer must normalise after each residual sum, as BERT's does.

Dimension legend: B rows, T tokens, H hidden, E embedding (H in BERT), N heads, D head size, K outcomes of a head.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from bert_tf.errors import report
from bert_tf.inference.hooked_model import call_weights
from bert_tf.layers.hook_points import POINTS

if TYPE_CHECKING:
    import keras
    import numpy as np

    from bert_tf.explain.attribution.backward_rules import BackwardRules
    from bert_tf.explain.attribution.target import Target
    from bert_tf.inference.hooked_model import HookedModel


class RulePropagation:
    """A forward and a backward pass of a `HookedModel` with backward rules, one layer at a time. Only the hidden states
    between the layers stay in memory.

    Args:
        hooked: HookedModel.
        rules: BackwardRules.

    Raises:
        InputError: the model has another encoder layer than BERT's.
    """

    def __init__(self, hooked: HookedModel, rules: BackwardRules) -> None:
        hooked.check_post_norm("Attribution by DeepLift or LRP", through_scores=True)
        self._hooked, self._rules = hooked, rules

    def gradients(
        self,
        vectors: np.ndarray,
        segments: np.ndarray,
        target: Target,
        progress: Callable[[int, int], Any] | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """A target's score and its gradient at the token vectors, by the rules.

        Args:
            vectors: float32 [B, T, E]. Used in place of the token vectors.
            segments: int32 [B, T].
            target: Target.
            progress: callable(done, total) or None. Counts layers, forwards and backwards; returning False cancels.
        Returns:
            (scores [B], gradients [B, T, E], the sums of the vectors with segment and position embeddings [B, T, E],
            the sum of gradients times biases), three arrays and a float; the float is 0 if the rules have no biases.
        Raises:
            Cancelled: `progress` returned False.
        """
        count = self._hooked.config.num_hidden_layers
        vectors, segments = tf.constant(vectors, tf.float32), tf.constant(segments, tf.int32)
        inputs = _floats(3, self._hooked.config.embedding_width), tf.TensorSpec((None, None), tf.int32)
        states = _floats(3, self._hooked.config.hidden_size)
        total, x = self._compiled("entered", self._entered, inputs)(vectors, segments)
        hidden_states = [x]
        for index in range(count):
            report(progress, index, 2 * count)
            hidden_states.append(self._of_layer("layer", self._layer, (states,), index)(hidden_states[-1]))
        score, gradient, bias_share = self._answer(hidden_states[-1], target)
        for index in reversed(range(count)):
            report(progress, 2 * count - 1 - index, 2 * count)
            back = self._of_layer("layer back", self._layer_back, (states, states), index)
            gradient, share = back(hidden_states.pop(index), gradient)
            bias_share += share
        gradient, share = self._compiled("entered back", self._entered_back, (inputs[0], states))(total, gradient)
        return score.numpy(), gradient.numpy(), total.numpy(), float(bias_share + share)

    def _answer(self, x, target):
        """(score [B], gradient [B, T, H] at the last hidden states x, the share of the head's biases)."""
        kind = target.head, target.is_multi_label, target.is_regression

        def step(x, position, wanted):
            biases = [variable.value for part in self._head_parts(target.head) for variable in self._biases(part)]
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch([x, *biases])
                score = self._score(target, x, position, wanted)
            return score, *self._back(tape, score, x, biases, tf.ones_like(score))

        number = tf.TensorSpec((), tf.int32)
        signature = (_floats(3, self._hooked.config.hidden_size), number, number)
        function = self._compiled(("answer", *kind), step, signature)
        return function(x, tf.constant(target.position or 0, tf.int32), tf.constant(target.id, tf.int32))

    def _score(self, target, x, position, wanted):
        parts, rules = self._hooked.layers, self._rules
        if target.head == "mlm":
            head = parts["mlm"]
            read = tf.gather(self._hooked.read(x), position, axis=1)
            inside = rules.norm([head.norm], rules.activation(head.activation, _dense(head.transform, read)))
            table = tf.cast(tf.convert_to_tensor(head.table(parts["embeddings"].token_table)), tf.float32)
            logits = tf.matmul(inside, table, transpose_b=True) + tf.convert_to_tensor(head.bias)
            return rules.one_of_all(logits, wanted)
        if target.head == "replaced":
            head = parts["replaced"]
            read = tf.gather(x, position, axis=1)
            logit = _dense(head.score, rules.activation(head.activation, _dense(head.transform, read)))[:, 0]
            return rules.yes_or_no(tf.where(wanted == 1, logit, -logit))
        if target.head == "task":
            logits = self._class_logits(x)
            logit = tf.gather(logits, wanted, axis=1)
            if target.is_regression:
                return logit
            return rules.yes_or_no(logit) if target.is_multi_label else rules.one_of_all(logits, wanted)
        return rules.one_of_all(_dense(parts[target.head].dense, self._pooled(parts["pooler"], x)), wanted)

    def _class_logits(self, x):
        head = self._hooked.task.network.head
        kind, rules = head.vector.settings["kind"], self._rules
        if kind == "cls":
            read = self._pooled(head.first or self._hooked.layers["pooler"], x)
        elif kind == "mean":
            read = tf.reduce_mean(x, axis=1)
        elif kind == "max":
            read = rules.highest(x)
        else:
            weights = rules.softmax(tf.linalg.matrix_transpose(_dense(head.vector.scores, x)))
            read = rules.product(weights, x)[:, 0]
        return _dense(head.classifier, read)

    def _pooled(self, pooler, x):
        return self._rules.activation(pooler.dense.activation, _dense(pooler.dense, x[:, 0]))

    def _head_parts(self, head):
        """The layers that one of the heads may use: its own and the pooler."""
        head_layer = self._hooked.task.network.head if head == "task" else self._hooked.layers[head]
        return [head_layer, *([self._hooked.layers["pooler"]] if "pooler" in self._hooked.layers else [])]

    def _entered(self, vectors, segments):
        part = self._hooked.layers["embeddings"]
        total = tf.cast(part.add_places(vectors, segments), tf.float32)
        return total, self._of_sum(total)

    def _of_sum(self, total):
        part = self._hooked.layers["embeddings"]
        return tf.cast(part.project(self._rules.norm([part.norm], total)), tf.float32)

    def _entered_back(self, total, gradient):
        biases = [variable.value for variable in self._biases(self._hooked.layers["embeddings"])]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([total, *biases])
            x = self._of_sum(total)
        return self._back(tape, x, total, biases, gradient)

    def _layer(self, part, x, *weights):
        y, _ = part.stateless_call(*call_weights(part, weights), x, tf.zeros((1, 1, 1, 1)), hooks=self._hooks(part))
        return y

    def _hooks(self, part):
        """Hooks that apply the rules to the nonlinear steps of an encoder layer."""
        rules, stacks = self._rules, part.stacks()
        values: dict[str, tf.Tensor] = {}
        function, size = stacks[0].feed_forward.activation, stacks[0].attention.head_size
        attention_norms = [stack.attention_norm for stack in stacks]
        feed_forward_norms = [stack.feed_forward_norm for stack in stacks]
        steps = {
            "scores": lambda value: rules.product(
                values["q"] / math.sqrt(size), tf.linalg.matrix_transpose(values["k"]), value
            ),
            "pattern": lambda value: rules.softmax(values["scores"], value),
            "z": lambda value: rules.product(values["pattern"], values["v"], value),
            "resid_mid": lambda value: rules.norm(attention_norms, values["resid_pre"] + values["attn_out"]),
            "mlp_post": lambda value: rules.activation(function, values["mlp_pre"]),
            "resid_post": lambda value: rules.norm(feed_forward_norms, values["resid_mid"] + values["mlp_out"]),
        }

        def hook_at(name):
            def hook(value):
                values[name] = steps[name](value) if name in steps else value
                return values[name]

            return hook

        return {name: hook_at(name) for name in POINTS}

    def _layer_back(self, part, x, gradient, *weights):
        paths = {variable.path for variable in self._biases(part)}
        biases = [weight for variable, weight in zip(part.weights, weights) if variable.path in paths]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([x, *biases])
            y = self._layer(part, x, *weights)
        return self._back(tape, y, x, biases, gradient)

    def _back(self, tape, y, x, biases, gradient):
        """(gradient at x, the sum of gradients times biases), from the gradient at y."""
        at_x, *at_biases = tape.gradient(y, [x, *biases], output_gradients=gradient)
        shares = [tf.reduce_sum(at_bias * bias) for at_bias, bias in zip(at_biases, biases) if at_bias is not None]
        return tf.convert_to_tensor(at_x), tf.add_n(shares) if shares else tf.zeros(())

    def _biases(self, part):
        if not self._rules.with_biases:
            return []
        return [variable for variable in part.weights if variable.name in ("bias", "beta")]

    def _compiled(self, name, step, signature):
        return self._hooked.compiled((self._rules.name, name), step, signature)

    def _of_layer(self, name, step, signature, index):
        return self._hooked.of_layer((self._rules.name, name), step, signature, index)


def _dense(layer: keras.layers.Dense, x: tf.Tensor) -> tf.Tensor:
    """A `Dense` layer without its activation."""
    return tf.tensordot(x, tf.convert_to_tensor(layer.kernel), 1) + tf.convert_to_tensor(layer.bias)


def _floats(axes: int, width: int) -> tf.TensorSpec:
    return tf.TensorSpec((*(None,) * (axes - 1), width), tf.float32)
