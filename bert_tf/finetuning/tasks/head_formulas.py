"""The heads of tasks in NumPy, over the tensors of a model folder: the same formulas as those of the Keras layers.

B batch, T tokens, H hidden size, K outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.layers.hook_points import MASKED_SCORE
from bert_tf.runtime.numpy_ops import ACTIVATIONS

if TYPE_CHECKING:
    from bert_tf.config import BertConfig


#: The tensors of a head by their names in Hugging Face's files, float32; a matrix of a dense layer is [out, in].
Tensors = Mapping[str, np.ndarray]


def dense_shapes(name: str, size_out: int, size_in: int) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of the two tensors of a dense layer."""
    return {f"{name}.weight": (size_out, size_in), f"{name}.bias": (size_out,)}


def dense(tensors: Tensors, name: str, x: np.ndarray) -> np.ndarray:
    """Return the output [..., out] of a dense layer for x [..., in]."""
    return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]


def prediction_shapes(config: BertConfig) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of the tensors of a `layers.pooler.PredictionHead`; empty if there is none."""
    width = config.hidden_size
    names = {"head.dense.weight": (width, width), "head.norm.weight": (width,)}
    return names if config.architecture.prediction_head else {}


def predicted(tensors: Tensors, x: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the output [..., H] of a `layers.pooler.PredictionHead` for x [..., H]."""
    x = ACTIVATIONS["gelu"](x @ tensors["head.dense.weight"].T)
    x = x - x.mean(axis=-1, keepdims=True)
    scale = np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(epsilon))
    return x / scale * tensors["head.norm.weight"]


def first_token(tensors: Tensors, first_layer: Mapping[str, Any], sequence: np.ndarray) -> np.ndarray:
    """Return the output [B, H] of a head's own dense layer on the first token.

    Args:
        tensors: The tensors of the head.
        first_layer: dict. The result of `Task.first_layer`, not empty.
        sequence: float32 [B, T, H]. The hidden states.
    """
    x = dense(tensors, first_layer["names"][0], sequence[:, 0])
    return ACTIVATIONS[first_layer["hidden_act"]](x)


def sentence_vector(
    kind: str, tensors: Tensors, sequence: np.ndarray, pooled: np.ndarray | None, padding_mask: np.ndarray
) -> np.ndarray:
    """Return one vector for each sequence, as `layers.classifier.SentenceVector` does.

    Args:
        kind: str. "cls", "first", "mean", "max" or "attention".
        tensors: The tensors of the head.
        sequence: float32 [B, T, H]. The hidden states.
        pooled: float32 [B, H] or None. The pooled output, for "cls".
        padding_mask: int32 [B, T]. 1 for tokens, 0 for padding.

    Returns:
        float32 [B, H].
    """
    if kind == "cls":
        assert pooled is not None, "the runtime was asked for the pooled output"
        return pooled
    if kind == "first":
        return sequence[:, 0]
    real = padding_mask[:, :, None].astype(np.float32)
    if kind == "max":
        return (sequence + (1 - real) * np.float32(MASKED_SCORE)).max(axis=1)
    if kind == "attention":
        scores = dense(tensors, "attention_pooling", sequence) + (1 - real) * np.float32(MASKED_SCORE)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return (sequence * (weights / weights.sum(axis=1, keepdims=True))).sum(axis=1)
    return (sequence * real).sum(axis=1) / np.maximum(real.sum(axis=1), 1)


def normalized(vectors: np.ndarray) -> np.ndarray:
    """Return vectors [..., H] scaled to length 1; a vector of zeros stays, as in `layers.classifier.unit_vectors`."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32(1e-12))
