"""An endless feed of batches of prepared records; the seed fixes the order, and a position resumes it.

Each epoch reads the shards in a new order, a few at a time, and shuffles their examples. A shard is a sample of the
whole text, so the result is close to a shuffle of all examples, in the memory of a few shards. The masks are those of
the records (static masking).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.pretraining.data.documents import TextError
from bert_tf.pretraining.data.examples import ExampleSettings
from bert_tf.pretraining.data.feed import BATCHES_PER_BLOCK, ORDER, DataPosition, order_of_epoch
from bert_tf.pretraining.data.records import decode
from bert_tf.pretraining.data.shards import (
    MANIFEST,
    TOKEN_COUNTS,
    check_sizes,
    read_manifest,
    vocabulary_hash,
)
from bert_tf.pretraining.objectives.masking import max_targets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bert_tf.tokenizers.base import BaseTokenizer


class Records:
    """A folder of prepared records.

    Args:
        folder: str or Path. A folder made by `python -m bert_tf prepare`.
        tokenizer: the `Tokenizer` of the model to train; None to skip the check of the vocabulary.

    Attributes:
        manifest: dict. The content of the manifest.
        settings: the `ExampleSettings` that the records were made with.
        shards: list of Path.
        examples: int. The number of examples.
        vocabulary: str. The hash of the vocabulary.

    Raises: TextError if the preparation is not complete, if the size of a shard has changed, or if the vocabulary or
        the tokenizer is another one.

    Example:
        records = Records("records")
        print(records.examples, records.settings.objective)
    """

    def __init__(self, folder: str | Path, tokenizer: BaseTokenizer | None = None) -> None:
        self.folder, self.manifest = Path(folder), read_manifest(folder)
        try:
            self.settings = ExampleSettings.from_dict(self.manifest["settings"])
            self.shards = sorted(self.folder.glob(f"*-of-{self.manifest['shards']:05d}.tfrecord"))
            self.examples = int(self.manifest["examples"])
            self.vocabulary = self.manifest["vocabulary_sha256"]
        except (KeyError, TypeError, ValueError) as error:
            raise TextError(
                f"{self.folder / MANIFEST} is no manifest of records ({error!r}); prepare the text again."
            ) from error
        if len(self.shards) != self.manifest["shards"]:
            raise TextError(
                f"{folder} has {len(self.shards)} shards where its manifest says "
                f"{self.manifest['shards']}; prepare the text again."
            )
        check_sizes(self.folder, self.manifest)
        if tokenizer is not None:
            self.check_vocabulary(tokenizer)

    def check_vocabulary(self, tokenizer: BaseTokenizer) -> None:
        """Checks the tokenizer of the records.

        Args:
            tokenizer: the `Tokenizer` of the model to train.

        Raises: TextError if the records were made with another vocabulary, or with a tokenizer that cuts text
            otherwise. The manifests of earlier versions do not say how text was cut.
        """
        signature = tokenizer.cut_signature
        if self.vocabulary != vocabulary_hash(tokenizer) or self.manifest.get("cut_signature", signature) != signature:
            raise TextError(
                f"The records in {self.folder} were made with another vocabulary or tokenizer than this model's; "
                f"prepare the text with --vocab naming this model."
            )

    def log_frequencies(self, vocab_size: int) -> np.ndarray:
        """The natural logarithm of the frequency of each token, for the initial bias of an MLM head.

        Args:
            vocab_size: int. V.

        Returns: float32 [V]; frequencies have add-one smoothing.
        """
        counts = np.ones(vocab_size)
        token_counts = np.load(self.folder / TOKEN_COUNTS)
        counts[: len(token_counts)] += token_counts
        return np.log(counts / counts.sum()).astype(np.float32)


class RecordsFeed:
    """An iterable of (masked batch, position after it), without an end, like `feed.Feed`.

    Args:
        records: `Records`.
        batch_size: int. B.
        seed: int. The seed of the order.
        start: the `feed.DataPosition` to start at.

    Attributes:
        division: dict. The settings that a position depends on.

    Example:
        feed = RecordsFeed(Records("records"), batch_size=32)
        batch, position = next(iter(feed))
    """

    def __init__(self, records: Records, batch_size: int, seed: int = 0, start: DataPosition = DataPosition()) -> None:
        self.records, self.batch_size, self.seed, self.start = records, batch_size, seed, start
        shards, settings = len(records.shards), records.settings
        self._shape = settings.length, max_targets(settings.objective, settings.length, settings.masks)
        # So many shards at a time that few examples are left over after the last full batch.
        wanted = BATCHES_PER_BLOCK * batch_size
        self._together = min(shards, max(1, round(wanted * shards / max(1, records.examples))))
        self.division = {"seed": seed, "shards_together": self._together, "batch_size": batch_size} | ORDER

    def describe(self, position: DataPosition) -> str:
        """Names the epoch and shards of the batch before a position, for error messages.

        Args:
            position: `feed.DataPosition`.

        Returns: str.
        """
        names = ", ".join(path.name for path in self._blocks(position.epoch)[position.block])
        return f"epoch {position.epoch}, {names}"

    def _blocks(self, epoch):
        """The shards of an epoch that are shuffled together: list of lists of paths."""
        order = order_of_epoch(self.seed, epoch, len(self.records.shards))
        parts = np.array_split(order, max(1, len(order) // self._together))
        return [[self.records.shards[number] for number in part] for part in parts]

    def __iter__(self) -> Iterator[tuple[dict[str, np.ndarray], DataPosition]]:
        epoch, block, skip = self.start.epoch, self.start.block, self.start.batch
        empty_blocks = 0
        while True:
            blocks = self._blocks(epoch)
            for number in range(block, len(blocks)):
                examples = _read(blocks[number])
                order = np.random.default_rng((self.seed, epoch, number)).permutation(len(examples))
                batches = len(examples) // self.batch_size
                empty_blocks = 0 if batches else empty_blocks + 1
                for index in range(skip, batches):
                    chosen = order[index * self.batch_size : (index + 1) * self.batch_size]
                    yield decode([examples[i] for i in chosen], *self._shape), DataPosition(epoch, number, index + 1)
                skip = 0
            if empty_blocks >= len(blocks):
                raise ValueError(
                    f"{self.records.folder} holds {self.records.examples:,} examples, too few for a "
                    f"batch of {self.batch_size}; prepare more text or take a smaller batch size."
                )
            epoch, block = epoch + 1, 0


def _read(paths):
    """The serialized examples of shards: list of bytes."""
    import tensorflow as tf

    try:
        with tf.device("/CPU:0"):
            return [record for path in paths for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator()]
    except tf.errors.DataLossError as error:
        raise TextError(
            f"A shard of {', '.join(str(path) for path in paths)} is damaged ({error.message}); prepare the text again."
        ) from error
