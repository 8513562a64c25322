"""The heads over a vector of each sequence: of classification, and of sentence similarity, which is the vector itself.

B batch, T tokens, H hidden size, K outputs.

Sources: Devlin et al. 2019, section 4.1; Reimers & Gurevych 2019 (mean and maximum, similarity); Lin et
al. 2017 (weights learned by attention).
"""

from collections.abc import Sequence
from typing import Any, cast

import keras

from bert_tf.layers.common import Shape, Tensor, initializer, named_dense, register
from bert_tf.layers.hook_points import MASKED_SCORE
from bert_tf.layers.pooler import Pooler, prediction_head


@register
class SentenceVector(keras.layers.Layer):
    """One vector for a sequence.

    Args:
        kind: str. "cls" (the pooled output), "first" (the hidden state of the first token), "mean" or "max" over the
            tokens without padding, or "attention" (the mean over the tokens, weighted by a learned score for each
            token).
        stddev: float. The standard deviation of the initializer.

    Call arguments:
        sequence: float [B, T, H]. The hidden states.
        pooled: float [B, H]. The pooled output, for "cls"; else None.
        padding_mask: int32 [B, T]. 1 for tokens, 0 for padding.

    Returns:
        float32 [B, H].
    """

    def __init__(self, kind: str, stddev: float = 0.02, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {"kind": kind, "stddev": stddev}
        self.scores = (
            keras.layers.Dense(1, kernel_initializer=initializer(stddev), dtype="float32", name="scores")
            if kind == "attention"
            else None
        )

    def build(self, sequence_shape: Shape, *_: Any) -> None:
        if self.scores is not None:
            self.scores.build(sequence_shape)

    def call(self, sequence: Tensor, pooled: Tensor, padding_mask: Tensor) -> Tensor:
        ops, kind = keras.ops, self.settings["kind"]
        if kind == "cls":
            return ops.cast(pooled, "float32")
        sequence = ops.cast(sequence, "float32")
        if kind == "first":
            return sequence[:, 0]
        real = ops.cast(ops.expand_dims(padding_mask, -1), "float32")  # [B, T, 1]
        if kind == "max":
            return ops.max(sequence + (1.0 - real) * MASKED_SCORE, axis=1)
        if self.scores is not None:
            weights = ops.softmax(self.scores(sequence) + (1.0 - real) * MASKED_SCORE, axis=1)
            return ops.sum(sequence * weights, axis=1)
        return ops.sum(sequence * real, axis=1) / ops.maximum(ops.sum(real, axis=1), 1.0)

    def compute_output_spec(self, sequence: Tensor, pooled: Tensor, padding_mask: Tensor) -> keras.KerasTensor:
        return keras.KerasTensor((sequence.shape[0], sequence.shape[-1]), dtype="float32")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


@register
class SentenceHead(keras.layers.Layer):
    """The logits of a sentence or pair.

    Args:
        outputs: int. The number K of outputs.
        pooling: str. The `kind` of `SentenceVector`.
        dropout: float. The dropout rate of the sentence vector.
        stddev: float. The standard deviation of the initializer.
        hidden_size: int or None. The width H of the hidden states, needed with `hidden_act`.
        hidden_act: str or None. The activation of an additional dense layer on the first token, whose output replaces
            `pooled`; None for no such layer.
        names: pair of str. The names of the additional layer and of the last layer in Hugging Face's files.
        prediction: dict or None. The arguments of a `PredictionHead` on the sentence vector; None for no such layers.
            With them, the vector of "cls" is the hidden state of the first token.

    Call arguments:
        sequence, pooled, padding_mask: As in `SentenceVector`.
        training: bool. Whether to apply dropout.

    Returns:
        Dict with "logits", float32 [B, K].
    """

    def __init__(
        self,
        outputs: int,
        pooling: str = "cls",
        dropout: float = 0.1,
        stddev: float = 0.02,
        hidden_size: int | None = None,
        hidden_act: str | None = None,
        names: Sequence[str] = ("", "classifier"),
        prediction: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {
            "outputs": outputs,
            "pooling": pooling,
            "dropout": dropout,
            "stddev": stddev,
            "hidden_size": hidden_size,
            "hidden_act": hidden_act,
            "names": tuple(names),
            "prediction": prediction,
        }
        self.prediction = prediction_head(prediction)
        self.first = None
        if hidden_act:
            self.first = Pooler(cast(int, hidden_size), stddev, hidden_act, dtype="float32", name="first")
        self.vector = SentenceVector(pooling, stddev, name="vector")
        self.dropout = keras.layers.Dropout(dropout, name="dropout")
        # Always float32: the layer costs only a few thousand multiplications, and the loss needs the precision.
        self.classifier = keras.layers.Dense(
            outputs, kernel_initializer=initializer(stddev), dtype="float32", name="classifier"
        )

    def build(self, sequence_shape: Shape, *_: Any) -> None:
        if self.first is not None:
            self.first.build(sequence_shape)
        self.vector.build(sequence_shape)
        if self.prediction is not None:
            self.prediction.build(sequence_shape)
        self.classifier.build((None, sequence_shape[-1]))

    def call(self, sequence: Tensor, pooled: Tensor, padding_mask: Tensor, training: bool = False) -> dict[str, Tensor]:
        if self.first is not None:
            pooled = self.first(sequence)
        if self.prediction is None:
            vector = self.vector(sequence, pooled, padding_mask)
        else:
            vector = self.prediction(self.vector(sequence, sequence[:, 0], padding_mask))
        vector = self.dropout(vector, training=training)
        return {"logits": self.classifier(vector)}

    def compute_output_spec(
        self, sequence: Tensor, pooled: Tensor, padding_mask: Tensor, training: bool = False
    ) -> dict[str, keras.KerasTensor]:
        return {"logits": keras.KerasTensor((sequence.shape[0], self.settings["outputs"]), dtype="float32")}

    def named_variables(self) -> dict[str, keras.Variable]:
        """Return the variables by their names in Hugging Face's files; `attention_pooling` exists only here."""
        first_name, last_name = self.settings["names"]
        variables = named_dense(last_name, self.classifier)
        if self.first is not None:
            variables |= named_dense(first_name, self.first.dense)
        if self.prediction is not None:
            variables |= self.prediction.named_variables()
        if self.vector.scores is not None:
            variables |= named_dense("attention_pooling", self.vector.scores)
        return variables

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


@register
class SimilarityHead(keras.layers.Layer):
    """The vectors of texts.

    Args:
        pooling: str. The `kind` of `SentenceVector`: "mean", "max" or "first".
        normalize: bool. Whether the vectors are scaled to length 1.

    Call arguments:
        sequence, pooled, padding_mask: As in `SentenceVector`; `pooled` is not read.
        training: bool. Without effect.

    Returns:
        Dict with "vectors", float32 [B, H].
    """

    def __init__(self, pooling: str = "mean", normalize: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {"pooling": pooling, "normalize": normalize}
        self.vector = SentenceVector(pooling, name="vector")

    def build(self, sequence_shape: Shape, *_: Any) -> None:
        self.vector.build(sequence_shape)

    def call(self, sequence: Tensor, pooled: Tensor, padding_mask: Tensor, training: bool = False) -> dict[str, Tensor]:
        vectors = self.vector(sequence, None, padding_mask)
        return {"vectors": unit_vectors(vectors) if self.settings["normalize"] else vectors}

    def compute_output_spec(
        self, sequence: Tensor, pooled: Tensor, padding_mask: Tensor, training: bool = False
    ) -> dict[str, keras.KerasTensor]:
        return {"vectors": keras.KerasTensor((sequence.shape[0], sequence.shape[-1]), dtype="float32")}

    def named_variables(self) -> dict[str, keras.Variable]:
        """Return the variables by their names in Hugging Face's files: none."""
        return {}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


def unit_vectors(vectors: Tensor) -> Tensor:
    """Return vectors [..., H] scaled to length 1; a vector of zeros stays, and has a gradient of zeros."""
    ops = keras.ops
    squares = ops.sum(ops.square(vectors), axis=-1, keepdims=True)
    return vectors * ops.rsqrt(ops.maximum(squares, 1e-24))
