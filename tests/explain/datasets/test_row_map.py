"""Rows as vectors against each row read alone, and what is known of them against what was answered."""

import numpy as np
import pytest

import bert_tf
from bert_tf.errors import Cancelled, InputError
from bert_tf.explain import RowResult, nearest_rows, row_attributes, row_vectors, score_rows
from bert_tf.explain.datasets.row_map import available_row_attributes, constant_first_token, supported_poolings
from bert_tf.explain.datasets.text_rows import TextRow
from tests.conftest import make_bert
from tests.layers.test_causal import APART, LEFT, make_reader

ROWS = (
    TextRow(1, "the bank of the river"),
    TextRow(2, "money in the bank", "the cats sat on the mat"),
    TextRow(3, "\u200b"),
    *(TextRow(number, "she has a big carrot " * (number % 3 + 1)) for number in range(4, 14)),
)
READ = [place for place, row in enumerate(ROWS) if row.number != 3]


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_a_row_has_the_vector_it_has_alone(tiny_bert, pooling):
    actual = row_vectors(tiny_bert, ROWS, pooling)
    assert actual.places == tuple(READ) and actual.vectors.shape[:2] == (3, len(READ))
    for index, place in enumerate(READ):
        states = tiny_bert.trace(ROWS[place].text_a, ROWS[place].text_b).hidden_states
        wanted = states.mean(axis=1) if pooling == "mean" else states[:, 0]
        np.testing.assert_allclose(actual.vectors[:, index], wanted, atol=1e-5)


def test_rows_longer_than_the_model_reads_are_cut(tiny_bert):
    row = TextRow(1, "the cat sat " * 200)
    states = tiny_bert.trace(row.text_a).hidden_states
    assert states.shape[1] == tiny_bert.max_length
    np.testing.assert_allclose(row_vectors(tiny_bert, [row]).vectors[:, 0], states.mean(axis=1), atol=1e-5)


def test_rows_are_counted_as_they_are_read_and_can_be_stopped(tiny_bert):
    messages = []
    row_vectors(tiny_bert, ROWS, progress=lambda *now: messages.append(now))
    assert messages == [(8, 12), (12, 12)]
    with pytest.raises(Cancelled):
        row_vectors(tiny_bert, ROWS, progress=lambda done, total: False)
    with pytest.raises(InputError, match="is mean or first, not 'max'"):
        row_vectors(tiny_bert, ROWS, "max")
    with pytest.raises(InputError, match="None of these rows can be read"):
        row_vectors(tiny_bert, ROWS[2:3])


def test_first_tokens_that_are_the_same_in_every_row_are_told(tiny_bert):
    assert supported_poolings(tiny_bert.config) == supported_poolings(make_reader(APART).config) == ("mean", "first")
    first, mean = (row_vectors(tiny_bert, ROWS, pooling).vectors for pooling in ("first", "mean"))
    assert not np.ptp(first[0], axis=0).any() and np.ptp(first[1], axis=0).max() > 1e-3
    assert [constant_first_token(layer, "first") for layer in first] == [True, False, False]
    assert not any(constant_first_token(layer, "mean") for layer in mean) and not constant_first_token(
        first[0][:1], "first"
    )


def test_the_first_token_of_a_reader_from_left_to_right_is_no_vector_of_a_row():
    reader = make_reader(LEFT)
    states = [reader.trace(row.text_a).hidden_states[:, 0] for row in ROWS[:1] + ROWS[3:5]]
    np.testing.assert_allclose(states, [states[0]] * 3, atol=1e-5)
    assert supported_poolings(reader.config) == ("mean",) and row_vectors(reader, ROWS).places == tuple(READ)
    with pytest.raises(InputError, match="reads from left to right, so the first token is the same in every row"):
        row_vectors(reader, ROWS, "first")


