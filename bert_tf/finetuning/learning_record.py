"""The log of a fine-tuning: its updates and its evaluations."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def read_rounds(path: Path) -> list[dict[str, Any]]:
    """Reads the evaluations of a fine-tuning.

    Args:
        path: Path. A `rounds.json` file, where an undefined score is null.

    Returns: list of dicts with "step", "dev" and "best", ascending; an undefined score of "dev" is NaN.

    Raises: OSError, ValueError or KeyError if the file is missing, not JSON, or without rounds.
    """
    rounds = json.loads(path.read_text(encoding="utf-8"))["rounds"]
    return [
        {**record, "dev": {name: math.nan if score is None else score for name, score in record["dev"].items()}}
        for record in rounds
    ]
