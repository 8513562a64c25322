"""Long texts in overlapping windows, and each piece judged where it has most context.

Source: Devlin et al. 2018, `run_squad.py` (`doc_stride`, `_check_is_max_context`).
"""

from typing import NamedTuple

import numpy as np

from bert_tf.errors import DataError


class StrideWindow(NamedTuple):
    """Pieces `start` to `end` - 1 of a text."""

    start: int
    end: int


def stride_windows(length, room, stride):
    """Windows over a text that together hold each of its pieces.

    Args:
        length: pieces of the text. room: pieces that fit into one window. stride: pieces a window lies
            after the one before it.
    Returns:
        list of `StrideWindow`, at least one.
    Raises:
        DataError: a stride over the room, which would leave pieces out, or no room.
    """
    if room < 1 or not 1 <= stride <= room:
        raise DataError(
            f"A window of {room} pieces cannot move by {stride}: give a stride from 1 to the "
            f"pieces that fit, or a greater length."
        )
    found, start = [], 0
    while True:
        found.append(StrideWindow(start, min(start + room, length)))
        if found[-1].end >= length:
            return found
        start += stride


def best_window(spans, length):
    """The window each piece has most context in: the greatest least number of pieces to either side.

    Args:
        spans: `StrideWindow`s that cover the text. length: n, its pieces.
    Returns:
        int [n], index into `spans`; of equals the longer window, then the first.
    """
    if len(spans) == 1:
        return np.zeros(length, np.int32)
    best, chosen = np.full(length, -1.0), np.zeros(length, np.int32)
    for index, (start, end) in enumerate(spans):
        places = np.arange(start, end)
        # The hundredth of the length decides between equals, as in the original.
        context = np.minimum(places - start, end - 1 - places) + 0.01 * (end - start)
        better = context > best[start:end]
        best[start:end][better] = context[better]
        chosen[start:end][better] = index
    return chosen


def merge(spans, values, length, offset=1):
    """Joins what the model said of each window, by `best_window`.

    Args:
        spans: `StrideWindow`s. values: for each an array [T, ...] whose row `offset` belongs to the window's first
            piece. length: n.
    Returns:
        array [n, ...].
    """
    chosen = best_window(spans, length)
    first = np.asarray(values[0])
    merged = np.zeros((length, *first.shape[1:]), first.dtype)
    for index, (span, rows) in enumerate(zip(spans, values, strict=True)):
        here = np.flatnonzero(chosen[span.start : span.end] == index)
        merged[span.start + here] = np.asarray(rows)[offset + here]
    return merged
