"""The head of sentence similarity: a vector of each text, without weights of its own.

B batch, T tokens, H hidden size.

Source: Reimers & Gurevych 2019, section 3.
"""

from typing import Any

import keras

from bert_tf.layers.classifier import SentenceVector
from bert_tf.layers.common import Shape, Tensor, register


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
