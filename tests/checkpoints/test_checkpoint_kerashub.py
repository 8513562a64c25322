"""KerasHub presets: theirs read here, ours loaded there, with equal outputs."""

import json
import shutil

import h5py
import keras
import numpy as np
import pytest

from bert_tf.checkpoints import CheckpointError, convert, read, save
from bert_tf.checkpoints.formats.kerashub import write_preset
from bert_tf.checkpoints.saving import tensor_values
from bert_tf.tokenizers import read_tokenizer
from tests.architectures.test_architectures import GOLDEN

OUTPUTS = ("sequence_output", "pooled_output")


@pytest.fixture(scope="module")
def preset(tmp_path_factory, vocabulary):
    """A folder that KerasHub's own `save_to_preset` wrote, and the backbone: all weights random."""
    import keras_hub

    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=len(vocabulary),
        num_layers=3,
        num_heads=4,
        hidden_dim=32,
        intermediate_dim=48,
        max_sequence_length=64,
    )
    rng = np.random.default_rng(5)
    for variable in backbone.weights:
        centre = 1 if variable.name == "gamma" else 0
        variable.assign(rng.normal(centre, 0.2, variable.shape))
    folder = tmp_path_factory.mktemp("preset") / "bert"
    backbone.save_to_preset(str(folder))
    keras_hub.models.BertTokenizer(vocabulary=list(vocabulary), lowercase=False).save_to_preset(str(folder))
    return folder, backbone


@pytest.fixture
def copied(preset, tmp_path):
    """A copy of that folder, to be changed."""
    return shutil.copytree(preset[0], tmp_path / "preset")


def check_equal(ours, theirs):
    for name in OUTPUTS:
        np.testing.assert_allclose(ours[name], np.asarray(theirs[name]), rtol=0, atol=1e-5, err_msg=name)


def test_a_preset_is_read_with_equal_outputs(preset, batch, outputs_of, vocabulary):
    folder, backbone = preset
    config, tokenizer, model = read(folder)
    assert (config.hidden_act, config.num_hidden_layers, config.intermediate_size) == ("gelu_new", 3, 48)
    assert tokenizer.vocab == tuple(vocabulary) and not tokenizer.lower_case
    assert model.bert_heads == {"pooler"}
    check_equal(outputs_of(model), backbone(batch))


@pytest.mark.slow
def test_a_preset_is_read_without_keras_hub(preset):
    import subprocess
    import sys

    code = (
        "import sys, bert_tf.checkpoints as c\n"
        f"c.read({str(preset[0])!r}); print([n for n in ('keras_hub', 'keras_nlp') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_ours_is_loaded_by_keras_hub_with_equal_outputs(make_tiny, batch, outputs_of, tmp_path):
    import keras_hub

    made = make_tiny(hidden_act="gelu_new")
    own = save(tmp_path / "own", made.config, made.tokenizer, made.model)
    done = convert(own, tmp_path / "p", to="keras-nlp")
    assert done.heads == {"pooler"} and done.dropped == {"mlm", "nsp"} and "an MLM and NSP head" in done.note
    backbone = keras_hub.models.BertBackbone.from_preset(str(done.path))
    check_equal(outputs_of(made.model), backbone(batch))


def test_with_exact_gelu_outputs_are_near_and_equal_by_the_line_of_the_note(
    tiny, tiny_folder, batch, outputs_of, tmp_path
):
    import keras_nlp

    done = convert(tiny_folder, tmp_path / "p", to="keras-nlp")
    assert "tanh approximation of GELU" in done.note and "keras.activations.gelu" in done.note
    assert done.note.split(". ", 1)[1] in (done.path / "README.md").read_text()
    backbone = keras_nlp.models.BertBackbone.from_preset(str(done.path))
    ours = outputs_of(tiny.model)
    for name in OUTPUTS:
        np.testing.assert_allclose(ours[name], np.asarray(backbone(batch)[name]), rtol=0, atol=5e-3)
    for layer in backbone.transformer_layers:
        layer._feedforward_intermediate_dense.activation = keras.activations.gelu
    check_equal(ours, backbone(batch))


def test_keras_hubs_tokenizer_reads_our_vocabulary(tiny, tiny_folder, tmp_path):
    import keras_hub

    done = convert(tiny_folder, tmp_path / "p", to="keras-nlp")
    theirs = keras_hub.models.BertTokenizer.from_preset(str(done.path))
    text = "The dog ran in the park."
    assert list(np.asarray(theirs(text))) == list(tiny.tokenizer.tokenize(text).ids)


def test_a_preset_comes_back_from_our_own_export(preset, outputs_of, tmp_path):
    folder, _ = preset
    own = convert(folder, tmp_path / "own").path
    back = convert(own, tmp_path / "back", to="keras-nlp").path
    first, last = outputs_of(read(folder)[2]), outputs_of(read(back)[2])
    for name in OUTPUTS:
        np.testing.assert_array_equal(first[name], last[name])


def test_a_masked_lm_is_read_with_its_head(vocabulary, tmp_path):
    import keras_hub

    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=len(vocabulary),
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=16,
        max_sequence_length=16,
    )
    tokenizer = keras_hub.models.BertTokenizer(vocabulary=list(vocabulary), lowercase=True)
    task = keras_hub.models.BertMaskedLM(
        backbone, keras_hub.models.BertMaskedLMPreprocessor(tokenizer, sequence_length=16)
    )
    task.save_to_preset(str(tmp_path / "task"))
    _, tokenizer, model = read(tmp_path / "task")
    assert tokenizer.lower_case and model.bert_heads == {"pooler", "mlm"}
    (tmp_path / "task" / "task.weights.h5").unlink()  # keras_nlp would begin the head at random
    assert read(tmp_path / "task")[2].bert_heads == {"pooler"}


