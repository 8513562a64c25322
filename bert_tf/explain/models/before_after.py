"""The answers of a model before and after fine-tuning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas


class AnswerChange(NamedTuple):
    """One number of an answer, before and after fine-tuning.

    Attributes:
        of: str. The question: a task, a masked word or a claim about the pair.
        item: str. The answer: a class, a token or a text; "" where the question has one number alone.
        before: float, or None if the model before has no head for it. after: float.
    """

    of: str
    item: str
    before: float | None
    after: float


@dataclass(frozen=True)
class BeforeAndAfter(Result, figures={"changes": "bert_tf.plots.models.before_after:answer_changes"}):
    """The answers of a model before and after fine-tuning.

    Attributes:
        before, after: str. The names of the models.
        task_prediction: dict, the prediction of the fine-tuned head; None without one.
        rows: tuple of `AnswerChange`.
    """

    before: str
    after: str
    task_prediction: dict | None
    rows: tuple

    def to_frame(self) -> pandas.DataFrame:
        """A row for each number."""
        return frame({name: [getattr(row, name) for row in self.rows] for name in AnswerChange._fields})
