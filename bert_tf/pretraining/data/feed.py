"""Masked batches without end, in an order that a seed fixes and a position resumes.

The documents are shuffled anew each epoch and taken in blocks of many batches; a block's pairs are made and shuffled
with a generator seeded by (seed, epoch, block), and a batch of them is masked, when its turn comes, with one seeded by
(seed, epoch, block, batch). So a batch depends on its position alone, masks are new in every epoch (dynamic masking),
and a resumed run goes on with the very next batch.
"""

from dataclasses import asdict, dataclass

import numpy as np

from bert_tf.pretraining.data.packing import make_pairs, pack_pairs
from bert_tf.pretraining.objectives.masking import MaskSettings, choose_targets

#: Batches that a block has, so that those left over from whole ones are few.
BATCHES_PER_BLOCK = 16
# Tokens of a block: at least, for a good shuffle of short texts, and at most, for memory, if that gives some batches.
_FEWEST_TOKENS, _MOST_TOKENS, _FEWEST_BATCHES = 1 << 20, 1 << 26, 4
#: Blocks in a row that may give no batch, if an epoch has no more: how many pairs a block gives is left to chance.
_BARREN = 20


@dataclass(frozen=True)
class DataPosition:
    """Where in the data a run stands: the next batch to give."""

    epoch: int = 0
    block: int = 0
    batch: int = 0


def position_to_json(position, division):
    """A position as a checkpoint keeps it, beside the `division` of its feed: a JSON-able dict."""
    return {**asdict(position), **division}


def position_from_json(saved, division):
    """Where to go on in a feed.

    Args:
        saved: of `position_to_json`; of earlier versions a list of three numbers. division: of the feed, as it is now.

    Returns: (`DataPosition`, a sentence to be said after a space, or ""). The very place where the text is still cut as it
        was; the next block where only the batches are of another size; or else the next epoch.
    """
    if isinstance(saved, list):
        if division.get("shards_together"):
            return DataPosition(*saved), ""  # records were cut so in earlier versions too
        saved = dict(zip(("epoch", "block", "batch"), saved))
    position = DataPosition(*(saved[name] for name in ("epoch", "block", "batch")))
    other = {name for name, value in division.items() if saved.get(name) != value}
    if not other:
        return position, ""
    if other == {"batch_size"}:
        return DataPosition(
            position.epoch, position.block + 1
        ), " The batches have another size; the next block comes first."
    return DataPosition(position.epoch + 1), " The text is cut into other blocks than before; its next epoch begins."


def tokens_of_block(batch_size, length):
    """Tokens of a block for batches of so many sequences of so many tokens."""
    batch = batch_size * length
    return min(max(BATCHES_PER_BLOCK * batch, _FEWEST_TOKENS), max(_MOST_TOKENS, _FEWEST_BATCHES * batch))


class Feed:
    """Iterates over (masked batch, position after it).

    Args:
        corpus: a `TokenCorpus`. tokenizer: the one it was made with.
        batch_size: B. length: T. masks: `MaskSettings`. seed: int.
        start: `DataPosition` to begin at.
        block_tokens: tokens of the documents that are shuffled together, at least; default: of `tokens_of_block`.
        objective: out of `instances.OBJECTIVES`.

    Attributes: division: dict of what decides which place a position means.
    """

    def __init__(
        self,
        corpus,
        tokenizer,
        batch_size,
        length=128,
        masks=MaskSettings(),
        seed=0,
        start=DataPosition(),
        block_tokens=None,
        objective="mlm+nsp",
    ):
        self.corpus, self.tokenizer = corpus, tokenizer
        self.batch_size, self.length, self.masks, self.seed = batch_size, length, masks, seed
        self.start, self.objective = start, objective
        self.block_tokens = block_tokens or tokens_of_block(batch_size, length)
        self.division = {"seed": seed, "block_tokens": self.block_tokens, "batch_size": batch_size}

    def describe(self, position):
        """Words that say where the batch before a position came from: its epoch, block and documents."""
        documents = self._blocks(position.epoch)[position.block]
        some = ", ".join(str(number) for number in documents[:8])
        more = f" and {len(documents) - 8} more" if len(documents) > 8 else ""
        return f"epoch {position.epoch}, block {position.block} of documents {some}{more}"

    def _blocks(self, epoch):
        """The documents of an epoch's blocks: list of int arrays."""
        order = np.random.default_rng((self.seed, epoch)).permutation(len(self.corpus))
        ends, cuts, done = np.cumsum(self.corpus.document_tokens[order]), [], 0
        while (cut := int(np.searchsorted(ends, done + self.block_tokens)) + 1) < len(order):
            done = ends[cut - 1]
            if ends[-1] - done < self.block_tokens:
                break  # too little is left for a block of its own
            cuts.append(cut)
        return np.split(order, cuts)

    def __iter__(self):
        epoch, block, skip = self.start.epoch, self.start.block, self.start.batch
        barren = 0
        while True:
            blocks = self._blocks(epoch)
            for number in range(block, len(blocks)):
                pairs = self._pairs(blocks[number], epoch, number)
                # What does not fill a batch is left out, as the next epoch shuffles anew.
                whole = len(pairs) // self.batch_size
                barren = 0 if whole else barren + 1
                for index in range(skip, whole):
                    yield self._batch(pairs, epoch, number, index), DataPosition(epoch, number, index + 1)
                skip = 0
            if barren >= max(len(blocks), _BARREN):
                raise ValueError(
                    f"The text is too small for a single batch of {self.batch_size} sequences; "
                    f"give more text or a smaller batch size."
                )
            epoch, block = epoch + 1, 0

    def _pairs(self, documents, epoch, block):
        """The block's instances in random order: list of `Pair`."""
        rng = np.random.default_rng((self.seed, epoch, block))
        pairs = make_pairs(self.objective, self.corpus, documents, rng, self.tokenizer, self.length)
        return [pairs[index] for index in rng.permutation(len(pairs))]

    def _batch(self, pairs, epoch, block, index):
        """A block's masked batch by its number."""
        # From 1: to NumPy a seed that ends with 0 is the one without it, the block's own.
        rng = np.random.default_rng((self.seed, epoch, block, 1 + index))
        packed = pack_pairs(pairs[index * self.batch_size : (index + 1) * self.batch_size], self.tokenizer, self.length)
        return choose_targets(self.objective, packed, self.tokenizer, rng, self.masks)