def test_a_preset_of_another_model_is_refused(copied, edit_json):
    edit_json(copied / "config.json", class_name="GPT2Backbone")
    with pytest.raises(CheckpointError, match="'GPT2Backbone'; only BertBackbone"):
        read(copied)


def test_a_setting_that_is_missing_is_named(copied):
    path = copied / "config.json"
    values = json.loads(path.read_text())
    del values["config"]["num_heads"]
    path.write_text(json.dumps(values))
    with pytest.raises(CheckpointError, match="lacks num_heads"):
        read(copied)


def test_settings_of_a_tokenizer_that_are_no_object_are_named(copied, edit_json):
    edit_json(copied / "tokenizer.json", config=[1])
    with pytest.raises(CheckpointError, match=r"tokenizer.json: its config is \[1\]"):
        read(copied)


def test_a_truncated_file_is_noticed(copied):
    path = copied / "model.weights.h5"
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(CheckpointError, match="model.weights.h5 is not a complete HDF5 file"):
        read(copied)


def test_a_wrong_shape_names_both(copied):
    place = "layers/transformer_encoder_1/_self_attention_layer/query_dense/vars/0"
    with h5py.File(copied / "model.weights.h5", "r+") as file:
        del file[place]
        file[place] = np.zeros((32, 2, 16), np.float32)
    with pytest.raises(CheckpointError, match=rf"{place} has shape \(32, 2, 16\).*\(32, 4, 8\)"):
        read(copied)


def test_an_unknown_tensor_is_named(copied):
    with h5py.File(copied / "model.weights.h5", "r+") as file:
        file["layers/dense_1/vars/0"] = np.zeros(3, np.float32)
    with pytest.raises(CheckpointError, match="layers/dense_1/vars/0"):
        read(copied)


def test_missing_weights_and_vocabulary_are_named(copied):
    shutil.rmtree(copied / "assets")
    with pytest.raises(CheckpointError, match="assets/tokenizer/vocabulary.txt"):
        read(copied)
    (copied / "model.weights.h5").unlink()
    with pytest.raises(CheckpointError, match="model.weights.h5"):
        read(copied)


def test_a_vocabulary_of_another_size_is_refused(copied):
    path = copied / "assets" / "tokenizer" / "vocabulary.txt"
    path.write_text(path.read_text() + "extra\n")
    with pytest.raises(CheckpointError, match="195 tokens.*vocab_size 194"):
        read(copied)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"layer_norm_eps": 1e-6}, "layer_norm_eps"),
        ({"hidden_act": "relu"}, "'relu'"),
        ({"type_vocab_size": 0}, "always has segments, and this model has none"),
    ],
)
def test_what_a_backbone_cannot_hold_is_not_exported(make_tiny, tmp_path, settings, message):
    made = make_tiny(**settings)
    own = save(tmp_path / "own", made.config, made.tokenizer, made.model)
    with pytest.raises(CheckpointError, match=message):
        convert(own, tmp_path / "p", to="keras-nlp")
    assert not (tmp_path / "p").exists()


def test_a_model_without_a_pooler_is_not_exported(make_tiny, tmp_path):
    made = make_tiny(heads=("mlm",))
    own = save(tmp_path / "own", made.config, made.tokenizer, made.model)
    with pytest.raises(CheckpointError, match="pooler"):
        convert(own, tmp_path / "p", to="keras-nlp")


@pytest.mark.parametrize("hidden_act", ["gelu", "gelu_new"])
def test_our_preset_names_its_activation(make_tiny, tmp_path, hidden_act):
    made = make_tiny(hidden_act=hidden_act)
    convert(save(tmp_path / "own", made.config, made.tokenizer, made.model), tmp_path / "p", to="keras-nlp")
    assert read(tmp_path / "p")[0].hidden_act == hidden_act


def test_weights_with_changed_bytes_are_one_sentence(copied):
    path = copied / "model.weights.h5"
    data = bytearray(path.read_bytes())
    for start in range(600, len(data), 900):
        data[start : start + 40] = b"\xa5" * 40
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="model.weights.h5.*copy or download it again"):
        read(copied)


def test_a_tokenizer_that_cuts_otherwise_is_remarked(make_tiny, tmp_path, edit_json):
    made = make_tiny()
    own = save(tmp_path / "own", made.config, made.tokenizer, made.model)
    (own / "checksums.json").unlink()
    edit_json(own / "tokenizer_config.json", additional_special_tokens=[made.tokenizer.vocab[9]])
    assert "adds tokens" in convert(own, tmp_path / "p", to="keras-nlp").note


@pytest.mark.parametrize("name", ["roberta", "albert"])
def test_a_vocabulary_that_is_no_wordpiece_is_not_exported(tiny, tmp_path, name):
    tokenizer = read_tokenizer(GOLDEN / name)
    with pytest.raises(CheckpointError, match=f"is a WordPiece tokenizer, and.*{type(tokenizer).__name__}"):
        write_preset(tmp_path, tiny.config, tokenizer, dict(tensor_values(tiny.model)))
    assert not any(tmp_path.iterdir())
