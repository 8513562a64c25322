"""DeBERTa-v3's layers: attention whose scores also compare contents with relative positions, and no other positions.

Sources: He et al. 2021a (DeBERTa), section 3.1 (disentangled attention); He et al. 2021b (DeBERTaV3); the buckets of
positions are those of microsoft/DeBERTa, `da_utils.py`, `make_log_bucket_position`.

B batch, T tokens, H hidden size, N heads, D head size, S buckets on each side, R rows of near positions.
"""

from typing import Any

import keras

from bert_tf.layers.attention import MultiHeadSelfAttention, attend
from bert_tf.layers.common import LayerNorm, Shape, Tensor, initializer, register
from bert_tf.layers.deberta.positions import bucket_rows
from bert_tf.layers.embeddings import BertEmbeddings
from bert_tf.layers.encoder import EncoderLayer
from bert_tf.layers.hooks import Steps


def shift_rows(x: Tensor) -> Tensor:
    """Move the values of each row so that columns of distances become columns of tokens.

    Args:
        x: float [B, N, T, 2T - 1]. In row i, the column c is of the token i + c - (T - 1).

    Returns:
        [B, N, T, T]. In row i, the column j is of the token j.
    """
    ops = keras.ops
    batch, heads, tokens, _ = ops.shape(x)
    # One more column makes each row one value longer than its distances, so that reading the rows on and on, each
    # new row begins one token later (Dai et al. 2019, appendix B).
    flat = ops.reshape(ops.pad(x, [(0, 0), (0, 0), (0, 0), (0, 1)]), (batch, heads, 2 * tokens * tokens))
    first = tokens - 1
    shifted = flat[:, :, first : first + tokens * (2 * tokens - 1)]
    return ops.reshape(shifted, (batch, heads, tokens, 2 * tokens - 1))[..., :tokens]


@register
class RelativePositions(keras.layers.Layer):
    """A table of the relative positions of two tokens, in buckets of distances, and its normalization.

    All layers of a model share it.

    Args:
        hidden_size: int. The width H of a row.
        position_buckets: int. The number S of buckets on each side.
        max_relative_positions: int. The distance at which the buckets end.
        max_positions: int. The largest number of tokens.
        dropout: float. The dropout rate of the rows.
        epsilon: float. The epsilon of the layer normalization.
        stddev: float. The standard deviation of the initializer.

    """

    def __init__(
        self,
        hidden_size: int,
        position_buckets: int,
        max_relative_positions: int,
        max_positions: int,
        dropout: float = 0.1,
        epsilon: float = 1e-7,
        stddev: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "hidden_size": hidden_size,
            "position_buckets": position_buckets,
            "max_relative_positions": max_relative_positions,
            "max_positions": max_positions,
            "dropout": dropout,
            "epsilon": epsilon,
            "stddev": stddev,
        }
        self.norm = LayerNorm(epsilon, dtype=self.dtype_policy, name="norm")
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, *_: Any) -> None:
        settings = self.settings
        self.table = self.add_weight(
            name="table",
            shape=(2 * settings["position_buckets"], settings["hidden_size"]),
            initializer=initializer(settings["stddev"]),
        )
        self.norm.build((None, settings["hidden_size"]))

    def near(self, tokens: int | Tensor, training: bool = False) -> tuple[Tensor, Tensor]:
        """Return the rows for a number of tokens.

        Args:
            tokens: int or scalar tensor. The number T of tokens.
            training: bool. Whether to apply dropout.

        Returns:
            Rows, float [1, R, H], of the distances between T tokens, and for the distances T - 1 to -(T - 1) the
            number of their row, int32 [2T - 1].
        """
        ops, settings = keras.ops, self.settings
        most = settings["max_positions"]
        rows: Any = bucket_rows(settings["position_buckets"], settings["max_relative_positions"], most)
        if not isinstance(tokens, int):
            rows = ops.convert_to_tensor(rows)
        rows = rows[most - tokens : most + tokens - 1]
        first, last = rows[-1], rows[0]
        near = self.norm(ops.cast(ops.convert_to_tensor(self.table)[first : last + 1], self.compute_dtype))
        return ops.expand_dims(self.dropout(near, training=training), 0), ops.convert_to_tensor(rows - first)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


@register
class DisentangledAttention(MultiHeadSelfAttention):
    """Self-attention whose scores sum three products: of the contents of two tokens, of the query's content with the
    position of the key relative to it, and of the key's content with the position of the query.

    The projections of queries and keys are also those of the positions (`share_att_key`).

    Args:
        hidden_size: int. The width H of the hidden states.
        num_heads: int. The number N of heads, a divisor of H.
        dropout: float. The dropout rate of the attention probabilities.
        stddev: float. The standard deviation of the initializer.
        relative: `RelativePositions`. The table of positions, set before the first call.

    Call arguments and returns are those of `MultiHeadSelfAttention`.
    """

    score_terms = 3
    relative: RelativePositions

    def steps(self, x: Tensor, bias: Tensor, training: bool = False) -> Steps:
        """Compute the layer as a generator that yields (name, value) at its hook points; see `bert_tf.layers.hooks`."""
        ops = keras.ops
        query = yield "q", self.split_heads(self.query(x))
        key = yield "k", self.split_heads(self.key(x))
        value = yield "v", self.split_heads(self.value(x))
        near, rows = self.relative.near(ops.shape(x)[1], training)
        scale = ops.cast(self.score_scale, query.dtype)
        keys_of_places, queries_of_places = (
            ops.take(ops.multiply(self.split_heads(projection(near)), scale), order, axis=2)  # [1, N, 2T - 1, D]
            for projection, order in ((self.key, rows), (self.query, ops.flip(rows, axis=0)))
        )
        from_content = shift_rows(ops.matmul(query, ops.transpose(keys_of_places, (0, 1, 3, 2))))
        from_place = shift_rows(ops.matmul(key, ops.transpose(queries_of_places, (0, 1, 3, 2))))
        bias = bias + from_content + ops.transpose(from_place, (0, 1, 3, 2))
        return (yield from attend(self, query, key, value, bias, training))


@register
class DisentangledEncoderLayer(EncoderLayer):
    """An `EncoderLayer` with `DisentangledAttention`.

    Args:
        *arguments: The arguments of `EncoderLayer`.
        positions: dict. The arguments of `RelativePositions` beside those of the layer.
        relative: `RelativePositions` or None. The table that the layers of a model share; None for one of its own.
    """

    attention_class = DisentangledAttention

    def __init__(
        self,
        *arguments: Any,
        positions: dict[str, int],
        relative: RelativePositions | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*arguments, **kwargs)
        if relative is None:
            names = ("hidden_size", "dropout", "epsilon", "stddev")
            settings = {name: self.settings[name] for name in names}
            relative = RelativePositions(**settings, **positions, dtype=self.dtype_policy, name="relative")
        self.settings["positions"] = dict(positions)
        self.relative = self.attention.relative = relative

    @classmethod
    def settings_at(cls, config: Any, index: int) -> dict[str, Any]:
        positions = {
            "position_buckets": config.position_buckets,
            "max_relative_positions": config.max_relative_positions,
            "max_positions": config.max_position_embeddings,
        }
        return {"positions": positions}

    def shared(self) -> dict[str, Any]:
        return {"relative": self.relative}

    def build(self, x_shape: Shape, *_: Any) -> None:
        super().build(x_shape)
        if not self.relative.built:
            self.relative.build()


@register
class DisentangledEmbeddings(BertEmbeddings):
    """Token embeddings, normalized; segment embeddings are added if the model has them, and no positions."""

    has_positions = False
