"""The pooler: the sentence's vector out of [CLS] (Devlin et al. 2018, `modeling.py`)."""

import keras

from bert_tf.layers.common import initializer, register


@register
class Pooler(keras.layers.Layer):
    """Dense and tanh on the first token's hidden state.

    Args:
        hidden_size: H. stddev: of the initialiser.

    Call arguments: x [B, T, H]. Returns: [B, H].
    """

    def __init__(self, hidden_size, stddev=0.02, **kwargs):
        super().__init__(**kwargs)
        self.settings = {"hidden_size": hidden_size, "stddev": stddev}
        self.dense = keras.layers.Dense(hidden_size, activation="tanh", kernel_initializer=initializer(stddev),
                                        dtype=self.dtype_policy, name="dense")

    def build(self, x_shape):
        self.dense.build((None, self.settings["hidden_size"]))

    def call(self, x):
        return self.dense(x[:, 0])

    def compute_output_shape(self, x_shape):
        return (x_shape[0], self.settings["hidden_size"])

    def get_config(self):
        return {**super().get_config(), **self.settings}
