"""The head of extractive question answering (Devlin et al. 2019, section 4.2)."""

from typing import Any

import keras

from bert_tf.layers.common import Tensor, initializer, named_dense, register
from bert_tf.layers.pooler import prediction_head


@register
class SpanHead(keras.layers.Layer):
    """A start and an end score for each token: its hidden state times a start and an end vector.

    Args:
        hidden_size: int. The width H of the hidden states.
        stddev: float. The standard deviation of the initializer.
        prediction: dict or None. The arguments of a `PredictionHead` before the last layer; None for no such layers.
            With them, the last layer is named "classifier" in Hugging Face's files.

    Call arguments:
        sequence: float [B, T, H]. The hidden states.
        pooled, padding_mask, training: unused.

    Returns:
        Dict with "start_logits" and "end_logits", float32 [B, T].
    """

    def __init__(
        self, hidden_size: int, stddev: float = 0.02, prediction: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {"hidden_size": hidden_size, "stddev": stddev, "prediction": prediction}
        self.prediction = prediction_head(prediction)
        self.dense = keras.layers.Dense(
            2, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name="dense"
        )

    def build(self, *_: Any) -> None:
        for layer in (self.prediction, self.dense):
            if layer is not None:
                layer.build((None, None, self.settings["hidden_size"]))

    def call(
        self, sequence: Tensor, pooled: Tensor | None = None, padding_mask: Tensor | None = None, training: bool = False
    ) -> dict[str, Tensor]:
        if self.prediction is not None:
            sequence = self.prediction(sequence)
        scores = keras.ops.cast(self.dense(sequence), "float32")
        return {"start_logits": scores[..., 0], "end_logits": scores[..., 1]}

    def compute_output_spec(
        self, sequence: Tensor, pooled: Tensor | None = None, padding_mask: Tensor | None = None, training: bool = False
    ) -> dict[str, keras.KerasTensor]:
        return {name: keras.KerasTensor(sequence.shape[:2], dtype="float32") for name in ("start_logits", "end_logits")}

    def named_variables(self) -> dict[str, keras.Variable]:
        """Return the variables by their names in Hugging Face's files."""
        if self.prediction is not None:
            return {**named_dense("classifier", self.dense), **self.prediction.named_variables()}
        return named_dense("qa_outputs", self.dense)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
