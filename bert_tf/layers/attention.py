"""Multi-head self-attention (Vaswani et al. 2017, section 3.2.2; as in Devlin et al. 2018, `modeling.py`)."""

import math

import keras

from bert_tf.layers.common import initializer, register
from bert_tf.layers.hooks import run_steps

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
        hooks: functions at "q", "k", "v", "scores", "pattern", "z" and "attn_out", as `run_steps` takes them.

    Returns: [B, T, H].
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

    def steps(self, x, bias, training=False):
        """The computation, a generator that yields (name, value) at its hook points (see `bert_tf.layers.hooks`)."""
        ops = keras.ops
        query = yield "q", self._split_heads(self.query(x))
        key = yield "k", self._split_heads(self.key(x))
        value = yield "v", self._split_heads(self.value(x))
        # The small factor goes onto the queries: T x D products less work than scaling T x T scores.
        scaled = ops.multiply(query, ops.cast(1 / math.sqrt(self.head_size), query.dtype))
        scores = yield "scores", ops.matmul(scaled, ops.transpose(key, (0, 1, 3, 2))) + bias
        pattern = yield "pattern", ops.softmax(scores, axis=-1)
        z = yield "z", ops.matmul(self.dropout(pattern, training=training), value)
        batch, _, tokens, _ = ops.shape(z)
        joined = ops.reshape(ops.transpose(z, (0, 2, 1, 3)), (batch, tokens, self.num_heads * self.head_size))
        return (yield "attn_out", ops.cast(self.output_dense(joined), self.compute_dtype))

    def call(self, x, bias, training=False, hooks=None):
        return run_steps([self.steps(x, bias, training)], hooks)

    def compute_output_spec(self, x, bias, training=False, hooks=None):
        return keras.KerasTensor(x.shape, dtype=self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), **self.settings}
