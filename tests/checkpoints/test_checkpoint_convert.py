"""One format made into another."""

import shutil
import warnings

import numpy as np
import pytest

from bert_tf.checkpoints import CheckpointError, convert, read
from bert_tf.checkpoints.convert import TaskHeadLeftOut


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
    source = shutil.copytree(tiny_folder, tmp_path / "src")
    (source / "README.md").write_text("# Mine\n\nIt was stored as float32.\n")
    done = convert(source, tmp_path / "out", dtype="float16")
    assert (done.path / "README.md").read_text() == (source / "README.md").read_text()


@pytest.mark.parametrize("dtype, to, name", [("float16", "own", "float16"), ("int8", "hf", "packed int8")])
def test_the_short_model_card_names_the_dtype_that_is_written(tiny_folder, tmp_path, dtype, to, name):
    done = convert(tiny_folder, tmp_path / "out", to=to, dtype=dtype)
    before, after = ((folder / "README.md").read_text() for folder in (tiny_folder, done.path))
    assert "Weights stored as float32." in before
    assert after == before.replace("stored as float32.", f"stored as {name}.")


@pytest.mark.parametrize(
    "request_, message",
    [
        ({"to": "onnx"}, "'onnx'; choose from own, hf, google, keras-nlp"),
        ({"dtype": "int4"}, "'int4'"),
        ({"to": "google", "dtype": "float16"}, "'google' is written as float32, not float16"),
        ({"to": "keras-nlp", "dtype": "int8"}, "'keras-nlp' is written as float32, not int8"),
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


def test_a_fine_tuned_head_that_is_left_out_is_told(tiny_folder, tmp_path):
    from safetensors.numpy import load_file, save_file

    source = shutil.copytree(tiny_folder, tmp_path / "src")
    tensors = load_file(source / "model.safetensors")
    width = tensors["bert.pooler.dense.bias"].shape[0]
    head = {"classifier.weight": np.ones((2, width), np.float32), "classifier.bias": np.ones(2, np.float32)}
    save_file({**tensors, **head}, source / "model.safetensors", metadata={"format": "pt"})
    (source / "checksums.json").unlink()
    with pytest.warns(TaskHeadLeftOut, match="src is a fine-tuned model: its head is left out of .*out.*convert"):
        done = convert(source, tmp_path / "out")
    assert read(done.path)[2].bert_heads == read(tiny_folder)[2].bert_heads
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        convert(tiny_folder, tmp_path / "plain")


def test_a_pooling_that_is_left_out_is_told(tiny_folder, tmp_path):
    """A model of sentence-transformers has no tensors of a head."""
    source = shutil.copytree(tiny_folder, tmp_path / "src")
    (source / "modules.json").write_text("[]")
    with pytest.warns(TaskHeadLeftOut, match="src is a fine-tuned model: its pooling is left out of .*out.*convert"):
        done = convert(source, tmp_path / "out")
    assert not (done.path / "modules.json").exists()


def test_an_exact_gelu_is_not_written_as_alberts_tanh_gelu(tmp_path):
    from bert_tf.checkpoints import save
    from tests.checkpoints.test_checkpoint_family import GOLDEN

    config, tokenizer, model = read(GOLDEN / "albert")
    assert config.hidden_act == "gelu_new"
    convert(GOLDEN / "albert", tmp_path / "tanh", to="google")
    assert read(tmp_path / "tanh")[0].hidden_act == "gelu_new"
    save(tmp_path / "exact", config.replace(hidden_act="gelu"), tokenizer, model)
    with pytest.raises(CheckpointError, match="hidden_act is 'gelu', and 'gelu' means 'gelu_new' in ALBERT's"):
        convert(tmp_path / "exact", tmp_path / "google", to="google")
    assert not (tmp_path / "google").exists()


@pytest.mark.parametrize("model_type", ["left-to-right", "two-one-way"])
def test_one_way_readers_to_transformers(tmp_path, make_tiny, model_type):
    from bert_tf.checkpoints import save
    from bert_tf.models import build_pretraining_model

    made = make_tiny()
    config = made.config.replace(model_type=model_type)
    model = build_pretraining_model(config)
    save(tmp_path / "own", config, made.tokenizer, model)
    if model_type == "two-one-way":
        with pytest.raises(CheckpointError, match="Transformers has no class for a Two one-way readers model"):
            convert(tmp_path / "own", tmp_path / "hf", to="hf")
        return
    import torch
    import transformers

    convert(tmp_path / "own", tmp_path / "hf", to="hf")
    theirs = transformers.BertLMHeadModel.from_pretrained(tmp_path / "hf").eval()
    ids = np.random.default_rng(1).integers(5, 100, (1, 12)).astype(np.int32)
    batch = {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}
    from bert_tf.models import view

    ours = np.asarray(view(model, ("mlm_logits_all",))(batch)["mlm_logits_all"])
    with torch.no_grad():
        wanted = theirs(torch.tensor(ids.astype(np.int64))).logits.numpy()
    # Ours at a position predicts that position; theirs predicts the next one.
    np.testing.assert_allclose(ours[:, 1:], wanted[:, :-1], atol=1e-5, rtol=0)
