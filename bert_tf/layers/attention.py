"""Multi-head self-attention (Vaswani et al. 2017, section 3.2.2; as in Devlin et al. 2018, `modeling.py`)."""

import math

import keras

from bert_tf.layers.common import initializer, register

# Added to the scores of padded keys: far below any real score, and finite in bfloat16 and float16 too.
MASKED_SCORE = -30000.0


@register
class MultiHeadSelfAttention(keras.layers.Layer):
    """Scaled dot-product attention of every token to every token, N heads side by side, output projection.

    Args:
        hidden_size: H. num_heads: N, a divisor of H. dropout: rate on the probabilities.
        stddev: of the initialiser.

    Call arguments:
        x: [B, T, H].
        bias: additive mask, broadcast to [B, N, T, T]: 0 to see a key, `MASKED_SCORE` not to.
        details: names out of "attentions", "queries", "keys", "values" to return as well.
        head_gates: [B, N], what each head's output is multiplied by (0 switches it off); None for no gates.
        reads: what some heads make a part of in the place of x: a dict from "queries", "keys" or "values" to
            (bool [B, N], which heads; [B, T, H], what they read); None for nothing.

    Returns: [B, T, H]; with `details` also a dict of [B, N, T, T] probabilities (before dropout) and
        [B, N, T, D] vectors.
    """

    def __init__(self, hidden_size, num_heads, dropout=0.1, stddev=0.02, **kwargs):
        super().__init__(**kwargs)
        self.settings = {"hidden_size": hidden_size, "num_heads": num_heads, "dropout": dropout, "stddev": stddev}
        self.num_heads, self.head_size = num_heads, hidden_size // num_heads

        def dense(name):
            return keras.layers.Dense(
                hidden_size, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name=name
            )

        self.query, self.key, self.value = dense("query"), dense("key"), dense("value")
        self.output_dense = dense("output")
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, x_shape, *_):
        for layer in (self.query, self.key, self.value, self.output_dense):
            layer.build((None, None, self.settings["hidden_size"]))

    def _split_heads(self, x):
        """[B, T, H] -> [B, N, T, D], in this layer's compute dtype whatever the projection's."""
        x = keras.ops.cast(x, self.compute_dtype)
        batch, tokens = keras.ops.shape(x)[:2]
        return keras.ops.transpose(keras.ops.reshape(x, (batch, tokens, self.num_heads, self.head_size)), (0, 2, 1, 3))

    def _projected(self, name, dense, x, reads):
        """[B, N, T, D] of x, or of what some heads read in its place."""
        found = self._split_heads(dense(x))
        if not reads or name not in reads:
            return found
        heads, other = reads[name]
        return keras.ops.where(keras.ops.expand_dims(heads, (2, 3)), self._split_heads(dense(other)), found)

    def call(self, x, bias, training=False, details=(), head_gates=None, reads=None):
        ops = keras.ops
        query = self._projected("queries", self.query, x, reads)
        key = self._projected("keys", self.key, x, reads)
        value = self._projected("values", self.value, x, reads)
        # The small factor goes onto the queries: T x D products less work than scaling T x T scores.
        scaled = ops.multiply(query, ops.cast(1 / math.sqrt(self.head_size), query.dtype))
        scores = ops.matmul(scaled, ops.transpose(key, (0, 1, 3, 2))) + bias  # [B, N, T, T]
        probabilities = ops.softmax(scores, axis=-1)
        context = ops.matmul(self.dropout(probabilities, training=training), value)  # [B, N, T, D]
        if head_gates is not None:
            context = ops.multiply(context, ops.cast(ops.expand_dims(head_gates, (2, 3)), context.dtype))
        batch, _, tokens, _ = ops.shape(context)
        context = ops.reshape(ops.transpose(context, (0, 2, 1, 3)), (batch, tokens, self.num_heads * self.head_size))
        output = ops.cast(self.output_dense(context), self.compute_dtype)
        if not details:
            return output
        found = {"attentions": probabilities, "queries": query, "keys": key, "values": value}
        return output, {name: found[name] for name in details}

    def compute_output_spec(self, x, bias, training=False, details=(), head_gates=None, reads=None):
        output = keras.KerasTensor(x.shape, dtype=self.compute_dtype)
        if not details:
            return output
        batch, tokens, _ = x.shape
        last = {"attentions": tokens}
        return output, {
            name: keras.KerasTensor(
                (batch, self.num_heads, tokens, last.get(name, self.head_size)), dtype=self.compute_dtype
            )
            for name in details
        }

    def get_config(self):
        return {**super().get_config(), **self.settings}
