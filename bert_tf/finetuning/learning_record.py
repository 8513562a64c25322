"""The log of a fine-tuning: its updates and its evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class LearningRecord(Result, figures={"learning": "bert_tf.plots.training.learning_record:learning"}):
    """The log of a fine-tuning.

    Attributes:
        model: str. The name of the model that is trained.
        metric: str. The name of the score that the best epoch is chosen by; "" if unknown.
        records: tuple of dicts with "step" and "loss", as in `run/metrics.jsonl`.
        rounds: tuple of dicts with "step", "dev" and "best", as in `run/rounds.json`.
    """

    model: str
    metric: str
    records: tuple
    rounds: tuple

    def to_frame(self) -> pandas.DataFrame:
        """A row for each record of the log."""
        names = dict.fromkeys(name for record in self.records for name in record)
        return frame({name: [record.get(name) for record in self.records] for name in names})
