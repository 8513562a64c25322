"""The pooler: a sentence vector from the hidden state of [CLS] (Devlin et al. 2018, `modeling.py`)."""

from typing import Any

import keras

from bert_tf.layers.common import Shape, Tensor, activation, initializer, register


@register
class Pooler(keras.layers.Layer):
    """A dense layer on the first token's hidden state.

    Args:
        hidden_size: int. The width H of the hidden states.
        stddev: float. The standard deviation of the initializer.
        hidden_act: str. The activation: tanh in BERT, others in the heads of `Architecture.sentence_heads`.

    Call arguments:
        x: float [B, T, H]. The hidden states.

    Returns:
        [B, H].
    """

    def __init__(self, hidden_size: int, stddev: float = 0.02, hidden_act: str = "tanh", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {"hidden_size": hidden_size, "stddev": stddev, "hidden_act": hidden_act}
        self.dense = keras.layers.Dense(
            hidden_size,
            activation=activation(hidden_act),
            kernel_initializer=initializer(stddev),
            dtype=self.dtype_policy,
            name="dense",
        )

    def build(self, x_shape: Shape) -> None:
        self.dense.build((None, self.settings["hidden_size"]))

    def call(self, x: Tensor) -> Tensor:
        return self.dense(x[:, 0])

    def compute_output_shape(self, x_shape: Shape) -> Shape:
        return (x_shape[0], self.settings["hidden_size"])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
