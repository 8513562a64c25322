"""Scores of extractive question answering, by the definitions of SQuAD's own evaluation scripts.

Source: Rajpurkar et al. 2016, section 6.1 (exact match, F1); Rajpurkar, Jia and Liang 2018, section 4 (no
answer, and the threshold). Where the scripts of 1.1 and 2.0 differ it is said.
"""

import re
import string
from collections import Counter

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = frozenset(string.punctuation)


def normalise(text):
    """Lower case, without ASCII punctuation, without articles, single spaces."""
    text = "".join(character for character in text.lower() if character not in _PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_match(prediction, answer):
    """1.0 if both are the same after `normalise`, else 0.0."""
    return float(normalise(prediction) == normalise(answer))


def f1(prediction, answer):
    """The harmonic mean of precision and recall over the words left by `normalise`.

    Where nothing is left of one of the two it is 1.0 if nothing is left of the other either, as in the script of 2.0.
    """
    found, true = normalise(prediction).split(), normalise(answer).split()
    if not found or not true:
        return float(found == true)
    common = sum((Counter(found) & Counter(true)).values())
    if not common:
        return 0.0
    precision, recall = common / len(found), common / len(true)
    return 2 * precision * recall / (precision + recall)


def question_scores(prediction, answers, first=False):
    """(exact match, F1) of one question, the best over its answers.

    Args:
        prediction: str, "" for no answer. answers: str each; none at all for a question without an answer.
            Answers of which `normalise` leaves nothing do not count (2.0).
        first: by the script of 1.1: they count, and their F1 is 0.0.
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


def squad_scores(predictions, answers):
    """The scores of a set, in percent.

    Args:
        predictions: dict question id -> str. A question without one scores 0, as in the script of 1.1.
        answers: dict question id -> list of str, empty for a question that has no answer. Where every question
            has one, the script of 1.1 is followed, else that of 2.0.
    Returns:
        dict of exact_match, f1, questions; where some have no answer also answerable_exact_match,
        answerable_f1, unanswerable_accuracy and the counts answerable, unanswerable.
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
        parts = _means(answerable)
        result |= {
            "answerable_exact_match": parts["exact_match"],
            "answerable_f1": parts["f1"],
            "unanswerable_accuracy": _means(unanswerable)["exact_match"],
            "answerable": len(answerable),
            "unanswerable": len(unanswerable),
        }
    return result


def best_threshold(predictions, margins, answers, score="f1"):
    """The no-answer threshold that scores best, and that score in percent, as the script of 2.0 finds it.

    Args:
        predictions: dict question id -> the best answer that is not empty. margins: dict question id -> score
            of no answer less that of the best answer. answers: as in `squad_scores`.
        score: "f1" or "exact_match".
    Returns:
        (threshold, percent). A question is answered when its margin is at most the threshold.
    """
    column = {"exact_match": 0, "f1": 1}[score]
    # From answering nothing upwards: each question answered gains its score, or loses the point it had.
    current = best = float(sum(not golds for golds in answers.values()))
    threshold = min(margins.values(), default=0.0) - 1.0
    ordered = sorted(answers, key=lambda key: margins[key])
    for place, key in enumerate(ordered):
        current += question_scores(predictions[key], answers[key])[column] if answers[key] else -1.0
        tied = place + 1 < len(ordered) and margins[ordered[place + 1]] == margins[key]
        if current > best and not tied:
            best, threshold = current, margins[key]
    return threshold, 100.0 * best / max(len(answers), 1)


def _means(pairs):
    pairs = list(pairs)
    exact, overlap = (100.0 * sum(values) / len(values) for values in zip(*pairs)) if pairs else (0.0, 0.0)
    return {"exact_match": exact, "f1": overlap}
