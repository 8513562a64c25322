"""Damaged and wrong folders of our own or Hugging Face's layout: one clear error, and no model."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_tf import load
from bert_tf.checkpoints import CheckpointError, read, save

QUERY = "bert.encoder.layer.1.attention.self.query.weight"


@pytest.fixture
def folder(tiny_folder, tmp_path):
    """A good folder, to be damaged."""
    return shutil.copytree(tiny_folder, tmp_path / "model")


def change(folder, **tensors):
    """Replaces tensors of the folder's file; None removes one."""
    path = folder / "model.safetensors"
    values = {**load_file(path), **tensors}
    save_file({name: value for name, value in values.items() if value is not None}, path)


@pytest.fixture(autouse=True)
def nothing_is_built(monkeypatch):
    """Whatever is refused must be refused before a single variable exists."""
    from bert_tf import models

    def build(*_, **__):
        raise AssertionError("a model was built")

    monkeypatch.setattr(models, "build_pretraining_model", build)


@pytest.mark.parametrize("wrong", [None, 3, ["a"]])
def test_what_is_no_folder_at_all_is_named(wrong):
    with pytest.raises(CheckpointError, match="Give the folder that holds the model's files, not "):
        read(wrong)


@pytest.mark.parametrize("kept", [0, 4, 100, 9000, -1])
def test_a_truncated_file_is_noticed(folder, kept):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(CheckpointError, match="model.safetensors is not a complete safetensors file.*download it"):
        read(folder)


def test_a_pointer_of_git_lfs_is_named(folder):
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 9\n")
    with pytest.raises(CheckpointError, match="is a pointer of Git LFS, not the weights; run `git lfs pull`"):
        read(folder)


def test_a_link_to_a_file_that_is_gone_is_named(folder, sharded):
    """As in a cache of the hub that was cleared in part."""
    for path in (folder / "model.safetensors", next(sharded.glob("model-00002-*"))):
        path.unlink()
        path.symlink_to("blobs/ab")
        with pytest.raises(CheckpointError, match=f"{path.name} is a link to a file that is not there; download it"):
            read(path.parent)


def test_a_file_that_is_something_else_is_noticed(folder):
    (folder / "model.safetensors").write_bytes(b"PK\x03\x04" + b"x" * 5000)
    with pytest.raises(CheckpointError, match="not a complete safetensors file"):
        read(folder)


def test_a_wrong_shape_names_file_tensor_and_both_shapes(folder):
    change(folder, **{QUERY: np.zeros((32, 16), np.float32)})
    with pytest.raises(
        CheckpointError,
        match=rf"model.safetensors: {QUERY} has shape \(32, 16\).*\(32, "
        rf"32\)",
    ):
        read(folder)


def test_an_unknown_tensor_is_named(folder):
    change(folder, **{"bert.encoder.layer.9.output.dense.bias": np.zeros(32, np.float32)})
    with pytest.raises(
        CheckpointError,
        match=r"bert.encoder.layer.9.output.dense.bias \(32,\) is not a tensor of a BERT",
    ):
        read(folder)


def test_the_tensors_of_an_unknown_head_are_left_out_and_named(folder, caplog):
    (folder / "checksums.json").unlink()
    before = load(folder).predict("the [MASK]")
    change(folder, **{"linear.weight": np.zeros((8, 32), np.float32)})  # as in ColBERT
    after = load(folder).predict("the [MASK]")
    assert "model.safetensors: linear.weight (8, 32) is left out" in caplog.text
    assert after.masks == before.masks and after.nsp == before.nsp


@pytest.mark.parametrize(
    "name", ["encoder.conv.weight", "bert.adapter.weight", "cls.predictions.scale", "pooler.norm.bias"]
)
def test_an_unknown_tensor_that_could_change_the_outputs_is_not_left_out(folder, name):
    change(folder, **{name: np.zeros(32, np.float32)})
    with pytest.raises(CheckpointError, match=f"{name} .* is not a tensor of a BERT"):
        read(folder)


def test_a_missing_tensor_is_named(folder):
    change(folder, **{QUERY: None})
    with pytest.raises(CheckpointError, match=rf"{QUERY} \(32, 32\) is missing"):
        read(folder)


def test_half_a_head_is_not_taken_for_none(folder):
    change(folder, **{"cls.predictions.transform.dense.weight": None})
    with pytest.raises(CheckpointError, match="cls.predictions.transform.dense.weight .* is missing"):
        read(folder)


def test_a_next_sentence_head_needs_its_pooler(folder):
    change(folder, **{"bert.pooler.dense.weight": None, "bert.pooler.dense.bias": None})
    with pytest.raises(CheckpointError, match="bert.pooler.dense.weight .* and 1 more is missing"):
        read(folder)


def test_fewer_layers_in_the_settings_than_in_the_file_are_noticed(folder, edit_json):
    edit_json(folder / "config.json", num_hidden_layers=1)
    with pytest.raises(CheckpointError, match="bert.encoder.layer.1.* with 1 layers"):
        read(folder)


