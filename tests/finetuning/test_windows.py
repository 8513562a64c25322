"""Windows over long texts, and where each piece is judged."""

import numpy as np
import pytest

from bert_tf.errors import DataError
from bert_tf.finetuning.data.document_stride import (
    StrideWindow,
    best_window,
    merge,
    stride_windows,
)


def test_windows_cover_the_text_and_stop_at_its_end():
    assert stride_windows(10, 4, 3) == [(0, 4), (3, 7), (6, 10)]
    assert stride_windows(4, 4, 2) == [(0, 4)]
    assert stride_windows(0, 4, 2) == [(0, 0)]
    assert stride_windows(5, 4, 4) == [(0, 4), (4, 5)]


@pytest.mark.parametrize("room, stride", [(0, 1), (4, 0), (4, 5)])
def test_strides_that_leave_pieces_out_are_refused(room, stride):
    with pytest.raises(DataError, match="cannot move by"):
        stride_windows(10, room, stride)


def test_each_piece_is_judged_where_most_is_seen_around_it():
    # By Google's run_squad.py: in (0, 6) piece 4 has 1 to its right, in (3, 9) 1 to its left: a tie, and the
    # first window stays; piece 5 has 0 there and 2 here.
    assert list(best_window([StrideWindow(0, 6), StrideWindow(3, 9)], 9)) == [0, 0, 0, 0, 0, 1, 1, 1, 1]


def test_merging_takes_each_piece_from_its_best_window():
    spans = stride_windows(9, 6, 3)
    values = [np.array([-1, *range(start, end), -1]) + 100 * index for index, (start, end) in enumerate(spans)]
    chosen = best_window(spans, 9)
    assert list(merge(spans, values, 9)) == [piece + 100 * index for piece, index in zip(range(9), chosen)]
