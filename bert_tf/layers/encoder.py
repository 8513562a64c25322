"""One encoder layer: attention, add and norm, feed-forward, add and norm (post-LN, Vaswani et al. 2017, fig. 1)."""

from typing import Any

import keras

from bert_tf.layers.attention import MultiHeadSelfAttention
from bert_tf.layers.common import LayerNorm, Shape, Tensor, activation, register
from bert_tf.layers.hooks import HookedBlock, HookedLayer, Hooks, Steps, run_steps


@register
class FeedForward(HookedBlock):
    """Position-wise feed-forward block (Vaswani et al. 2017, section 3.3).

    Args:
        hidden_size: int. The width H of the input and output.
        intermediate_size: int. The width between the two dense layers.
        hidden_act: str. The activation; see `BertConfig`.
        stddev: float. The standard deviation of the initializer.

    Call arguments:
        x: float [B, T, H]. The hidden states.
        training: bool. Whether to apply dropout, where a subclass has one.
        hooks: dict or None. Functions at "mlp_pre", "mlp_post" and "mlp_out"; see `run_steps`.

    Returns:
        [B, T, H].
    """

    #: The number of projections of width F that read the input.
    projections = 1

    def __init__(
        self, hidden_size: int, intermediate_size: int, hidden_act: str = "gelu", stddev: float = 0.02, **kwargs: Any
    ) -> None:
        settings = {
            "hidden_size": hidden_size,
            "intermediate_size": intermediate_size,
            "hidden_act": hidden_act,
            "stddev": stddev,
        }
        super().__init__(settings, **kwargs)
        self.activation = activation(hidden_act)
        self.intermediate = self.dense(self.projections * intermediate_size, "intermediate")
        self.output_dense = self.dense(hidden_size, "output")

    def build(self, x_shape: Shape) -> None:
        self.intermediate.build((None, None, self.settings["hidden_size"]))
        self.output_dense.build((None, None, self.settings["intermediate_size"]))

    def steps(self, x: Tensor, training: bool = False) -> Steps:
        """Compute the block as a generator that yields (name, value) at its hook points; see `bert_tf.layers.hooks`."""
        # The two matrix products can have another dtype than the rest (see `training.precision`).
        units = yield "mlp_pre", keras.ops.cast(self.intermediate(x), self.compute_dtype)
        units = yield "mlp_post", self.activation(units)
        return (yield "mlp_out", keras.ops.cast(self.output_dense(units), self.compute_dtype))

    def call(self, x: Tensor, training: bool = False, hooks: Hooks | None = None) -> Tensor:
        return run_steps([self.steps(x, training)], hooks)


@register
class EncoderLayer(HookedLayer):
    """Self-attention and feed-forward block, each followed by dropout, residual sum and layer normalization.

    Args:
        hidden_size: int. The width H of the hidden states.
        num_heads: int. The number N of attention heads.
        intermediate_size: int. The width of the feed-forward block.
        hidden_act: str. The activation of the feed-forward block; see `BertConfig`.
        dropout: float. The dropout rate of both sub-layer outputs.
        attention_dropout: float. The dropout rate of the attention probabilities.
        epsilon: float. The epsilon of the layer normalizations.
        stddev: float. The standard deviation of the initializer.

    Call arguments and returns are those of `HookedLayer`.

    Example:
        >>> layer = EncoderLayer(hidden_size=8, num_heads=2, intermediate_size=16)
        >>> y, values = layer(keras.ops.ones((1, 3, 8)), bias=0.0, outputs=("pattern",))
        >>> tuple(y.shape), tuple(values["pattern"].shape)
        ((1, 3, 8), (1, 2, 3, 3))
    """

    #: The attention layer; subclasses with another attention direction replace it.
    attention_class: type[MultiHeadSelfAttention] = MultiHeadSelfAttention

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        intermediate_size: int,
        hidden_act: str = "gelu",
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        epsilon: float = 1e-12,
        stddev: float = 0.02,
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
        }
        policy = self.dtype_policy
        self.attention = self.attention_class(
            hidden_size, num_heads, attention_dropout, stddev, dtype=policy, name="attention"
        )
        self.attention_norm = LayerNorm(epsilon, dtype=policy, name="attention_norm")
        self.feed_forward = FeedForward(
            hidden_size, intermediate_size, hidden_act, stddev, dtype=policy, name="feed_forward"
        )
        self.feed_forward_norm = LayerNorm(epsilon, dtype=policy, name="feed_forward_norm")
        self.dropout = keras.layers.Dropout(dropout, dtype=policy, name="dropout")

    def build(self, x_shape: Shape, *_: Any) -> None:
        shape = (None, None, self.settings["hidden_size"])
        for layer in (self.attention, self.attention_norm, self.feed_forward, self.feed_forward_norm):
            layer.build(shape)

    def steps(self, x: Tensor, bias: Tensor, training: bool = False) -> Steps:
        """Compute the layer as a generator that yields (name, value) at each of `HOOK_POINTS`."""
        x = yield "resid_pre", x
        added = yield from self.attention.steps(x, bias, training)
        x = yield "resid_mid", self.attention_norm(x + self.dropout(added, training=training))
        added = yield from self.feed_forward.steps(x)
        return (yield "resid_post", self.feed_forward_norm(x + self.dropout(added, training=training)))
