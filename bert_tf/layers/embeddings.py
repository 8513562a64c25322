"""The input representation: token + segment + position, normalised (Devlin et al. 2019, section 3, fig. 2)."""

import keras

from bert_tf.layers.common import LayerNorm, initializer, register


@register
class BertEmbeddings(keras.layers.Layer):
    """Sum of the token, segment and position embeddings, layer normalisation, dropout.

    Args:
        vocab_size, max_positions, num_segments: rows of the three tables.
        hidden_size: their width H.
        dropout: rate on the normalised sum.
        epsilon: of the layer normalisation.
        stddev: of the initialiser.

    Call arguments:
        token_ids: int32 [B, T]. segment_ids: int32 [B, T].

    Returns: a dict of "embeddings" [B, T, H], "embeddings_sum" [B, T, H] (before normalisation) and
        "token_table" [V, H] in the variables' dtype, for the masked language model's tied output.
    """

    def __init__(self, vocab_size, hidden_size, max_positions=512, num_segments=2, dropout=0.1,
                 epsilon=1e-12, stddev=0.02, **kwargs):
        super().__init__(**kwargs)
        self.settings = {"vocab_size": vocab_size, "hidden_size": hidden_size, "max_positions": max_positions,
                         "num_segments": num_segments, "dropout": dropout, "epsilon": epsilon, "stddev": stddev}
        self.norm = LayerNorm(epsilon, dtype=self.dtype_policy, name="norm")
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, *_):
        width = self.settings["hidden_size"]

        def table(name, rows):
            # Cast after the look-up: a reduced-precision copy of a whole table would cost more than its rows.
            return self.add_weight(name=name, shape=(rows, width), autocast=False,
                                   initializer=initializer(self.settings["stddev"]))

        self.token_table = table("token_table", self.settings["vocab_size"])
        self.position_table = table("position_table", self.settings["max_positions"])
        self.segment_table = table("segment_table", self.settings["num_segments"])
        self.norm.build((None, None, width))

    def call(self, token_ids, segment_ids, training=False):
        ops = keras.ops
        table = ops.convert_to_tensor(self.token_table)
        positions = ops.convert_to_tensor(self.position_table)[: ops.shape(token_ids)[1]]     # [T, H]
        total = ops.take(table, token_ids, axis=0) + ops.take(self.segment_table, segment_ids, axis=0) + positions
        total = ops.cast(total, self.compute_dtype)
        normal = self.dropout(self.norm(total), training=training)
        return {"embeddings": normal, "embeddings_sum": total, "token_table": table}

    def compute_output_spec(self, token_ids, segment_ids, training=False):
        width = self.settings["hidden_size"]
        rows = (*token_ids.shape, width)
        return {"embeddings": keras.KerasTensor(rows, dtype=self.compute_dtype),
                "embeddings_sum": keras.KerasTensor(rows, dtype=self.compute_dtype),
                "token_table": keras.KerasTensor((self.settings["vocab_size"], width), dtype=self.variable_dtype)}

    def get_config(self):
        return {**super().get_config(), **self.settings}
