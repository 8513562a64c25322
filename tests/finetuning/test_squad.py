"""SQuAD's files and its scores: worked examples of the official definitions, and another implementation."""

import json
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from bert_tf.errors import DataError
from bert_tf.finetuning.data.squad import read_squad, split_by_passage
from bert_tf.finetuning.metrics.squad_metric import (
    best_threshold,
    exact_match,
    f1,
    normalise,
    question_scores,
    squad_scores,
)
from bert_tf.finetuning.tasks.question_answering import TASK

GOLDEN = Path(__file__).parents[1] / "golden" / "squad_scores.json"


@pytest.mark.parametrize(
    "text, left",
    [
        ("The Broncos", "broncos"),
        ("a  \u201cthe\u201d An!", "\u201c \u201d"),  # only ASCII punctuation goes, so quotes of other forms stay
        ("theatre of an era, the", "theatre of era"),
        ("U.S.A.", "usa"),
        ("1,000", "1000"),
        ("a-an", "aan"),  # punctuation goes before articles are looked for
        ("The", ""),
    ],
)
def test_normalisation(text, left):
    assert normalise(text) == left


def test_worked_examples():
    assert exact_match("the Denver Broncos.", "Denver Broncos") == 1
    assert exact_match("Broncos", "Denver Broncos") == 0
    # found 2 words of which 1 is right, out of 3: precision 1/2, recall 1/3.
    expected = 2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3)
    assert f1("Denver team", "the Denver Broncos club") == pytest.approx(expected)
    # A word counts as often as both have it.
    assert f1("new new york", "new york york") == pytest.approx(2 / 3)
    assert f1("lion", "tiger") == 0
    assert question_scores("gold", ["a gold", "golden statue"]) == (1, 1)
    assert question_scores("gold statue", ["a gold", "golden statue"]) == (0, pytest.approx(2 / 3))


def test_an_answer_of_articles_alone_counts_as_each_script_has_it():
    answers, output = {"a": ["the"], "b": ["red"]}, {"a": "the", "b": "red"}
    assert squad_scores(output, answers) == {"exact_match": 100.0, "f1": 50.0, "questions": 2}  # 1.1
    actual = squad_scores({**output, "c": ""}, {**answers, "c": []})  # 2.0: "a" has no answer left
    assert (actual["exact_match"], actual["f1"]) == pytest.approx((100.0, 100.0))
    assert squad_scores({"a": "x", "b": "red", "c": ""}, {**answers, "c": []})["f1"] == pytest.approx(200 / 3)


def test_no_answer():
    assert question_scores("", []) == (1, 1)
    assert question_scores("the", []) == (1, 1)  # nothing of it is left either
    assert question_scores("Paris", []) == (0, 0)
    assert question_scores("", ["Paris"]) == (0, 0)
    assert question_scores("", ["the"]) == (1, 1)  # an answer that nothing is left of does not count
    actual = squad_scores({"a": "Paris", "b": "", "c": "Rome"}, {"a": ["Paris"], "b": [], "c": []})
    assert actual["exact_match"] == actual["f1"] == pytest.approx(200 / 3)
    assert actual["answerable_f1"] == 100 and actual["unanswerable_accuracy"] == 50
    # The script of 2.0 gives no score over no questions either.
    alone = {
        "exact_match": 50,
        "f1": 50,
        "questions": 2,
        "unanswerable_accuracy": 50,
        "answerable": 0,
        "unanswerable": 2,
    }
    assert squad_scores({"b": "", "c": "Rome"}, {"b": [], "c": []}) == alone


def test_a_question_without_a_prediction_scores_nothing():
    assert squad_scores({}, {"a": ["Paris"]})["f1"] == 0
    assert squad_scores({"a": "Paris"}, {"a": ["Paris"], "b": ["Rome"]})["exact_match"] == 50


def test_scores_equal_those_of_torchmetrics():
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    predictions, answers = golden["predictions"], golden["answers"]
    for key, theirs in golden["single"].items():
        ours = squad_scores({key: predictions[key]}, {key: answers[key]})
        assert {name: ours[name] for name in theirs} == pytest.approx(theirs, abs=1e-4)
    ours = squad_scores(predictions, answers)
    assert {name: ours[name] for name in golden["all"]} == pytest.approx(golden["all"], abs=1e-4)
    assert 0 < ours["exact_match"] < ours["f1"] < 100


def test_the_threshold_scores_best_of_all():
    rng = np.random.default_rng(1)
    answers = {key: ["x y"] if rng.random() < 0.5 else [] for key in range(60)}
    predictions = {key: rng.choice(["x y", "x", "z"]) for key in answers}
    margins = {key: float(rng.normal(-1 if answers[key] else 1, 2)) for key in answers}

    def scored(threshold):
        return squad_scores(
            {key: text if margins[key] <= threshold else "" for key, text in predictions.items()}, answers
        )["f1"]

    threshold, percent = best_threshold(predictions, margins, answers)
    assert percent == pytest.approx(scored(threshold))
    assert percent == pytest.approx(max(scored(other) for other in [*margins.values(), -100, 100]))


