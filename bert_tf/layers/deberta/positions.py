"""The buckets of relative positions (He et al. 2021, DeBERTa; `make_log_bucket_position` of microsoft/DeBERTa).

Imports no Keras: the layer and the graph of OpenVINO read the same table.
"""

import functools

import numpy as np


@functools.cache
def bucket_rows(buckets: int, most: int, tokens: int) -> np.ndarray:
    """Return for each distance between two tokens the row of the table of relative positions.

    Distances of up to half of the buckets have a row each; farther ones share rows, on a logarithmic scale.

    Args:
        buckets: int. The number S of buckets on each side; the table has 2 S rows.
        most: int. The distance at which the buckets end; farther tokens are in the last one.
        tokens: int. The largest number M of tokens.

    Returns:
        int32 [2 M - 1]. The rows of the distances M - 1 down to -(M - 1): position of the query minus that of the key.
    """
    distances = np.arange(tokens, dtype=np.float32)
    middle = np.float32(buckets // 2)
    # In float32 and in this order, as in the original, so that a distance at a border falls into the same bucket.
    steps = np.log(np.maximum(distances, middle) / middle) / np.log(np.float32((most - 1) / middle)) * (middle - 1)
    numbers = np.where(distances <= middle, distances, np.ceil(steps) + middle).astype(np.int64)
    signed = np.concatenate([numbers[:0:-1], -numbers])
    return np.clip(signed + buckets, 0, 2 * buckets - 1).astype(np.int32)
