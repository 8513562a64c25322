"""The pre-training heads: masked language model and sentence pairs (Devlin et al. 2019, section 3.1), replaced
tokens (Clark et al. 2020, section 2).
"""

import keras

from bert_tf.layers.common import LayerNorm, activation, initializer, register


@register
class MaskedLMHead(keras.layers.Layer):
    """Dense, activation, layer normalisation, then the token table transposed, plus a bias of its own.

    The token table is an argument of the call: it is the embeddings' own (tied), never a copy.

    Args:
        vocab_size: V. hidden_size: H. hidden_act, epsilon, stddev: see `BertConfig`.
        embedding_size: width E of the token table, None for H.

    Call arguments:
        x: [B, T, H]. token_table: [V, E].
        positions: int32 [B, P], the tokens to predict; None for all T.

    Returns: logits [B, P, V] (or [B, T, V]) in float32.
    """

    def __init__(
        self, vocab_size, hidden_size, hidden_act="gelu", epsilon=1e-12, stddev=0.02, embedding_size=None, **kwargs
    ):
        super().__init__(**kwargs)
        self.settings = {
            "vocab_size": vocab_size,
            "hidden_size": hidden_size,
            "hidden_act": hidden_act,
            "epsilon": epsilon,
            "stddev": stddev,
            "embedding_size": embedding_size,
        }
        self.activation = activation(hidden_act)
        self.width = hidden_size if embedding_size is None else embedding_size
        self.transform = keras.layers.Dense(
            self.width, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name="transform"
        )
        self.norm = LayerNorm(epsilon, dtype=self.dtype_policy, name="norm")

    def build(self, *_):
        self.transform.build((None, None, self.settings["hidden_size"]))
        self.norm.build((None, None, self.width))
        self.bias = self.add_weight(
            name="bias", shape=(self.settings["vocab_size"],), initializer="zeros", autocast=False
        )

    def read(self, x):
        """For each place the state [B, T, H] that it is predicted from: BERT's own, which has seen all the rest."""
        return x

    def call(self, x, token_table, positions=None):
        x = self.read(x)
        if positions is not None:
            x = keras.ops.take_along_axis(x, keras.ops.expand_dims(positions, -1), axis=1)  # [B, P, H]
        return self.logits(x, token_table)

    def logits(self, x, token_table, norm=None):
        """Logits [B, P, V] of states [B, P, H] as `read` gives them; norm: in the place of its own normalisation."""
        ops = keras.ops
        x = (norm or self.norm)(self.activation(ops.cast(self.transform(x), self.compute_dtype)))
        batch, count, width = ops.shape(x)
        x, table = (ops.cast(tensor, self.transform.compute_dtype) for tensor in (x, token_table))
        flat = ops.matmul(ops.reshape(x, (batch * count, width)), ops.transpose(table))
        logits = ops.reshape(flat, (batch, count, self.settings["vocab_size"]))
        return ops.cast(logits, "float32") + ops.cast(self.bias, "float32")

    def compute_output_spec(self, x, token_table, positions=None):
        batch, count = (x if positions is None else positions).shape[:2]
        return keras.KerasTensor((batch, count, self.settings["vocab_size"]), dtype="float32")

    def get_config(self):
        return {**super().get_config(), **self.settings}


@register
class NextSentenceHead(keras.layers.Layer):
    """Linear classifier of a pair on the pooled output: index 0 is IsNext, 1 is NotNext.

    ALBERT's sentence-order head is the same: 0 in order, 1 swapped (Lan et al. 2020, section 3.1).

    Args:
        stddev: of the initialiser.

    Call arguments: pooled [B, H]. Returns: logits [B, 2].
    """

    def __init__(self, stddev=0.02, **kwargs):
        super().__init__(**kwargs)
        self.stddev = stddev
        self.dense = keras.layers.Dense(
            2, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name="dense"
        )

    def build(self, pooled_shape):
        self.dense.build(pooled_shape)

    def call(self, pooled):
        return keras.ops.cast(self.dense(pooled), "float32")

    def compute_output_spec(self, pooled):
        return keras.KerasTensor((pooled.shape[0], 2), dtype="float32")

    def get_config(self):
        return {**super().get_config(), "stddev": self.stddev}


@register
class ReplacedTokenHead(keras.layers.Layer):
    """Dense, activation, and one number a token: how much it looks put there in the place of another.

    Args:
        hidden_size: H. hidden_act, stddev: see `BertConfig`.

    Call arguments: x [B, T, H]. Returns: logits [B, T] in float32, above 0 for "replaced".
    """

    def __init__(self, hidden_size, hidden_act="gelu", stddev=0.02, **kwargs):
        super().__init__(**kwargs)
        self.settings = {"hidden_size": hidden_size, "hidden_act": hidden_act, "stddev": stddev}
        self.activation = activation(hidden_act)

        def dense(size, name):
            return keras.layers.Dense(size, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name=name)

        self.transform, self.score = dense(hidden_size, "transform"), dense(1, "score")

    def build(self, *_):
        for layer in (self.transform, self.score):
            layer.build((None, None, self.settings["hidden_size"]))

    def call(self, x):
        x = self.activation(keras.ops.cast(self.transform(x), self.compute_dtype))
        return keras.ops.cast(keras.ops.squeeze(self.score(x), -1), "float32")

    def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape[:2], dtype="float32")

    def get_config(self):
        return {**super().get_config(), **self.settings}
