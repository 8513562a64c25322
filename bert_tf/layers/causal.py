"""What a reader in one direction changes of BERT's layers: which tokens a token sees, and which states the place of
a word is predicted from.

Left to right is the paper's "LTR" ablation and GPT's way (Radford et al. 2018); two one-way stacks side by side are
ELMo's (Peters et al. 2018). Both are told from BERT in Devlin et al. 2019, section 5.1 and appendix A.4.

B batch, T tokens, H hidden size (of both stacks together), E embedding size, N heads.
"""

import keras

from bert_tf.layers.attention import MASKED_SCORE, MultiHeadSelfAttention
from bert_tf.layers.common import register
from bert_tf.layers.embeddings import BertEmbeddings
from bert_tf.layers.encoder import EncoderLayer
from bert_tf.layers.heads import MaskedLMHead


def one_way_bias(tokens, backwards=False, dtype="float32"):
    """The causal mask: [T, T], 0 where the query may see the key (itself or before; `backwards`: or after).

    Elsewhere twice `MASKED_SCORE`: a row whose other keys are all padding must rather see those than what it may not.
    """
    ops = keras.ops
    places = ops.arange(tokens)
    queries, keys = ops.expand_dims(places, 1), ops.expand_dims(places, 0)
    hidden = ops.less(keys, queries) if backwards else ops.greater(keys, queries)
    return ops.cast(hidden, dtype) * (2 * MASKED_SCORE)


@register
class LeftAttention(MultiHeadSelfAttention):
    """Self-attention of every token to itself and those before it; else as `MultiHeadSelfAttention`."""

    backwards = False

    def call(self, x, bias, **others):
        bias = bias + one_way_bias(keras.ops.shape(x)[1], self.backwards, self.compute_dtype)
        return super().call(x, bias, **others)


@register
class RightAttention(LeftAttention):
    """Self-attention of every token to itself and those after it."""

    backwards = True


@register
class LeftLayer(EncoderLayer):
    """An `EncoderLayer` that reads from left to right."""

    attention_class = LeftAttention


@register
class RightLayer(EncoderLayer):
    """An `EncoderLayer` that reads from right to left."""

    attention_class = RightAttention


@register
class TwoOneWayLayer(keras.layers.Layer):
    """A layer from left to right and one from right to left, each with half of the width, that never meet.

    Args: as `EncoderLayer`, of both together.

    Call arguments: as `EncoderLayer`; the first half of x [B, T, H] is the left-to-right one's, of the heads too.

    Returns: as `EncoderLayer`, the two beside each other.
    """

    def __init__(self, hidden_size, num_heads, intermediate_size, *args, **kwargs):
        name, policy = kwargs.pop("name", None), kwargs.pop("dtype", None)
        super().__init__(name=name, dtype=policy)
        self.settings = {"hidden_size": hidden_size, "num_heads": num_heads, "intermediate_size": intermediate_size}
        half = hidden_size // 2, num_heads // 2, intermediate_size // 2
        self.left = LeftLayer(*half, *args, **kwargs, dtype=self.dtype_policy, name="left")
        self.right = RightLayer(*half, *args, **kwargs, dtype=self.dtype_policy, name="right")

    def side_by_side(self):
        """The layers that stand side by side in this one, each with its half of the width and the heads."""
        return self.left, self.right

    def build(self, x_shape, *_):
        for layer in self.side_by_side():
            layer.build((None, None, self.settings["hidden_size"] // 2))

    def call(
        self, x, bias, training=False, details=(), head_gates=None, feed_forward_gates=None, instead=None, reads=None
    ):
        ops = keras.ops
        gates = (None, None) if head_gates is None else ops.split(head_gates, 2, axis=1)
        parts = [
            {
                block: (places, ops.split(outputs, 2, axis=-1)[side])
                for block, (places, outputs) in (instead or {}).items()
            }
            for side in (0, 1)
        ]
        read = [
            {
                part: (ops.split(heads, 2, axis=1)[side], ops.split(state, 2, axis=-1)[side])
                for part, (heads, state) in (reads or {}).items()
            }
            for side in (0, 1)
        ]
        found = [
            layer(
                half,
                bias,
                training=training,
                details=details,
                head_gates=own,
                feed_forward_gates=feed_forward_gates,
                instead=other,
                reads=state,
            )
            for layer, half, own, other, state in zip(self.side_by_side(), ops.split(x, 2, axis=-1), gates, parts, read)
        ]
        if not details:
            return ops.concatenate(found, axis=-1)
        (left, left_maps), (right, right_maps) = found
        maps = {name: ops.concatenate([left_maps[name], right_maps[name]], axis=1) for name in details}
        return ops.concatenate([left, right], axis=-1), maps

    def compute_output_spec(
        self, x, bias, training=False, details=(), head_gates=None, feed_forward_gates=None, instead=None, reads=None
    ):
        output = keras.KerasTensor(x.shape, dtype=self.compute_dtype)
        if not details:
            return output
        half = keras.KerasTensor((*x.shape[:2], self.settings["hidden_size"] // 2), dtype=self.compute_dtype)
        _, maps = self.left.compute_output_spec(half, bias, details=details)
        return output, {
            name: keras.KerasTensor(
                (one.shape[0], self.settings["num_heads"], *one.shape[2:]), dtype=self.compute_dtype
            )
            for name, one in maps.items()
        }

    def get_config(self):
        return {**self.left.get_config(), **super().get_config(), **self.settings}


@register
class SharedEmbeddings(BertEmbeddings):
    """Embeddings of half the hidden size, given to both stacks: E = H / 2, [B, T, E] twice is [B, T, H]."""

    has_embedding_projection = False

    def project(self, x):
        return keras.ops.concatenate([x, x], axis=-1)


@register
class NextTokenHead(MaskedLMHead):
    """A `MaskedLMHead` that predicts each place from the state before it, as a language model does."""

    def read(self, x):
        return _moved(x, 1)


@register
class BetweenHead(MaskedLMHead):
    """A `MaskedLMHead` that predicts each place from the left-to-right state before and the right-to-left after it.

    What it says of the first and the last token's places, which have a neighbour on one side only, means nothing.
    """

    def read(self, x):
        left, right = keras.ops.split(x, 2, axis=-1)
        return keras.ops.concatenate([_moved(left, 1), _moved(right, -1)], axis=-1)


def _moved(x, places):
    """[B, T, H] moved by one place, zeros where nothing comes from: +1 gives each place the state before it."""
    if places > 0:
        return keras.ops.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
    return keras.ops.pad(x, ((0, 0), (0, 1), (0, 0)))[:, 1:]
