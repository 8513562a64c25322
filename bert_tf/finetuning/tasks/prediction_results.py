"""The predictions of fine-tuned models as results with a record, a table and a figure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bert_tf.results import Result, frame, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

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


@dataclass(frozen=True, eq=False)
class ComparedValues(Result, figures={"values": f"{_PLOTS}:compared_values"}):
    """The answers of two sides, each with one number.

    Attributes:
        sides: tuple of two str. answers: tuple of two. The value, or the text of an answer.
        quantity: str. The number that `values` has: "score" or "probability".
        values: tuple of two float.
    """

    sides: tuple
    answers: tuple
    quantity: str
    values: tuple

    def to_frame(self) -> pandas.DataFrame:
        """A row for each side."""
        return frame({"side": self.sides, "answer": self.answers, self.quantity: self.values})


@dataclass(frozen=True, eq=False)
class ComparedClasses(Result, figures={"difference": f"{_PLOTS}:class_differences"}):
    """The probabilities that two sides give to the classes that both have.

    Attributes:
        sides: tuple of two str. labels: tuple of K str, the most different first.
        one, other: tuple of K float. The probabilities of each side.
    """

    sides: tuple
    labels: tuple
    one: tuple
    other: tuple

    @classmethod
    def of(cls, sides: Sequence[str], one: dict[str, float], other: dict[str, float]) -> ComparedClasses:
        """The comparison of two dicts class -> probability."""
        labels = sorted(one.keys() & other.keys(), key=lambda label: (-abs(one[label] - other[label]), label))
        return cls(
            tuple(sides),
            tuple(labels),
            tuple(one[label] for label in labels),
            tuple(other[label] for label in labels),
        )

    def to_frame(self) -> pandas.DataFrame:
        """A row for each class."""
        one, other = np.array(self.one), np.array(self.other)
        return frame({"class": self.labels, "one": one, "other": other, "difference": one - other})


@dataclass(frozen=True, eq=False)
class ComparedSpans(Result, figures={"labels": f"{_PLOTS}:compared_span_counts"}):
    """The labels that two sides give to the parts of one text.

    Attributes:
        sides: tuple of two str. text: str.
        one, other: dict (start, end), character offsets -> label.
    """

    sides: tuple
    text: str
    one: dict
    other: dict

    @property
    def places(self) -> list[tuple[int, int]]:
        """The offsets of all labelled parts, ascending."""
        return sorted(self.one.keys() | self.other.keys())

    def to_dict(self) -> dict[str, Any]:
        """The text, and the labelled parts of each side."""
        sides = {
            name: [{"start": start, "end": end, "label": label} for (start, end), label in labels.items()]
            for name, labels in (("one", self.one), ("other", self.other))
        }
        return {"sides": list(self.sides), "text": self.text, **sides}

    def to_frame(self) -> pandas.DataFrame:
        """A row for each labelled part; the label is empty where a side has none."""
        places = self.places
        return frame(
            {
                "start": [start for start, _ in places],
                "end": [end for _, end in places],
                "text": [self.text[start:end] for start, end in places],
                "one": [self.one.get(place, "") for place in places],
                "other": [self.other.get(place, "") for place in places],
            }
        )
