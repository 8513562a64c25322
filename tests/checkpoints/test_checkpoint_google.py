"""Google's TF checkpoints, written here as google-research/bert's Saver wrote them."""

import errno
import json

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.checkpoints import CheckpointError, convert, read, save
from bert_tf.checkpoints.formats.google import _index_names, google_heads, google_name, write_google
from bert_tf.checkpoints.saving import tensor_values
from tests.conftest import small_disk

# The names as they stand in the released checkpoints, for layer 0, with the shapes of a model of width 32.
LAYER, OUR_LAYER = "bert/encoder/layer_0", "bert.encoder.layer.0"
RELEASED_NAMES = {
    "bert/embeddings/word_embeddings": "bert.embeddings.word_embeddings.weight",
    "bert/embeddings/position_embeddings": "bert.embeddings.position_embeddings.weight",
    "bert/embeddings/token_type_embeddings": "bert.embeddings.token_type_embeddings.weight",
    "bert/embeddings/LayerNorm/gamma": "bert.embeddings.LayerNorm.weight",
    "bert/embeddings/LayerNorm/beta": "bert.embeddings.LayerNorm.bias",
    f"{LAYER}/attention/self/query/kernel": f"{OUR_LAYER}.attention.self.query.weight",
    f"{LAYER}/attention/self/query/bias": f"{OUR_LAYER}.attention.self.query.bias",
    f"{LAYER}/attention/self/key/kernel": f"{OUR_LAYER}.attention.self.key.weight",
    f"{LAYER}/attention/self/value/kernel": f"{OUR_LAYER}.attention.self.value.weight",
    f"{LAYER}/attention/output/dense/kernel": f"{OUR_LAYER}.attention.output.dense.weight",
    f"{LAYER}/attention/output/LayerNorm/gamma": f"{OUR_LAYER}.attention.output.LayerNorm.weight",
    f"{LAYER}/attention/output/LayerNorm/beta": f"{OUR_LAYER}.attention.output.LayerNorm.bias",
    f"{LAYER}/intermediate/dense/kernel": f"{OUR_LAYER}.intermediate.dense.weight",
    f"{LAYER}/output/dense/bias": f"{OUR_LAYER}.output.dense.bias",
    "bert/pooler/dense/kernel": "bert.pooler.dense.weight",
    "cls/predictions/transform/dense/kernel": "cls.predictions.transform.dense.weight",
    "cls/predictions/transform/LayerNorm/gamma": "cls.predictions.transform.LayerNorm.weight",
    "cls/predictions/output_bias": "cls.predictions.bias",
    "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
    "cls/seq_relationship/output_bias": "cls.seq_relationship.bias",
}


def google_values(tiny):
    """Google name -> float32 array as it lies in their file: dense kernels [in, out]."""
    values = {}
    for name, value in tensor_values(tiny.model):
        theirs, transposed = google_name(name)
        values[theirs] = value.T if transposed else value
    return values


def write(folder, tiny, values, prefix="bert_model.ckpt"):
    """A folder as Google's archives unpack: no tokenizer settings, no config.json."""
    folder.mkdir()
    names = list(values)
    tf.raw_ops.SaveV2(
        prefix=str(folder / prefix),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[tf.convert_to_tensor(values[name]) for name in names],
    )
    (folder / "bert_config.json").write_text(json.dumps(tiny.config.to_google_dict()))
    (folder / "vocab.txt").write_text("\n".join(tiny.tokenizer.vocab) + "\n")
    return folder


@pytest.mark.parametrize("theirs, ours", RELEASED_NAMES.items())
def test_names_are_those_of_the_released_checkpoints(theirs, ours):
    assert google_name(ours) == (theirs, theirs.endswith("kernel"))


def test_all_heads_are_read_with_equal_outputs(tiny, tmp_path, outputs_of):
    config, tokenizer, model = read(write(tmp_path / "g", tiny, google_values(tiny)))
    assert config == tiny.config and not tokenizer.lower_case
    assert model.bert_heads == {"pooler", "mlm", "nsp"}
    ours, theirs = outputs_of(model), outputs_of(tiny.model)
    for name in theirs:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


def test_the_optimisers_slots_and_counters_are_passed_over(tiny, tmp_path):
    values = google_values(tiny)
    values |= {f"{name}/{slot}": value for name, value in values.items() for slot in ("adam_m", "adam_v")}
    values["global_step"] = np.array(1000, np.int64)
    read(write(tmp_path / "g", tiny, values, prefix="model.ckpt-1000"))


def test_a_checkpoint_without_heads_is_read_as_such(tiny, tmp_path):
    values = {name: value for name, value in google_values(tiny).items() if not name.startswith("cls/")}
    _, _, model = read(write(tmp_path / "g", tiny, values))
    assert model.bert_heads == {"pooler"}


def test_heads_are_told_from_the_index_alone(tiny, tmp_path):
    values = google_values(tiny)
    bare = {name: value for name, value in values.items() if not name.startswith("cls/")}
    assert google_heads(write(tmp_path / "all", tiny, values), tiny.config) == {"pooler", "mlm", "nsp"}
    assert google_heads(write(tmp_path / "bare", tiny, bare, prefix="model.ckpt-1000"), tiny.config) == {"pooler"}
    for content in (b"", b"no table", (tmp_path / "all/bert_model.ckpt.index").read_bytes()[-48:]):
        (tmp_path / "all/bert_model.ckpt.index").write_bytes(content)
        assert google_heads(tmp_path / "all", tiny.config) is None


