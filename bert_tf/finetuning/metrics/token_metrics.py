"""Scores of token classification: entities with seqeval, other labels with scikit-learn."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np


def tag_scores(true: Sequence[Sequence[str]], found: Sequence[Sequence[str]], with_entities: bool) -> dict[str, float]:
    """The metrics of a data set.

    Args:
        true: list of label sequences, one for each sentence; entity labels in BIO.
        found: list of label sequences, the predictions.
        with_entities: bool. Whether to score whole entities (type and both ends must be right) and not words.

    Returns: dict: accuracy of words; with entities precision, recall and f1 over all entities (micro), else f1, the
        mean over the labels (macro); the counts sentences and words.
    """
    from sklearn.metrics import accuracy_score, f1_score

    flat_true, flat_found = _flat(true), _flat(found)
    scores = {"accuracy": float(accuracy_score(flat_true, flat_found)), "sentences": len(true), "words": len(flat_true)}
    if not with_entities:
        return {**scores, "f1": float(f1_score(flat_true, flat_found, average="macro", zero_division=0))}
    import seqeval.metrics as seqeval

    true, found = [list(labels) for labels in true], [list(labels) for labels in found]
    return {
        **scores,
        **{
            name: float(getattr(seqeval, f"{name}_score")(true, found, zero_division=0))
            for name in ("precision", "recall", "f1")
        },
    }


def per_label(
    true: Sequence[Sequence[str]], found: Sequence[Sequence[str]], with_entities: bool
) -> list[dict[str, Any]]:
    """The precision, recall, f1 and support of each entity type or label.

    Args: as `tag_scores`.

    Returns: list of dicts.
    """
    if with_entities:
        from seqeval.metrics import classification_report

        report = classification_report(
            [list(labels) for labels in true], [list(labels) for labels in found], output_dict=True, zero_division=0
        )
    else:
        from sklearn.metrics import classification_report

        report = classification_report(_flat(true), _flat(found), output_dict=True, zero_division=0)
    return [
        {
            "label": label,
            "precision": float(row["precision"]),
            "recall": float(row["recall"]),
            "f1": float(row["f1-score"]),
            "support": int(row["support"]),
        }
        for label, row in report.items()
        if label != "accuracy" and not label.endswith(" avg")
    ]


def confusion(
    true: Sequence[Sequence[str]], found: Sequence[Sequence[str]], labels: Iterable[str]
) -> tuple[list[str], np.ndarray]:
    """The confusion matrix of words.

    Args:
        true: list of label sequences, one for each sentence.
        found: list of label sequences, the predictions.
        labels: iterable of str. The labels of the model; other labels in `true` follow them.

    Returns: (labels, counts [K, K]), with a row for each true label.
    """
    from sklearn.metrics import confusion_matrix

    flat_true, flat_found = _flat(true), _flat(found)
    names = [*labels, *sorted(set(flat_true) - set(labels))]
    return names, confusion_matrix(flat_true, flat_found, labels=names)


def _flat(sentences):
    return list(chain.from_iterable(sentences))