def test_a_vocabulary_of_another_size_names_both_sizes(folder):
    path = folder / "vocab.txt"
    path.write_text(path.read_text() + "extra\n")
    with pytest.raises(CheckpointError, match="vocabulary has 195 tokens, but the settings say vocab_size 194"):
        read(folder)


def test_settings_of_another_vocabulary_name_both_shapes(folder, edit_json):
    path = folder / "vocab.txt"
    path.write_text(path.read_text() + "extra\n")
    edit_json(folder / "config.json", vocab_size=195)
    with pytest.raises(CheckpointError, match=r"word_embeddings.weight has shape \(194, 32\).*\(195, 32\)"):
        read(folder)


def test_a_tensor_stored_twice_is_noticed(folder):
    change(folder, **{"embeddings.LayerNorm.gamma": np.ones(32, np.float32)})
    with pytest.raises(CheckpointError, match="bert.embeddings.LayerNorm.weight twice"):
        read(folder)


def test_weights_of_whole_numbers_are_refused(folder):
    change(folder, **{QUERY: np.zeros((32, 32), np.int32)})
    with pytest.raises(CheckpointError, match=f"{QUERY} is stored as I32"):
        read(folder)


@pytest.mark.parametrize("scale", [None, np.ones(31, np.float32), np.ones(32, np.int32)])
def test_eight_bits_without_fitting_scales_are_refused(tiny, tmp_path, scale):
    folder = save(tmp_path / "m", tiny.config, tiny.tokenizer, tiny.model, dtype="int8")
    change(folder, **{f"{QUERY}.scale": scale})
    with pytest.raises(CheckpointError, match=rf"{QUERY} is stored in eight bits.*{QUERY}.scale"):
        read(folder)


def test_scales_without_their_matrix_are_unknown(tiny, tmp_path):
    folder = save(tmp_path / "m", tiny.config, tiny.tokenizer, tiny.model, dtype="int8")
    change(folder, **{QUERY: None})
    with pytest.raises(CheckpointError, match=f"{QUERY}"):
        read(folder)


@pytest.fixture
def sharded(tiny, tmp_path):
    return save(tmp_path / "s", tiny.config, tiny.tokenizer, tiny.model, max_shard_bytes=40_000)


def test_a_missing_shard_is_named(sharded):
    next(sharded.glob("model-00002-*")).unlink()
    with pytest.raises(CheckpointError, match="names the shard 'model-00002-of-"):
        read(sharded)


def test_an_index_cannot_lead_out_of_the_folder(sharded, tiny_folder):
    index = sharded / "model.safetensors.index.json"
    places = json.loads(index.read_text())["weight_map"]
    outside = f"../../{tiny_folder.parent.name}/tiny/model.safetensors"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(places, outside)}))
    with pytest.raises(CheckpointError, match="which is not in the folder"):
        read(sharded)


def test_an_index_that_misplaces_a_tensor_is_noticed(sharded):
    index = sharded / "model.safetensors.index.json"
    places = json.loads(index.read_text())["weight_map"]
    files = sorted(set(places.values()))
    places[QUERY] = next(file for file in files if file != places[QUERY])
    index.write_text(json.dumps({"weight_map": places}))
    with pytest.raises(CheckpointError, match=f"places {QUERY} in"):
        read(sharded)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"weight_map": [1]}', '{"weight_map": {"a": 1}}'])
def test_a_damaged_index_is_noticed(sharded, content):
    (sharded / "model.safetensors.index.json").write_text(content)
    with pytest.raises(CheckpointError, match="model.safetensors.index.json"):
        read(sharded)


def test_folders_that_are_none_are_refused(tmp_path, tiny_folder):
    with pytest.raises(CheckpointError, match="not a folder"):
        read(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="no config.json"):
        read(tmp_path)
    shutil.copy(tiny_folder / "config.json", tmp_path)
    with pytest.raises(CheckpointError, match="no weights to read"):
        read(tmp_path)


def test_a_folder_without_a_vocabulary_is_refused(folder):
    (folder / "vocab.txt").unlink()
    with pytest.raises(OSError, match="vocab.txt"):
        read(folder)


def test_settings_that_are_no_json_name_the_file(folder):
    (folder / "config.json").write_text("{broken")
    with pytest.raises(ValueError, match="config.json"):
        read(folder)


@pytest.mark.parametrize("name", ["model.onnx", "flax_model.msgpack"])
def test_folders_without_readable_weights_are_told_what_to_do(tiny_folder, tmp_path, name):
    folder = tmp_path / "other"
    folder.mkdir()
    for file in ("config.json", "vocab.txt"):
        (folder / file).write_bytes((tiny_folder / file).read_bytes())
    (folder / name).write_bytes(b"x")
    with pytest.raises(CheckpointError, match="safetensors"):
        read(folder)
