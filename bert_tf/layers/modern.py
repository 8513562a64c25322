"""ModernBERT's layers: pre-norm, no biases, rotary positions, local and global attention, a gated feed-forward block.

Sources: Warner et al. 2024 (ModernBERT); Su et al. 2021, section 3.4.2 (rotary positions); Beltagy et al. 2020 (local
attention); Shazeer 2020 (GeGLU); Xiong et al. 2020 (pre-norm).

B batch, T tokens, H hidden size, N heads, D head size, F intermediate size, V vocabulary.
"""

from typing import Any

import keras

from bert_tf.layers.attention import MultiHeadSelfAttention, attend
from bert_tf.layers.common import LayerNorm, Shape, Tensor, register
from bert_tf.layers.embeddings import BertEmbeddings
from bert_tf.layers.encoder import FeedForward
from bert_tf.layers.heads import MaskedLMHead
from bert_tf.layers.hook_points import MASKED_SCORE
from bert_tf.layers.hooks import HookedLayer, Steps


def rotary_angles(tokens: int | Tensor, head_size: int, theta: float) -> Tensor:
    """Return the angles of the rotary positions, float32 [T, D / 2]: position times theta^(-2 i / D)."""
    ops = keras.ops
    frequencies = 1.0 / theta ** (ops.arange(0, head_size, 2, dtype="float32") / head_size)
    return ops.expand_dims(ops.cast(ops.arange(tokens), "float32"), 1) * frequencies


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Rotate the pairs (i, i + D / 2) of queries or keys [B, N, T, D] by angles [T, D / 2]."""
    ops = keras.ops
    first, second = ops.split(ops.cast(x, "float32"), 2, axis=-1)
    cos, sin = ops.cos(angles), ops.sin(angles)
    return ops.cast(ops.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1), x.dtype)


def window_mask(tokens: int | Tensor, window: int, dtype: str = "float32") -> Tensor:
    """Return the additive mask of local attention.

    Args:
        tokens: int or scalar tensor. The number T of tokens.
        window: int. The width of the window: a token attends to the tokens up to half of it away on each side.
        dtype: str. The dtype of the mask.

    Returns:
        [T, T]: 0 if the query attends to the key, else twice `MASKED_SCORE`, so that a query whose window holds padding
        only attends to the padding rather than to a token outside of the window.
    """
    ops = keras.ops
    positions = ops.arange(tokens)
    distance = ops.abs(ops.expand_dims(positions, 1) - ops.expand_dims(positions, 0))
    return ops.cast(ops.greater(distance, window // 2), dtype) * (2 * MASKED_SCORE)


@register
class RotaryAttention(MultiHeadSelfAttention):
    """Self-attention with rotary positions over all tokens, or over the tokens in a window.

    Args:
        hidden_size: int. The width H of the hidden states.
        num_heads: int. The number N of heads, a divisor of H.
        dropout: float. The dropout rate of the attention probabilities.
        stddev: float. The standard deviation of the initializer.
        theta: float. The base of the rotary positions.
        window: int or None. The width of the window of local attention; None for global attention.

    Call arguments and returns are those of `MultiHeadSelfAttention`. The values at the hook points "q" and "k" are
    those after the rotation, of which the scores are products.
    """

    has_biases = False
    projections = {"qkv": 3}
    qkv: keras.layers.Dense

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        dropout: float = 0.0,
        stddev: float = 0.02,
        theta: float = 160_000.0,
        window: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(hidden_size, num_heads, dropout, stddev, **kwargs)
        self.settings |= {"theta": theta, "window": window}
        self.theta, self.window = theta, window

    def steps(self, x: Tensor, bias: Tensor, training: bool = False) -> Steps:
        """Compute the layer as a generator that yields (name, value) at its hook points; see `bert_tf.layers.hooks`."""
        ops = keras.ops
        batch, tokens = ops.shape(x)[:2]
        joined = ops.cast(self.qkv(x), self.compute_dtype)
        parts = ops.transpose(
            ops.reshape(joined, (batch, tokens, 3, self.num_heads, self.head_size)), (2, 0, 3, 1, 4)
        )  # [3, B, N, T, D]
        angles = rotary_angles(tokens, self.head_size, self.theta)
        query = yield "q", rotate(parts[0], angles)
        key = yield "k", rotate(parts[1], angles)
        value = yield "v", parts[2]
        if self.window is not None:
            bias = bias + window_mask(tokens, self.window, self.compute_dtype)
        return (yield from attend(self, query, key, value, bias, training))


@register
class GatedFeedForward(FeedForward):
    """Feed-forward block whose activated units are multiplied by a second projection of the input, the gate.

    Args:
        hidden_size: int. The width H of the input and output.
        intermediate_size: int. The number F of units.
        hidden_act: str. The activation; see `BertConfig`.
        stddev: float. The standard deviation of the initializer.
        dropout: float. The dropout rate of the gated units.

    Call arguments and returns are those of `FeedForward`. The value at the hook point "mlp_post" is that of the
    activated units times their gates.
    """

    has_biases = False
    projections = 2

    def __init__(
        self,
        hidden_size: int,
        intermediate_size: int,
        hidden_act: str = "gelu",
        stddev: float = 0.02,
        dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(hidden_size, intermediate_size, hidden_act, stddev, **kwargs)
        self.settings["dropout"] = dropout
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def steps(self, x: Tensor, training: bool = False) -> Steps:
        """Compute the block as a generator that yields (name, value) at its hook points; see `bert_tf.layers.hooks`."""
        ops = keras.ops
        units, gate = ops.split(ops.cast(self.intermediate(x), self.compute_dtype), 2, axis=-1)
        units = yield "mlp_pre", units
        units = yield "mlp_post", self.activation(units) * gate
        return (
            yield "mlp_out", ops.cast(self.output_dense(self.dropout(units, training=training)), self.compute_dtype)
        )


@register
class ModernEncoderLayer(HookedLayer):
    """Attention and a gated feed-forward block, each after a layer normalization and followed by a residual sum.

    The first layer does not normalize before its attention, because the embeddings are normalized. The last layer
    normalizes its output, so that "resid_post" of the last layer is what the heads read.

    Args:
        hidden_size: int. The width H of the hidden states.
        num_heads: int. The number N of attention heads.
        intermediate_size: int. The number F of gated units.
        hidden_act: str. The activation of the feed-forward block; see `BertConfig`.
        dropout: float. The dropout rate of the gated units.
        attention_dropout: float. The dropout rate of the attention probabilities and of the attention's output.
        epsilon: float. The epsilon of the layer normalizations.
        stddev: float. The standard deviation of the initializer.
        theta: float. The base of the rotary positions.
        window: int or None. The width of the window of local attention; None for global attention.
        first, last: bool. Whether this is the first or the last layer of the model.

    Call arguments and returns are those of `HookedLayer`.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        intermediate_size: int,
        hidden_act: str = "gelu",
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        epsilon: float = 1e-5,
        stddev: float = 0.02,
        theta: float = 160_000.0,
        window: int | None = None,
        first: bool = False,
        last: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "hidden_size": hidden_size,
            "num_heads": num_heads,
            "intermediate_size": intermediate_size,
            "hidden_act": hidden_act,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "epsilon": epsilon,
            "stddev": stddev,
            "theta": theta,
            "window": window,
            "first": first,
            "last": last,
        }
        policy = self.dtype_policy

        def norm(name):
            return LayerNorm(epsilon, bias=False, dtype=policy, name=name)

        self.attention_norm = None if first else norm("attention_norm")
        self.attention = RotaryAttention(
            hidden_size, num_heads, attention_dropout, stddev, theta, window, dtype=policy, name="attention"
        )
        self.feed_forward_norm = norm("feed_forward_norm")
        self.feed_forward = GatedFeedForward(
            hidden_size, intermediate_size, hidden_act, stddev, dropout, dtype=policy, name="feed_forward"
        )
        self.final_norm = norm("final_norm") if last else None
        self.dropout = keras.layers.Dropout(attention_dropout, dtype=policy, name="dropout")

    @classmethod
    def settings_at(cls, config: Any, index: int) -> dict[str, Any]:
        window = config.attention_window(index)
        return {
            "theta": config.global_rope_theta if window is None else config.local_rope_theta,
            "window": window,
            "first": index == 0,
            "last": index == config.num_hidden_layers - 1,
        }

    @property
    def structure(self) -> tuple:
        return tuple(self.settings[name] for name in ("theta", "window", "first", "last"))

    def build(self, x_shape: Shape, *_: Any) -> None:
        shape = (None, None, self.settings["hidden_size"])
        layers = (self.attention_norm, self.attention, self.feed_forward_norm, self.feed_forward, self.final_norm)
        for layer in layers:
            if layer is not None:
                layer.build(shape)

    def steps(self, x: Tensor, bias: Tensor, training: bool = False) -> Steps:
        """Compute the layer as a generator that yields (name, value) at each of `HOOK_POINTS`."""
        x = yield "resid_pre", x
        read = x if self.attention_norm is None else self.attention_norm(x)
        added = yield from self.attention.steps(read, bias, training)
        x = yield "resid_mid", x + self.dropout(added, training=training)
        added = yield from self.feed_forward.steps(self.feed_forward_norm(x), training)
        return (yield "resid_post", self.finish(x + added))

    def finish(self, x: Tensor) -> Tensor:
        """Return the layer's output for its residual sum x [B, T, H]: normalized in the last layer."""
        return x if self.final_norm is None else self.final_norm(x)


@register
class ModernEmbeddings(BertEmbeddings):
    """Token embeddings, normalized without a bias: no position and no segment is added."""

    has_biases = False
    has_positions = False


@register
class ModernMaskedLMHead(MaskedLMHead):
    """A `MaskedLMHead` whose dense layer and normalization have no bias."""

    has_biases = False
