"""Many rows asked at once: every number is that of asking for the row alone."""

import numpy as np
import pytest

from bert_tf.errors import Cancelled, InputError
from bert_tf.explain import (
    agreement,
    concept_test,
    predict_dataset,
    pseudo_likelihood,
    score_rows,
    summarise_classes,
    summarise_rows,
    supported_predictions,
)
from bert_tf.explain.datasets.row_predictions import RowResult
from bert_tf.explain.datasets.text_rows import TextRow, file_kind, read_rows
from bert_tf.finetuning.data.sentence_examples import ColumnLayout, read_sentences
from bert_tf.inference.words import Word
from tests.explain.test_class_target import made

ROWS = (
    TextRow(1, "the cats sat"),
    TextRow(2, "the [MASK] ran", "it sat"),
    TextRow(3, "the dog ran", None, ("dog",)),
    TextRow(4, "the dog", None, ("horse",)),
    *(TextRow(number, "the dog ran and sat") for number in range(5, 14)),
)


def test_every_row_is_answered_as_if_asked_alone(tiny_bert):
    actual = score_rows(tiny_bert, ROWS, hide="last", top_k=3)
    assert [one.row for one in actual] == list(ROWS)
    for one in actual[:3]:
        mask = {1: Word("a", 2), 2: (), 3: "dog"}[one.row.number]
        alone = tiny_bert.predict(one.row.text_a, one.row.text_b, mask, 3)
        assert [m.position for m in one.masks] == [m.position for m in alone.masks]
        for mine, its in zip(one.masks, alone.masks):
            assert [p.id for p in mine.predictions] == [p.id for p in its.predictions]
            assert mine.original == its.original
            assert mine.predictions[0].probability == pytest.approx(its.predictions[0].probability, abs=1e-5)
        scored = pseudo_likelihood(tiny_bert, one.row.text_a, one.row.text_b)
        assert one.perplexity == pytest.approx(scored.perplexity, rel=1e-4)
    assert actual[1].is_next == pytest.approx(tiny_bert.trace(*_texts(ROWS[1])).nsp.is_next, abs=1e-5)
    assert actual[0].is_next is None and actual[1].places == ()
    assert actual[2].places == (("a", 1, -1),)


def _texts(row):
    return row.text_a, row.text_b


def test_a_row_that_cannot_be_read_says_why_and_the_others_are_answered(tiny_bert):
    actual = score_rows(tiny_bert, ROWS, ("masks",))
    assert "horse" in actual[3].problem and not actual[3].masks
    assert all(one.masks and one.problem is None for one in actual[4:])
    assert all(one.perplexity is None and one.is_next is None for one in actual)


def test_progress_counts_rows_and_stops_the_work(tiny_bert):
    seen = []
    score_rows(tiny_bert, ROWS, ("masks",), progress=lambda *step: seen.append(step))
    assert seen == [(8, 13), (13, 13)]
    with pytest.raises(Cancelled):
        score_rows(tiny_bert, ROWS, ("perplexity",), progress=lambda done, total: False)


def test_what_a_model_has_no_head_for_is_not_asked(headless_bert):
    actual = score_rows(headless_bert, ROWS[:1])
    assert actual[0].masks == () and actual[0].perplexity is None and actual[0].problem is None


def test_unknown_questions_are_refused(tiny_bert):
    with pytest.raises(InputError, match="weather"):
        score_rows(tiny_bert, ROWS, ("weather",))


def test_the_summary_adds_up(tiny_bert):
    actual = score_rows(tiny_bert, ROWS, hide="last", top_k=4)
    known = [m for one in actual for m in one.masks if m.original is not None]
    summary = summarise_rows(actual)
    assert (summary.rows, summary.masks, summary.next) == (13, len(known), 1)
    assert summary.first == np.mean([m.original == m.predictions[0].token for m in known])
    assert summary.among == np.mean([m.original in [p.token for p in m.predictions] for m in known])
    readable = [one.row for one in actual if one.problem is None]
    scored = [pseudo_likelihood(tiny_bert, *_texts(row)).log_probabilities for row in readable]
    every = np.concatenate(scored)
    assert summary.perplexity == pytest.approx(np.exp(-np.nanmean(every)), rel=1e-3)
    empty = summarise_rows([RowResult(ROWS[0])])
    assert (empty.first, empty.follows, empty.perplexity) == (None, None, None)


