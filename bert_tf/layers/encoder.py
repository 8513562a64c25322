"""One encoder layer: attention, add and norm, feed-forward, add and norm (post-LN, Vaswani et al. 2017, fig. 1)."""

import keras

from bert_tf.layers.attention import MultiHeadSelfAttention
from bert_tf.layers.common import LayerNorm, activation, initializer, register
from bert_tf.layers.hooks import HookedLayer, run_steps


@register
class FeedForward(keras.layers.Layer):
    """Position-wise feed-forward block (Vaswani et al. 2017, section 3.3).

    Args:
        hidden_size: H in and out. intermediate_size: width between. hidden_act: see `BertConfig`.
        stddev: of the initialiser.

    Call arguments:
        x: [B, T, H].
        hooks: functions at "mlp_pre", "mlp_post" and "mlp_out", as `run_steps` takes them.

    Returns: [B, T, H].
    """

    def __init__(self, hidden_size, intermediate_size, hidden_act="gelu", stddev=0.02, **kwargs):
        super().__init__(**kwargs)
        self.settings = {
            "hidden_size": hidden_size,
            "intermediate_size": intermediate_size,
            "hidden_act": hidden_act,
            "stddev": stddev,
        }
        self.activation = activation(hidden_act)
        self.intermediate = keras.layers.Dense(
            intermediate_size, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name="intermediate"
        )
        self.output_dense = keras.layers.Dense(
            hidden_size, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name="output"
        )

    def build(self, x_shape):
        self.intermediate.build((None, None, self.settings["hidden_size"]))
        self.output_dense.build((None, None, self.settings["intermediate_size"]))

    def steps(self, x):
        """The computation, a generator that yields (name, value) at its hook points (see `bert_tf.layers.hooks`)."""
        # The two products may run in a narrower type than the rest (see `training.precision`).
        wide = yield "mlp_pre", keras.ops.cast(self.intermediate(x), self.compute_dtype)
        wide = yield "mlp_post", self.activation(wide)
        return (yield "mlp_out", keras.ops.cast(self.output_dense(wide), self.compute_dtype))

    def call(self, x, hooks=None):
        return run_steps([self.steps(x)], hooks)

    def compute_output_spec(self, x, hooks=None):
        return keras.KerasTensor(x.shape, dtype=self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), **self.settings}


@register
class EncoderLayer(HookedLayer):
    """Self-attention and feed-forward, each followed by dropout, residual sum and layer normalisation.

    Args:
        hidden_size: H. num_heads: N. intermediate_size, hidden_act: of the feed-forward block.
        dropout: on both sub-layer outputs. attention_dropout: on the probabilities.
        epsilon: of the layer normalisations. stddev: of the initialiser.

    Call arguments and returns: as `HookedLayer`.
    """

    #: What a layer of another attention direction changes.
    attention_class = MultiHeadSelfAttention

    def __init__(
        self,
        hidden_size,
        num_heads,
        intermediate_size,
        hidden_act="gelu",
        dropout=0.1,
        attention_dropout=0.1,
        epsilon=1e-12,
        stddev=0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.settings = {
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

    def build(self, x_shape, *_):
        shape = (None, None, self.settings["hidden_size"])
        for layer in (self.attention, self.attention_norm, self.feed_forward, self.feed_forward_norm):
            layer.build(shape)

    def steps(self, x, bias, training=False):
        x = yield "resid_pre", x
        added = yield from self.attention.steps(x, bias, training)
        x = yield "resid_mid", self.attention_norm(x + self.dropout(added, training=training))
        added = yield from self.feed_forward.steps(x)
        return (yield "resid_post", self.feed_forward_norm(x + self.dropout(added, training=training)))
