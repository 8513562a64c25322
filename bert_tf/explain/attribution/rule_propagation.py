"""A BERT's gradients by backward rules in the place of those of its steps that are not linear.

What is linear (matrices, biases, sums, means) keeps its own gradient. The rest, which is products of two things that
both depend on the input, softmax, activations, normalisations and maxima, follows the rules of a method. They are put
into the encoder layers at their hook points; a layer is taken to normalise after each residual sum, as BERT's does.

Dimension legend: B rows, T tokens, H hidden, E embedding (H in BERT), N heads, D head size, K possible answers.
"""

import math

import tensorflow as tf

from bert_tf.errors import report
from bert_tf.layers.hooks import POINTS


class RulePropagation:
    """The pass of a `HookedModel` by rules, forwards and backwards a layer at a time: of the layers nothing is kept but
    the states between them.

    Args: hooked: a `HookedModel`. rules: `BackwardRules`.

    Raises: InputError: the model has another encoder layer than BERT's.
    """

    def __init__(self, hooked, rules):
        hooked.check_post_norm("DeepLift and LRP")
        self._hooked, self._rules = hooked, rules

    def gradients(self, vectors, segments, target, progress=None):
        """A target's score and its gradient at the token vectors, by the rules.

        Args:
            vectors: float32 [B, T, E], in the place of the token vectors. segments: int32 [B, T].
            target: a `Target`. progress: callable(done, total) in layers, there and back; returning False cancels.
        Returns:
            (scores [B], gradients [B, T, E], the vectors' sums with those of segments and positions [B, T, E], what
            gradients times biases add up to), arrays and a float; 0 for the last where the rules are without biases.
        Raises:
            Cancelled: by `progress`.
        """
        count = self._hooked.config.num_hidden_layers
        vectors, segments = tf.constant(vectors, tf.float32), tf.constant(segments, tf.int32)
        given = _floats(3, self._hooked.config.embedding_width), tf.TensorSpec((None, None), tf.int32)
        states = _floats(3, self._hooked.config.hidden_size)
        total, x = self._compiled("entered", self._entered, given)(vectors, segments)
        passed = [x]
        for index in range(count):
            report(progress, index, 2 * count)
            passed.append(self._of_layer("layer", self._layer, (states,), index)(passed[-1]))
        score, gradient, shares = self._answer(passed[-1], target)
        for index in reversed(range(count)):
            report(progress, 2 * count - 1 - index, 2 * count)
            back = self._of_layer("layer back", self._layer_back, (states, states), index)
            gradient, share = back(passed.pop(index), gradient)
            shares += share
        gradient, share = self._compiled("entered back", self._entered_back, (given[0], states))(total, gradient)
        return score.numpy(), gradient.numpy(), total.numpy(), float(shares + share)

    def _answer(self, x, target):
        """(score [B], gradient [B, T, H] at the last state x, the share of the head's biases)."""
        kind = target.head, target.is_multi_label, target.is_regression

        def step(x, position, wanted):
            parts = self._read_by(target.head)
            biases = [variable.value for part in parts for variable in self._biases(part)]
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch([x, *biases])
                score = self._score(target, x, position, wanted)
            return score, *self._back(tape, score, x, biases, tf.ones_like(score))

        places = tf.TensorSpec((), tf.int32)
        signature = (_floats(3, self._hooked.config.hidden_size), places, places)
        function = self._compiled(("answer", *kind), step, signature)
        return function(x, tf.constant(target.position or 0, tf.int32), tf.constant(target.id, tf.int32))

    def _score(self, target, x, position, wanted):
        parts, rules = self._hooked.layers, self._rules
        if target.head == "mlm":
            head = parts["mlm"]
            read = tf.gather(self._hooked.read(x), position, axis=1)
            inside = rules.norm([head.norm], rules.activation(head.activation, _dense(head.transform, read)))
            table = tf.cast(tf.convert_to_tensor(parts["embeddings"].token_table), tf.float32)
            logits = tf.matmul(inside, table, transpose_b=True) + tf.convert_to_tensor(head.bias)
            return rules.one_of_all(logits, wanted)
        if target.head == "replaced":
            head = parts["replaced"]
            read = tf.gather(x, position, axis=1)
            logit = _dense(head.score, rules.activation(head.activation, _dense(head.transform, read)))[:, 0]
            return rules.yes_or_no(tf.where(wanted == 1, logit, -logit))
        if target.head == "task":
            logits = self._class_logits(x)
            own = tf.gather(logits, wanted, axis=1)
            if target.is_regression:
                return own
            return rules.yes_or_no(own) if target.is_multi_label else rules.one_of_all(logits, wanted)
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

    def _read_by(self, head):
        """The parts that one of the heads may use."""
        own = self._hooked.task.network.head if head == "task" else self._hooked.layers[head]
        return [own, *([self._hooked.layers["pooler"]] if "pooler" in self._hooked.layers else [])]

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

    def _layer(self, x, *weights):
        part = self._hooked.layers["layer_0"]
        state = [variable.value for variable in part.non_trainable_variables]
        y, _ = part.stateless_call(weights, state, x, tf.zeros((1, 1, 1, 1)), hooks=self._hooks(part))
        return y

    def _hooks(self, part):
        """Hooks by which an encoder layer's steps that are not linear go back by the rules."""
        rules, kept, stacks = self._rules, {}, part.stacks()
        function, size = stacks[0].feed_forward.activation, stacks[0].attention.head_size
        attention_norms = [stack.attention_norm for stack in stacks]
        feed_forward_norms = [stack.feed_forward_norm for stack in stacks]
        steps = {
            "scores": lambda value: rules.product(
                kept["q"] / math.sqrt(size), tf.linalg.matrix_transpose(kept["k"]), value
            ),
            "pattern": lambda value: rules.softmax(kept["scores"], value),
            "z": lambda value: rules.product(kept["pattern"], kept["v"], value),
            "resid_mid": lambda value: rules.norm(attention_norms, kept["resid_pre"] + kept["attn_out"]),
            "mlp_post": lambda value: rules.activation(function, kept["mlp_pre"]),
            "resid_post": lambda value: rules.norm(feed_forward_norms, kept["resid_mid"] + kept["mlp_out"]),
        }

        def keeping(name):
            def hook(value):
                kept[name] = steps[name](value) if name in steps else value
                return kept[name]

            return hook

        return {name: keeping(name) for name in POINTS}

    def _layer_back(self, x, gradient, *weights):
        wanted = {variable.path for variable in self._biases(self._hooked.layers["layer_0"])}
        named = zip(self._hooked.layers["layer_0"].trainable_variables, weights)
        biases = [weight for variable, weight in named if variable.path in wanted]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([x, *biases])
            y = self._layer(x, *weights)
        return self._back(tape, y, x, biases, gradient)

    def _back(self, tape, y, x, biases, gradient):
        """(gradient at x, the sum of gradients times biases), from the gradient at y."""
        own, *others = tape.gradient(y, [x, *biases], output_gradients=gradient)
        shares = [tf.reduce_sum(one * bias) for one, bias in zip(others, biases) if one is not None]
        return tf.convert_to_tensor(own), tf.add_n(shares) if shares else tf.zeros(())

    def _biases(self, part):
        if not self._rules.with_biases:
            return []
        return [variable for variable in part.trainable_variables if variable.name in ("bias", "beta")]

    def _compiled(self, name, step, signature):
        return self._hooked.compiled((self._rules.name, name), step, signature)

    def _of_layer(self, name, step, signature, index):
        return self._hooked.of_layer((self._rules.name, name), step, signature, index)


def _dense(layer, x):
    """A `Dense` layer without its activation."""
    return tf.tensordot(x, tf.convert_to_tensor(layer.kernel), 1) + tf.convert_to_tensor(layer.bias)


def _floats(axes, width):
    return tf.TensorSpec((*(None,) * (axes - 1), width), tf.float32)
