"""One format made into another."""

import shutil

import numpy as np
import pytest

from bert_tf.checkpoints import CheckpointError, convert, read


@pytest.mark.parametrize("to, dtype", [("own", "float32"), ("hf", "float32"), ("google", "float32")])
def test_lossless_formats_keep_every_output(tiny, tiny_folder, tmp_path, outputs_of, to, dtype):
    done = convert(tiny_folder, tmp_path / "out", to=to, dtype=dtype)
    assert (done.format, done.heads, done.dropped, done.note) == (to, tiny.model.bert_heads, set(), "")
    config, tokenizer, model = read(done.path)
    assert config == tiny.config and tokenizer.vocab == tiny.tokenizer.vocab
    before, after = outputs_of(tiny.model), outputs_of(model)
    for name in before:
        np.testing.assert_array_equal(before[name], after[name])


def test_eight_bits_and_shards_can_be_asked_for(tiny_folder, tmp_path):
    done = convert(tiny_folder, tmp_path / "out", dtype="int8", max_shard_bytes=20_000)
    assert len(list(done.path.glob("model-*.safetensors"))) > 1
    read(done.path)


def test_the_model_card_goes_along(tiny_folder, tmp_path):
    done = convert(tiny_folder, tmp_path / "out", dtype="float16")
    assert (done.path / "README.md").read_text() == (tiny_folder / "README.md").read_text()


@pytest.mark.parametrize(
    "request_, message",
    [
        ({"to": "onnx"}, "'onnx'; choose from own, hf, google, keras-nlp"),
        ({"dtype": "int4"}, "'int4'"),
        ({"to": "hf", "dtype": "int8"}, "Only the format 'own'"),
        ({"to": "google", "dtype": "float16"}, "float32 only"),
    ],
)
def test_requests_that_cannot_be_met_are_refused(tiny_folder, tmp_path, request_, message):
    with pytest.raises(CheckpointError, match=message):
        convert(tiny_folder, tmp_path / "out", **request_)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_is_not_written_over(tiny_folder, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="not empty"):
        convert(tiny_folder, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["precious.txt"]


def test_an_empty_folder_may_be_there(tiny_folder, tmp_path):
    (tmp_path / "out").mkdir()
    read(convert(tiny_folder, tmp_path / "out").path)


def test_nothing_is_left_when_the_source_cannot_be_read(tmp_path):
    (tmp_path / "src").mkdir()
    with pytest.raises(CheckpointError):
        convert(tmp_path / "src", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["src"]


def test_the_folder_one_stands_in_is_filled(tiny_folder, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    node = (tmp_path / "here").stat().st_ino
    convert(tiny_folder, ".")
    read(tmp_path / "here")
    assert (tmp_path / "here").stat().st_ino == node and [path.name for path in tmp_path.iterdir()] == ["here"]


def test_a_card_in_another_encoding_is_no_hindrance(tiny_folder, tmp_path):
    source = shutil.copytree(tiny_folder, tmp_path / "src")
    (source / "README.md").write_bytes("Größe".encode("latin-1"))
    done = convert(source, tmp_path / "out")
    assert (done.path / "README.md").read_text(encoding="utf-8") == "Gr\ufffd\ufffde"
