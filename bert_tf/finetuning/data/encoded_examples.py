"""Encoded examples, and their batches of a few fixed lengths.

Shapes: B batch, T tokens, N rows, C choices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_STEP = 8


@dataclass
class EncodedExamples:
    """The inputs of the model and the targets of examples.

    Args:
        sequences: dict name -> list of N arrays, [t] or [C, t] with the same t in every list: `token_ids`,
            `segment_ids` and other arrays with a value for each token. Batches pad them at the end with 0, `token_ids`
            with `pad_id`; where C differs, also with choices of padding.
        values: dict name -> array [N, ...] with a value for each row. "weights" float32 [N], the weight of a row in the
            loss, is added if it is missing.
        owner: int [N], the example of each row; None for one row per example.
        pad_id: int. The id of [PAD].
        notes: list with one item per row that a task needs in `decode` (for example offsets).
    """

    sequences: dict
    values: dict = field(default_factory=dict)
    owner: np.ndarray | None = None
    pad_id: int = 0
    notes: list = field(default_factory=list)

    def __post_init__(self):
        self.lengths = np.array([ids.shape[-1] for ids in self.sequences["token_ids"]], np.int64)
        if self.owner is None:
            self.owner = np.arange(len(self))
        self.values.setdefault("weights", np.ones(len(self), np.float32))

    def __len__(self) -> int:
        return len(self.sequences["token_ids"])

    def batch(
        self, indices: Sequence[int] | np.ndarray, length: int | None = None, size: int | None = None
    ) -> dict[str, np.ndarray]:
        """Makes a batch of rows.

        Args:
            indices: sequence of int. The numbers of the rows.
            length: int. T; None for the length of the longest row.
            size: int. B; the batch is filled up with rows of padding whose weight is 0. None for the number of rows.

        Returns: dict of arrays [B, ...] with `padding_mask` (1 real, 0 padding) among them.
        """
        indices = np.asarray(indices)
        length = int(self.lengths[indices].max()) if length is None else length
        size = len(indices) if size is None else size
        batch = {}
        for name, arrays in self.sequences.items():
            most_choices = map(max, zip(*(arrays[index].shape[:-1] for index in indices)))
            shape = (size, *most_choices, length)
            batch[name] = np.full(shape, self.pad_id if name == "token_ids" else 0, arrays[indices[0]].dtype)
            if name == "token_ids":
                batch["padding_mask"] = np.zeros(shape, np.int32)
            for position, index in enumerate(indices):
                place = tuple(map(slice, arrays[index].shape))
                batch[name][position][place] = arrays[index]
                if name == "token_ids":
                    batch["padding_mask"][position][place] = 1
        for name, values in self.values.items():
            batch[name] = np.zeros((size, *values.shape[1:]), values.dtype)
            batch[name][: len(indices)] = values[indices]
        return batch


def stacked(examples: Iterable[Sequence[Any]], pad_id: int) -> dict[str, list[np.ndarray]]:
    """The `sequences` of examples of several texts each.

    Args:
        examples: iterable of sequences of C encodings (`tokenizer.encode_batch`).
        pad_id: int. The id of [PAD].

    Returns: dict with `token_ids`, `segment_ids` and `padding_mask`, each a list of int32 [C, t]. Shorter texts are
        padded inside the row, so the row needs its own padding mask.
    """
    sequences: dict[str, list[np.ndarray]] = {"token_ids": [], "segment_ids": [], "padding_mask": []}
    for texts in examples:
        length = max(text.length for text in texts)
        sequences["token_ids"].append(_stack([text.token_ids for text in texts], length, pad_id))
        sequences["segment_ids"].append(_stack([text.segment_ids for text in texts], length, 0))
        sequences["padding_mask"].append(_stack([np.ones(text.length, np.int32) for text in texts], length, 0))
    return sequences


def _stack(arrays, length, fill):
    filled = np.full((len(arrays), length), fill, np.int32)
    for row, array in zip(filled, arrays):
        row[: len(array)] = array
    return filled


def choose_lengths(lengths: np.ndarray, count: int = 4) -> list[int]:
    """The padded lengths that give the least padding; multiples of 8, the last one fits the longest row.

    Args:
        lengths: int [N], at least one. The lengths of the rows.
        count: int. The largest number of padded lengths; each is compiled once.

    Returns: ascending list of int.
    """
    steps = -(-np.asarray(lengths) // _STEP)
    sizes, rows = np.unique(steps, return_counts=True)
    below = np.concatenate([[0], np.cumsum(rows)])
    # best[j] after k rounds: (least cost, the lengths) of the first j sizes with k lengths; rows between two lengths
    # are padded to the upper one.
    best: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}
    solutions = []
    for _ in range(count):
        best = {
            end: min(
                (
                    best[start][0] + int(sizes[end - 1] * (below[end] - below[start])),
                    (*best[start][1], int(sizes[end - 1])),
                )
                for start in best
                if start < end
            )
            for end in range(1, len(sizes) + 1)
            if any(start < end for start in best)
        }
        if len(sizes) in best:
            solutions.append(best[len(sizes)])
    return [size * _STEP for size in min(solutions)[1]]


def fitting(length: int, lengths: Sequence[int]) -> int:
    """The smallest of the ascending `lengths` that is at least `length`."""
    return next(size for size in lengths if size >= length)
