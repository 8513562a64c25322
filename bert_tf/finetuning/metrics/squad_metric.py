"""Scores of extractive question answering, as defined by SQuAD's evaluation scripts.

Source: Rajpurkar et al. 2016, section 6.1 (exact match, F1); Rajpurkar, Jia and Liang 2018, section 4 (no
answer, and the threshold). Docstrings name the differences between the scripts of 1.1 and 2.0.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = frozenset(string.punctuation)


def normalise(text: str) -> str:
    """The text in lower case, without ASCII punctuation and articles, with single spaces."""
    text = "".join(character for character in text.lower() if character not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_match(prediction: str, answer: str) -> float:
    """1.0 if prediction and answer, two str, are equal after `normalise`, else 0.0."""
    return float(normalise(prediction) == normalise(answer))


def f1(prediction: str, answer: str) -> float:
    """The harmonic mean of precision and recall over the words after `normalise`.

    If one text has no words, the result is 1.0 if the other has none either, else 0.0, as in the script of 2.0.

    Args:
        prediction: str.
        answer: str.

    Returns: float.
    """
    predicted, true = normalise(prediction).split(), normalise(answer).split()
    if not predicted or not true:
        return float(predicted == true)
    common = sum((Counter(predicted) & Counter(true)).values())
    if not common:
        return 0.0
    precision, recall = common / len(predicted), common / len(true)
    return 2 * precision * recall / (precision + recall)


def question_scores(prediction: str, answers: Sequence[str], first: bool = False) -> tuple[float, float]:
    """The exact match and F1 of one question, each the best over its answers.

    Args:
        prediction: str, "" for no answer.
        answers: list of str; empty for a question without an answer. Answers that are empty after `normalise` do not
            count, as in the script of 2.0.
        first: bool. Whether to follow the script of 1.1, in which these answers count with an F1 of 0.0.

    Returns: (exact match, F1), two floats.
    """
    if first:
        return (
            max(exact_match(prediction, answer) for answer in answers),
            max(f1(prediction, answer) if normalise(answer) else 0.0 for answer in answers),
        )
    answers = [answer for answer in answers if normalise(answer)] or [""]
    return (
        max(exact_match(prediction, answer) for answer in answers),
        max(f1(prediction, answer) for answer in answers),
    )


def squad_scores(predictions: Mapping[Any, str], answers: Mapping[Any, Sequence[str]]) -> dict[str, float]:
    """The scores of a data set, in percent.

    Args:
        predictions: dict question id -> str. A question without a prediction scores 0, as in the script of 1.1.
        answers: dict question id -> list of str, empty for a question without an answer. If every question has an
            answer, the scores are those of the script of 1.1, else of 2.0.

    Returns: dict of exact_match, f1 and questions; if some questions have no answer also unanswerable_accuracy and the
        counts answerable and unanswerable, and, if others have one, answerable_exact_match and answerable_f1.
    """
    first = all(answers.values())
    scores = {
        key: question_scores(predictions[key], golds, first) if key in predictions else (0.0, 0.0)
        for key, golds in answers.items()
    }
    result = {**_means(scores.values()), "questions": len(scores)}
    answerable = [scores[key] for key, golds in answers.items() if golds]
    unanswerable = [scores[key] for key, golds in answers.items() if not golds]
    if unanswerable:
        result |= {
            **{f"answerable_{name}": value for name, value in _means(answerable).items() if answerable},
            "unanswerable_accuracy": _means(unanswerable)["exact_match"],
            "answerable": len(answerable),
            "unanswerable": len(unanswerable),
        }
    return result


def best_threshold(
    predictions: Mapping[Any, str],
    margins: Mapping[Any, float],
    answers: Mapping[Any, Sequence[str]],
    score: str = "f1",
) -> tuple[float, float]:
    """The no-answer threshold with the best score, as in the script of 2.0.

    Args:
        predictions: dict question id -> the best answer that is not empty.
        margins: dict question id -> score of no answer minus the score of the best answer.
        answers: as in `squad_scores`.
        score: str. "f1" or "exact_match".

    Returns: (threshold, score in percent). A question is answered if its margin is at most the threshold.
    """
    column = {"exact_match": 0, "f1": 1}[score]
    # Starts with no question answered. Each further answered question adds its score, or loses its point for no answer.
    current = best = float(sum(not golds for golds in answers.values()))
    threshold = min(margins.values(), default=0.0) - 1.0
    ordered = sorted(answers, key=lambda key: margins[key])
    for index, key in enumerate(ordered):
        current += question_scores(predictions[key], answers[key])[column] if answers[key] else -1.0
        tied = index + 1 < len(ordered) and margins[ordered[index + 1]] == margins[key]
        if current > best and not tied:
            best, threshold = current, margins[key]
    return threshold, 100.0 * best / max(len(answers), 1)


def _means(pairs):
    pairs = list(pairs)
    exact, overlap = (100.0 * sum(values) / len(values) for values in zip(*pairs)) if pairs else (0.0, 0.0)
    return {"exact_match": exact, "f1": overlap}
