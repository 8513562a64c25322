"""Sentence vectors of a file."""

import itertools
import os
import weakref

import numpy as np
import pytest
from pyarrow import parquet

from bert_tf.cli import main
from bert_tf.errors import EmptyText, InputError, TextError
from bert_tf.finetuning.task_folder import save_task
from bert_tf.finetuning.task_network import network_over
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks.registry import task_type
from bert_tf.inference.sentence_vectors import POOLINGS, sentence_vectors
from bert_tf.runtime import read_ahead

TEXTS = ["The cat sat on the mat.", "big", 'a "small"\tdog ran in the park', "China"]


@pytest.mark.parametrize("pooling", ["mean", "max", "first", "cls"])
def test_a_vector_is_pooled_from_the_hidden_states(tiny_bert, pooling):
    for text, vector in zip(TEXTS, sentence_vectors(tiny_bert, TEXTS, pooling, batch_size=3)):
        trace = tiny_bert.trace(text)
        states = trace.hidden_states[-1]
        expected = {
            "mean": states.mean(axis=0),
            "max": states.max(axis=0),
            "first": states[0],
            "cls": trace.pooled,
        }[pooling]
        np.testing.assert_allclose(vector, expected, atol=1e-5)


def test_any_layer_can_be_asked_for(tiny_bert):
    states = tiny_bert.trace(TEXTS[0]).hidden_states
    for layer in (0, 1, -1, -3):
        vector = next(sentence_vectors(tiny_bert, TEXTS[:1], "mean", layer))
        np.testing.assert_allclose(vector, states[layer].mean(axis=0), atol=1e-5)


def test_attention_pooling_is_the_mean_by_the_weights_that_were_learned(tiny_bert, tmp_path):
    settings = TaskSettings("classify", ("a", "b"), "attention")
    network = network_over(tiny_bert.model, task_type("classify"), settings)
    rng = np.random.default_rng(0)
    kernel, bias = rng.normal(size=(tiny_bert.config.hidden_size, 1)), rng.normal(size=1)
    network.head.vector.scores.set_weights([kernel, bias])
    save_task(tmp_path / "model", tiny_bert.config, tiny_bert.tokenizer, network, settings)
    (tmp_path / "in.txt").write_text("\n".join(TEXTS))
    assert (
        main(
            [
                "features",
                "--model",
                str(tmp_path / "model"),
                "--input",
                str(tmp_path / "in.txt"),
                "--output",
                str(tmp_path / "out.npy"),
                "--pooling",
                "attention",
                "--batch-size",
                "3",
                "--quiet",
            ]
        )
        == 0
    )
    for text, vector in zip(TEXTS, np.load(tmp_path / "out.npy"), strict=True):
        states = tiny_bert.trace(text).hidden_states[-1]
        weights = np.exp(states @ kernel + bias)
        np.testing.assert_allclose(vector, (weights * states).sum(axis=0) / weights.sum(), atol=1e-5)


def test_texts_are_read_only_a_window_ahead(tiny_bert, monkeypatch):
    monkeypatch.setattr(read_ahead, "BATCHES_PER_WINDOW", 2)
    taken = itertools.count()
    vectors = sentence_vectors(tiny_bert, (f"the cat {next(taken)}" for _ in itertools.repeat(None)), batch_size=3)
    for _ in range(7):
        next(vectors)
    assert next(taken) == 12


@pytest.mark.parametrize("ending, most", [("npy", 2), ("parquet", 5)])
def test_vectors_are_written_as_they_come(tmp_path, monkeypatch, ending, most):
    """No more than a group of rows is held, however many there are."""
    from bert_tf.batch_jobs import vectors
    from bert_tf.cli import features

    alive, held = [], []

    class Vector(np.ndarray):
        pass

    def made():
        for _ in range(40):
            vector = np.zeros(4, np.float32).view(Vector)
            alive.append(weakref.ref(vector))
            held.append(sum(one() is not None for one in alive))
            yield vector

    monkeypatch.setattr(vectors, "_ROWS_A_GROUP", 2)
    with open(tmp_path / f"out.{ending}", "wb") as file:
        features._writer(f"out.{ending}")(file, made(), 40, 4)
    assert max(held) <= most


