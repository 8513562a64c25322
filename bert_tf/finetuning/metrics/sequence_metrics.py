"""Metrics and error analysis of sentence tasks, computed with scikit-learn and SciPy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.finetuning.tasks.task import ErrorAnalysis, without_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bert_tf.finetuning.data.sentence_examples import SentenceExample
    from bert_tf.finetuning.task_settings import TaskSettings


WORST = 50


def score(
    examples: Sequence[SentenceExample], predictions: Sequence[dict[str, Any]], settings: TaskSettings
) -> dict[str, float]:
    """The metrics of predictions.

    Args:
        examples: list of `SentenceExample` with targets.
        predictions: list of dicts from `SequenceClassification.decode`.
        settings: `TaskSettings`.

    Returns: dict name -> float; undefined correlations (all values are equal) are NaN.
    """
    if settings.regression:
        return _regression(
            np.array([example.target for example in examples], float),
            np.array([prediction["value"] for prediction in predictions], float),
        )
    if settings.multi_label:
        return _multi_label(
            *(
                _indicators(values, settings.labels)
                for values in (
                    [example.target for example in examples],
                    [prediction["labels"] for prediction in predictions],
                )
            )
        )
    return _single_label(
        [example.target for example in examples],
        [prediction["label"] for prediction in predictions],
        settings.labels,
    )


def _regression(true, predicted):
    from scipy.stats import pearsonr, spearmanr

    undefined = len(true) < 2 or np.ptp(true) == 0 or np.ptp(predicted) == 0
    return {
        "pearson": math.nan if undefined else float(pearsonr(true, predicted).statistic),
        "spearman": math.nan if undefined else float(spearmanr(true, predicted).statistic),
        "mean_squared_error": float(np.mean((true - predicted) ** 2)),
    }


def _single_label(true, predicted, labels):
    from sklearn import metrics

    # As in scikit-learn, the mean over the labels that occur: a part of a data set may lack some.
    macro = {"average": "macro", "zero_division": 0}
    scores = {
        "accuracy": metrics.accuracy_score(true, predicted),
        "f1_macro": metrics.f1_score(true, predicted, **macro),
        "precision_macro": metrics.precision_score(true, predicted, **macro),
        "recall_macro": metrics.recall_score(true, predicted, **macro),
        "matthews": metrics.matthews_corrcoef(true, predicted) if len(set(true) | set(predicted)) > 1 else 0.0,
    }
    if len(labels) == 2:
        scores["f1"] = metrics.f1_score(true, predicted, labels=list(labels), pos_label=labels[1], zero_division=0)
    return {name: float(value) for name, value in scores.items()}


def _multi_label(true, predicted):
    from sklearn import metrics

    labels = list(range(true.shape[1]))
    true, predicted = _with_two_columns(true), _with_two_columns(predicted)
    return {
        "f1_micro": float(metrics.f1_score(true, predicted, labels=labels, average="micro", zero_division=0)),
        "f1_macro": float(metrics.f1_score(true, predicted, labels=labels, average="macro", zero_division=0)),
        "all_labels_right": float(metrics.accuracy_score(true, predicted)),
    }


def _indicators(values, labels):
    return np.array([[label in value for label in labels] for value in values], int)


def _with_two_columns(indicators):
    """Adds a column of zeros to a single column, which scikit-learn would read as the two classes 0 and 1."""
    return np.pad(indicators, ((0, 0), (0, 1))) if indicators.shape[1] == 1 else indicators


def findings(
    examples: Sequence[SentenceExample], predictions: Sequence[dict[str, Any]], settings: TaskSettings
) -> ErrorAnalysis:
    """The errors of predictions: the confusion matrix, the scores of each label, and the errors of highest confidence.

    Args: as `score`.

    Returns: `ErrorAnalysis`.
    """
    if settings.regression:
        largest_errors = sorted(zip(examples, predictions), key=lambda pair: -abs(pair[0].target - pair[1]["value"]))
        return ErrorAnalysis(
            worst=[
                _row(
                    example,
                    example.target,
                    round(prediction["value"], 3),
                    {"off by": round(abs(example.target - prediction["value"]), 3)},
                )
                for example, prediction in largest_errors[:WORST]
            ],
            worst_errors_title="The worst errors",
        )
    if settings.multi_label:
        true = _indicators([example.target for example in examples], settings.labels)
        predicted = _indicators([prediction["labels"] for prediction in predictions], settings.labels)
        return ErrorAnalysis(
            per_label=_per_label(true, predicted, settings.labels), worst=_worst_of_many(examples, predictions)
        )
    from sklearn.metrics import confusion_matrix

    labels = list(settings.labels)
    true = [example.target for example in examples]
    predicted = [prediction["label"] for prediction in predictions]
    wrong = [pair for pair in zip(examples, predictions) if pair[0].target != pair[1]["label"]]
    wrong.sort(key=lambda pair: -pair[1]["probability"])
    return ErrorAnalysis(
        (labels, confusion_matrix(true, predicted, labels=labels).tolist()),
        _per_label(true, predicted, labels),
        [
            _row(example, example.target, prediction["label"], {"confidence": round(prediction["probability"], 4)})
            for example, prediction in wrong[:WORST]
        ],
    )


def _per_label(true, predicted, labels):
    from sklearn.metrics import precision_recall_fscore_support

    numbers = labels
    if isinstance(true, np.ndarray):
        true, predicted, numbers = _with_two_columns(true), _with_two_columns(predicted), list(range(len(labels)))
    columns = precision_recall_fscore_support(true, predicted, labels=numbers, zero_division=0)
    return [
        {
            "label": label,
            "precision": float(precision),
            "recall": float(recall),
            "f1": float(f1),
            "examples": int(count),
        }
        for label, precision, recall, f1, count in zip(labels, *columns)
    ]


def _worst_of_many(examples, predictions):
    """The examples with wrong or missing labels, those with the highest confidence in an error first."""

    def confidence(example, prediction):
        return max(
            (
                abs(probability - (label in example.target))
                for label, probability in prediction["probabilities"].items()
            ),
            default=0,
        )

    wrong = [pair for pair in zip(examples, predictions) if set(pair[0].target) != set(pair[1]["labels"])]
    wrong.sort(key=lambda pair: -confidence(*pair))
    return [
        _row(
            example,
            ", ".join(example.target),
            ", ".join(prediction["labels"]),
            {"confidence": round(confidence(example, prediction), 4)},
        )
        for example, prediction in wrong[:WORST]
    ]


def _row(example, true, predicted, measure):
    texts = (
        {"text": example.text_a} if example.text_b is None else {"text": example.text_a, "second text": example.text_b}
    )
    return {"where": without_folder(example.where), **texts, "expected": true, "found": predicted, **measure}
