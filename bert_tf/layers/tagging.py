"""The head of token classification (Devlin et al. 2019, section 4: "fed into an output layer")."""

from typing import Any

import keras

from bert_tf.layers.common import Tensor, initializer, register
from bert_tf.layers.crf import LinearChainCRF
from bert_tf.layers.pooler import prediction_head


@register
class TaggingHead(keras.layers.Layer):
    """Dropout and a linear classifier on the hidden state of each token, with an optional CRF over the labels.

    Args:
        labels: int. The number K of labels.
        hidden_size: int. The width H of the hidden states.
        dropout: float. The dropout rate.
        stddev: float. The standard deviation of the initializer.
        crf: bool. Whether to add a CRF.
        prediction: dict or None. The arguments of a `PredictionHead` before the last layer; None for no such layers.

    Call arguments:
        sequence: float [B, T, H]. The hidden states.
        pooled, padding_mask: unused.
        training: bool. Whether to apply dropout.

    Returns:
        Dict with "logits", float32 [B, T, K]; with a CRF also "transitions", float32 [B, K + 2, K].
    """

    def __init__(
        self,
        labels: int,
        hidden_size: int,
        dropout: float = 0.1,
        stddev: float = 0.02,
        crf: bool = False,
        prediction: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "labels": labels,
            "hidden_size": hidden_size,
            "dropout": dropout,
            "stddev": stddev,
            "crf": crf,
            "prediction": prediction,
        }
        self.prediction = prediction_head(prediction)
        self.dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.dense = keras.layers.Dense(
            labels, kernel_initializer=initializer(stddev), dtype=self.dtype_policy, name="dense"
        )
        self.crf = LinearChainCRF(labels, stddev, dtype=self.dtype_policy, name="crf") if crf else None

    def build(self, *_: Any) -> None:
        for layer in (self.prediction, self.dense):
            if layer is not None:
                layer.build((None, None, self.settings["hidden_size"]))
        if self.crf is not None:
            self.crf.build()

    def call(
        self, sequence: Tensor, pooled: Tensor | None = None, padding_mask: Tensor | None = None, training: bool = False
    ) -> dict[str, Tensor]:
        if self.prediction is not None:
            sequence = self.prediction(sequence)
        logits = keras.ops.cast(self.dense(self.dropout(sequence, training=training)), "float32")
        return {"logits": logits} if self.crf is None else self.crf(logits)

    def compute_output_spec(
        self, sequence: Tensor, pooled: Tensor | None = None, padding_mask: Tensor | None = None, training: bool = False
    ) -> dict[str, keras.KerasTensor]:
        logits = keras.KerasTensor((*sequence.shape[:2], self.settings["labels"]), dtype="float32")
        return {"logits": logits} if self.crf is None else self.crf.compute_output_spec(logits)

    def named_variables(self) -> dict[str, keras.Variable]:
        """Return the variables by their names in Hugging Face's files; `crf.transitions` exists only here."""
        variables = {"classifier.weight": self.dense.kernel, "classifier.bias": self.dense.bias}
        if self.prediction is not None:
            variables |= self.prediction.named_variables()
        return variables if self.crf is None else {**variables, "crf.transitions": self.crf.transitions}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}
