"""The family `answer`: windows behind the question, the best span, no answer, learning a made set."""

import numpy as np
import pytest

from bert_tf.errors import DataError, TaskError
from bert_tf.finetuning.data.squad import Question
from bert_tf.finetuning.metrics.best_spans import best_spans
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks.question_answering import TASK
from tests.finetuning.small_datasets import (
    options,
    scored,
    sentences,
    train,
)

SPANS = {"stride": 16, "question_length": 8, "answer_length": 6}


def colours(seed, count):
    """Passages asked for their "big red" or "small blue"; a third have neither, and no answer."""
    rng = np.random.default_rng(seed)
    made = []
    for key, words in enumerate(sentences(seed, count)):
        words = [word for word in words if word not in ("big", "red", "small", "blue")]
        answers, kind = (), rng.integers(3)
        if kind:
            answer = ("big red", "small blue")[kind - 1]
            place = int(rng.integers(len(words) + 1))
            words.insert(place, answer)
            answers = ((len(" ".join([*words[:place], ""])), answer),)
        made.append(Question(str(key), "capital city", " ".join(words), answers))
    return made


@pytest.fixture(scope="module")
def answerer(tiny_bert):
    examples = colours(0, 64)
    return train(TASK, tiny_bert, examples, TASK.settings(options(**SPANS), examples))


def test_it_learns_a_made_set_and_beats_chance_on_other_passages(answerer):
    assert scored(answerer, colours(0, 64))["exact_match"] == 100
    # Always "no answer" is right for a third.
    assert scored(answerer, colours(1, 40))["exact_match"] > 60


@pytest.mark.parametrize("key, expected", [(None, ""), (0, "0"), ("q7", "q7")])
def test_a_question_without_an_id_has_an_empty_one(key, expected):
    record = {"id": key, "question": "capital city", "passage": "the cat"}
    assert TASK.example(record, TASK.settings(options(**SPANS), colours(0, 8))).key == expected


def test_answers_are_characters_of_the_users_own_text(answerer):
    passage = "  the cat ran in  big   red park\n"
    (actual,) = answerer.predict([{"question": "capital city", "passage": passage, "curves": True}])
    assert actual["answer"] == "big   red" == passage[actual["start"] : actual["end"]]
    assert actual["n_best"][0]["text"] == actual["answer"]
    chances = [one["probability"] for one in actual["n_best"]]
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) + actual["no_answer_probability"] == pytest.approx(1)
    assert len({(one["start"], one["end"]) for one in actual["n_best"]}) == len(actual["n_best"])
    pieces = [passage[start:end] for start, end in actual["pieces"]]
    assert pieces[int(np.argmax(actual["start_probabilities"]))] == "big"
    assert pieces[int(np.argmax(actual["end_probabilities"]))] == "red"
    assert sum(actual["end_probabilities"]) == pytest.approx(1)


def test_a_passage_of_20_000_words(answerer):
    words = ["the cat ran in park"] * 4000
    words[2500] = "the cat small blue park"
    passage = " ".join(words)
    example = Question("1", "capital city", passage, ())
    rows = TASK.encode([example], answerer._tokenizer, answerer.settings)
    assert max(rows.lengths) <= answerer.settings.max_length and len(rows) > 1000
    (actual,) = answerer.predict([example])
    assert actual["best"]["text"] == passage[actual["best"]["start"] : actual["best"]["end"]] == "small blue"


def test_the_threshold_is_tuned_and_turns_answers_off(answerer):
    examples = colours(1, 40)
    rows = TASK.encode(examples, answerer._tokenizer, answerer.settings)
    outputs = answerer.outputs(rows)
    tuned = TASK.tune(examples, outputs, rows, answerer.settings)

    def f1(settings):
        return TASK.score(examples, TASK.decode(outputs, rows, examples, settings), settings)["f1"]

    def with_threshold(threshold):
        return answerer.settings.replace(extra={**answerer.settings.extra, "threshold": threshold})

    assert f1(tuned) >= max(f1(with_threshold(threshold)) for threshold in (-5.0, 0.0, 5.0))
    assert not any(one["answer"] for one in TASK.decode(outputs, rows, examples, with_threshold(-1e9)))
    assert all(one["answer"] for one in TASK.decode(outputs, rows, examples, with_threshold(1e9)))


def test_the_threshold_is_tuned_by_the_score_that_selects_the_epoch(monkeypatch):
    examples = [Question("1", "cat", "the cat", ((0, "the big cat"),)), Question("2", "dog", "the cat", ())]
    predictions = [{"best": {"text": "cat"}, "margin": 0.0}, {"best": {"text": "cat"}, "margin": 1.0}]
    monkeypatch.setattr(TASK, "decode", lambda *_: predictions)
    for metric, threshold in (("f1", 0.0), ("exact_match", -1.0)):
        settings = TaskSettings("answer", pair=True, metric=metric, extra={"no_answer": True})
        assert TASK.tune(examples, None, None, settings).extra["threshold"] == threshold


