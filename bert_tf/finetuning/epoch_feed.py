"""An endless feed of fine-tuning batches; the seed fixes the order, and a position resumes it.

Each epoch shuffles the rows. In windows of many batches they are then sorted by length, so that a batch has rows of
similar lengths and little padding, and the batches are shuffled. Every row is used exactly once in an epoch: the last
batch is filled up with rows of weight 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bert_tf.finetuning.data.encoded_examples import choose_lengths, fitting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bert_tf.finetuning.data.encoded_examples import EncodedExamples


BATCHES_PER_WINDOW = 50


class EpochFeed:
    """An endless feed of batches of `Rows`.

    Args:
        rows: `Rows`.
        batch_size: int. B.
        seed: int. The seed of the order.
        lengths: int. The largest number of different padded lengths; the training step is compiled once for each.
        longest: int. The tokens that the model reads; None if every padded length fits.

    Attributes:
        steps: int. The number of batches of an epoch.
    """

    def __init__(
        self, rows: EncodedExamples, batch_size: int, seed: int = 0, lengths: int = 4, longest: int | None = None
    ) -> None:
        self.rows, self.batch_size, self.seed = rows, batch_size, seed
        self.lengths = [min(length, longest or length) for length in choose_lengths(rows.lengths, lengths)]
        self.steps = -(-len(rows) // batch_size)

    def from_step(self, step: int) -> Iterator[tuple[dict[str, np.ndarray], int]]:
        """Yields (batch, the number of updates after it), starting after `step` updates."""
        epoch, skip = divmod(step, self.steps)
        while True:
            for indices in self.epoch(epoch)[skip:]:
                step += 1
                length = fitting(self.rows.lengths[indices].max(), self.lengths)
                yield self.rows.batch(indices, length, self.batch_size), step
            epoch, skip = epoch + 1, 0

    def epoch(self, number: int) -> list[np.ndarray]:
        """The row indices of each batch of an epoch, in order: list of int arrays."""
        rng = np.random.default_rng((self.seed, number))
        order = rng.permutation(len(self.rows))
        window, batches = self.batch_size * BATCHES_PER_WINDOW, []
        for first in range(0, len(order), window):
            part = order[first : first + window]
            part = part[np.argsort(self.rows.lengths[part], kind="stable")]
            batches += [part[start : start + self.batch_size] for start in range(0, len(part), self.batch_size)]
        return [batches[index] for index in rng.permutation(len(batches))]
