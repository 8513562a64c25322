"""The input representation: token + segment + position, normalised (Devlin et al. 2019, section 3, fig. 2)."""

import keras

from bert_tf.layers.common import LayerNorm, initializer, register


@register
class BertEmbeddings(keras.layers.Layer):
    """Sum of the token, segment and position embeddings, layer normalisation, dropout, projection if need be.

    Args:
        vocab_size, max_positions, num_segments: rows of the three tables. With fewer than two segments the ids
            are not looked at: one row is added to every token, or none.
        hidden_size: H. embedding_size: width E of the tables, None for H; others are projected to H (Lan et al.
            2020, section 3.1).
        dropout: rate on the normalised sum.
        epsilon: of the layer normalisation.
        stddev: of the initialiser.
        position_offset: row of the position table that the first token takes.

    Call arguments:
        token_ids: int32 [B, T]. segment_ids: int32 [B, T].

    Returns: a dict of "embeddings" [B, T, H], "embeddings_sum" [B, T, E] (before normalisation) and
        "token_table" [V, E] in the variables' dtype, for the masked language model's tied output.
    """

    #: Whether vectors of another width than H are projected to it by a matrix.
    has_embedding_projection = True

    def __init__(
        self,
        vocab_size,
        hidden_size,
        max_positions=512,
        num_segments=2,
        dropout=0.1,
        epsilon=1e-12,
        stddev=0.02,
        embedding_size=None,
        position_offset=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.width = hidden_size if embedding_size is None else embedding_size
        self.settings = {
            "vocab_size": vocab_size,
            "hidden_size": hidden_size,
            "max_positions": max_positions,
            "num_segments": num_segments,
            "dropout": dropout,
            "epsilon": epsilon,
            "stddev": stddev,
            "embedding_size": embedding_size,
            "position_offset": position_offset,
        }
        self.norm = LayerNorm(epsilon, dtype=self.dtype_policy, name="norm")
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.projection = None
        if self.has_embedding_projection and self.width != hidden_size:
            self.projection = keras.layers.Dense(
                hidden_size, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name="projection"
            )

    def build(self, *_):
        width = self.width

        def table(name, rows):
            # Cast after the look-up: a reduced-precision copy of a whole table would cost more than its rows.
            return self.add_weight(
                name=name, shape=(rows, width), autocast=False, initializer=initializer(self.settings["stddev"])
            )

        self.token_table = table("token_table", self.settings["vocab_size"])
        self.position_table = table("position_table", self.settings["max_positions"])
        segments = self.settings["num_segments"]
        self.segment_table = table("segment_table", segments) if segments else None
        self.norm.build((None, None, width))
        if self.projection is not None:
            self.projection.build((None, None, width))

    def call(self, token_ids, segment_ids, training=False):
        table = keras.ops.convert_to_tensor(self.token_table)
        total = self.add_places(keras.ops.take(table, token_ids, axis=0), segment_ids)
        normal = self.dropout(self.norm(total), training=training)
        return {"embeddings": self.project(normal), "embeddings_sum": total, "token_table": table}

    def add_places(self, vectors, segment_ids):
        """Token vectors [B, T, E] with what segments int32 [B, T] and positions add to them."""
        ops = keras.ops
        first = self.settings["position_offset"]
        last = first + ops.shape(vectors)[1]
        positions = ops.convert_to_tensor(self.position_table)[first:last]  # [T, E]
        if self.settings["num_segments"] > 1:
            vectors = vectors + ops.take(self.segment_table, segment_ids, axis=0)
        elif self.segment_table is not None:
            vectors = vectors + ops.convert_to_tensor(self.segment_table)[0]
        return ops.cast(vectors + positions, self.compute_dtype)

    def project(self, x):
        """[B, T, E] -> [B, T, H]; what goes in where the two are the same width."""
        return x if self.projection is None else keras.ops.cast(self.projection(x), self.compute_dtype)

    def compute_output_spec(self, token_ids, segment_ids, training=False):
        shape, width = token_ids.shape, self.settings["hidden_size"]
        return {
            "embeddings": keras.KerasTensor((*shape, width), dtype=self.compute_dtype),
            "embeddings_sum": keras.KerasTensor((*shape, self.width), dtype=self.compute_dtype),
            "token_table": keras.KerasTensor((self.settings["vocab_size"], self.width), dtype=self.variable_dtype),
        }

    def get_config(self):
        return {**super().get_config(), **self.settings}
