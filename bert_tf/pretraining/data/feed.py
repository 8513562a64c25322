"""An endless feed of masked batches; the seed fixes the order, and a position resumes it.

Each epoch shuffles the documents and splits them into blocks of many batches. A block's pairs are made and shuffled
with a generator seeded by (seed, epoch, block), and a batch is masked with a generator seeded by (seed, epoch, block,
batch). So a batch depends on its position alone, every epoch has new masks (dynamic masking), and a resumed run
continues with the next batch.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.pretraining.data.packing import make_pairs, pack_pairs
from bert_tf.pretraining.objectives.masking import MaskSettings, choose_targets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bert_tf.pretraining.data.corpus import TokenCorpus
    from bert_tf.tokenizers.base import BaseTokenizer


#: The number of batches of a block. It is large, so that few pairs are left over after the last full batch.
BATCHES_PER_BLOCK = 16
# Tokens of a block: the least, to shuffle short texts well; the most, for memory; and the least number of batches.
_FEWEST_TOKENS, _MOST_TOKENS, _FEWEST_BATCHES = 1 << 20, 1 << 26, 4
#: Consecutive blocks without a full batch before the feed raises an error, if an epoch has fewer blocks. The number of
#: pairs of a block is random.
_MAX_EMPTY_BLOCKS = 20


#: In a `division`: how the order of an epoch is drawn. Without it, it was drawn as the first block is.
ORDER = {"order": 2}
# Stands where the number of a block does in the seeds of blocks.
_NO_BLOCK = 2**32 - 1


@dataclass(frozen=True)
class DataPosition:
    """The position in the data of a run: the next batch.

    Attributes:
        epoch: int, from 0.
        block: int, from 0.
        batch: int. The number of the batch in its block, from 0.
    """

    epoch: int = 0
    block: int = 0
    batch: int = 0


def position_to_json(position: DataPosition, division: dict[str, Any]) -> dict[str, Any]:
    """A position as a checkpoint saves it.

    Args:
        position: `DataPosition`.
        division: dict. The `division` of the feed.

    Returns: dict of JSON values.
    """
    return {**asdict(position), **division}


def position_from_json(saved: dict[str, Any] | list[int], division: dict[str, Any]) -> tuple[DataPosition, str]:
    """The position at which a resumed run continues.

    Args:
        saved: dict from `position_to_json`, or a list of three numbers from an earlier version.
        division: dict. The `division` of the new feed.

    Returns: (`DataPosition`, message: a sentence with a space before it, or ""). It is the saved position if the
        division is the same, the next block if only the batch size differs, else the next epoch.
    """
    if isinstance(saved, list):
        saved = dict(zip(("epoch", "block", "batch"), saved))
    position = DataPosition(*(saved[name] for name in ("epoch", "block", "batch")))
    changed = {name for name, value in division.items() if saved.get(name) != value}
    if not changed:
        return position, ""
    if changed == {"batch_size"}:
        return DataPosition(
            position.epoch, position.block + 1
        ), " The batches have another size; the next block comes first."
    return DataPosition(position.epoch + 1), " The text comes in another order than before; its next epoch begins."


def order_of_epoch(seed: int, epoch: int, count: int) -> np.ndarray:
    """The random order of the parts of an epoch, drawn apart from that of the pairs of every block.

    Args:
        seed: int. The seed of the feed.
        epoch: int, from 0.
        count: int. The number of documents, or of shards.

    Returns: int64 [count]. The numbers of the parts.
    """
    return np.random.default_rng((seed, epoch, _NO_BLOCK)).permutation(count)


def tokens_of_block(batch_size: int, length: int) -> int:
    """The number of tokens of a block.

    Args:
        batch_size: int. B, sequences of a batch.
        length: int. T, tokens of a sequence.

    Returns: int.
    """
    batch = batch_size * length
    return min(max(BATCHES_PER_BLOCK * batch, _FEWEST_TOKENS), max(_MOST_TOKENS, _FEWEST_BATCHES * batch))


class Feed:
    """An iterable of (masked batch, position after it), without an end.

    Args:
        corpus: a `TokenCorpus`.
        tokenizer: the `Tokenizer` that the corpus was made with.
        batch_size: int. B.
        length: int. T.
        masks: `MaskSettings`.
        seed: int. The seed of the order, the pairs and the masks.
        start: the `DataPosition` to start at.
        block_tokens: int. The least number of tokens of the documents of a block, which are shuffled together; None for
            `tokens_of_block`.
        objective: str. One of `packing.OBJECTIVES`.

    Attributes:
        division: dict. The settings that a position depends on.
    """

    def __init__(
        self,
        corpus: TokenCorpus,
        tokenizer: BaseTokenizer,
        batch_size: int,
        length: int = 128,
        masks: MaskSettings = MaskSettings(),
        seed: int = 0,
        start: DataPosition = DataPosition(),
        block_tokens: int | None = None,
        objective: str = "mlm+nsp",
    ) -> None:
        self.corpus, self.tokenizer = corpus, tokenizer
        self.batch_size, self.length, self.masks, self.seed = batch_size, length, masks, seed
        self.start, self.objective = start, objective
        self.block_tokens = block_tokens or tokens_of_block(batch_size, length)
        self.division = {"seed": seed, "block_tokens": self.block_tokens, "batch_size": batch_size} | ORDER

    def describe(self, position: DataPosition) -> str:
        """Names the epoch, block and documents of the batch before a position, for error messages.

        Args:
            position: `DataPosition`.

        Returns: str.
        """
        documents = self._blocks(position.epoch)[position.block]
        names = ", ".join(str(number) for number in documents[:8])
        more = f" and {len(documents) - 8} more" if len(documents) > 8 else ""
        return f"epoch {position.epoch}, block {position.block} of documents {names}{more}"

    def _blocks(self, epoch):
        """The document numbers of each block of an epoch: list of int arrays."""
        order = order_of_epoch(self.seed, epoch, len(self.corpus))
        ends, cuts, done = np.cumsum(self.corpus.document_tokens[order]), [], 0
        while (cut := int(np.searchsorted(ends, done + self.block_tokens)) + 1) < len(order):
            done = ends[cut - 1]
            if ends[-1] - done < self.block_tokens:
                break  # too few tokens are left for another block
            cuts.append(cut)
        return np.split(order, cuts)

    def __iter__(self) -> Iterator[tuple[dict[str, np.ndarray], DataPosition]]:
        epoch, block, skip = self.start.epoch, self.start.block, self.start.batch
        empty_blocks = 0
        while True:
            blocks = self._blocks(epoch)
            for number in range(block, len(blocks)):
                pairs = self._pairs(blocks[number], epoch, number)
                # Pairs that do not fill a batch are left out; the next epoch shuffles again.
                batches = len(pairs) // self.batch_size
                empty_blocks = 0 if batches else empty_blocks + 1
                for index in range(skip, batches):
                    yield self._batch(pairs, epoch, number, index), DataPosition(epoch, number, index + 1)
                skip = 0
            if empty_blocks >= max(len(blocks), _MAX_EMPTY_BLOCKS):
                raise ValueError(
                    f"The text is too small for a single batch of {self.batch_size} sequences; "
                    f"give more text or a smaller batch size."
                )
            epoch, block = epoch + 1, 0

    def _pairs(self, documents, epoch, block):
        """The pairs of a block in random order: list of `SegmentPair`."""
        rng = np.random.default_rng((self.seed, epoch, block))
        pairs = make_pairs(self.objective, self.corpus, documents, rng, self.tokenizer, self.length)
        return [pairs[index] for index in rng.permutation(len(pairs))]

    def _batch(self, pairs, epoch, block, index):
        """The masked batch with a number in a block."""
        # From 1: for NumPy a seed tuple that ends with 0 equals the tuple without it, which is the seed of the block.
        rng = np.random.default_rng((self.seed, epoch, block, 1 + index))
        packed = pack_pairs(pairs[index * self.batch_size : (index + 1) * self.batch_size], self.tokenizer, self.length)
        return choose_targets(self.objective, packed, self.tokenizer, rng, self.masks)
