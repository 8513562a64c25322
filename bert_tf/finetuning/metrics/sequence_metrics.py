"""Metrics and findings of sentence tasks, computed by scikit-learn and SciPy."""

import numpy as np

from bert_tf.finetuning.tasks.task import ErrorAnalysis, without_folder

WORST = 50


def score(examples, predictions, settings):
    """Metrics of predictions.

    Args:
        examples: list of `Sentence` with targets. predictions: from `SequenceClassification.decode`.

    Returns: dict name -> float; undefined correlations (all values the same) are 0.
    """
    if settings.regression:
        return _regression(
            np.array([one.target for one in examples], float),
            np.array([one["value"] for one in predictions], float),
        )
    if settings.multi_label:
        return _multi_label(
            *(
                _indicators(values, settings.labels)
                for values in ([one.target for one in examples], [one["labels"] for one in predictions])
            )
        )
    return _single_label([one.target for one in examples], [one["label"] for one in predictions], settings.labels)


def _regression(true, found):
    from scipy.stats import pearsonr, spearmanr

    constant = len(true) < 2 or np.ptp(true) == 0 or np.ptp(found) == 0
    return {
        "pearson": 0.0 if constant else float(pearsonr(true, found).statistic),
        "spearman": 0.0 if constant else float(spearmanr(true, found).statistic),
        "mean_squared_error": float(np.mean((true - found) ** 2)),
    }


def _single_label(true, found, labels):
    from sklearn import metrics

    macro = {"labels": list(labels), "average": "macro", "zero_division": 0}
    scores = {
        "accuracy": metrics.accuracy_score(true, found),
        "f1_macro": metrics.f1_score(true, found, **macro),
        "precision_macro": metrics.precision_score(true, found, **macro),
        "recall_macro": metrics.recall_score(true, found, **macro),
        "matthews": metrics.matthews_corrcoef(true, found) if len(set(true) | set(found)) > 1 else 0.0,
    }
    if len(labels) == 2:
        scores["f1"] = metrics.f1_score(true, found, labels=list(labels), pos_label=labels[1], zero_division=0)
    return {name: float(value) for name, value in scores.items()}


def _multi_label(true, found):
    from sklearn import metrics

    labels = list(range(true.shape[1]))
    true, found = _with_two_columns(true), _with_two_columns(found)
    return {
        "f1_micro": float(metrics.f1_score(true, found, labels=labels, average="micro", zero_division=0)),
        "f1_macro": float(metrics.f1_score(true, found, labels=labels, average="macro", zero_division=0)),
        "all_labels_right": float(metrics.accuracy_score(true, found)),
    }


def _indicators(values, labels):
    return np.array([[label in value for label in labels] for value in values], int)


def _with_two_columns(indicators):
    """Of a single label a column of zeros more: scikit-learn takes one column for the two classes 0 and 1."""
    return np.pad(indicators, ((0, 0), (0, 1))) if indicators.shape[1] == 1 else indicators


def findings(examples, predictions, settings):
    """`ErrorAnalysis`: confusion matrix, a row a label, the surest errors."""
    if settings.regression:
        off = sorted(zip(examples, predictions), key=lambda pair: -abs(pair[0].target - pair[1]["value"]))
        return ErrorAnalysis(
            worst=[
                _row(one, one.target, round(found["value"], 3), {"off by": round(abs(one.target - found["value"]), 3)})
                for one, found in off[:WORST]
            ],
            worst_errors_title="The worst errors",
        )
    if settings.multi_label:
        true = _indicators([one.target for one in examples], settings.labels)
        found = _indicators([one["labels"] for one in predictions], settings.labels)
        return ErrorAnalysis(
            per_label=_per_label(true, found, settings.labels), worst=_worst_of_many(examples, predictions)
        )
    from sklearn.metrics import confusion_matrix

    labels = list(settings.labels)
    true, found = [one.target for one in examples], [one["label"] for one in predictions]
    wrong = [(one, answer) for one, answer in zip(examples, predictions) if one.target != answer["label"]]
    wrong.sort(key=lambda pair: -pair[1]["probability"])
    return ErrorAnalysis(
        (labels, confusion_matrix(true, found, labels=labels).tolist()),
        _per_label(true, found, labels),
        [
            _row(one, one.target, answer["label"], {"confidence": round(answer["probability"], 4)})
            for one, answer in wrong[:WORST]
        ],
    )


def _per_label(true, found, labels):
    from sklearn.metrics import precision_recall_fscore_support

    numbers = labels
    if isinstance(true, np.ndarray):
        true, found, numbers = _with_two_columns(true), _with_two_columns(found), list(range(len(labels)))
    columns = precision_recall_fscore_support(true, found, labels=numbers, zero_division=0)
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
    """Examples with a label too many or too few, the surest of a wrong one first."""

    def sureness(example, prediction):
        return max(
            (abs(share - (label in example.target)) for label, share in prediction["probabilities"].items()),
            default=0,
        )

    wrong = [(one, answer) for one, answer in zip(examples, predictions) if set(one.target) != set(answer["labels"])]
    wrong.sort(key=lambda pair: -sureness(*pair))
    return [
        _row(one, ", ".join(one.target), ", ".join(answer["labels"]), {"confidence": round(sureness(one, answer), 4)})
        for one, answer in wrong[:WORST]
    ]


def _row(example, true, found, measure):
    texts = (
        {"text": example.text_a} if example.text_b is None else {"text": example.text_a, "second text": example.text_b}
    )
    return {"where": without_folder(example.where), **texts, "expected": true, "found": found, **measure}
