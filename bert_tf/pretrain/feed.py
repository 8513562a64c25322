"""Masked batches without end, in an order that a seed fixes and a position resumes.

The documents are shuffled anew each epoch and taken in blocks; a block's pairs are made, shuffled and masked
with a generator seeded by (seed, epoch, block). So a batch depends on its position alone, masks are new in
every epoch (dynamic masking), and a resumed run goes on with the very next batch.
"""

import queue
import threading
from dataclasses import dataclass

import numpy as np

from bert_tf.pretrain.instances import make_pairs, pack_pairs
from bert_tf.pretrain.masks import MaskSettings, choose_targets

#: Blocks in a row that may give no batch, if an epoch has no more: how many pairs a block gives is left to chance.
_BARREN = 20


@dataclass(frozen=True)
class Position:
    """Where in the data a run stands: the next batch to give."""

    epoch: int = 0
    block: int = 0
    batch: int = 0


class Feed:
    """Iterates over (masked batch, position after it).

    Args:
        corpus: a `TokenCorpus`. tokenizer: the one it was made with.
        batch_size: B. length: T. masks: `MaskSettings`. seed: int.
        start: `Position` to begin at. block_documents: documents that are shuffled together.
        objective: out of `instances.OBJECTIVES`.
    """

    def __init__(self, corpus, tokenizer, batch_size, length=128, masks=MaskSettings(), seed=0,
                 start=Position(), block_documents=512, objective="mlm+nsp"):
        self.corpus, self.tokenizer = corpus, tokenizer
        self.batch_size, self.length, self.masks, self.seed = batch_size, length, masks, seed
        self.start, self.block_documents, self.objective = start, block_documents, objective

    def describe(self, position):
        """Words that say where the batch before a position came from: its epoch, block and documents."""
        documents = self._blocks(position.epoch)[position.block]
        some = ", ".join(str(number) for number in documents[:8])
        more = f" and {len(documents) - 8} more" if len(documents) > 8 else ""
        return f"epoch {position.epoch}, block {position.block} of documents {some}{more}"

    def _blocks(self, epoch):
        """The documents of an epoch's blocks: list of int arrays."""
        order = np.random.default_rng((self.seed, epoch)).permutation(len(self.corpus))
        return np.array_split(order, max(1, round(len(order) / self.block_documents)))

    def __iter__(self):
        epoch, block, skip = self.start.epoch, self.start.block, self.start.batch
        barren = 0
        while True:
            blocks = self._blocks(epoch)
            for number in range(block, len(blocks)):
                made = list(self._block(blocks[number], epoch, number))
                barren = 0 if made else barren + 1
                for index in range(skip, len(made)):
                    yield made[index], Position(epoch, number, index + 1)
                skip = 0
            if barren >= max(len(blocks), _BARREN):
                raise ValueError(f"The text is too small for a single batch of {self.batch_size} sequences; "
                                 f"give more text or a smaller batch size.")
            epoch, block = epoch + 1, 0

    def _block(self, documents, epoch, number):
        """The block's whole batches; what does not fill one is left out, as the next epoch shuffles anew."""
        rng = np.random.default_rng((self.seed, epoch, number))
        pairs = make_pairs(self.objective, self.corpus, documents, rng, self.tokenizer, self.length)
        order = rng.permutation(len(pairs))
        for first in range(0, len(pairs) - self.batch_size + 1, self.batch_size):
            chosen = [pairs[index] for index in order[first: first + self.batch_size]]
            packed = pack_pairs(chosen, self.tokenizer, self.length)
            yield choose_targets(self.objective, packed, self.tokenizer, rng, self.masks)


def prefetch(items, depth=8):
    """The same items, made ahead in a thread; an error there is raised here. The thread ends with its reader."""
    ready, end, stopped = queue.Queue(depth), object(), threading.Event()

    def put(item):
        while not stopped.is_set():
            try:
                return ready.put(item, timeout=0.5)
            except queue.Full:
                continue

    def work():
        try:
            for item in items:
                put(item)
                if stopped.is_set():
                    return
            put(end)
        except BaseException as error:  # handed over whole: the reader must see it, whatever it is
            put(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        while (item := ready.get()) is not end:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