def test_a_threshold_that_answers_nothing_and_one_that_answers_all():
    threshold, percent = best_threshold({1: "x", 2: "x"}, {1: 0.5, 2: 0.7}, {1: [], 2: []})
    assert threshold < 0.5 and percent == 100
    threshold, percent = best_threshold({1: "x", 2: "x"}, {1: 0.5, 2: 0.7}, {1: ["x"], 2: ["x"]})
    assert threshold == 0.7 and percent == 100


def squad_file(path, *paragraphs, bom=False):
    """Writes a SQuAD file of (passage, questions) pairs; a question is a dict as in the format."""
    entries = [{"context": passage, "qas": list(questions)} for passage, questions in paragraphs]
    content = {"version": "v2.0", "data": [{"title": "T", "paragraphs": entries}]}
    path.write_text(json.dumps(content), encoding="utf-8-sig" if bom else "utf-8")
    return path


def question(key, text="?", *answers, **more):
    """A question in the format; answers are (text, first character)."""
    accepted = [{"text": answer, "answer_start": start} for answer, start in answers]
    return {"id": key, "question": text, "answers": accepted, **more}


def test_reading_both_versions(tmp_path):
    path = squad_file(
        tmp_path / "a.json",
        (
            "Paris is big.",
            [
                question("1", "What?", ("Paris", 0), ("big", 9)),
                question("2", "Why?", is_impossible=True, plausible_answers=[{"text": "big", "answer_start": 9}]),
            ],
        ),
        bom=True,
    )
    first, second = read_squad(path)
    assert first.answers == ((0, "Paris"), (9, "big")) and first.passage == "Paris is big."
    assert second.answers == () and second.key == "2"


def test_questions_to_be_answered_need_no_answers(tmp_path):
    questions = [
        {"id": "1", "question": "What?"},
        question("2", "Why?", ("London", 0), is_impossible=True),
        question("3", "Who?", is_impossible="?"),
    ]
    path = squad_file(tmp_path / "a.json", ("Paris is big.", questions))
    actual = read_squad(path, labelled=False)
    assert [one.key for one in actual] == ["1", "2", "3"] and not any(one.answers for one in actual)
    assert list(TASK.read(path, Namespace(), labelled=False)) == actual
    with pytest.raises(DataError, match="question 1: there is no list 'answers'"):
        list(TASK.read(path, Namespace()))


@pytest.mark.parametrize(
    "questions, message",
    [
        ([question("7", "?", ("London", 0))], r"question 7: the answer 'London' does not stand at character 0"),
        ([question("7", "?", ("Paris", -5))], "does not stand at character -5"),
        ([question("7", "?", ("Paris", "0"))], "'answer_start' is '0'"),
        ([question("7"), question("7")], "paragraph 1: the id '7' is already in"),
        ([{"id": "7", "answers": []}], "'question' must be a text"),
        ([question("7", "Why \ud800?")], "question 7: 'question' is broken at character 4: U.D800 is half a surrogate"),
        ([], "holds no question"),
    ],
)
def test_bad_questions_are_named(tmp_path, questions, message):
    with pytest.raises(DataError, match=message):
        read_squad(squad_file(tmp_path / "a.json", ("Paris is big.", questions)))


def test_files_of_another_form_are_named(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(DataError, match="a.json is not JSON"):
        read_squad(tmp_path / "a.json")
    (tmp_path / "a.json").write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(DataError, match="a.json is not JSON"):
        read_squad(tmp_path / "a.json")
    (tmp_path / "a.json").write_text('[{"question": "?"}]')
    with pytest.raises(DataError, match="there is no list 'data'"):
        read_squad(tmp_path / "a.json")


def test_no_passage_is_on_both_sides_of_a_split(tmp_path):
    questions = read_squad(
        squad_file(
            tmp_path / "a.json",
            *((f"Passage {number}.", [question(f"{number}-{place}") for place in range(3)]) for number in range(20)),
        )
    )
    train, dev = split_by_passage(questions, 0.1)
    assert len(train) == 54 and len(dev) == 6
    assert not {one.passage for one in train} & {one.passage for one in dev}
    assert [len(part) for part in split_by_passage(questions[:6], 0.2)] == [3, 3]  # two passages
    assert [len(part) for part in split_by_passage(questions[:3], 0.2)] == [3, 0]  # one


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"question": " "}, "'question' is empty"),
        ({"is_impossible": False, "answers": []}, "'is_impossible' is false, and .* 0 answers"),
        ({"is_impossible": True}, "'is_impossible' is true, and .* 1 answers"),
        ({"is_impossible": "false"}, "'is_impossible' is 'false'; it must be true or false"),
    ],
)
def test_questions_that_contradict_themselves_are_refused(changes, says, tmp_path):
    entry = {"id": "q", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}], **changes}
    path = tmp_path / "squad.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": "Ada wrote it.", "qas": [entry]}]}]}))
    with pytest.raises(DataError, match=says):
        read_squad(path)
