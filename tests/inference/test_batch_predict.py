"""Batches: the same answers as one at a time, in order, whatever is wrong with a row in between."""

import itertools

import numpy as np
import pytest

from bert_tf.errors import EmptyText, InputError, NothingToPredict
from bert_tf.inference import batch_predict
from bert_tf.inference.batch_predict import predict_many, predict_together
from bert_tf.runtime import read_ahead

ROWS = [
    ("the cat sat on the [MASK]", None, ()),
    ("the cat", "it ran", ()),
    ("she plays", "in parks", ["plays", "parks"]),
    ("the [MASK]", None, None),
    ("the cat " * 30 + "[MASK]", "it ran", [1]),
]


def _same(one, other):
    assert one.tokens == other.tokens and one.truncated == other.truncated
    assert one.nsp == pytest.approx(other.nsp, abs=1e-5) if one.nsp else other.nsp is None
    for mine, theirs in itertools.zip_longest(one.masks, other.masks):
        assert (mine.position, mine.original) == (theirs.position, theirs.original)
        for p, q in zip(mine.predictions, theirs.predictions):
            assert p.token == q.token and p.probability == pytest.approx(q.probability, abs=1e-5)


@pytest.mark.parametrize("batch_size", [1, 3, 32])
def test_batched_answers_equal_single_ones_in_order(tiny_bert, batch_size):
    rows = ROWS * 3
    answers = list(tiny_bert.predict_many(rows, batch_size=batch_size, top_k=3))
    assert len(answers) == len(rows)
    for row, answer in zip(rows, answers):
        _same(answer, tiny_bert.predict(*row[:2], mask=row[2], top_k=3))


def test_a_bad_row_is_answered_in_its_place(tiny_bert):
    rows = [ROWS[0], ("", None, ()), ROWS[1], ("the cat", None, ()), ValueError("line 5"), ROWS[2]]
    answers = list(tiny_bert.predict_many(rows, batch_size=2, errors="return"))
    assert [type(answer).__name__ for answer in answers] == [
        "Answer",
        "EmptyText",
        "Answer",
        "NothingToPredict",
        "ValueError",
        "Answer",
    ]
    with pytest.raises(EmptyText):
        list(tiny_bert.predict_many(rows))


def test_a_row_of_another_form_or_with_another_error_is_answered_in_its_place(tiny_bert):
    bad = [None, b"the [MASK]", {"text_a": "the [MASK]"}, (), (*ROWS[0], "word"), OSError("line 5 of a pipe"), ("a", 3)]
    answers = list(tiny_bert.predict_many([*bad, ROWS[0][:1], ROWS[0][0]], errors="return"))
    for answer in answers[-2:]:
        _same(answer, tiny_bert.predict(ROWS[0][0]))
    assert [type(answer) for answer in answers[:-2]] == [*[InputError] * 5, OSError, InputError]
    assert "not 4 values" in str(answers[4]) and "not NoneType (None)" in str(answers[0])
    for row in bad:
        with pytest.raises(type(answers[bad.index(row)])):
            list(tiny_bert.predict_many([row]))
    with pytest.raises(InputError, match="Give a list of rows"):
        tiny_bert.predict_many(ROWS[0][0])


def test_an_error_of_the_run_is_not_that_of_a_row(tiny_bert, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(batch_predict, "prepare_input", fail)
    with pytest.raises(MemoryError):
        list(tiny_bert.predict_many(ROWS, errors="return"))


def test_rows_are_read_only_a_window_ahead(tiny_bert, monkeypatch):
    monkeypatch.setattr(read_ahead, "BATCHES_PER_WINDOW", 2)
    taken = itertools.count()
    endless = (ROWS[next(taken) % 2] for _ in itertools.repeat(None))
    answers = predict_many(tiny_bert, endless, batch_size=3)
    for _ in range(7):
        next(answers)
    assert next(taken) == 12
    answers = predict_many(tiny_bert, endless, batch_size=1)
    next(answers)
    assert next(taken) == 14, "one, and the one that was taken to count"


def test_many_masks_in_one_row_make_smaller_batches(tiny_bert, monkeypatch):
    monkeypatch.setattr(batch_predict, "MASKS_PER_BATCH", 8)
    rows = [("the cat " * 3, None, [1, 2, 3, 4, 5, 6]), ("the cat", None, [1]), ("the cat", None, [2])]
    for row, answer in zip(rows, tiny_bert.predict_many(rows)):
        _same(answer, tiny_bert.predict(row[0], mask=row[2]))


def test_bad_settings_are_refused_at_once(tiny_bert):
    for options in ({"batch_size": 0}, {"top_k": 0}, {"errors": "ignore"}, {"batch_size": 2.0}):
        with pytest.raises(InputError, match=repr(next(iter(options.values())))):
            tiny_bert.predict_many(ROWS, **options)
    assert len(list(tiny_bert.predict_many(ROWS, batch_size=np.int64(2)))) == len(ROWS)


def test_a_question_without_an_answer_is_an_error(tiny_bert):
    with pytest.raises(NothingToPredict):
        next(tiny_bert.predict_many([("the cat", None, ())]))


def test_texts_of_other_lengths_share_a_batch_only_if_padding_is_cheaper(tiny_bert, monkeypatch):
    shapes, run = [], tiny_bert.runtime.run

    def counted(inputs, outputs):
        shapes.append(inputs["token_ids"].shape)
        return run(inputs, outputs)

    monkeypatch.setattr(tiny_bert.runtime, "run", counted)
    words = (2, 12, 2, 12, 2, 13)  # with [CLS] and [SEP]
    rows = [(" ".join(["[MASK]"] + ["cat"] * (count - 1)), None, None) for count in words]
    answers = dict(predict_together(tiny_bert, rows))
    assert shapes == [(3, 4), (3, 15)]
    for index, row in enumerate(rows):
        _same(answers[index], tiny_bert.predict(row[0]))
