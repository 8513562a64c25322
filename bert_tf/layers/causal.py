"""Causal layers: a token attends only to earlier tokens and is predicted from the hidden states of its neighbours.

The left-to-right model is the paper's "LTR" ablation and works as GPT (Radford et al. 2018). Two parallel causal
stacks, one per direction, are ELMo's bidirectional language model, the biLM (Peters et al. 2018). Devlin et al. 2019
compare both with BERT in section 5.1 and appendix A.4.

B batch, T tokens, H hidden size (of both stacks together), E embedding size, N heads.
"""

from typing import Any

import keras

from bert_tf.layers.attention import MultiHeadSelfAttention
from bert_tf.layers.common import Shape, Tensor, register
from bert_tf.layers.embeddings import BertEmbeddings
from bert_tf.layers.encoder import EncoderLayer
from bert_tf.layers.heads import MaskedLMHead
from bert_tf.layers.hook_points import MASKED_SCORE
from bert_tf.layers.hooks import HookedLayer, Steps


def causal_mask(tokens: int | Tensor, backwards: bool = False, dtype: str = "float32") -> Tensor:
    """Return the additive causal mask.

    Args:
        tokens: int or scalar tensor. The number T of tokens.
        backwards: bool. False to attend to earlier tokens, True to attend to later tokens.
        dtype: str. The dtype of the mask.

    Returns:
        [T, T]: 0 if the query attends to the key, else twice `MASKED_SCORE`. The factor matters if all allowed keys
        are padding: the query then attends to the padding rather than to a forbidden token.
    """
    ops = keras.ops
    positions = ops.arange(tokens)
    queries, keys = ops.expand_dims(positions, 1), ops.expand_dims(positions, 0)
    is_forbidden = ops.less(keys, queries) if backwards else ops.greater(keys, queries)
    return ops.cast(is_forbidden, dtype) * (2 * MASKED_SCORE)


@register
class CausalSelfAttention(MultiHeadSelfAttention):
    """Self-attention of every token to itself and the tokens before it; otherwise as `MultiHeadSelfAttention`."""

    backwards = False

    def steps(self, x: Tensor, bias: Tensor, training: bool = False) -> Steps:
        """Compute the layer with the causal mask; see `MultiHeadSelfAttention.steps`."""
        mask = causal_mask(keras.ops.shape(x)[1], self.backwards, self.compute_dtype)
        return super().steps(x, bias + mask, training)


@register
class ReverseCausalSelfAttention(CausalSelfAttention):
    """Self-attention of every token to itself and the tokens after it."""

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
    """A left-to-right and a right-to-left layer in parallel, each with half of the width and without connection.

    Args:
        hidden_size: int. The width H of both layers together.
        num_heads: int. The number of heads of both layers together.
        intermediate_size: int. The feed-forward width of both layers together.
        *args, **kwargs: Further arguments of `EncoderLayer`.

    Call arguments and returns are those of `HookedLayer`. The first half of x [B, T, H], of the heads and of the
    feed-forward units belongs to the left-to-right layer.
    """

    def __init__(self, hidden_size: int, num_heads: int, intermediate_size: int, *args: Any, **kwargs: Any) -> None:
        name, policy = kwargs.pop("name", None), kwargs.pop("dtype", None)
        super().__init__(name=name, dtype=policy)
        self.settings = {"hidden_size": hidden_size, "num_heads": num_heads, "intermediate_size": intermediate_size}
        half = hidden_size // 2, num_heads // 2, intermediate_size // 2
        self.left = CausalEncoderLayer(*half, *args, **kwargs, dtype=self.dtype_policy, name="left")
        self.right = ReverseCausalEncoderLayer(*half, *args, **kwargs, dtype=self.dtype_policy, name="right")

    def stacks(self) -> tuple[HookedLayer, ...]:
        """Return the left-to-right and the right-to-left layer."""
        return self.left, self.right

    def build(self, x_shape: Shape, *_: Any) -> None:
        for layer in self.stacks():
            layer.build((None, None, self.settings["hidden_size"] // 2))

    def get_config(self) -> dict[str, Any]:
        return {**self.left.get_config(), **super().get_config()}


@register
class BiLMEmbeddings(BertEmbeddings):
    """Embeddings of half the hidden size, repeated for both stacks: E = H / 2, so [B, T, E] becomes [B, T, H]."""

    def project(self, x: Tensor) -> Tensor:
        """Repeat the embeddings for both stacks: [B, T, E] -> [B, T, H]."""
        return keras.ops.concatenate([x, x], axis=-1)


@register
class CausalLMHead(MaskedLMHead):
    """A `MaskedLMHead` that predicts each token from the hidden state of the token before it."""

    def read(self, x: Tensor) -> Tensor:
        """Return for each position the hidden state before it: [B, T, H]."""
        return _shifted(x, 1)


@register
class BiLMHead(MaskedLMHead):
    """A `MaskedLMHead` that predicts each token from the left-to-right hidden state of the token before it and the
    right-to-left hidden state of the token after it.

    The predictions of the first and the last token have no meaning, because these have only one neighbour.
    """

    def read(self, x: Tensor) -> Tensor:
        """Return for each position the left-to-right state before it and the right-to-left state after it."""
        left, right = keras.ops.split(x, 2, axis=-1)
        return keras.ops.concatenate([_shifted(left, 1), _shifted(right, -1)], axis=-1)


def _shifted(x, offset):
    """[B, T, H] shifted by one position and padded with zeros; +1 gives each position the state before it."""
    if offset > 0:
        return keras.ops.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
    return keras.ops.pad(x, ((0, 0), (0, 1), (0, 0)))[:, 1:]
