"""Encoded examples, and how they become batches of a few fixed lengths.

B batch, T tokens, N rows, C choices.
"""

from dataclasses import dataclass, field

import numpy as np

_STEP = 8


@dataclass
class EncodedExamples:
    """What the model reads, and what it should answer.

    Args:
        sequences: name -> list of N arrays, [t] or [C, t] with the same t in every list: `token_ids`,
            `segment_ids` and whatever else has a value a token. Padded at the end with 0, `token_ids` with
            `pad_id`.
        values: name -> array [N, ...]: what has a value a row. "weights" float32 [N], how much a row counts
            in the loss, is added where it is missing.
        owner: int [N], the example of each row; by default one row an example.
        pad_id: of [PAD].
        notes: a family's own, for `decode` (offsets, say); one a row.
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

    def __len__(self):
        return len(self.sequences["token_ids"])

    def batch(self, indices, length=None, size=None):
        """Some rows as arrays.

        Args:
            indices: of the rows. length: T; by default the longest row's. size: B; what is over is filled
                with rows of padding whose weight is 0.

        Returns: dict of arrays [B, ...] with `padding_mask` (1 real, 0 padding) among them.
        """
        indices = np.asarray(indices)
        length = int(self.lengths[indices].max()) if length is None else length
        size = len(indices) if size is None else size
        found = {}
        for name, arrays in self.sequences.items():
            shape = (size, *arrays[indices[0]].shape[:-1], length)
            found[name] = np.full(shape, self.pad_id if name == "token_ids" else 0, arrays[indices[0]].dtype)
            if name == "token_ids":
                found["padding_mask"] = np.zeros(shape, np.int32)
            for place, index in enumerate(indices):
                own = self.lengths[index]
                found[name][place, ..., :own] = arrays[index]
                if name == "token_ids":
                    found["padding_mask"][place, ..., :own] = 1
        for name, values in self.values.items():
            found[name] = np.zeros((size, *values.shape[1:]), values.dtype)
            found[name][: len(indices)] = values[indices]
        return found


def choose_lengths(lengths, count=4):
    """The few lengths to pad to that leave the least padding: multiples of 8, the last holds the longest.

    Args:
        lengths: int [N], at least one. count: how many at most; each is compiled once.

    Returns: ascending list of int.
    """
    steps = -(-np.asarray(lengths) // _STEP)
    sizes, rows = np.unique(steps, return_counts=True)
    below = np.concatenate([[0], np.cumsum(rows)])
    # best[k][j]: (least cost, the lengths) of the first j sizes with k lengths; rows between two of them are
    # padded to the upper.
    best = {0: (0, ())}
    answers = []
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
            answers.append(best[len(sizes)])
    return [size * _STEP for size in min(answers)[1]]


def fitting(length, lengths):
    """The least of the ascending `lengths` that holds `length`."""
    return next(size for size in lengths if size >= length)
