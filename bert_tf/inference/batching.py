"""Forward passes of bounded size over many inputs of one length.

Dimension legend: T tokens, R rows, K possible answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from bert_tf.inference.bert import Bert

# Larger batches are hardly faster. On two cores so many tokens take Base about a tenth of a second, forwards as well as
# backwards through one layer: then the work can be stopped, and a server answers others.
TOKENS_PER_BATCH = 256


def batched_answers(
    bert: Bert, token_ids: np.ndarray, segments: np.ndarray, target: Any
) -> Iterator[tuple[int, np.ndarray]]:
    """Compute the log-probabilities of all answers at a target, batch by batch.

    Args:
        bert: `Bert`. The model.
        token_ids: int32 [R, T]. The inputs.
        segments: int32 [T]. The segment ids of every row.
        target: `Target`. The prediction.

    Yields:
        (number of rows read so far, float32 [rows of this batch, K]): the log-probabilities of all answers.
    """
    block = max(1, TOKENS_PER_BATCH // token_ids.shape[1])
    for start in range(0, len(token_ids), block):
        rows = token_ids[start : start + block]
        batch = {
            "token_ids": rows,
            "segment_ids": np.repeat(segments[None], len(rows), axis=0),
            "padding_mask": np.ones_like(rows),
        }
        yield start + len(rows), _answers(bert, batch, target)


def _answers(bert, batch, target):
    """The log-probabilities float32 [B, K] of all answers of one batch; the value for a regression."""
    if target.head == "task":
        return bert.task.class_scores(bert.runtime.run(batch, ("sequence_output",))["sequence_output"])
    if target.head == "mlm":
        batch["mask_positions"] = np.full((len(batch["token_ids"]), 1), target.position, np.int32)
        return log_softmax(bert.runtime.run(batch, ("mlm_logits",))["mlm_logits"][:, 0])
    output = f"{target.head}_logits"
    logits = bert.runtime.run(batch, (output,))[output]
    if target.head == "replaced":
        logits = logits[:, target.position]
        return -np.logaddexp(0, np.stack([logits, -logits], axis=-1))
    return log_softmax(logits)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Return the logarithms of the softmax over the last axis, float32."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
