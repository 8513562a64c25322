"""One encoder layer: attention, add and norm, feed-forward, add and norm (post-LN, Vaswani et al. 2017, fig. 1)."""

import keras

from bert_tf.layers.attention import MultiHeadSelfAttention
from bert_tf.layers.common import LayerNorm, activation, initializer, register


@register
class FeedForward(keras.layers.Layer):
    """Position-wise feed-forward block (Vaswani et al. 2017, section 3.3).

    Args:
        hidden_size: H in and out. intermediate_size: width between. hidden_act: see `BertConfig`.
        stddev: of the initialiser.

    Call arguments: x [B, T, H]. Returns: [B, T, H].
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

    def call(self, x):
        # The two products may run in a narrower type than the rest (see `training.precision`).
        wide = self.activation(keras.ops.cast(self.intermediate(x), self.compute_dtype))
        return keras.ops.cast(self.output_dense(wide), self.compute_dtype)

    def compute_output_shape(self, x_shape):
        return x_shape

    def get_config(self):
        return {**super().get_config(), **self.settings}


@register
class EncoderLayer(keras.layers.Layer):
    """Self-attention and feed-forward, each followed by dropout, residual sum and layer normalisation.

    Args:
        hidden_size: H. num_heads: N. intermediate_size, hidden_act: of the feed-forward block.
        dropout: on both sub-layer outputs. attention_dropout: on the probabilities.
        epsilon: of the layer normalisations. stddev: of the initialiser.

    Call arguments: x [B, T, H]; bias, details and head_gates as in `MultiHeadSelfAttention`; feed_forward_gates [B],
        what the feed-forward block's output is multiplied by (0 leaves residual and norm); None for no gates. instead:
        what is put in the place of the blocks' outputs, before residual and norm: a dict from "attention" or
        "feed_forward" to (bool [B, T], where; [B, T, H], what); None for nothing. reads: what a part of them reads in
        the place of the state, which goes on beside it: as in `MultiHeadSelfAttention`, or from "feed_forward" to
        (anything, [B, T, H]).

    Returns: [B, T, H]; with `details` also their dict.
    """

    #: What a layer of another reading direction changes.
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

    def side_by_side(self):
        """The layers that stand side by side in this one: itself alone."""
        return (self,)

    def build(self, x_shape, *_):
        shape = (None, None, self.settings["hidden_size"])
        for layer in (self.attention, self.attention_norm, self.feed_forward, self.feed_forward_norm):
            layer.build(shape)

    def call(
        self, x, bias, training=False, details=(), head_gates=None, feed_forward_gates=None, instead=None, reads=None
    ):
        attended = self.attention(x, bias, training=training, details=details, head_gates=head_gates, reads=reads)
        found = None
        if details:
            attended, found = attended
        attended = _replaced(attended, instead, "attention")
        x = self.attention_norm(x + self.dropout(attended, training=training))
        widened = self.feed_forward(reads["feed_forward"][1] if reads and "feed_forward" in reads else x)
        if feed_forward_gates is not None:
            gates = keras.ops.cast(keras.ops.expand_dims(feed_forward_gates, (1, 2)), widened.dtype)
            widened = keras.ops.multiply(widened, gates)
        widened = _replaced(widened, instead, "feed_forward")
        x = self.feed_forward_norm(x + self.dropout(widened, training=training))
        return (x, found) if details else x

    def compute_output_spec(
        self, x, bias, training=False, details=(), head_gates=None, feed_forward_gates=None, instead=None, reads=None
    ):
        return self.attention.compute_output_spec(x, bias, training=training, details=details)

    def get_config(self):
        return {**super().get_config(), **self.settings}


def _replaced(output, instead, block):
    """A block's output [B, T, H], with what `instead` has for it where it has something."""
    if not instead or block not in instead:
        return output
    places, others = instead[block]
    return keras.ops.where(keras.ops.expand_dims(places, -1), keras.ops.cast(others, output.dtype), output)
