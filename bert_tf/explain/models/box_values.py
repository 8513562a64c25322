"""The values of one input in a box of the drawing of a model: the vector of every token, or the scores of a task head.

Dimension legend: T tokens, U units, K classes or choices.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.results import Result, frame, with_named

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class TokenValues(Result, figures={"values": "bert_tf.plots.models.box_values:token_values"}):
    """The vector of every token at one place of a model.

    Attributes:
        name: str. What the values are, such as "attention_norm" or "logits".
        layer: int or None. The index of the encoder layer; None outside of the layers.
        tokens: tuple of T str. unit_names: tuple of U str, or None for units without names.
        values: float32 [T, U].
        first_token, first_unit: int. Where the part that the figure shows begins; no part of the record.
    """

    name: str
    layer: int | None
    tokens: tuple
    unit_names: tuple | None
    values: np.ndarray
    first_token: int = field(default=0, metadata={"export": False})
    first_unit: int = field(default=0, metadata={"export": False})

    def to_frame(self) -> pandas.DataFrame:
        """A row for each token, a column for each unit; units without names count from 0."""
        names = self.unit_names or [str(unit) for unit in range(self.values.shape[1])]
        positions = {"position": np.arange(len(self.tokens)), "token": self.tokens}
        return frame(with_named(positions, zip(names, self.values.T), "label"))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The tokens, the names of the units, and the values."""
        units = np.arange(self.values.shape[1]) if self.unit_names is None else np.array(self.unit_names)
        return {"tokens": np.array(self.tokens), "units": units, "values": self.values}


@dataclass(frozen=True, eq=False)
class HeadScores(Result, figures={"probabilities": "bert_tf.plots.models.box_values:head_probabilities"}):
    """The scores that the head of a fine-tuned model gives to classes or choices.

    Attributes:
        of: str. "class" or "choice". names: tuple of K str.
        logits: float64 [K]. probabilities: float64 [K], their softmax, or with independent labels their sigmoids.
    """

    of: str
    names: tuple
    logits: np.ndarray
    probabilities: np.ndarray

    def to_frame(self) -> pandas.DataFrame:
        """A row for each class or choice."""
        return frame({self.of: self.names, "logit": self.logits, "probability": self.probabilities})

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The names, the logits and the probabilities."""
        return {"names": np.array(self.names), "logits": self.logits, "probabilities": self.probabilities}
