"""A BERT's forward pass whose steps that are no straight lines go backwards by rules of one's own.

What is linear (matrices, biases, sums, means) has its own slope. The rest, which is products of two things that both
hang on the input, softmax, activations, normalisations and maxima, is left to the rules of a method.

Dimension legend: B rows, T tokens, H hidden, E embedding (H in BERT), N heads, D head size, K possible answers.
"""

import math

import keras
import tensorflow as tf

from bert_tf.errors import report
from bert_tf.layers.causal import LeftAttention, one_way_bias


class Ruled:
    """The pass of an `OpenModel` by rules, forwards and backwards a layer at a time: of the layers nothing is kept but
    the states between them.

    Args: opened: an `OpenModel`. rules: `Rules`.
    """

    def __init__(self, opened, rules):
        self._opened, self._rules = opened, rules

    def slopes(self, vectors, segments, target, progress=None):
        """A target's score and its slope at the token vectors, by the rules.

        Args:
            vectors: float32 [B, T, E], in the place of the token vectors. segments: int32 [B, T].
            target: a `Target`. progress: callable(done, total) in layers, there and back; returning False cancels.
        Returns:
            (scores [B], slopes [B, T, E], the vectors' sums with those of segments and positions [B, T, E], what
            slopes times biases add up to), arrays and a float; 0 for the last where the rules are without biases.
        Raises:
            Cancelled: by `progress`.
        """
        count = self._opened.config.num_hidden_layers
        vectors, segments = tf.constant(vectors, tf.float32), tf.constant(segments, tf.int32)
        given = _floats(3, self._opened.config.embedding_width), tf.TensorSpec((None, None), tf.int32)
        states = _floats(3, self._opened.config.hidden_size)
        total, x = self._compiled("entered", self._entered, given)(vectors, segments)
        passed = [x]
        for index in range(count):
            report(progress, index, 2 * count)
            passed.append(self._of_layer("layer", self._layer, (states,), index)(passed[-1]))
        score, slope, shares = self._answer(passed[-1], target)
        for index in reversed(range(count)):
            report(progress, 2 * count - 1 - index, 2 * count)
            back = self._of_layer("layer back", self._layer_back, (states, states), index)
            slope, share = back(passed.pop(index), slope)
            shares += share
        slope, share = self._compiled("entered back", self._entered_back, (given[0], states))(total, slope)
        return score.numpy(), slope.numpy(), total.numpy(), float(shares + share)

    def _answer(self, x, target):
        """(score [B], slope [B, T, H] at the last state x, the share of the head's biases)."""
        kind = target.head, target.is_multi_label, target.is_regression

        def step(x, position, wanted):
            parts = self._read_by(target.head)
            biases = [variable.value for part in parts for variable in self._biases(part)]
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch([x, *biases])
                score = self._score(target, x, position, wanted)
            return score, *self._back(tape, score, x, biases, tf.ones_like(score))

        places = tf.TensorSpec((), tf.int32)
        signature = (_floats(3, self._opened.config.hidden_size), places, places)
        function = self._compiled(("answer", *kind), step, signature)
        return function(x, tf.constant(target.position or 0, tf.int32), tf.constant(target.id, tf.int32))

    def _score(self, target, x, position, wanted):
        parts, rules = self._opened.parts, self._rules
        if target.head == "mlm":
            head = parts["mlm"]
            read = tf.gather(self._opened.read(x), position, axis=1)
            inside = rules.norm(head.norm, rules.activation(head.activation, _dense(head.transform, read)))
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
        head = self._opened.task.network.head
        kind, rules = head.vector.settings["kind"], self._rules
        if kind == "cls":
            read = self._pooled(head.first or self._opened.parts["pooler"], x)
        elif kind == "mean":
            read = tf.reduce_mean(x, axis=1)
        elif kind == "max":
            read = rules.highest(x)
        else:
            weights = rules.softmax(tf.linalg.matrix_transpose(_dense(head.vector.scores, x)), tf.zeros((1, 1, 1)))
            read = rules.product(weights, x)[:, 0]
        return _dense(head.classifier, read)

    def _pooled(self, pooler, x):
        return self._rules.activation(pooler.dense.activation, _dense(pooler.dense, x[:, 0]))

    def _read_by(self, head):
        """The parts that one of the heads may use."""
        own = self._opened.task.network.head if head == "task" else self._opened.parts[head]
        return [own, *([self._opened.parts["pooler"]] if "pooler" in self._opened.parts else [])]

    def _entered(self, vectors, segments):
        part = self._opened.parts["embeddings"]
        total = tf.cast(part.add_places(vectors, segments), tf.float32)
        return total, self._of_sum(total)

    def _of_sum(self, total):
        part = self._opened.parts["embeddings"]
        return tf.cast(part.project(self._rules.norm(part.norm, total)), tf.float32)

    def _entered_back(self, total, slope):
        biases = [variable.value for variable in self._biases(self._opened.parts["embeddings"])]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([total, *biases])
            x = self._of_sum(total)
        return self._back(tape, x, total, biases, slope)

    def _layer(self, x, *weights):
        part = self._opened.parts["layer_0"]
        with keras.StatelessScope(state_mapping=list(zip(part.trainable_variables, weights))):
            stacks = part.side_by_side()
            found = [self._stack(stack, own) for stack, own in zip(stacks, tf.split(x, len(stacks), axis=-1))]
        return tf.concat(found, axis=-1)

    def _stack(self, stack, x):
        """One of the layers side by side, of its share of the state."""
        rules, forward = self._rules, stack.feed_forward
        middle = rules.norm(stack.attention_norm, x + self._attended(stack.attention, x))
        wide = rules.activation(forward.activation, _dense(forward.intermediate, middle))
        return rules.norm(stack.feed_forward_norm, middle + _dense(forward.output_dense, wide))

    def _attended(self, attention, x):
        tokens, rules = tf.shape(x)[1], self._rules
        queries, keys, values = (
            tf.transpose(
                tf.reshape(_dense(part, x), (-1, tokens, attention.num_heads, attention.head_size)), (0, 2, 1, 3)
            )
            for part in (attention.query, attention.key, attention.value)
        )
        scaled = queries / math.sqrt(attention.head_size)
        bias = tf.zeros((1, 1))
        if isinstance(attention, LeftAttention):
            bias = one_way_bias(tokens, attention.backwards)
        scores = rules.product(scaled, tf.linalg.matrix_transpose(keys))
        mixed = tf.transpose(rules.product(rules.softmax(scores, bias), values), (0, 2, 1, 3))
        width = attention.num_heads * attention.head_size
        return _dense(attention.output_dense, tf.reshape(mixed, (-1, tokens, width)))

    def _layer_back(self, x, slope, *weights):
        wanted = {variable.path for variable in self._biases(self._opened.parts["layer_0"])}
        named = zip(self._opened.parts["layer_0"].trainable_variables, weights)
        biases = [weight for variable, weight in named if variable.path in wanted]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([x, *biases])
            y = self._layer(x, *weights)
        return self._back(tape, y, x, biases, slope)

    def _back(self, tape, y, x, biases, slope):
        """(slope at x, the sum of slopes times biases), from the slope at y."""
        own, *others = tape.gradient(y, [x, *biases], output_gradients=slope)
        shares = [tf.reduce_sum(one * bias) for one, bias in zip(others, biases) if one is not None]
        return tf.convert_to_tensor(own), tf.add_n(shares) if shares else tf.zeros(())

    def _biases(self, part):
        if not self._rules.with_biases:
            return []
        return [variable for variable in part.trainable_variables if variable.name in ("bias", "beta")]

    def _compiled(self, name, step, signature):
        return self._opened.compiled((self._rules.name, name), step, signature)

    def _of_layer(self, name, step, signature, index):
        return self._opened.of_layer((self._rules.name, name), step, signature, index)


def _dense(layer, x):
    """A `Dense` layer without its activation."""
    return tf.tensordot(x, tf.convert_to_tensor(layer.kernel), 1) + tf.convert_to_tensor(layer.bias)


def _floats(axes, width):
    return tf.TensorSpec((*(None,) * (axes - 1), width), tf.float32)
