"""The layers before the last one of a head: the pooler, a sentence vector from the hidden state of [CLS] (Devlin et al.
2018, `modeling.py`), and ModernBERT's prediction head (Warner et al. 2024; `ModernBertPredictionHead` of Transformers).
"""

from typing import Any

import keras

from bert_tf.layers.common import LayerNorm, Shape, Tensor, activation, initializer, register


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


@register
class PredictionHead(keras.layers.Layer):
    """Dense layer, GELU and layer normalization, without biases.

    Args:
        hidden_size: int. The width H of the hidden states.
        epsilon: float. The epsilon of the layer normalization.
        stddev: float. The standard deviation of the initializer.

    Call arguments:
        x: float [..., H]. Hidden states, or a vector of each sequence.

    Returns:
        float32 [..., H].
    """

    def __init__(self, hidden_size: int, epsilon: float = 1e-5, stddev: float = 0.02, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {"hidden_size": hidden_size, "epsilon": epsilon, "stddev": stddev}
        self.dense = keras.layers.Dense(
            hidden_size,
            use_bias=False,
            activation=activation("gelu"),
            kernel_initializer=initializer(stddev),
            dtype="float32",
            name="dense",
        )
        self.norm = LayerNorm(epsilon, bias=False, dtype="float32", name="norm")

    def build(self, *_: Any) -> None:
        for layer in (self.dense, self.norm):
            layer.build((None, None, self.settings["hidden_size"]))

    def call(self, x: Tensor) -> Tensor:
        return self.norm(self.dense(x))

    def compute_output_shape(self, x_shape: Shape) -> Shape:
        return x_shape

    def named_variables(self) -> dict[str, keras.Variable]:
        """Return the variables by their names in Hugging Face's files."""
        return {"head.dense.weight": self.dense.kernel, "head.norm.weight": self.norm.gamma}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


def prediction_head(settings: dict[str, Any] | None) -> PredictionHead | None:
    """Return a `PredictionHead` with these arguments, or None for a head without one."""
    return None if settings is None else PredictionHead(**settings, name="prediction")
