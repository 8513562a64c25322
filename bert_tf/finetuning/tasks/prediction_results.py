"""The predictions of fine-tuned models as results with a record, a table and a figure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bert_tf.results import Result, frame, plain

if TYPE_CHECKING:
    import pandas

_PLOTS = "bert_tf.plots.training.prediction_results"


@dataclass(frozen=True, eq=False)
class TaskPredictionResult(Result):
    """The prediction of a fine-tuned model for one input.

    Attributes:
        prediction: dict, as `TaskModel.predict` returns it.
    """

    prediction: dict

    def to_dict(self) -> dict[str, Any]:
        """The prediction as plain JSON values."""
        return plain(self.prediction)


@dataclass(frozen=True, eq=False)
class PredictedValue(TaskPredictionResult, figures={"value": f"{_PLOTS}:value_bar"}):
    """The value of a regression.

    Attributes:
        model, text_a, text_b: str. `text_b` is empty for a single text.
    """

    model: str
    text_a: str
    text_b: str

    def to_dict(self) -> dict[str, Any]:
        """The prediction and the texts."""
        return {"text_a": self.text_a, "text_b": self.text_b, **super().to_dict()}

    def to_frame(self) -> pandas.DataFrame:
        """One row: the texts and the value."""
        return frame({"text_a": [self.text_a], "text_b": [self.text_b], "value": [self.prediction["value"]]})


@dataclass(frozen=True, eq=False)
class OptionProbabilities(TaskPredictionResult, figures={"probabilities": f"{_PLOTS}:option_probabilities"}):
    """The probability of each class or ending.

    Attributes:
        of: str. "class" or "ending".
        probabilities: dict class or ending -> float, in the order of the table.
    """

    of: str
    probabilities: dict

    def to_dict(self) -> dict[str, Any]:
        """The prediction, with the texts of the endings."""
        texts = {"endings": list(self.probabilities)} if self.of == "ending" else {}
        return {**super().to_dict(), **texts}

    def to_frame(self) -> pandas.DataFrame:
        """A row for each class or ending."""
        return frame({self.of: list(self.probabilities), "probability": list(self.probabilities.values())})


class LabelledSpan(NamedTuple):
    """A labelled part of a text.

    Attributes:
        start, end: int. Character offsets. text: str. label: str. probability: float.
    """

    start: int
    end: int
    text: str
    label: str
    probability: float


@dataclass(frozen=True, eq=False)
class LabelledSpans(TaskPredictionResult, figures={"labels": f"{_PLOTS}:label_counts"}):
    """The labelled parts of a text.

    Attributes:
        spans: tuple of `LabelledSpan`, in reading order.
    """

    spans: tuple

    def counts(self) -> dict[str, int]:
        """Label -> number of spans, in the order of appearance."""
        return dict(Counter(span.label for span in self.spans))

    def to_frame(self) -> pandas.DataFrame:
        """A row for each span."""
        return frame({name: [getattr(span, name) for span in self.spans] for name in LabelledSpan._fields})


@dataclass(frozen=True, eq=False)
class ExtractedAnswers(TaskPredictionResult, figures={"answer": f"{_PLOTS}:answer_probabilities"}):
    """The answers that a model finds in a passage.

    Attributes:
        passage: str.
    """

    passage: str

    def to_frame(self) -> pandas.DataFrame:
        """A row for each answer, the likeliest first."""
        answers = self.prediction["n_best"]
        columns = {"answer": "text", "probability": "probability", "start": "start", "end": "end"}
        return frame(
            {
                "rank": list(range(1, len(answers) + 1)),
                **{name: [answer[key] for answer in answers] for name, key in columns.items()},
            }
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The character offsets of the pieces, int [T, 2], and the probability [T] of each to begin and to end the
        answer."""
        return {
            name: np.array(self.prediction[name]) for name in ("pieces", "start_probabilities", "end_probabilities")
        }
