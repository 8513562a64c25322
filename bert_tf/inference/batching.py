"""Forward passes of bounded size over many inputs of one length.

Dimension legend: T tokens, R rows, K possible answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from bert_tf.inference.bert import Bert

# Larger batches are not faster and take longer to stop. This number of tokens fits in memory at any length.
TOKENS_PER_BATCH = 1024


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
        states = bert.hooked().embed(rows, np.repeat(segments[None], len(rows), axis=0))
        yield start + len(rows), bert.hooked().answers(bert.hooked().finish(states, 0), target)
