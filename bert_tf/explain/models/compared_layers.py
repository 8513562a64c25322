"""The answers of two sides after each layer, at the same relative depth.

Dimension legend: L layers of a side, K classes of a side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas


class LayerAnswers(NamedTuple):
    """The likeliest word or class of two sides at the same relative depth.

    Attributes:
        hidden_state_a, hidden_state_b: int. The hidden states, 0 is the embeddings.
        answer_a, answer_b: str. probability_a, probability_b: float.
        same: bool. Whether the answers are the same.
    """

    hidden_state_a: int
    hidden_state_b: int
    answer_a: str
    probability_a: float
    answer_b: str
    probability_b: float
    same: bool

    @classmethod
    def rows(cls, rows: Iterable[Sequence[Any]]) -> tuple[LayerAnswers, ...]:
        """The rows as `LayerAnswers`."""
        return tuple(cls(*row) for row in rows)


@dataclass(frozen=True, eq=False)
class ComparedLayers(Result, figures={"answers": "bert_tf.plots.models.compared_layers:answers"}):
    """The likeliest word or class of two sides after each layer.

    Attributes:
        models: tuple of two str.
        rows: tuple of `LayerAnswers`, the embeddings first.
        curves: dict name -> float [L+1], the probability of one answer after every hidden state of a side.
    """

    models: tuple
    rows: tuple
    curves: dict

    def to_frame(self) -> pandas.DataFrame:
        """A row for each pair of hidden states."""
        return frame({name: [getattr(row, name) for row in self.rows] for name in LayerAnswers._fields})


@dataclass(frozen=True, eq=False)
class ComparedClassLayers(ComparedLayers):
    """`ComparedLayers` of two fine-tuned classifiers.

    Attributes:
        classes_a, classes_b: tuple of K str.
        values_a, values_b: float64 [L+1, K]. The probability of each class after every hidden state.
    """

    classes_a: tuple
    classes_b: tuple
    values_a: np.ndarray
    values_b: np.ndarray

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The probabilities and the classes of both sides."""
        classes = {"classes_a": np.array(self.classes_a), "classes_b": np.array(self.classes_b)}
        return {**super().to_arrays(), **classes}


@dataclass(frozen=True, eq=False)
class ComparedScores(Result, figures={"scores": "bert_tf.plots.models.compared_layers:scores"}):
    """The scores of two fine-tuned regressions after each layer.

    Attributes:
        models: tuple of two str. names: tuple of two different str, the sides in the figure.
        scores_a, scores_b: float64 [L].
    """

    models: tuple
    names: tuple
    scores_a: np.ndarray
    scores_b: np.ndarray

    def to_frame(self) -> pandas.DataFrame:
        """A row for each side and layer."""
        counts = len(self.scores_a), len(self.scores_b)
        return frame(
            {
                "side": np.repeat(["a", "b"], counts),
                "name": np.repeat(self.names, counts),
                "layer": np.concatenate([np.arange(count) for count in counts]),
                "score": np.concatenate([self.scores_a, self.scores_b]),
            }
        )
