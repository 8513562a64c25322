"""Makes masked examples from a chunk of documents, for local processes and for Beam."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.pretraining.data.corpus import MemoryCorpus, tokenize_all
from bert_tf.pretraining.data.packing import check_objective, make_pairs, pack_pairs
from bert_tf.pretraining.objectives.masking import MaskSettings, choose_targets

if TYPE_CHECKING:
    from bert_tf.pretraining.data.chunks import Chunk
    from bert_tf.tokenizers.base import BaseTokenizer


@dataclass(frozen=True)
class ExampleSettings:
    """The settings of pre-training examples.

    Attributes:
        objective: str. One of `packing.OBJECTIVES`.
        length: int. T, tokens of a sequence.
        masks: `MaskSettings`.
        short_probability: float. The probability that a pair is made shorter.
        duplicates: int. How many times each document is used, with other pairs and masks (10 in the original).
        seed: int. The seed of all random choices.
        language: str. The language code of the sentence splitter.

    Raises: ValueError on an unknown objective, or a number out of range.

    Example:
        settings = ExampleSettings(objective="mlm", length=256, duplicates=2)
        copy = ExampleSettings.from_dict(settings.to_dict())
    """

    objective: str = "mlm+nsp"
    length: int = 128
    masks: MaskSettings = MaskSettings()
    short_probability: float = 0.1
    duplicates: int = 1
    seed: int = 0
    language: str = "en"

    def __post_init__(self):
        check_objective(self.objective)
        if self.length < 8:
            raise ValueError(f"Sequences of {self.length} tokens hold too little; give 8 or more.")
        if not 0 <= self.short_probability <= 1:
            raise ValueError(f"The share of short sequences is {self.short_probability}; it must lie between 0 and 1.")
        if self.duplicates < 1:
            raise ValueError(f"Each document is to be used {self.duplicates} times; give 1 or more.")
        if self.seed < 0:
            raise ValueError(f"The seed is {self.seed}; it must not be negative.")

    def to_dict(self) -> dict[str, Any]:
        """The settings as a dict of JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "ExampleSettings":
        """Makes the settings from a dict of `to_dict`."""
        return cls(**{**values, "masks": MaskSettings(**values["masks"])})


@dataclass
class CorpusCounts:
    """The counts of a text and its examples; `+` adds the counts of two texts.

    Attributes:
        documents: int. Documents of the text, each counted once.
        sentences: int. Sentences of the text, each counted once.
        tokens: int. Tokens of the text, each counted once.
        examples: int. Examples of all duplicates.
        masked: int. Predicted positions of all duplicates.
        token_counts: int64 [V]. How often each token occurs in the text.
    """

    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    examples: int = 0
    masked: int = 0
    token_counts: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)

    def __add__(self, other: CorpusCounts) -> "CorpusCounts":
        longer, shorter = sorted((self.token_counts, other.token_counts), key=len, reverse=True)
        token_counts = longer.copy()
        token_counts[: len(shorter)] += shorter
        numbers = {name: getattr(self, name) + getattr(other, name) for name in self.numbers()}
        return CorpusCounts(**numbers, token_counts=token_counts)

    def numbers(self) -> dict[str, int]:
        """A dict of all counts except `token_counts`."""
        return {name: getattr(self, name) for name in ("documents", "sentences", "tokens", "examples", "masked")}


def make_examples(
    chunk: Chunk, tokenizer: BaseTokenizer, settings: ExampleSettings
) -> tuple[dict[str, np.ndarray], CorpusCounts]:
    """Makes the examples of a chunk, in random order. Equal arguments give equal bytes.

    Args:
        chunk: `chunks.Chunk`.
        tokenizer: a `Tokenizer`.
        settings: `ExampleSettings`.

    Returns: (batch as returned by `masking.choose_targets`, where B is the number of examples; `CorpusCounts`).
    """
    tokenized = tokenize_all(chunk.documents, tokenizer, settings.language)
    all_sources = list(range(len(tokenized))) if chunk.sources is None else chunk.sources
    kept = [(document, source) for document, source in zip(tokenized, all_sources, strict=True) if document]
    documents, sources = [document for document, _ in kept], [source for _, source in kept]
    corpus, numbers = MemoryCorpus(documents, sources), np.arange(len(documents))
    rng = np.random.default_rng((settings.seed, chunk.group, chunk.number))
    pairs = [
        pair
        for _ in range(settings.duplicates)
        for pair in make_pairs(
            settings.objective, corpus, numbers, rng, tokenizer, settings.length, settings.short_probability
        )
    ]
    shuffled = [pairs[index] for index in rng.permutation(len(pairs))]
    packed = pack_pairs(shuffled, tokenizer, settings.length)
    batch = choose_targets(settings.objective, packed, tokenizer, rng, settings.masks)
    # A document is counted in the chunk where it starts.
    started = len(set(sources)) - (chunk.continues_document and all_sources[0] in sources)
    return batch, _count(started, documents, batch, tokenizer)


def _count(started, documents, batch, tokenizer):
    sentences = [sentence for document in documents for sentence in document]
    tokens = np.concatenate(sentences) if sentences else np.zeros(0, np.int64)
    return CorpusCounts(
        started,
        len(sentences),
        len(tokens),
        len(batch["token_ids"]),
        int(batch["mask_weights"].sum()),
        np.bincount(tokens, minlength=tokenizer.vocab_size),
    )