FILMS = (
    TextRow(1, "it was a good film", label="good"),
    TextRow(2, "a bad film", label="so"),
    TextRow(3, "it was bad", "it was good", label="bad"),
    TextRow(4, "good good film", label="unheard"),
    TextRow(5, "a film"),
    *(TextRow(number, "it was a film " * number, label=("good", "bad", "so")[number % 3]) for number in range(6, 14)),
)


def test_every_row_has_the_class_that_the_task_gives_it_alone():
    bert = made(pooling="mean")
    assert supported_predictions(bert) == ("masks", "next", "classes", "perplexity")
    actual = score_rows(bert, FILMS, ("classes",))
    for one in actual:
        (alone,) = bert.task.predict([one.row.text_a])  # of a pair the first text, for it judges single texts
        assert one.predicted == alone["label"] and not one.masks and one.problem is None
        assert one.predicted_probability == pytest.approx(alone["probability"], abs=1e-5)
        known = one.row.label in ("good", "bad", "so")
        assert one.is_correct is (one.row.label == alone["label"] if known else None)
    assert len({one.predicted for one in actual}) > 1


def test_classes_are_compared_as_by_hand():
    bert = made(pooling="mean")
    actual = score_rows(bert, FILMS, ("classes",))
    summary = summarise_classes(bert, actual)
    pairs = [(one.row.label, one.predicted) for one in actual if one.row.label in ("good", "bad", "so")]
    assert (summary.rows, summary.unknown) == (11, {"unheard": 1})
    labels, counts = summary.confusion
    assert labels == ["bad", "good", "so"]
    assert counts == [[pairs.count((true, prediction)) for prediction in labels] for true in labels]
    counts = np.array(counts)
    assert summary.scores["accuracy"] == pytest.approx(np.trace(counts) / 11)
    f1 = 2 * np.diag(counts) / np.maximum(counts.sum(axis=0) + counts.sum(axis=1), 1)
    assert summary.scores["f1_macro"] == pytest.approx(f1.mean())
    without = summarise_classes(bert, score_rows(bert, [TextRow(1, "a film")], ("classes",)))
    assert (without.rows, without.scores, without.confusion) == (0, {}, None)