@pytest.mark.parametrize(
    "changes, output",
    [
        ({"pooling": "sum"}, "no pooling 'sum'"),
        ({"layer": 3}, "no layer 3; the model has 0"),
        ({"pooling": "cls", "layer": 1}, "pooler reads only the last layer"),
        ({"pooling": "attention"}, "has no weights for pooling attention"),
    ],
)
def test_what_cannot_be_had_is_told(tiny_bert, changes, output):
    with pytest.raises(InputError, match=output):
        sentence_vectors(tiny_bert, TEXTS, **changes)


@pytest.mark.parametrize("texts", ["big", b"big", {"text": "big"}])
def test_a_text_alone_is_not_read_letter_by_letter(tiny_bert, texts):
    with pytest.raises(InputError, match="Give a list of texts, such as .*not one alone"):
        sentence_vectors(tiny_bert, texts)


def test_numbers_of_numpy_are_whole_numbers_and_others_are_refused(tiny_bert):
    vectors = list(sentence_vectors(tiny_bert, TEXTS, layer=np.int64(1), batch_size=np.int32(3)))
    np.testing.assert_array_equal(vectors, list(sentence_vectors(tiny_bert, TEXTS, layer=1, batch_size=3)))
    for batch_size in (0, "3", 2.5, True):
        with pytest.raises(InputError, match=f"batch_size must be a whole number of at least 1, not {batch_size!r}"):
            sentence_vectors(tiny_bert, TEXTS, batch_size=batch_size)


def test_a_third_text_is_refused(tiny_bert):
    with pytest.raises(InputError, match="not 3 texts"):
        next(sentence_vectors(tiny_bert, [("the cat", "a dog", "it ran")]))
    with pytest.raises(InputError, match="text_a is missing or null: give it"):
        next(sentence_vectors(tiny_bert, [None]))


def test_a_text_without_a_token_has_no_vector(tiny_bert):
    for texts in (["\u200b"], [("\u200b", "the cat")], [("the cat", "\u200b")]):
        with pytest.raises(EmptyText, match="Text [AB] contains no token that can be read"):
            next(sentence_vectors(tiny_bert, texts))
    rows = ["the cat", "\u200b", ("a dog", "\u200b"), None, "half a \ud83d", InputError("a bad line"), "a dog"]
    first, *bad, last = sentence_vectors(tiny_bert, rows, errors="return")
    assert [type(one) for one in bad] == [EmptyText, EmptyText, InputError, TextError, InputError]
    expected = list(sentence_vectors(tiny_bert, ["the cat", "a dog"]))
    np.testing.assert_allclose([first, last], expected, atol=1e-5)
    with pytest.raises(InputError, match="errors must be"):
        sentence_vectors(tiny_bert, rows, errors="ignore")


def test_a_text_without_a_token_in_a_file_is_named_before_vectors_are_computed(
    tiny_folder, tmp_path, capsys, monkeypatch
):
    from bert_tf.inference import sentence_vectors as module

    monkeypatch.setattr(module, "_pooled", lambda *_: pytest.fail("a vector was computed"))
    source, target = tmp_path / "in.txt", tmp_path / "out.npy"
    source.write_text("\n".join([*TEXTS, "\u200b"]), encoding="utf-8")
    command = ["features", "--model", str(tiny_folder), "--input", str(source), "--output", str(target), "--quiet"]
    assert main(command) == 2 and not target.exists()
    assert f"{source}, text 5: Text A contains no token that can be read: '\\u200b'." in capsys.readouterr().err


@pytest.mark.parametrize("length", [0, -1, 2, "8", True, 4.5])
def test_a_length_without_room_for_a_token_is_refused(tiny_bert, length):
    with pytest.raises(InputError, match=f"The length is {length!r}; a text needs at least 3"):
        sentence_vectors(tiny_bert, TEXTS, max_length=length)
    with pytest.raises(InputError, match=f"The length is {length!r}; a text needs at least 3"):
        tiny_bert.trace(TEXTS[0], max_length=length)


def test_a_length_without_room_for_both_texts_of_a_pair_is_refused(tiny_bert):
    says = "The length is 4; a pair needs at least 5 tokens, 3 of them special"
    with pytest.raises(InputError, match=says):
        tiny_bert.trace("the cat", "a dog", max_length=4)
    vector, error = sentence_vectors(tiny_bert, ["the cat", ("the cat", "a dog")], max_length=4, errors="return")
    assert isinstance(vector, np.ndarray) and says in str(error)
    first, second = sentence_vectors(tiny_bert, [("the cat", "a dog"), ("the cat", "it")], max_length=5)
    assert np.abs(first - second).max() > 1e-3


