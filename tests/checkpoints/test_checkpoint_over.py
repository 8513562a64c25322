"""A model that lies over another: only what differs is stored, and it is whole again when it is read."""

import hashlib
import json
import shutil

import numpy as np
import pytest

from bert_tf import checkpoints
from bert_tf.checkpoints import CheckpointError
from bert_tf.checkpoints.delta import base_model, save_delta
from bert_tf.checkpoints.formats.safetensors_folder import open_tensors
from bert_tf.checkpoints.model_checksums import write_model_checksums
from bert_tf.checkpoints.reading import open_folder
from bert_tf.models import named_variables
from bert_tf.pretraining.objectives.distillation import build_student
from tests.architectures.test_architectures import GOLDEN
from tests.conftest import byte_level_tokenizers, make_bert


@pytest.fixture
def teacher(tmp_path, monkeypatch):
    """A model of four layers in a models folder, read back from its eight bits."""
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    bert = make_bert(layers=4)
    checkpoints.save(tmp_path / "teacher", bert.config, bert.tokenizer, bert.model, dtype="int8")
    return checkpoints.read(tmp_path / "teacher")


def save_student(folder, teacher):
    _, tokenizer, model = teacher
    student = build_student(model, 2)
    for name, variable in named_variables(student).items():
        if "layer.1." in name or name.startswith("cls."):
            variable.assign(np.asarray(variable) * 1.01)
    return student, save_delta(folder, student.bert_config, tokenizer, student, "teacher", open_folder)


def test_a_student_stores_its_heads_and_what_it_learnt(teacher, tmp_path):
    student, folder = save_student(tmp_path / "student", teacher)
    stored = set(open_tensors(folder))
    assert not any(name.startswith(("bert.embeddings.", "bert.encoder.layer.0.")) for name in stored)
    assert {name for name in stored if "encoder" in name} == {
        name for name in named_variables(student) if "layer.1." in name
    }
    assert not (folder / "vocab.txt").exists() and base_model(folder) == "teacher"
    config, tokenizer, model = checkpoints.read(folder)
    assert config.num_hidden_layers == 2 and tokenizer.vocab == teacher[1].vocab
    wanted = named_variables(student)
    for name, variable in named_variables(model).items():
        np.testing.assert_array_equal(np.asarray(variable), np.asarray(wanted[name]), err_msg=name)
    (info,) = [one for one in checkpoints.list_models() if one.name == "student"]
    assert info.heads == {"pooler", "mlm", "nsp"} and info.problem is None


def test_a_discriminator_over_a_bert_has_none_of_its_heads(teacher, tmp_path):
    from bert_tf.models import build_pretraining_model

    config, tokenizer, below = teacher
    config = config.replace(model_type="electra", embedding_size=config.hidden_size)
    judge = build_pretraining_model(config)
    known = named_variables(below)
    for name, variable in named_variables(judge).items():
        if name in known:
            variable.assign(np.asarray(known[name]) * (1.01 if "layer.3." in name else 1))
    folder = save_delta(tmp_path / "judge", config, tokenizer, judge, "teacher", open_folder)
    stored = set(open_tensors(folder))
    assert {name.split(".")[0] for name in stored} == {"electra", "discriminator_predictions"}
    assert {name for name in stored if name.startswith("electra.")} == {
        f"electra.{name.removeprefix('bert.')}" for name in known if "layer.3." in name
    }
    loaded_config, loaded_tokenizer, loaded = checkpoints.read(folder)
    assert (loaded_config, loaded_tokenizer.vocab, loaded.bert_heads) == (config, tokenizer.vocab, {"replaced"})
    wanted = named_variables(judge)
    for name, variable in named_variables(loaded).items():
        np.testing.assert_array_equal(np.asarray(variable), np.asarray(wanted[name]), err_msg=name)


def test_a_masked_word_head_that_is_not_tied_is_stored_over_a_model(teacher, tmp_path):
    from bert_tf.models import build_pretraining_model

    config, tokenizer, below = teacher
    config = config.replace(tie_word_embeddings=False)
    model = build_pretraining_model(config, heads=("mlm",))
    known = named_variables(below)
    for name, variable in named_variables(model).items():
        variable.assign(np.asarray(known[name]) if name in known else np.ones(variable.shape))
    loaded_config, _, loaded = checkpoints.read(
        save_delta(tmp_path / "over", config, tokenizer, model, "teacher", open_folder)
    )
    assert loaded_config == config and loaded.bert_heads == {"mlm", "pooler"}
    stored = named_variables(loaded)
    for name, variable in named_variables(model).items():
        np.testing.assert_array_equal(np.asarray(variable), np.asarray(stored[name]), err_msg=name)


