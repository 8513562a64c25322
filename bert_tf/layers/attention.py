"""Multi-head self-attention (Vaswani et al. 2017, section 3.2.2; as in Devlin et al. 2018, `modeling.py`)."""

import math
from typing import Any

import keras

from bert_tf.layers.common import Shape, Tensor, register
from bert_tf.layers.hooks import HookedBlock, Hooks, Steps, run_steps


@register
class MultiHeadSelfAttention(HookedBlock):
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

    #: The dense layers that read the hidden states: name -> width in units of H.
    projections: dict[str, int] = {"query": 1, "key": 1, "value": 1}
    #: The number of products that an attention score sums; their sum is divided by the root of D times this number.
    score_terms = 1
    query: keras.layers.Dense
    key: keras.layers.Dense
    value: keras.layers.Dense

    def __init__(
        self, hidden_size: int, num_heads: int, dropout: float = 0.1, stddev: float = 0.02, **kwargs: Any
    ) -> None:
        settings = {"hidden_size": hidden_size, "num_heads": num_heads, "dropout": dropout, "stddev": stddev}
        super().__init__(settings, **kwargs)
        self.num_heads, self.head_size = num_heads, hidden_size // num_heads
        for name, width in self.projections.items():
            setattr(self, name, self.dense(width * hidden_size, name))
        self.output_dense = self.dense(hidden_size, "output")
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, x_shape: Shape, *_: Any) -> None:
        for layer in (*(getattr(self, name) for name in self.projections), self.output_dense):
            layer.build((None, None, self.settings["hidden_size"]))

    @property
    def score_scale(self) -> float:
        """The factor of the products that an attention score sums."""
        return 1 / math.sqrt(self.score_terms * self.head_size)

    def split_heads(self, x: Tensor) -> Tensor:
        """[B, T, H] -> [B, N, T, D], in the compute dtype of this layer, even if the projection has another one."""
        x = keras.ops.cast(x, self.compute_dtype)
        batch, tokens = keras.ops.shape(x)[:2]
        return keras.ops.transpose(keras.ops.reshape(x, (batch, tokens, self.num_heads, self.head_size)), (0, 2, 1, 3))

    def steps(self, x: Tensor, bias: Tensor, training: bool = False) -> Steps:
        """Compute the layer as a generator that yields (name, value) at its hook points; see `bert_tf.layers.hooks`."""
        query = yield "q", self.split_heads(self.query(x))
        key = yield "k", self.split_heads(self.key(x))
        value = yield "v", self.split_heads(self.value(x))
        return (yield from attend(self, query, key, value, bias, training))

    def call(self, x: Tensor, bias: Tensor, training: bool = False, hooks: Hooks | None = None) -> Tensor:
        return run_steps([self.steps(x, bias, training)], hooks)


def attend(
    layer: MultiHeadSelfAttention, query: Tensor, key: Tensor, value: Tensor, bias: Tensor, training: bool
) -> Steps:
    """Compute attention from its vectors, as a generator that yields (name, value) from "scores" to "attn_out".

    Args:
        layer: the Keras layer, a `MultiHeadSelfAttention`.
        query, key, value: float [B, N, T, D]. The vectors of each head.
        bias: float, broadcast to [B, N, T, T]. Added to the scores.
        training: bool. Whether to apply dropout.
    """
    ops = keras.ops
    # The queries are scaled, not the scores: that takes T x D instead of T x T multiplications.
    scaled = ops.multiply(query, ops.cast(layer.score_scale, query.dtype))
    scores = yield "scores", ops.matmul(scaled, ops.transpose(key, (0, 1, 3, 2))) + bias
    pattern = yield "pattern", ops.softmax(scores, axis=-1)
    z = yield "z", ops.matmul(layer.dropout(pattern, training=training), value)
    batch, _, tokens, _ = ops.shape(z)
    joined = ops.reshape(ops.transpose(z, (0, 2, 1, 3)), (batch, tokens, layer.num_heads * layer.head_size))
    return (yield "attn_out", ops.cast(layer.output_dense(joined), layer.compute_dtype))
