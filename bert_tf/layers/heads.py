"""The heads of pre-training: masked language model and sentence pairs (Devlin et al. 2019, section 3.1), and
replaced-token detection (Clark et al. 2020, section 2).
"""

from collections.abc import Callable
from typing import Any

import keras

from bert_tf.layers.common import LayerNorm, Shape, Tensor, activation, initializer, register


@register
class MaskedLMHead(keras.layers.Layer):
    """Dense layer, activation, layer normalization, the transposed token embedding table, and a bias.

    The token table is an argument of the call: it is the table of the embeddings (tied), not a copy. A layer that is
    not tied has an output table of its own and ignores the argument.

    Args:
        vocab_size: int. The size V of the vocabulary.
        hidden_size: int. The width H of the hidden states.
        hidden_act: str. The activation; see `BertConfig`.
        epsilon: float. The epsilon of the layer normalization.
        stddev: float. The standard deviation of the initializer.
        embedding_size: int or None. The width E of the token table; None for H.
        tied: bool. Whether the output matrix is the token table of the call; False for a weight of this layer.

    Call arguments:
        x: float [B, T, H]. The hidden states.
        token_table: float [V, E]. The token embedding table.
        positions: int32 [B, P] or None. The tokens to predict; None for all T tokens.

    Returns:
        Logits, float32 [B, P, V] or [B, T, V].
    """

    #: Whether the dense layer and the normalization have a bias.
    has_biases = True

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int,
        hidden_act: str = "gelu",
        epsilon: float = 1e-12,
        stddev: float = 0.02,
        embedding_size: int | None = None,
        tied: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "vocab_size": vocab_size,
            "hidden_size": hidden_size,
            "hidden_act": hidden_act,
            "epsilon": epsilon,
            "stddev": stddev,
            "embedding_size": embedding_size,
            "tied": tied,
        }
        self.activation = activation(hidden_act)
        self.width = hidden_size if embedding_size is None else embedding_size
        self.transform = keras.layers.Dense(
            self.width,
            use_bias=self.has_biases,
            kernel_initializer=initializer(stddev),
            dtype=self.dtype_policy,
            name="transform",
        )
        self.norm = LayerNorm(epsilon, self.has_biases, dtype=self.dtype_policy, name="norm")

    def build(self, *_: Any) -> None:
        self.transform.build((None, None, self.settings["hidden_size"]))
        self.norm.build((None, None, self.width))
        self.bias = self.add_weight(
            name="bias", shape=(self.settings["vocab_size"],), initializer="zeros", autocast=False
        )
        if not self.settings["tied"]:
            self.output_table = self.add_weight(
                name="output_table",
                shape=(self.settings["vocab_size"], self.width),
                initializer=initializer(self.settings["stddev"]),
                autocast=False,
            )

    def table(self, token_table: Tensor) -> Tensor:
        """Return the output table [V, E]: the token embedding table, or this layer's own."""
        return token_table if self.settings["tied"] else keras.ops.convert_to_tensor(self.output_table)

    def read(self, x: Tensor) -> Tensor:
        """Return for each position the hidden state [B, T, H] from which it is predicted; in BERT the same position."""
        return x

    def call(self, x: Tensor, token_table: Tensor, positions: Tensor | None = None) -> Tensor:
        x = self.read(x)
        if positions is not None:
            x = keras.ops.take_along_axis(x, keras.ops.expand_dims(positions, -1), axis=1)  # [B, P, H]
        return self.logits(x, token_table)

    def logits(self, x: Tensor, token_table: Tensor, norm: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """Return the logits of hidden states.

        Args:
            x: float [B, P, H]. Hidden states from `read`.
            token_table: float [V, E]. The token embedding table.
            norm: callable or None. A function that replaces the layer normalization.

        Returns:
            float32 [B, P, V].
        """
        ops = keras.ops
        x = (norm or self.norm)(self.activation(ops.cast(self.transform(x), self.compute_dtype)))
        batch, count, width = ops.shape(x)
        x, table = (ops.cast(tensor, self.transform.compute_dtype) for tensor in (x, self.table(token_table)))
        flat = ops.matmul(ops.reshape(x, (batch * count, width)), ops.transpose(table))
        logits = ops.reshape(flat, (batch, count, self.settings["vocab_size"]))
        return ops.cast(logits, "float32") + ops.cast(self.bias, "float32")

    def compute_output_spec(self, x: Tensor, token_table: Tensor, positions: Tensor | None = None) -> keras.KerasTensor:
        batch, count = (x if positions is None else positions).shape[:2]
        return keras.KerasTensor((batch, count, self.settings["vocab_size"]), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


@register
class NextSentenceHead(keras.layers.Layer):
    """Linear classifier of a pair on the pooled output: index 0 is IsNext, index 1 is NotNext.

    ALBERT's sentence-order head is the same layer: 0 in order, 1 swapped (Lan et al. 2020, section 3.1).

    Args:
        stddev: float. The standard deviation of the initializer.

    Call arguments:
        pooled: float [B, H]. The pooled output.

    Returns:
        Logits, float32 [B, 2].
    """

    def __init__(self, stddev: float = 0.02, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stddev = stddev
        self.dense = keras.layers.Dense(
            2, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name="dense"
        )

    def build(self, pooled_shape: Shape) -> None:
        self.dense.build(pooled_shape)

    def call(self, pooled: Tensor) -> Tensor:
        return keras.ops.cast(self.dense(pooled), "float32")

    def compute_output_spec(self, pooled: Tensor) -> keras.KerasTensor:
        return keras.KerasTensor((pooled.shape[0], 2), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "stddev": self.stddev}


@register
class ReplacedTokenHead(keras.layers.Layer):
    """Dense layer, activation, and one logit per token: whether the token was replaced.

    Args:
        hidden_size: int. The width H of the hidden states.
        hidden_act: str. The activation; see `BertConfig`.
        stddev: float. The standard deviation of the initializer.
        epsilon: float or None. With it, the hidden state of the first token is added to each and the sum is normalized
            before the dense layer (microsoft/DeBERTa, `LMMaskPredictionHead`); it is the epsilon of that normalization.

    Call arguments:
        x: float [B, T, H]. The hidden states.

    Returns:
        Logits, float32 [B, T]; above 0 for "replaced".
    """

    def __init__(
        self,
        hidden_size: int,
        hidden_act: str = "gelu",
        stddev: float = 0.02,
        epsilon: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "hidden_size": hidden_size,
            "hidden_act": hidden_act,
            "stddev": stddev,
            "epsilon": epsilon,
        }
        self.activation = activation(hidden_act)
        self.norm = None if epsilon is None else LayerNorm(epsilon, dtype=self.dtype_policy, name="norm")

        def dense(size, name):
            return keras.layers.Dense(size, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name=name)

        self.transform, self.score = dense(hidden_size, "transform"), dense(1, "score")

    def build(self, *_: Any) -> None:
        for layer in (self.norm, self.transform, self.score):
            if layer is not None:
                layer.build((None, None, self.settings["hidden_size"]))

    def call(self, x: Tensor) -> Tensor:
        if self.norm is not None:
            x = self.norm(x + x[:, :1])
        x = self.activation(keras.ops.cast(self.transform(x), self.compute_dtype))
        return keras.ops.cast(keras.ops.squeeze(self.score(x), -1), "float32")

    def compute_output_spec(self, x: Tensor) -> keras.KerasTensor:
        return keras.KerasTensor(x.shape[:2], dtype="float32")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
