"""One attention map of each of two sides, at the same relative depth.

Dimension legend: T tokens of a side, L layers of a side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas

_PLOTS = "bert_tf.plots.models.compared_attention"


@dataclass(frozen=True, eq=False)
class ComparedAttention(
    Result, figures={"a": f"{_PLOTS}:map_a", "b": f"{_PLOTS}:map_b", "entropy": f"{_PLOTS}:entropies"}
):
    """One attention map of each of two sides, and the entropy of every layer.

    Attributes:
        models: tuple of two str. names: tuple of two different str, the sides in the figures.
        layers: tuple of two int, the index of the layer of each side.
        head: int, the index of the head of both; None for the mean of all heads.
        tokens_a, tokens_b: tuple of T str.
        weights_a, weights_b: float [T, T]. Rows: the token that attends, columns: the token attended to.
        entropy_a, entropy_b: float [L]. The mean entropy of a row of the layer's maps, in bits.
    """

    models: tuple
    names: tuple
    layers: tuple
    head: int | None
    tokens_a: tuple
    tokens_b: tuple
    weights_a: np.ndarray
    weights_b: np.ndarray
    entropy_a: np.ndarray
    entropy_b: np.ndarray

    def to_frame(self) -> pandas.DataFrame:
        """A row for each side and pair of tokens."""
        columns: dict[str, list] = {}
        for side, tokens, weights in (("a", self.tokens_a, self.weights_a), ("b", self.tokens_b, self.weights_b)):
            position, attended = (index.ravel() for index in np.indices(weights.shape))
            names = np.array(tokens, object)
            values = {
                "side": np.full(weights.size, side),
                "position": position,
                "token": names[position],
                "attended_position": attended,
                "attended_token": names[attended],
                "weight": weights.ravel(),
            }
            for name, column in values.items():
                columns.setdefault(name, []).append(column)
        return frame({name: np.concatenate(parts) for name, parts in columns.items()})

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The weights, the entropies, and the tokens of both sides."""
        tokens = {"tokens_a": np.array(self.tokens_a), "tokens_b": np.array(self.tokens_b)}
        return {**super().to_arrays(), **tokens}


@dataclass(frozen=True, eq=False)
class AlignedAttention(
    ComparedAttention,
    figures={
        "a": f"{_PLOTS}:map_a",
        "b": f"{_PLOTS}:map_b",
        "difference": f"{_PLOTS}:difference",
        "entropy": f"{_PLOTS}:entropies",
    },
):
    """`ComparedAttention` of inputs of the same length, whose maps can be subtracted."""


@dataclass(frozen=True, eq=False)
class HeadAttentionChange(Result, figures={"difference": f"{_PLOTS}:head_change"}):
    """The attention of one head before and after fine-tuning.

    Attributes:
        model_before, model_after: str. layer, head: int, from 0.
        tokens: tuple of T str.
        before, after: float [T, T]. Rows: the token that attends, columns: the token attended to.
    """

    model_before: str
    model_after: str
    layer: int
    head: int
    tokens: tuple
    before: np.ndarray
    after: np.ndarray

    def to_frame(self) -> pandas.DataFrame:
        """A row for each pair of tokens."""
        position, attended = (index.ravel() for index in np.indices(self.before.shape))
        names = np.array(self.tokens, object)
        return frame(
            {
                "position": position,
                "token": names[position],
                "attended_position": attended,
                "attended_token": names[attended],
                "before": self.before.ravel(),
                "after": self.after.ravel(),
            }
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The tokens and both maps."""
        return {"tokens": np.array(self.tokens), "before": self.before, "after": self.after}
