"""Epochs of batches in an order that a seed fixes and a position resumes.

Rows are shuffled anew each epoch; within windows of many batches they are sorted by length, so that a batch
holds rows of like length and little of it is padding, and the batches are shuffled again. Every row comes
exactly once an epoch: the last batch is filled up with rows that count nothing.
"""

import numpy as np

from bert_tf.finetuning.data.encoded_examples import choose_lengths, fitting

BATCHES_PER_WINDOW = 50


class EpochFeed:
    """Batches of `Rows` from one update on, without end.

    Args:
        rows: `Rows`. batch_size: B. seed: int. lengths: how many lengths batches are padded to at most; the
            training step is compiled once for each.

    Attributes: steps: batches an epoch.
    """

    def __init__(self, rows, batch_size, seed=0, lengths=4):
        self.rows, self.batch_size, self.seed = rows, batch_size, seed
        self.lengths = choose_lengths(rows.lengths, lengths)
        self.steps = -(-len(rows) // batch_size)

    def from_step(self, step):
        """Yields (batch, position after it: updates done) from the batch after `step` updates."""
        epoch, skip = divmod(step, self.steps)
        while True:
            for indices in self.epoch(epoch)[skip:]:
                step += 1
                length = fitting(self.rows.lengths[indices].max(), self.lengths)
                yield self.rows.batch(indices, length, self.batch_size), step
            epoch, skip = epoch + 1, 0

    def epoch(self, number):
        """The indices of each batch of an epoch, in order."""
        rng = np.random.default_rng((self.seed, number))
        order = rng.permutation(len(self.rows))
        window, batches = self.batch_size * BATCHES_PER_WINDOW, []
        for first in range(0, len(order), window):
            part = order[first : first + window]
            part = part[np.argsort(self.rows.lengths[part], kind="stable")]
            batches += [part[start : start + self.batch_size] for start in range(0, len(part), self.batch_size)]
        return [batches[index] for index in rng.permutation(len(batches))]
