"""Scores of token classification: whole entities as CoNLL's evaluation counts them, other labels with scikit-learn.

Source: Tjong Kim Sang and De Meulder 2003, "Introduction to the CoNLL-2003 Shared Task", section 2.3. The scores are
those of seqeval, with which they are tested.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from bert_tf.finetuning.labels import entities

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np


def tag_scores(
    true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], with_entities: bool
) -> dict[str, float]:
    """The metrics of a data set.

    Args:
        true: list of label sequences, one for each sentence; entity labels in BIO.
        predicted: list of label sequences, the predictions.
        with_entities: bool. Whether to score whole entities (type and both ends must be right) and not words.

    Returns: dict: accuracy of words; with entities precision, recall and f1 over all entities (micro), else f1, the
        mean over the labels (macro); the counts sentences and words.
    """
    from sklearn.metrics import accuracy_score, f1_score

    flat_true, flat_predicted = _flat(true), _flat(predicted)
    scores = {
        "accuracy": float(accuracy_score(flat_true, flat_predicted)),
        "sentences": len(true),
        "words": len(flat_true),
    }
    if not with_entities:
        return {**scores, "f1": float(f1_score(flat_true, flat_predicted, average="macro", zero_division=0))}
    score = _entity_score(_entity_set(true), _entity_set(predicted))
    return {**scores, **{name: score[name] for name in ("precision", "recall", "f1")}}


def _entity_set(sentences):
    """The entities of all sentences: {(number of the sentence, type, start, end)}."""
    return {(number, *entity) for number, labels in enumerate(sentences) for entity in entities(list(labels))}


def _entity_score(true, predicted):
    """Precision, recall and F1 of a set of entities; 0 where nothing was found, or nothing was to be found."""
    right = len(true & predicted)
    precision = right / len(predicted) if predicted else 0.0
    recall = right / len(true) if true else 0.0
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return {"precision": precision, "recall": recall, "f1": f1, "support": len(true)}


def per_label(
    true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], with_entities: bool
) -> list[dict[str, Any]]:
    """The precision, recall, f1 and support of each entity type or label.

    Args: as `tag_scores`.

    Returns: list of dicts.
    """
    if with_entities:
        groups = _entity_set(true), _entity_set(predicted)
        return [
            {"label": kind, **_entity_score(*({one for one in group if one[1] == kind} for group in groups))}
            for kind in sorted({entity[1] for group in groups for entity in group})
        ]
    from sklearn.metrics import precision_recall_fscore_support

    flat_true, flat_predicted = _flat(true), _flat(predicted)
    labels = sorted({*flat_true, *flat_predicted})
    columns = precision_recall_fscore_support(flat_true, flat_predicted, labels=labels, zero_division=0)
    return [
        {"label": label, "precision": float(precision), "recall": float(recall), "f1": float(f1), "support": int(count)}
        for label, precision, recall, f1, count in zip(labels, *columns)
    ]


def confusion(
    true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], labels: Iterable[str]
) -> tuple[list[str], np.ndarray]:
    """The confusion matrix of words.

    Args:
        true: list of label sequences, one for each sentence.
        predicted: list of label sequences, the predictions.
        labels: iterable of str. The labels of the model; other labels in `true` follow them.

    Returns: (labels, counts [K, K]), with a row for each true label.
    """
    from sklearn.metrics import confusion_matrix

    flat_true, flat_predicted = _flat(true), _flat(predicted)
    names = [*labels, *sorted(set(flat_true) - set(labels))]
    return names, confusion_matrix(flat_true, flat_predicted, labels=names)


def _flat(sentences):
    return list(chain.from_iterable(sentences))