@pytest.mark.slow
def test_the_names_of_an_index_of_several_blocks_are_tensorflow_s(tiny, tmp_path):
    one = np.zeros(1, np.float32)
    folder = write(tmp_path / "g", tiny, {f"{'a long name/' * 10}{number}": one for number in range(20_000)})
    data = (folder / "bert_model.ckpt.index").read_bytes()
    listed = tf.train.list_variables(str(folder / "bert_model.ckpt"))
    assert list(_index_names(data)) == sorted(name for name, _ in listed)


def test_an_unknown_tensor_is_named(tiny, tmp_path, caplog):
    values = google_values(tiny) | {"bert/encoder/layer_9/output/dense/bias": np.zeros(32, np.float32)}
    with pytest.raises(CheckpointError, match=r"bert_model.ckpt.index: .*layer_9.* \(32,\) is not a tensor"):
        read(write(tmp_path / "g", tiny, values))
    # The classifier of Google's fine-tuning program is no part of the encoder.
    values = google_values(tiny) | {"output_weights": np.zeros((3, 32), np.float32)}
    read(write(tmp_path / "h", tiny, values))
    assert "bert_model.ckpt.index: output_weights (3, 32) is left out" in caplog.text


def test_a_wrong_shape_names_both(tiny, tmp_path):
    values = google_values(tiny) | {"bert/pooler/dense/kernel": np.zeros((32, 30), np.float32)}
    with pytest.raises(CheckpointError, match=r"bert/pooler/dense/kernel has shape \(30, 32\).*\(32, 32\)"):
        read(write(tmp_path / "g", tiny, values))


def test_a_truncated_data_file_is_noticed_before_loading(tiny, tmp_path):
    folder = write(tmp_path / "g", tiny, google_values(tiny))
    data = next(folder.glob("*.data-*"))
    data.write_bytes(data.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="bert_model.ckpt.data.*1 of 1 files.*download them again"):
        read(folder)


def test_a_missing_data_file_is_noticed(tiny, tmp_path):
    folder = write(tmp_path / "g", tiny, google_values(tiny))
    next(folder.glob("*.data-*")).unlink()
    with pytest.raises(CheckpointError, match="0 of 1 files"):
        read(folder)


def test_a_damaged_index_is_noticed(tiny, tmp_path):
    folder = write(tmp_path / "g", tiny, google_values(tiny))
    index = next(folder.glob("*.index"))
    index.write_bytes(index.read_bytes()[:40])
    with pytest.raises(CheckpointError, match="not a complete checkpoint index"):
        read(folder)


def test_damaged_values_are_noticed(tiny, tmp_path):
    folder = write(tmp_path / "g", tiny, google_values(tiny))
    data = next(folder.glob("*.data-*"))
    content = bytearray(data.read_bytes())
    content[5000] ^= 255
    data.write_bytes(bytes(content))
    with pytest.raises(CheckpointError, match="cannot be read"):
        read(folder)


def test_a_folder_without_settings_is_refused(tiny, tmp_path):
    folder = write(tmp_path / "g", tiny, google_values(tiny))
    (folder / "bert_config.json").unlink()
    with pytest.raises(CheckpointError, match="no settings: bert_config.json, albert_config.json or electra"):
        read(folder)


def test_what_we_write_has_googles_names_and_is_read_back(tiny, tiny_folder, tmp_path, outputs_of):
    done = convert(tiny_folder, tmp_path / "g", to="google")
    names = {path.name for path in done.path.iterdir()}
    assert {"bert_config.json", "vocab.txt", "bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001"} <= names
    assert not any(name.startswith(".") or name == "bert_model.ckpt" for name in names)
    stored = dict(tf.train.list_variables(str(done.path / "bert_model.ckpt")))
    assert RELEASED_NAMES.keys() <= stored.keys() and stored["cls/seq_relationship/output_weights"] == [2, 32]
    ours, theirs = outputs_of(read(done.path)[2]), outputs_of(tiny.model)
    for name in theirs:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


def test_a_checkpoint_that_finds_no_room_is_told_as_the_systems_error(tiny, tmp_path):
    values = dict(tensor_values(tiny.model))
    with small_disk(8000), pytest.raises(OSError) as error:
        write_google(tmp_path, tiny.config, tiny.tokenizer, values)
    assert error.value.errno == errno.EFBIG and error.value.filename == str(tmp_path / "bert_model.ckpt")


def test_architectures_that_are_no_list_are_one_sentence(tiny_folder, tmp_path, edit_json):
    google = convert(tiny_folder, tmp_path / "google", to="google").path
    edit_json(google / "bert_config.json", architectures=5)
    with pytest.raises(CheckpointError, match="architectures must be a list of class names.*not 5"):
        read(google)


def test_an_epsilon_that_google_s_code_does_not_have_is_refused(make_tiny, tmp_path):
    made = make_tiny(layer_norm_eps=1e-5)
    own = save(tmp_path / "own", made.config, made.tokenizer, made.model)
    with pytest.raises(CheckpointError, match="layer_norm_eps 1e-12, and this model has 1e-05"):
        convert(own, tmp_path / "google", to="google")
    assert not (tmp_path / "google").exists()
