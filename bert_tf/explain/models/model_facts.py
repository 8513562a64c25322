"""The sizes and the speed of several models on one input each."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class ModelFacts:
    """The size and the speed of one model.

    Attributes:
        name: str. The name of the side. model: str.
        layers, heads, hidden_size, parameters: int.
        weight_bytes: int. The weights in memory. disk_bytes: int, or None if unknown.
        tokens: int. The length of the input. seconds: float. The median time of a warm forward pass.
    """

    name: str
    model: str
    layers: int
    heads: int
    hidden_size: int
    parameters: int
    weight_bytes: int
    disk_bytes: int | None
    tokens: int
    seconds: float


@dataclass(frozen=True)
class ModelFactsTable(Result, figures={"seconds": "bert_tf.plots.models.model_facts:pass_times"}):
    """The sizes and the speed of several models.

    Attributes:
        models: tuple of `ModelFacts`.
    """

    models: tuple

    def to_frame(self) -> pandas.DataFrame:
        """A row for each model."""
        names = [field.name for field in fields(ModelFacts)]
        return frame({name: [getattr(model, name) for model in self.models] for name in names})