@pytest.mark.parametrize("pair, read_b", [(False, False), (None, True)])
def test_rows_are_read_as_their_classifier_reads_them(tmp_path, pair, read_b):
    from bert_tf.finetuning.task_folder import save_task
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.registry import task_type

    made, settings = make_bert(seed=3), TaskSettings("classify", ("bad", "good"), pair=pair, max_length=8)
    save_task(
        tmp_path / "judge",
        made.config,
        made.tokenizer,
        network_over(made.model, task_type("classify"), settings),
        settings,
    )
    judge = bert_tf.load(tmp_path / "judge")
    rows = (TextRow(1, "the cat", "it ran"), TextRow(2, "the cat sat on the mat " * 4))
    actual, plain = row_vectors(judge, rows, ask=("masks", "classes")).vectors, row_vectors(judge, rows).vectors
    states = judge.trace("the cat", "it ran" if read_b else None).hidden_states
    np.testing.assert_allclose(actual[:, 0], states.mean(axis=1), atol=1e-5)
    cut = judge.trace("the cat sat on the mat").hidden_states
    assert cut.shape[1] == settings.max_length
    np.testing.assert_allclose(actual[:, 1], cut.mean(axis=1), atol=1e-5)
    both = judge.trace("the cat", "it ran").hidden_states
    np.testing.assert_allclose(plain[:, 0], both.mean(axis=1), atol=1e-5)


def test_what_can_be_known_of_rows_before_they_are_asked(tiny_bert):
    rows = (TextRow(1, "the bank", "it ran", ("bank",)), TextRow(2, "the cat sat", label="y"))
    ask = ("masks", "next", "classes")
    can = available_row_attributes(tiny_bert, rows, ask)
    assert (
        can
        == tuple(row_attributes(score_rows(tiny_bert, rows, ask, "given")))
        == ("label", "first_prediction", "hidden_probability", "is_next", "tokens")
    )
    assert available_row_attributes(tiny_bert, (TextRow(1, "the cat"),), ("next", "perplexity")) == (
        "perplexity",
        "tokens",
    )


def test_the_nearest_rows_are_those_of_the_largest_cosines():
    vectors = np.random.default_rng(4).normal(size=(9, 5))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit[3]
    order = [int(one) for one in np.argsort(-cosines) if one != 3]
    near = nearest_rows(vectors, 3, 4)
    assert [index for index, _ in near] == order[:4]
    assert [cosine for _, cosine in near] == pytest.approx(cosines[order[:4]].tolist(), abs=1e-6)
    assert nearest_rows(vectors[[3]], 0, 2) == ()
    with pytest.raises(InputError, match="top_k"):
        nearest_rows(vectors, 3, 0)
    for place in (-1, 9):  # -1 named the last vector as its own neighbour
        with pytest.raises(InputError, match=f"There is no vector {place}: they are numbered 0 to 8."):
            nearest_rows(vectors, place)


def test_what_is_known_of_rows_is_what_was_answered(tiny_bert):
    rows = (
        TextRow(1, "the bank of the river", "it ran", ("bank", "river"), "x"),
        TextRow(2, "the cat sat", label="y"),
        ROWS[2],
    )
    results = score_rows(tiny_bert, rows, ("masks", "next", "perplexity"), "given")
    known = row_attributes(results)
    assert set(known) == {"label", "first_prediction", "hidden_probability", "is_next", "perplexity", "tokens"}
    shares = [mask.original_probability for mask in results[0].masks]
    assert known["label"] == ["x", "y", None] and known["hidden_probability"] == [
        pytest.approx(min(shares)),
        None,
        None,
    ]
    right = all(mask.original_rank == 1 for mask in results[0].masks)
    assert known["first_prediction"] == ["right" if right else "wrong", None, None]
    assert known["is_next"] == [results[0].is_next, None, None]
    assert known["perplexity"] == [results[0].perplexity, results[1].perplexity, None]
    assert known["tokens"] == [float(results[0].tokens), 5.0, None] and type(known["tokens"][0]) is float


def test_classes_are_names_and_the_labels_of_a_regression_numbers():
    def judged(predicted, **output):
        return RowResult(TextRow(1, "a", label=predicted), task_prediction=output)

    classes = {"probabilities": {"bad": 0.25, "good": 0.75}, "label": "good", "probability": 0.75}
    known = row_attributes([judged("good", **classes), judged("bad", **classes), judged("odd", **classes)])
    assert known["predicted"] == ["good"] * 3 and known["right"] == ["right", "wrong", None]
    assert known["predicted_probability"] == [0.75] * 3 and known["label"] == ["good", "bad", "odd"]
    numbers = row_attributes([judged("2.5", value=3.0), judged("nan", value=1.0), judged("?", value=1.0)])
    assert numbers == {"label": [2.5, None, None], "predicted": [3.0, 1.0, 1.0], "tokens": [None] * 3}
    several = row_attributes([judged(None, labels=[], probabilities={"x": 0.1})])
    assert several == {"predicted": ["none"], "tokens": [None]}
