"""Multi-head self-attention (Vaswani et al. 2017, section 3.2.2; as in Devlin et al. 2018, `modeling.py`)."""

import math
from typing import Any

import keras

from bert_tf.layers.common import Shape, Tensor, initializer, register
from bert_tf.layers.hooks import Hooks, Steps, run_steps


@register
class MultiHeadSelfAttention(keras.layers.Layer):
    """Scaled dot-product attention of every token to every token with N parallel heads, and an output projection.

    Args:
        hidden_size: int. The width H of the hidden states.
        num_heads: int. The number N of heads, a divisor of H.
        dropout: float. The dropout rate of the attention probabilities.
        stddev: float. The standard deviation of the initializer.

    Call arguments:
        x: float [B, T, H]. The hidden states.
        bias: float, broadcast to [B, N, T, T]. The additive mask: 0 to attend to a key, `MASKED_SCORE` not to.
        training: bool. Whether to apply dropout.
        hooks: dict or None. Functions at "q", "k", "v", "scores", "pattern", "z" and "attn_out"; see `run_steps`.

    Returns:
        [B, T, H].
    """

    def __init__(
        self, hidden_size: int, num_heads: int, dropout: float = 0.1, stddev: float = 0.02, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "hidden_size": hidden_size,
            "num_heads": num_heads,
            "dropout": dropout,
            "stddev": stddev,
        }
        self.num_heads, self.head_size = num_heads, hidden_size // num_heads

        def dense(name):
            return keras.layers.Dense(
                hidden_size, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name=name
            )

        self.query, self.key, self.value = dense("query"), dense("key"), dense("value")
        self.output_dense = dense("output")
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, x_shape: Shape, *_: Any) -> None:
        for layer in (self.query, self.key, self.value, self.output_dense):
            layer.build((None, None, self.settings["hidden_size"]))

    def _split_heads(self, x):
        """[B, T, H] -> [B, N, T, D], in the compute dtype of this layer, even if the projection has another one."""
        x = keras.ops.cast(x, self.compute_dtype)
        batch, tokens = keras.ops.shape(x)[:2]
        return keras.ops.transpose(keras.ops.reshape(x, (batch, tokens, self.num_heads, self.head_size)), (0, 2, 1, 3))

    def steps(self, x: Tensor, bias: Tensor, training: bool = False) -> Steps:
        """Compute the layer as a generator that yields (name, value) at its hook points; see `bert_tf.layers.hooks`."""
        query = yield "q", self._split_heads(self.query(x))
        key = yield "k", self._split_heads(self.key(x))
        value = yield "v", self._split_heads(self.value(x))
        return (yield from attend(self, query, key, value, bias, training))

    def call(self, x: Tensor, bias: Tensor, training: bool = False, hooks: Hooks | None = None) -> Tensor:
        return run_steps([self.steps(x, bias, training)], hooks)

    def compute_output_spec(
        self, x: Tensor, bias: Tensor, training: bool = False, hooks: Hooks | None = None
    ) -> keras.KerasTensor:
        return keras.KerasTensor(x.shape, dtype=self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


def attend(layer: Any, query: Tensor, key: Tensor, value: Tensor, bias: Tensor, training: bool) -> Steps:
    """Compute attention from its vectors, as a generator that yields (name, value) from "scores" to "attn_out".

    Args:
        layer: the Keras layer, with `num_heads`, `head_size`, `dropout`, `output_dense` and `compute_dtype`.
        query, key, value: float [B, N, T, D]. The vectors of each head.
        bias: float, broadcast to [B, N, T, T]. Added to the scores.
        training: bool. Whether to apply dropout.
    """
    ops = keras.ops
    # The queries are scaled, not the scores: that takes T x D instead of T x T multiplications.
    scaled = ops.multiply(query, ops.cast(1 / math.sqrt(layer.head_size), query.dtype))
    scores = yield "scores", ops.matmul(scaled, ops.transpose(key, (0, 1, 3, 2))) + bias
    pattern = yield "pattern", ops.softmax(scores, axis=-1)
    z = yield "z", ops.matmul(layer.dropout(pattern, training=training), value)
    batch, _, tokens, _ = ops.shape(z)
    joined = ops.reshape(ops.transpose(z, (0, 2, 1, 3)), (batch, tokens, layer.num_heads * layer.head_size))
    return (yield "attn_out", ops.cast(layer.output_dense(joined), layer.compute_dtype))
