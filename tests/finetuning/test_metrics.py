"""Which scores the best epoch may be chosen by, and which way they point."""

import math

import pytest

from bert_tf.errors import TaskError
from bert_tf.finetuning.data.labelled_sentences import LabelledSentence
from bert_tf.finetuning.data.multiple_choice_examples import MultipleChoiceExample
from bert_tf.finetuning.data.sentence_examples import SentenceExample
from bert_tf.finetuning.data.squad import Question
from bert_tf.finetuning.task_settings import TaskSettings, score_text, selection_score
from bert_tf.finetuning.tasks.registry import task_type

ANSWERED, UNANSWERED = Question("1", "who", "a cat", ((0, "a"),)), Question("2", "who", "a cat", ())


@pytest.mark.parametrize(
    "settings, examples, predictions",
    [
        (TaskSettings("classify", ("a", "b")), [SentenceExample("x", target="a")], [{"label": "b"}]),
        (TaskSettings("classify", ("a", "b", "c")), [SentenceExample("x", target="a")], [{"label": "b"}]),
        (
            TaskSettings("classify", ("a", "b"), multi_label=True),
            [SentenceExample("x", target=("a",))],
            [{"labels": ["b"]}],
        ),
        (TaskSettings("classify", regression=True), [SentenceExample("x", target=1.0)], [{"value": 2.0}]),
        (TaskSettings("tag", ("O", "B-A")), [LabelledSentence(("x",), ("O",))], [{"labels": ["B-A"]}]),
        (TaskSettings("tag", ("NOUN", "VERB")), [LabelledSentence(("x",), ("NOUN",))], [{"labels": ["VERB"]}]),
        (TaskSettings("answer"), [ANSWERED], [{"answer": "a"}]),
        (TaskSettings("answer"), [ANSWERED, UNANSWERED], [{"answer": "a"}, {"answer": ""}]),
        (TaskSettings("answer"), [UNANSWERED], [{"answer": ""}]),
        (TaskSettings("choose"), [MultipleChoiceExample("x", ("a", "b"), 1)], [{"choice": 1}]),
    ],
)
def test_every_score_but_the_counts_may_be_chosen_by(settings, examples, predictions):
    task = task_type(settings.task)
    scores = task.score(examples, predictions, settings)
    counts = {"words", "sentences", "questions", "answerable", "unanswerable"}
    assert set(task.metrics(settings, examples)) == set(scores) - counts
    task.check_metric(settings.replace(metric=next(iter(set(scores) - counts))), examples)
    for wrong in (counts & set(scores)) | {"acuracy"}:
        with pytest.raises(TaskError, match=f"--metric is '{wrong}'; these examples are measured by "):
            task.check_metric(settings.replace(metric=wrong), examples)


def test_an_error_is_better_when_it_is_lower():
    assert selection_score({"mean_squared_error": 1.0}, "mean_squared_error") > selection_score(
        {"mean_squared_error": 2.0}, "mean_squared_error"
    )
    assert (
        selection_score({"f1": 0.6}, "f1") > selection_score({"f1": 0.5}, "f1") > selection_score({}, "f1") == -math.inf
    )


def test_a_count_is_printed_as_one():
    assert [score_text(value) for value in (0.5, 1.0, 12, 1200, math.nan)] == ["0.5000", "1.0000", "12", "1,200", "nan"]