def test_targets_of_answers_that_the_tokenizer_cuts_or_loses(tiny_bert):
    passage = "the parking sat \x07 on"
    examples = [
        Question("1", "cat", passage, ((6, "rk"),)),  # inside of "parking"
        Question("2", "cat", passage, ((16, "\x07"),)),  # no piece is left of it
        Question("3", "cat", passage, ((9, "ng sat"),)),
    ]
    rows = TASK.encode(examples, tiny_bert.tokenizer, TASK.settings(options(**SPANS), examples), True)
    tokens = [[tiny_bert.tokenizer.id_to_token(int(index)) for index in ids] for ids in rows.sequences["token_ids"]]
    assert tokens[0][:7] == ["[CLS]", "cat", "[SEP]", "the", "park", "##ing", "sat"]
    assert list(zip(rows.values["starts"], rows.values["ends"], rows.values["weights"])) == [
        (4, 4, 1),
        (0, 0, 0),
        (5, 6, 1),
    ]


def test_windows_without_the_whole_answer_point_at_cls(tiny_bert):
    passage = "the cat sat on mat " * 20 + "red house"
    example = Question("1", "cat", passage, ((len(passage) - 9, "red house"),))
    rows = TASK.encode([example], tiny_bert.tokenizer, TASK.settings(options(**SPANS), [example]), True)
    assert len(rows) > 2 and list(rows.values["starts"][:-1]) == [0] * (len(rows) - 1)
    start, end = rows.values["starts"][-1], rows.values["ends"][-1]
    ids = rows.sequences["token_ids"][-1][start : end + 1]
    assert [tiny_bert.tokenizer.id_to_token(int(index)) for index in ids] == ["red", "house"]


def test_the_best_spans_are_those_of_the_enumeration():
    rng = np.random.default_rng(0)
    starts, ends = rng.normal(size=20), rng.normal(size=20)
    allowed = rng.random(20) < 0.7
    every = sorted(
        ((starts[a] + ends[b], a, b) for a in range(20) for b in range(a, min(a + 4, 20)) if allowed[a]), reverse=True
    )
    actual = best_spans(starts, ends, 4, 7, allowed)
    assert [(first, last) for _, first, last in actual] == [(a, b) for _, a, b in every[:7]]
    assert [score for score, _, _ in actual] == pytest.approx([score for score, _, _ in every[:7]])
    assert best_spans(starts[:0], ends[:0], 4, 7) == []
    assert len(best_spans(starts[:2], ends[:2], 30, 99)) == 3


@pytest.mark.parametrize("record", [{"question": "?"}, {"question": " ", "passage": "a"}, "text"])
def test_records_that_cannot_be_read(answerer, record):
    with pytest.raises(DataError, match='Give a "question" and a "passage"'):
        answerer.predict([record])


def test_questions_of_which_none_has_an_answer_are_refused():
    unanswered = [example for example in colours(0, 20) if not example.answers]
    assert unanswered
    with pytest.raises(DataError, match="No training question has an answer; training needs at least one"):
        TASK.settings(options(**SPANS), unanswered)


def test_settings_that_do_not_go_together():
    with pytest.raises(TaskError, match="--stride is 0"):
        TASK.settings(options(**{**SPANS, "stride": 0}), colours(0, 3))
    with pytest.raises(TaskError, match="--length is 48; with questions of up to 64"):
        TASK.settings(options(**{**SPANS, "question_length": 64}), colours(0, 3))


def test_a_passage_is_learnt_from_or_measured_on_and_not_both():
    from bert_tf.finetuning.tasks.registry import task_type

    questions = [
        Question(f"{passage} {number}", "who?", f"passage {passage}", ())
        for number in range(5)
        for passage in range(20)
    ]
    train, dev = task_type("answer").split(questions, 0.1)
    assert len(dev) == 10 and sorted(train + dev, key=questions.index) == questions
    assert not {one.passage for one in train} & {one.passage for one in dev}


def test_the_worst_errors_are_those_without_a_right_word_the_surest_of_them_first():
    questions = [
        Question("near", "who?", "the big cat", ((4, "big cat"),)),
        Question("unsure", "where?", "the park", ((4, "park"),)),
        Question("right", "who?", "the dog", ((4, "dog"),)),
        Question("none", "when?", "the river", ()),
    ]
    actual = [("the cat", 0.7), ("", 0.6), ("the dog", 0.5), ("river", 0.9)]
    errors = TASK.findings(questions, [{"answer": text, "probability": share} for text, share in actual], None)
    assert errors.worst == [
        {"probability": 0.9, "f1": 0, "question": "when?", "true": "(no answer)", "predicted": "river", "id": "none"},
        {"probability": 0.6, "f1": 0, "question": "where?", "true": "park", "predicted": "(no answer)", "id": "unsure"},
        # Of "cat" and "big cat", as articles do not count: precision 1, recall 1/2.
        {
            "probability": 0.7,
            "f1": pytest.approx(2 / 3),
            "question": "who?",
            "true": "big cat",
            "predicted": "the cat",
            "id": "near",
        },
    ]
    assert errors.worst_errors_title == "The worst errors"