def test_over_another_model_of_the_name_it_is_refused(teacher, tmp_path):
    _, folder = save_student(tmp_path / "student", teacher)
    other = make_bert(seed=7, layers=4)
    checkpoints.save(tmp_path / "teacher", other.config, other.tokenizer, other.model)
    with pytest.raises(CheckpointError, match="was trained on another teacher"):
        checkpoints.read(folder)


def train_on(folder, teacher, layer):
    """Stores the teacher anew with another value in one of its layers, all else byte for byte the same."""
    config, tokenizer, model = teacher
    for name, variable in named_variables(model).items():
        if f"layer.{layer}." in name:
            variable.assign(np.asarray(variable) * 1.5)
    checkpoints.save(folder, config, tokenizer, model, dtype="int8")


def test_training_on_what_is_not_taken_leaves_it(teacher, tmp_path):
    student, folder = save_student(tmp_path / "student", teacher)
    train_on(tmp_path / "teacher", teacher, 2)
    wanted = named_variables(student)
    for name, variable in named_variables(checkpoints.read(folder)[2]).items():
        np.testing.assert_array_equal(np.asarray(variable), np.asarray(wanted[name]), err_msg=name)
    train_on(tmp_path / "teacher", teacher, 0)
    with pytest.raises(CheckpointError, match="was trained on another teacher"):
        checkpoints.read(folder)


def test_a_sign_of_the_whole_model_below_is_still_known(teacher, tmp_path):
    _, folder = save_student(tmp_path / "student", teacher)
    vectors = open_folder(tmp_path / "teacher")[2]
    ends = (f"bert.encoder.layer.{end}.output.LayerNorm.weight" for end in ("0.attention", "3"))
    digest = hashlib.sha256(b"".join(vectors[name].read().astype("<f4").tobytes() for name in ends))
    old = {"base_model": "teacher", "base_sign": digest.hexdigest()[:16]}
    assert old != json.loads((folder / "base.json").read_text())
    (folder / "base.json").write_text(json.dumps(old))
    write_model_checksums(folder)
    assert checkpoints.read(folder)[0].num_hidden_layers == 2
    train_on(tmp_path / "teacher", teacher, 3)
    with pytest.raises(CheckpointError, match="was trained on another teacher"):
        checkpoints.read(folder)


def test_over_another_modernbert_of_the_name_it_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    config, tokenizer, model = checkpoints.read(GOLDEN.parent / "modernbert")
    checkpoints.save(tmp_path / "modern", config, tokenizer, model)
    folder = save_delta(tmp_path / "student", config, tokenizer, model, "modern", open_folder)
    for variable in named_variables(model).values():
        variable.assign(np.asarray(variable) * 1.5)
    checkpoints.save(tmp_path / "modern", config, tokenizer, model)
    with pytest.raises(CheckpointError, match="was trained on another modern"):
        checkpoints.read(folder)


def test_a_tokenizer_that_cuts_otherwise_than_the_model_below_stays(tmp_path):
    same, other = byte_level_tokenizers()
    config, _, model = checkpoints.read(GOLDEN / "roberta")
    checkpoints.save(tmp_path / "base", config, same, model)
    for tokenizer in (same, other):
        folder = save_delta(tmp_path / "student", config, tokenizer, model, tmp_path / "base", open_folder)
        assert (folder / "tokenizer.json").exists() == (tokenizer is other)
        assert checkpoints.read(folder)[1].cuts_alike(tokenizer)


def test_the_sentencepiece_model_is_under_the_checksums_and_not_stored_over_another_model(tmp_path):
    config, tokenizer, model = checkpoints.read(GOLDEN / "deberta")
    checkpoints.save(tmp_path / "base", config, tokenizer, model)
    assert "spm.model" in json.loads((tmp_path / "base" / "checksums.json").read_text())
    folder = save_delta(tmp_path / "student", config, tokenizer, model, tmp_path / "base", open_folder)
    assert not list(folder.glob("*.model"))
    shutil.copy(tmp_path / "base" / "spm.model", folder)  # as earlier versions left it
    assert checkpoints.read(folder)[1].cuts_alike(tokenizer)


def test_a_model_of_another_vocabulary_cannot_lie_over_it(teacher, tmp_path):
    other = make_bert(lower_case=True)
    with pytest.raises(CheckpointError, match="teacher has another vocabulary"):
        save_delta(tmp_path / "student", other.config, other.tokenizer, other.model, "teacher", open_folder)


def test_the_note_names_the_model_below(teacher, tmp_path):
    _, folder = save_student(tmp_path / "student", teacher)
    assert set(json.loads((folder / "base.json").read_text())) == {"base_model", "base_sign"}
