"""The pooler: the sentence's vector out of [CLS] (Devlin et al. 2018, `modeling.py`)."""

import keras

from bert_tf.layers.common import activation, initializer, register


@register
class Pooler(keras.layers.Layer):
    """A dense layer on the first token's hidden state.

    Args:
        hidden_size: H. stddev: of the initialiser. hidden_act: its activation; the heads that bring such a layer
            themselves (`Architecture.sentence_heads`) have others than BERT's.

    Call arguments: x [B, T, H]. Returns: [B, H].
    """

    def __init__(self, hidden_size, stddev=0.02, hidden_act="tanh", **kwargs):
        super().__init__(**kwargs)
        self.settings = {"hidden_size": hidden_size, "stddev": stddev, "hidden_act": hidden_act}
        self.dense = keras.layers.Dense(
            hidden_size,
            activation=activation(hidden_act),
            kernel_initializer=initializer(stddev),
            dtype=self.dtype_policy,
            name="dense",
        )

    def build(self, x_shape):
        self.dense.build((None, self.settings["hidden_size"]))

    def call(self, x):
        return self.dense(x[:, 0])

    def compute_output_shape(self, x_shape):
        return (x_shape[0], self.settings["hidden_size"])

    def get_config(self):
        return {**super().get_config(), **self.settings}