def test_several_classes_numbers_and_pairs_are_read_as_their_tasks_do():
    bert = made(pooling="mean", multi_label=True)
    rows = [TextRow(1, "it was good", label="so| good"), TextRow(2, "a bad film", label="bad|unheard")]
    actual = score_rows(bert, rows, ("classes",))
    (alone,) = bert.task.predict(["it was good"])
    assert actual[0].predicted == "|".join(alone["labels"]) and actual[0].predicted_probability is None
    assert actual[0].is_correct is (set(alone["labels"]) == {"so", "good"}) and actual[1].is_correct is None
    summary = summarise_classes(bert, actual)
    assert (summary.rows, summary.unknown) == (1, {"bad|unheard": 1}) and summary.confusion is None
    assert summary.scores["all_labels_right"] == float(actual[0].is_correct)

    bert = made(pooling="mean", labels=(), regression=True)
    rows = [TextRow(number, "good " * number, label=str(number / 2)) for number in range(1, 5)] + [
        TextRow(5, "a", label="x")
    ]
    actual = score_rows(bert, rows, ("classes",))
    values = [one["value"] for one in bert.task.predict([row.text_a for row in rows])]
    assert [one.predicted for one in actual] == pytest.approx(values, abs=1e-5)
    summary = summarise_classes(bert, actual)
    assert summary.scores["pearson"] == pytest.approx(np.corrcoef(values[:4], [0.5, 1, 1.5, 2])[0, 1], abs=1e-5)
    assert summary.unknown == {"x": 1} and actual[0].is_correct is None

    bert = made(pair=True)
    actual = score_rows(bert, [TextRow(1, "a film", "it was good"), TextRow(2, "a film")], ("classes",))
    (alone,) = bert.task.predict([("a film", "it was good")])
    assert (
        actual[0].predicted == alone["label"]
        and actual[1].task_prediction is None
        and "classifies pairs" in actual[1].problem
    )


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "films.jsonl",
            ['"a good film", "label": ["good"]', '"a bad film", "label": []', '"it was bad", "label": "so|bad"']
            + ['"it was", "label": null', '"good", "label": ""'],
        ),
        ("films.csv", ["text,label", "a good film,good", "a bad film,", "it was bad,so|bad", "it was,", "good, "]),
    ],
)
def test_several_classes_are_scored_as_evaluate_scores_the_same_file(name, lines, tmp_path):
    bert = made(pooling="mean", multi_label=True)
    path = tmp_path / name
    is_json = name.endswith("jsonl")
    path.write_text("\n".join(f'{{"text": {line}}}' if is_json else line for line in lines))
    examples = list(read_sentences(path, ColumnLayout(multi_label=True)))
    assert [example.target for example in examples] == [("good",), (), ("so", "bad"), (), ()]
    actual = score_rows(bert, read_rows(path.read_bytes(), file_kind(name)).rows, ("classes",))
    summary = summarise_classes(bert, actual)
    predictions = bert.task.predict([example.text_a for example in examples])
    assert summary.rows == 5 and summary.scores == bert.task.task_type.score(examples, predictions, bert.task.settings)
    assert [one.is_correct for one in actual] == [
        set(prediction["labels"]) == set(example.target) for prediction, example in zip(predictions, examples)
    ]


def test_an_empty_label_is_no_label_where_a_row_has_one_class():
    bert = made(pooling="mean")
    rows = [TextRow(1, "a good film", label="good"), TextRow(2, "a bad film", label="")]
    actual = score_rows(bert, rows, ("classes",))
    summary = summarise_classes(bert, actual)
    assert (summary.rows, summary.unknown) == (1, {}) and actual[1].is_correct is None and actual[1].label is None


def test_a_row_without_classes_has_its_perplexity():
    bert = made(pair=True)
    (actual,) = score_rows(bert, [TextRow(1, "a film")], ("classes", "perplexity"))
    assert actual.task_prediction is None and "classifies pairs" in actual.problem
    assert actual.perplexity == pytest.approx(pseudo_likelihood(bert, "a film").perplexity, rel=1e-4)


def test_classes_are_asked_though_the_word_to_hide_is_not_there():
    actual = score_rows(made(), [TextRow(1, "a film", None, ("good",))], ("masks", "classes"))
    assert "good" in actual[0].problem and actual[0].predicted


def test_a_model_without_classes_has_none(tiny_bert):
    assert "classes" not in supported_predictions(tiny_bert)
    assert score_rows(tiny_bert, ROWS[:1], ("classes",))[0].task_prediction is None
    with pytest.raises(InputError, match="not fine-tuned to classify"):
        summarise_classes(tiny_bert, ())


def test_an_unknown_way_to_hide_words_or_one_prediction_that_is_no_list(tiny_bert):
    for function in (score_rows, predict_dataset):
        for hide in ("first", None):
            with pytest.raises(InputError, match="words to hide are one of given, random, last, not"):
                function(tiny_bert, ROWS, hide=hide)
        with pytest.raises(InputError, match=r"Give a list of predictions, such as \['masks'\], not one alone"):
            function(tiny_bert, ROWS, ask="masks")
    with pytest.raises(InputError, match="words to hide are one of"):
        agreement(tiny_bert, tiny_bert, ROWS, hide="first")
    with pytest.raises(InputError, match="words to hide are one of"):
        concept_test(tiny_bert, ROWS, ["a"], ["b"], "word", "dog", hide="first")
    with pytest.raises(InputError, match="show is one of answers, map, curve, not 'plane'"):
        predict_dataset(tiny_bert, ROWS, show="plane")