def test_a_file_becomes_numpy_or_parquet(tiny_bert, tiny_folder, tmp_path, capsys):
    source = tmp_path / "texts.txt"
    source.write_bytes("\ufeff".encode() + "\r\n".join([*TEXTS[:2], "", *TEXTS[2:]]).encode() + b"\r\n")
    expected = np.stack(list(sentence_vectors(tiny_bert, TEXTS)))
    for name in ("out.npy", "out.parquet"):
        assert (
            main(
                [
                    "features",
                    "--model",
                    str(tiny_folder),
                    "--input",
                    str(source),
                    "--output",
                    str(tmp_path / name),
                    "--batch-size",
                    "2",
                    "--quiet",
                ]
            )
            == 0
        )
    np.testing.assert_allclose(np.load(tmp_path / "out.npy", mmap_mode="r"), expected, atol=1e-5)
    table = parquet.read_table(tmp_path / "out.parquet")
    np.testing.assert_allclose(np.array(table["vector"].to_pylist()), expected, atol=1e-5)


def test_a_layer_and_a_length_are_given_by_the_command(tiny_bert, tiny_folder, tmp_path):
    (tmp_path / "in.txt").write_text("\n".join(TEXTS))
    assert (
        main(
            [
                "features",
                "--model",
                str(tiny_folder),
                "--input",
                str(tmp_path / "in.txt"),
                "--output",
                str(tmp_path / "out.npy"),
                "--layer",
                "-2",
                "--length",
                "6",
                "--quiet",
            ]
        )
        == 0
    )
    actual = np.load(tmp_path / "out.npy")
    np.testing.assert_allclose(actual, list(sentence_vectors(tiny_bert, TEXTS, layer=-2, max_length=6)), atol=1e-5)
    for other in ({"layer": -2}, {"max_length": 6}):
        assert np.abs(actual[0] - next(sentence_vectors(tiny_bert, TEXTS, **other))).max() > 1e-3


def test_the_help_names_every_pooling(capsys):
    assert main(["features", "--help"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert f"how the vector is computed: {', '.join(POOLINGS)}" in output and "attention" in POOLINGS


def test_a_table_gives_its_column_of_texts(tiny_folder, tmp_path, capsys):
    source = tmp_path / "a.csv"
    source.write_text("id,body\n1,big\n2,\n", encoding="utf-8")
    arguments = [
        "features",
        "--model",
        str(tiny_folder),
        "--input",
        str(source),
        "--output",
        str(tmp_path / "a.npy"),
        "--text-column",
        "body",
        "--quiet",
    ]
    assert main(arguments) == 2
    assert "line 3: body holds no text" in capsys.readouterr().err
    source.write_text("id,body\n1,big\n2,a cat\n", encoding="utf-8")
    assert main(arguments) == 0 and np.load(tmp_path / "a.npy").shape == (2, 32)
    assert main([*arguments[:-4], str(tmp_path / "a.txt"), *arguments[-3:]]) == 2
    assert "written as .npy or .parquet" in capsys.readouterr().err


@pytest.mark.parametrize("length", ["0", "2", "-1"])
def test_a_length_without_room_for_a_word_is_told(capsys, tmp_path, length):
    path = str(tmp_path / "x.npy")
    assert main(["features", "--input", "none.txt", "--output", path, "--length", length]) == 2
    assert f"--length: {length} was given; it must be 3 or more" in capsys.readouterr().err


def test_standard_input_cannot_be_read_twice(capsys, tmp_path):
    assert main(["features", "--input", "-", "--format", "lines", "--output", str(tmp_path / "x.npy")]) == 2
    assert "The input is read several times" in capsys.readouterr().err and not (tmp_path / "x.npy").exists()


def test_a_pipe_cannot_be_read_twice_either(capsys, tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    assert main(["features", "--input", str(tmp_path / "pipe.txt"), "--output", str(tmp_path / "x.npy")]) == 2
    assert "The input is read several times" in capsys.readouterr().err and not (tmp_path / "x.npy").exists()
