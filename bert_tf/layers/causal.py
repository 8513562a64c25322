"""Causal layers: a token sees only those before it, and a word is predicted from the hidden states beside it.

Left to right is the paper's "LTR" ablation and GPT's way (Radford et al. 2018). Two causal stacks side by side, one in
each direction, are ELMo's bidirectional language model, the biLM (Peters et al. 2018). Devlin et al. 2019 compare both
with BERT in section 5.1 and appendix A.4.

B batch, T tokens, H hidden size (of both stacks together), E embedding size, N heads.
"""

import keras

from bert_tf.layers.attention import MASKED_SCORE, MultiHeadSelfAttention
from bert_tf.layers.common import register
from bert_tf.layers.embeddings import BertEmbeddings
from bert_tf.layers.encoder import EncoderLayer
from bert_tf.layers.heads import MaskedLMHead
from bert_tf.layers.hooks import HookedLayer


def causal_mask(tokens, backwards=False, dtype="float32"):
    """The causal mask: [T, T], 0 where the query may see the key (itself or before; `backwards`: or after).

    Elsewhere twice `MASKED_SCORE`: a row whose other keys are all padding must rather see those than what it may not.
    """
    ops = keras.ops
    places = ops.arange(tokens)
    queries, keys = ops.expand_dims(places, 1), ops.expand_dims(places, 0)
    hidden = ops.less(keys, queries) if backwards else ops.greater(keys, queries)
    return ops.cast(hidden, dtype) * (2 * MASKED_SCORE)


@register
class CausalSelfAttention(MultiHeadSelfAttention):
    """Self-attention of every token to itself and those before it; else as `MultiHeadSelfAttention`."""

    backwards = False

    def steps(self, x, bias, training=False):
        mask = causal_mask(keras.ops.shape(x)[1], self.backwards, self.compute_dtype)
        return super().steps(x, bias + mask, training)


@register
class ReverseCausalSelfAttention(CausalSelfAttention):
    """Self-attention of every token to itself and those after it."""

    backwards = True


@register
class CausalEncoderLayer(EncoderLayer):
    """An `EncoderLayer` that reads from left to right."""

    attention_class = CausalSelfAttention


@register
class ReverseCausalEncoderLayer(EncoderLayer):
    """An `EncoderLayer` that reads from right to left."""

    attention_class = ReverseCausalSelfAttention


@register
class BiLMEncoderLayer(HookedLayer):
    """A layer from left to right and one from right to left, each with half of the width, that never meet.

    Args: as `EncoderLayer`, of both together.

    Call arguments and returns: as `HookedLayer`; the first half of x [B, T, H] is the left-to-right one's, of the heads
        and of the feed-forward units too.
    """

    def __init__(self, hidden_size, num_heads, intermediate_size, *args, **kwargs):
        name, policy = kwargs.pop("name", None), kwargs.pop("dtype", None)
        super().__init__(name=name, dtype=policy)
        self.settings = {"hidden_size": hidden_size, "num_heads": num_heads, "intermediate_size": intermediate_size}
        half = hidden_size // 2, num_heads // 2, intermediate_size // 2
        self.left = CausalEncoderLayer(*half, *args, **kwargs, dtype=self.dtype_policy, name="left")
        self.right = ReverseCausalEncoderLayer(*half, *args, **kwargs, dtype=self.dtype_policy, name="right")

    def stacks(self):
        return self.left, self.right

    def build(self, x_shape, *_):
        for layer in self.stacks():
            layer.build((None, None, self.settings["hidden_size"] // 2))

    def get_config(self):
        return {**self.left.get_config(), **super().get_config()}


@register
class BiLMEmbeddings(BertEmbeddings):
    """Embeddings of half the hidden size, given to both stacks: E = H / 2, [B, T, E] twice is [B, T, H]."""

    has_embedding_projection = False

    def project(self, x):
        return keras.ops.concatenate([x, x], axis=-1)


@register
class CausalLMHead(MaskedLMHead):
    """A `MaskedLMHead` that predicts each place from the state before it, as a language model does."""

    def read(self, x):
        return _moved(x, 1)


@register
class BiLMHead(MaskedLMHead):
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
