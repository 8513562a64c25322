"""The input embeddings: token + segment + position, normalized (Devlin et al. 2019, section 3, fig. 2)."""

from typing import Any

import keras

from bert_tf.layers.common import LayerNorm, Tensor, initializer, register


@register
class BertEmbeddings(keras.layers.Layer):
    """Sum of the token, segment and position embeddings, layer normalization, dropout, and a projection to H.

    Args:
        vocab_size: int. The rows V of the token table.
        hidden_size: int. The width H of the hidden states.
        max_positions: int. The rows of the position table.
        num_segments: int. The rows of the segment table. With fewer than two rows the segment ids are ignored: the
            only row is added to every token, or no row.
        dropout: float. The dropout rate of the normalized sum.
        epsilon: float. The epsilon of the layer normalization.
        stddev: float. The standard deviation of the initializer.
        embedding_size: int or None. The width E of the tables; None for H.
        position_offset: int. The row of the position table for the first token.
        has_projection: bool. Whether a dense layer projects the embeddings from E to H (Lan et al. 2020, section 3.1).

    Call arguments:
        token_ids: int32 [B, T].
        segment_ids: int32 [B, T].
        training: bool. Whether to apply dropout.

    Returns:
        Dict with "embeddings" [B, T, H], "embeddings_sum" [B, T, E] (before normalization) and "token_table" [V, E] in
        the dtype of the variables, for the tied output of the masked language model.
    """

    #: Whether position embeddings are added, and whether the normalization has a bias.
    has_positions = has_biases = True

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int,
        max_positions: int = 512,
        num_segments: int = 2,
        dropout: float = 0.1,
        epsilon: float = 1e-12,
        stddev: float = 0.02,
        embedding_size: int | None = None,
        position_offset: int = 0,
        has_projection: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.width = hidden_size if embedding_size is None else embedding_size
        self.settings: dict[str, Any] = {
            "vocab_size": vocab_size,
            "hidden_size": hidden_size,
            "max_positions": max_positions,
            "num_segments": num_segments,
            "dropout": dropout,
            "epsilon": epsilon,
            "stddev": stddev,
            "embedding_size": embedding_size,
            "position_offset": position_offset,
            "has_projection": has_projection,
        }
        self.norm = LayerNorm(epsilon, self.has_biases, dtype=self.dtype_policy, name="norm")
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.projection = None
        if has_projection:
            self.projection = keras.layers.Dense(
                hidden_size, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name="projection"
            )

    def build(self, *_: Any) -> None:
        width = self.width

        def table(name, rows):
            # No autocast: only the rows that are looked up are cast, which is cheaper than a cast of the whole table.
            return self.add_weight(
                name=name, shape=(rows, width), autocast=False, initializer=initializer(self.settings["stddev"])
            )

        self.token_table = table("token_table", self.settings["vocab_size"])
        self.position_table = table("position_table", self.settings["max_positions"]) if self.has_positions else None
        segments = self.settings["num_segments"]
        self.segment_table = table("segment_table", segments) if segments else None
        self.norm.build((None, None, width))
        if self.projection is not None:
            self.projection.build((None, None, width))

    def call(self, token_ids: Tensor, segment_ids: Tensor, training: bool = False) -> dict[str, Tensor]:
        table = keras.ops.convert_to_tensor(self.token_table)
        total = self.add_places(keras.ops.take(table, token_ids, axis=0), segment_ids)
        normal = self.dropout(self.norm(total), training=training)
        return {"embeddings": self.project(normal), "embeddings_sum": total, "token_table": table}

    def add_places(self, vectors: Tensor, segment_ids: Tensor) -> Tensor:
        """Add the segment embeddings of int32 [B, T] and the position embeddings to token vectors [B, T, E]."""
        ops = keras.ops
        if self.settings["num_segments"] > 1:
            vectors = vectors + ops.take(self.segment_table, segment_ids, axis=0)
        elif self.segment_table is not None:
            vectors = vectors + ops.convert_to_tensor(self.segment_table)[0]
        if self.position_table is not None:
            first = self.settings["position_offset"]
            last = first + ops.shape(vectors)[1]
            vectors = vectors + ops.convert_to_tensor(self.position_table)[first:last]  # [T, E]
        return ops.cast(vectors, self.compute_dtype)

    def project(self, x: Tensor) -> Tensor:
        """Project [B, T, E] to [B, T, H]; the input is unchanged without a projection."""
        return x if self.projection is None else keras.ops.cast(self.projection(x), self.compute_dtype)

    def compute_output_spec(
        self, token_ids: Tensor, segment_ids: Tensor, training: bool = False
    ) -> dict[str, keras.KerasTensor]:
        shape, width = token_ids.shape, self.settings["hidden_size"]
        return {
            "embeddings": keras.KerasTensor((*shape, width), dtype=self.compute_dtype),
            "embeddings_sum": keras.KerasTensor((*shape, self.width), dtype=self.compute_dtype),
            "token_table": keras.KerasTensor((self.settings["vocab_size"], self.width), dtype=self.variable_dtype),
        }

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
