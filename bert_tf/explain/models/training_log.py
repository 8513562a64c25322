"""The log of a training run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bert_tf.results import Result, frame, plain

if TYPE_CHECKING:
    import pandas

    from bert_tf.training.run_folder import Run

_PLOTS = "bert_tf.plots.training.training_log"


@dataclass(frozen=True)
class TrainingLog(
    Result,
    figures={"loss": f"{_PLOTS}:loss", "accuracy": f"{_PLOTS}:accuracy", "learning-rate": f"{_PLOTS}:learning_rate"},
):
    """The log of a training run.

    Attributes:
        run: `Run`; the record has its name, the number of its updates, and its log.
    """

    run: Run = field(metadata={"export": False})

    def to_dict(self) -> dict[str, Any]:
        """The name of the run, the number of updates to train, and the log records."""
        return {"run": self.run.name, "total": self.run.total, "records": plain(self.run.records)}

    def to_frame(self) -> pandas.DataFrame:
        """A row for each record of the log."""
        names = dict.fromkeys(name for record in self.run.records for name in record)
        return frame({name: [record.get(name) for record in self.run.records] for name in names})
