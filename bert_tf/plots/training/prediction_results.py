"""The predictions of fine-tuned models, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.ranked_bars import ranked_bars
from bert_tf.plots.training.task_predictions import answer_curves, probabilities

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.finetuning.tasks.prediction_results import (
        ComparedClasses,
        ComparedSpans,
        ComparedValues,
        ExtractedAnswers,
        LabelledSpans,
        OptionProbabilities,
        PredictedValue,
    )


def value_bar(result: PredictedValue, dark: bool = False) -> go.Figure:
    """The value of a regression as a bar."""
    return ranked_bars([result.model], [result.prediction["value"]], "value", dark)


def option_probabilities(result: OptionProbabilities, dark: bool = False) -> go.Figure:
    """The probability of each class or ending as bars."""
    return probabilities(list(result.probabilities), list(result.probabilities.values()), dark)


def label_counts(result: LabelledSpans, dark: bool = False) -> go.Figure:
    """The number of spans of each label as bars."""
    counts = result.counts()
    return ranked_bars(list(counts), list(counts.values()), "labelled spans", dark)


def answer_probabilities(result: ExtractedAnswers, dark: bool = False) -> go.Figure:
    """The probability of each piece of the passage to begin and to end the answer."""
    prediction = result.prediction
    pieces = [result.passage[start:end] for start, end in prediction["pieces"]]
    return answer_curves(pieces, prediction["start_probabilities"], prediction["end_probabilities"], dark)


def compared_values(result: ComparedValues, dark: bool = False) -> go.Figure:
    """The number of each side as a bar."""
    return ranked_bars(list(result.sides), list(result.values), result.quantity, dark)


def class_differences(result: ComparedClasses, dark: bool = False) -> go.Figure:
    """The difference of the two sides' probabilities for each class, as bars."""
    differences = [one - other for one, other in zip(result.one, result.other)]
    return ranked_bars(list(result.labels), differences, "difference of probability", dark)


def compared_span_counts(result: ComparedSpans, dark: bool = False) -> go.Figure:
    """The number of labelled parts of each side as a bar."""
    return ranked_bars(list(result.sides), [len(result.one), len(result.other)], "labelled spans", dark)
