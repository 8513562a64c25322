"""The head of multiple choice (Devlin et al. 2019, section 4.4)."""

from collections.abc import Sequence
from typing import Any

import keras

from bert_tf.layers.common import Tensor, initializer, named_dense, register
from bert_tf.layers.pooler import Pooler, prediction_head


@register
class ChoiceHead(keras.layers.Layer):
    """A score for each choice: dropout and a linear map of its pooled output.

    Args:
        hidden_size: int. The width H of the hidden states.
        dropout: float. The dropout rate.
        stddev: float. The standard deviation of the initializer.
        hidden_act: str or None. As in `SentenceHead`.
        names: pair of str. As in `SentenceHead`.
        prediction: dict or None. As in `SentenceHead`.

    Call arguments:
        sequence: float [B, T, H]. The hidden states, used if the head has `hidden_act`.
        pooled: float [B, H]. The pooled output, used otherwise.
        padding_mask: unused.
        training: bool. Whether to apply dropout.

    Returns:
        Dict with "logits", float32 [B].
    """

    def __init__(
        self,
        hidden_size: int,
        dropout: float = 0.1,
        stddev: float = 0.02,
        hidden_act: str | None = None,
        names: Sequence[str] = ("", "classifier"),
        prediction: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "hidden_size": hidden_size,
            "dropout": dropout,
            "stddev": stddev,
            "hidden_act": hidden_act,
            "names": tuple(names),
            "prediction": prediction,
        }
        self.prediction = prediction_head(prediction)
        self.first = None
        if hidden_act:
            self.first = Pooler(hidden_size, stddev, hidden_act, dtype=self.dtype_policy, name="first")
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.dense = keras.layers.Dense(
            1, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name="dense"
        )

    def build(self, *_: Any) -> None:
        if self.first is not None:
            self.first.build((None, None, self.settings["hidden_size"]))
        if self.prediction is not None:
            self.prediction.build()
        self.dense.build((None, self.settings["hidden_size"]))

    def call(
        self, sequence: Tensor, pooled: Tensor, padding_mask: Tensor | None = None, training: bool = False
    ) -> dict[str, Tensor]:
        if self.first is not None:
            pooled = self.first(sequence)
        if self.prediction is not None:
            pooled = self.prediction(sequence[:, 0])
        scores = self.dense(self.dropout(pooled, training=training))
        return {"logits": keras.ops.cast(scores, "float32")[..., 0]}

    def compute_output_spec(
        self, sequence: Tensor, pooled: Tensor, padding_mask: Tensor | None = None, training: bool = False
    ) -> dict[str, keras.KerasTensor]:
        return {"logits": keras.KerasTensor(sequence.shape[:1], dtype="float32")}

    def named_variables(self) -> dict[str, keras.Variable]:
        """Return the variables by their names in Hugging Face's files."""
        first_name, last_name = self.settings["names"]
        variables = named_dense(last_name, self.dense)
        if self.prediction is not None:
            variables |= self.prediction.named_variables()
        return variables if self.first is None else variables | named_dense(first_name, self.first.dense)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
