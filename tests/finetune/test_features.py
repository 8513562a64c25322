"""Sentence vectors of a file."""

import os

import numpy as np
import pytest
from pyarrow import parquet

from bert_tf.cli import main
from bert_tf.explain.errors import InputError
from bert_tf.explain.sentence_vectors import sentence_vectors

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


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"pooling": "sum"}, "no pooling 'sum'"),
        ({"layer": 3}, "no layer 3; the model has 0"),
        ({"pooling": "cls", "layer": 1}, "pooler reads the last layer only"),
        ({"pooling": "attention"}, "has no weights for pooling attention"),
    ],
)
def test_what_cannot_be_had_is_told(tiny_bert, changes, said):
    with pytest.raises(InputError, match=said):
        sentence_vectors(tiny_bert, TEXTS, **changes)


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


def test_standard_input_cannot_be_read_twice(capsys, tmp_path):
    assert main(["features", "--input", "-", "--format", "lines", "--output", str(tmp_path / "x.npy")]) == 2
    assert "The input is read twice" in capsys.readouterr().err and not (tmp_path / "x.npy").exists()


def test_a_pipe_cannot_be_read_twice_either(capsys, tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    assert main(["features", "--input", str(tmp_path / "pipe.txt"), "--output", str(tmp_path / "x.npy")]) == 2
    assert "The input is read twice" in capsys.readouterr().err and not (tmp_path / "x.npy").exists()
