"""Splits long texts into overlapping windows, and takes each piece from the window where it has most context.

Source: Devlin et al. 2018, `run_squad.py` (`doc_stride`, `_check_is_max_context`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bert_tf.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bert_tf.tokenizers.base import BaseTokenizer
    from bert_tf.tokenizers.packing import PackedPair


class StrideWindow(NamedTuple):
    """A window of a text: the pieces `start` to `end` - 1."""

    start: int
    end: int


def stride_windows(length: int, room: int, stride: int) -> list[StrideWindow]:
    """Windows that together cover all pieces of a text.

    Args:
        length: int. The number of pieces of the text.
        room: int. The number of pieces that fit into one window.
        stride: int. The number of pieces from the start of a window to the start of the next.

    Returns: list of `StrideWindow`, at least one.

    Raises: DataError if `room` is below 1, or if the stride is larger than `room` and would leave pieces out.
    """
    if room < 1 or not 1 <= stride <= room:
        raise DataError(
            f"A window of {room} pieces cannot move by {stride}: give a stride from 1 to the "
            f"pieces that fit, or a greater length."
        )
    windows, start = [], 0
    while True:
        windows.append(StrideWindow(start, min(start + room, length)))
        if windows[-1].end >= length:
            return windows
        start += stride


def pair_windows(
    tokenizer: BaseTokenizer, ids_a: np.ndarray, ids_b: np.ndarray | None, max_length: int, stride: int | None
) -> list[tuple[StrideWindow, PackedPair]]:
    """The windows of a text or pair, packed for the model. A pair has its first text in every window.

    Args:
        tokenizer: tokenizer.
        ids_a: int [n]. The token ids of the first text; of a pair they must leave room for the second.
        ids_b: int [n]. Those of the second text; None for a single text.
        max_length: int. The number of tokens of a row.
        stride: int. As in `stride_windows`, at most half a window here, so that each piece has context on both sides in
            one of them; None for half a window.

    Returns: list of (`StrideWindow` of the last text, `PackedPair`).

    Raises: DataError as `stride_windows`.
    """
    pair = ids_b is not None
    last = ids_b if ids_b is not None else ids_a
    room = max_length - tokenizer.pack_pair([], [] if pair else None, max_length).length - len(ids_a) * pair
    half = (room + 1) // 2
    windows = stride_windows(len(last), room, half if stride is None else min(stride, half))
    packed = []
    for window in windows:
        part = last[slice(*window)]
        first, second = (ids_a, part) if pair else (part, None)
        packed.append((window, tokenizer.pack_pair(first, second, max_length)))
    return packed


def best_window(spans: Sequence[StrideWindow], length: int) -> np.ndarray:
    """The window in which each piece has most context: the smaller number of pieces on its two sides is largest.

    Args:
        spans: list of `StrideWindow`s that cover the text.
        length: int. n, the number of pieces of the text.

    Returns: int [n], the index into `spans`; among equal windows the longer one, then the first one.
    """
    if len(spans) == 1:
        return np.zeros(length, np.int32)
    best, chosen = np.full(length, -1.0), np.zeros(length, np.int32)
    for index, (start, end) in enumerate(spans):
        positions = np.arange(start, end)
        # A hundredth of the length breaks ties, as in the original.
        context = np.minimum(positions - start, end - 1 - positions) + 0.01 * (end - start)
        better = context > best[start:end]
        best[start:end][better] = context[better]
        chosen[start:end][better] = index
    return chosen


def merge(spans: Sequence[StrideWindow], values: Sequence[np.ndarray], length: int, offset: int = 1) -> np.ndarray:
    """Joins the outputs of the windows; `best_window` selects the window of each piece.

    Args:
        spans: list of `StrideWindow`s.
        values: list with an array [T, ...] for each window; row `offset` belongs to the first piece of the window.
        length: int. n, the number of pieces of the text.
        offset: int. The row of the first piece.

    Returns: array [n, ...].
    """
    chosen = best_window(spans, length)
    first = np.asarray(values[0])
    merged = np.zeros((length, *first.shape[1:]), first.dtype)
    for index, (span, rows) in enumerate(zip(spans, values, strict=True)):
        here = np.flatnonzero(chosen[span.start : span.end] == index)
        merged[span.start + here] = np.asarray(rows)[offset + here]
    return merged
