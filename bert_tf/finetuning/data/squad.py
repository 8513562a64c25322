"""Reads SQuAD files, 1.1 and 2.0.

Source: Rajpurkar et al. 2016; Rajpurkar, Jia and Liang 2018.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bert_tf.errors import DataError, TextError, check_text

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Question:
    """A question about a passage.

    Attributes:
        key: str. The id of the question.
        question: str.
        passage: str.
        answers: tuple of (first character in the passage, text); empty for a question without an answer.
        source: str. The position in the file, for messages.
        curves: bool. Whether the prediction contains the probability of every piece too.
    """

    key: str
    question: str
    passage: str
    answers: tuple
    source: str = ""
    curves: bool = False

    @property
    def answer_texts(self) -> list[str]:
        """The texts of the answers."""
        return [text for _, text in self.answers]


def read_squad(path: str | Path, labelled: bool = True) -> list[Question]:
    """Reads the questions of a SQuAD file.

    Args:
        path: str or Path. A JSON file of SQuAD 1.1 or 2.0, UTF-8, with or without a byte-order mark.
        labelled: bool. False if the answers are not needed: they are not read, and may be missing.

    Returns: list of `Question`, in the order of the file.

    Raises:
        DataError: the file has another format, an answer is not at its position, a text holds half a surrogate pair,
            or an id occurs twice; the message names the file and the position.
        FileNotFoundError: the file does not exist.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}: give the path of a SQuAD JSON file.")
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8; save the file as UTF-8.") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON ({error}); give a file in the format of SQuAD.") from None
    questions: list[Question] = []
    seen: dict[str, str] = {}
    for article_number, article in enumerate(_list(content, "data", str(path)), 1):
        place = f"{path}, article {article_number}"
        for number, paragraph in enumerate(_list(article, "paragraphs", place), 1):
            where = f"{place}, paragraph {number}"
            passage = _filled(paragraph, "context", where)
            for entry in _list(paragraph, "qas", where):
                question = _question(entry, passage, where, labelled)
                if question.key in seen:
                    raise DataError(f"{where}: the id {question.key!r} is already in {seen[question.key]}.")
                seen[question.key] = where
                questions.append(question)
    if not questions:
        raise DataError(f"{path} holds no question.")
    return questions


def _question(entry, passage, where, labelled):
    key = _text(entry, "id", where)
    where = f"{where}, question {key}"
    answers = _answers(entry, passage, where) if labelled else ()
    return Question(key, _filled(entry, "question", where), passage, answers, where)


def _answers(entry, passage, where):
    answers = []
    impossible, given = entry.get("is_impossible"), entry.get("answers")
    if impossible not in (None, True, False):
        raise DataError(f"{where}: 'is_impossible' is {impossible!r:.40}; it must be true or false.")
    if impossible is not None and bool(given) == impossible:
        raise DataError(
            f"{where}: 'is_impossible' is {str(impossible).lower()}, and it has {len(given or ())} answers."
        )
    for answer in () if impossible else _list(entry, "answers", where):
        text, start = _text(answer, "text", where), answer.get("answer_start")
        if isinstance(start, bool) or not isinstance(start, int):
            raise DataError(f"{where}: 'answer_start' is {start!r}; it must be a character's number.")
        if not text or start < 0 or passage[start : start + len(text)] != text:
            raise DataError(f"{where}: the answer {text!r:.60} does not stand at character {start} of its passage.")
        answers.append((start, text))
    return tuple(answers)


def _list(mapping, name, where):
    value = mapping.get(name) if isinstance(mapping, dict) else None
    if not isinstance(value, list):
        raise DataError(f"{where}: there is no list {name!r}; give a file in the format of SQuAD.")
    return value


def _filled(mapping, name, where):
    value = _text(mapping, name, where)
    if not value.strip():
        raise DataError(f"{where}: {name!r} is empty; give it at least one word, or leave it out.")
    return value


def _text(mapping, name, where):
    value = mapping.get(name) if isinstance(mapping, dict) else None
    if not isinstance(value, str):
        raise DataError(f"{where}: {name!r} must be a text, not {type(value).__name__}.")
    try:
        check_text(value, f"{where}: {name!r}")
    except TextError as error:
        raise DataError(str(error)) from None
    return value


def split_by_passage(
    questions: Sequence[Question], share: float = 0.1, seed: int = 0
) -> tuple[list[Question], list[Question]]:
    """Splits questions at random into two lists that share no passage.

    Args:
        questions: list of `Question`.
        share: float. The approximate share of the passages in the second list: at least one, if there are several.
        seed: int. The seed of the random choice.

    Returns: two lists of `Question`.
    """
    import numpy as np

    passages = list(dict.fromkeys(question.passage for question in questions))
    order = np.random.default_rng(seed).permutation(len(passages))
    count = max(round(share * len(passages)), 1) if len(passages) > 1 else 0
    second = {passages[index] for index in order[:count]}
    return (
        [question for question in questions if question.passage not in second],
        [question for question in questions if question.passage in second],
    )
