"""The two pre-training heads (Devlin et al. 2019, section 3.1): masked language model, next sentence."""

import keras

from bert_tf.layers.common import LayerNorm, activation, initializer, register


@register
class MaskedLMHead(keras.layers.Layer):
    """Dense, activation, layer normalisation, then the token table transposed, plus a bias of its own.

    The token table is an argument of the call: it is the embeddings' own (tied), never a copy.

    Args:
        vocab_size: V. hidden_size: H. hidden_act, epsilon, stddev: see `BertConfig`.

    Call arguments:
        x: [B, T, H]. token_table: [V, H].
        positions: int32 [B, P], the tokens to predict; None for all T.

    Returns: logits [B, P, V] (or [B, T, V]) in float32.
    """

    def __init__(self, vocab_size, hidden_size, hidden_act="gelu", epsilon=1e-12, stddev=0.02, **kwargs):
        super().__init__(**kwargs)
        self.settings = {"vocab_size": vocab_size, "hidden_size": hidden_size, "hidden_act": hidden_act,
                         "epsilon": epsilon, "stddev": stddev}
        self.activation = activation(hidden_act)
        self.transform = keras.layers.Dense(hidden_size, kernel_initializer=initializer(stddev),
                                            dtype=self.dtype_policy, name="transform")
        self.norm = LayerNorm(epsilon, dtype=self.dtype_policy, name="norm")

    def build(self, *_):
        shape = (None, None, self.settings["hidden_size"])
        self.transform.build(shape)
        self.norm.build(shape)
        self.bias = self.add_weight(name="bias", shape=(self.settings["vocab_size"],), initializer="zeros",
                                    autocast=False)

    def call(self, x, token_table, positions=None):
        ops = keras.ops
        if positions is not None:
            x = ops.take_along_axis(x, ops.expand_dims(positions, -1), axis=1)    # [B, P, H]
        x = self.norm(self.activation(ops.cast(self.transform(x), self.compute_dtype)))
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
    """Linear classifier on the pooled output: index 0 is IsNext, 1 is NotNext.

    Args:
        stddev: of the initialiser.

    Call arguments: pooled [B, H]. Returns: logits [B, 2].
    """

    def __init__(self, stddev=0.02, **kwargs):
        super().__init__(**kwargs)
        self.stddev = stddev
        self.dense = keras.layers.Dense(2, kernel_initializer=initializer(stddev),
                                        dtype=self.dtype_policy, name="dense")

    def build(self, pooled_shape):
        self.dense.build(pooled_shape)

    def call(self, pooled):
        return keras.ops.cast(self.dense(pooled), "float32")

    def compute_output_spec(self, pooled):
        return keras.KerasTensor((pooled.shape[0], 2), dtype="float32")

    def get_config(self):
        return {**super().get_config(), "stddev": self.stddev}
