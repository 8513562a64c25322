"""The sizes of an architecture beside a loaded model: whole models, and one of their parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bert_tf.explain.models.architecture import ArchitectureSize, ModelSizes, Part
from bert_tf.parameters import LAYER_PARTS
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas

    from bert_tf.config import BertConfig


def loaded_size(name: str, config: BertConfig, parts: Sequence[Part]) -> ArchitectureSize:
    """A loaded model as one of its architecture's sizes.

    Args:
        name: str. The name of the model.
        config: `BertConfig`.
        parts: `Part`s of the model, the embeddings first, as `architecture.parts` returns them.
    """
    layers = [part for part in parts if part.name in LAYER_PARTS]
    heads = [part for part in parts if part.name not in ("embeddings", *LAYER_PARTS)]
    counts = {
        "embeddings": parts[0].parameters,
        "encoder": sum(part.parameters for part in layers),
        **{part.name: part.parameters for part in heads},
    }
    flops = {part.name: part.flops for part in (parts[0], *layers, *heads)}
    return ArchitectureSize(name, config, {**counts, "total": sum(counts.values())}, flops, tuple(parts))


@dataclass(frozen=True)
class SizeComparison(ModelSizes):
    """`ModelSizes` with the loaded model as the last of the sizes, and one row of the table for each size."""

    def to_frame(self) -> pandas.DataFrame:
        """A row for each size: its settings, its parameters by part, and its operations by part."""
        rows = []
        for size in self.sizes:
            config, counts, flops = size.config, size.parameters, size.flops
            total = sum(flops.values())
            rows.append(
                {
                    "size": size.name,
                    "layers": config.num_hidden_layers,
                    "hidden_size": config.hidden_size,
                    "heads": config.num_attention_heads,
                    "intermediate_size": config.intermediate_size,
                    "embedding_size": config.embedding_width,
                    "parameters": counts["total"],
                    "embedding_parameters": counts["embeddings"],
                    "encoder_parameters": counts["encoder"],
                    "head_parameters": counts["total"] - counts["embeddings"] - counts["encoder"],
                    "flops": total,
                    "attention_flops": flops["attention"],
                    "feed_forward_flops": flops["feed_forward"],
                    "other_flops": total - flops["attention"] - flops["feed_forward"],
                }
            )
        return frame({name: [row[name] for row in rows] for name in rows[0]})


@dataclass(frozen=True)
class PartSize:
    """One part of a model of one size.

    Attributes:
        size: str. The name of the size, or of the loaded model.
        shape: tuple of (letter, number), as of `Part`.
        parameters: int. flops: int. Both of all layers together.
        flops_share: float. The share of the operations of the whole model.
    """

    size: str
    shape: tuple
    parameters: int
    flops: int
    flops_share: float

    @classmethod
    def of(cls, size: str, parts: Sequence[Part], part: Part) -> PartSize:
        """The numbers of one of the `parts` of a model."""
        return cls(size, part.shape, part.parameters, part.flops, part.flops / sum(one.flops for one in parts))


@dataclass(frozen=True)
class PartSizes(
    Result,
    figures={
        "parameters": "bert_tf.plots.models.size_comparison:part_parameters",
        "share-of-the-work": "bert_tf.plots.models.size_comparison:part_flops_shares",
    },
):
    """One part of a model in every size of its architecture that has it.

    Attributes:
        part: str. The name of the part. tokens: int. The length of the input.
        sizes: tuple of `PartSize`, the loaded model last.
    """

    part: str
    tokens: int
    sizes: tuple

    def to_frame(self) -> pandas.DataFrame:
        """A row for each size; the output shape in words, such as "T 6 x H 128"."""
        return frame(
            {
                "size": [size.size for size in self.sizes],
                "shape": [" x ".join(f"{letter} {number}" for letter, number in size.shape) for size in self.sizes],
                "parameters": [size.parameters for size in self.sizes],
                "flops": [size.flops for size in self.sizes],
                "flops_share": [size.flops_share for size in self.sizes],
            }
        )
