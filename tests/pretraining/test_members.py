"""Every family member starts fresh as itself, and a teacher's layers become a student of its own type or another."""

import json
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from bert_tf import checkpoints
from bert_tf.architectures import ARCHITECTURES
from bert_tf.checkpoints import UnknownModel
from bert_tf.config import BertConfig, ConfigError
from bert_tf.models import build_pretraining_model, named_variables, view
from bert_tf.pretraining.initialization import (
    check_objective_fits,
    model_type_of,
    new_config,
    tokenizer_of,
)
from bert_tf.pretraining.objectives.distillation import build_student
from tests.conftest import make_bert
from tests.pretraining.test_export_runs import GOLDEN_FOLDERS, pretrain

SIZES = [(model_type, size) for model_type, member in ARCHITECTURES.items() for size in member.sizes]
#: model type -> the same size as a released one, written in numbers
WRITTEN = {
    "bert": ("small", "4x512x8"),
    "roberta": ("large", "24x1024x16"),
    "distilbert": ("base", "6x768x12"),
    "albert": ("base", "12x768x12"),
    "electra": ("small", "12x256x4"),
    "left-to-right": ("base", "12x768x12"),
    "two-one-way": ("base", "12x1536x24"),
}


VOCABULARY = 60_000  # more than the padding id of every architecture


def words_of(member):
    return SimpleNamespace(vocab_size=VOCABULARY, pad_id=member.defaults.get("pad_token_id", 0))


@pytest.mark.parametrize("model_type, size", SIZES)
def test_a_named_size_has_all_that_is_the_members_own(model_type, size):
    released = BertConfig.named(size, model_type)
    assert new_config(size, model_type, words_of(released.architecture)) == released.replace(vocab_size=VOCABULARY)


@pytest.mark.parametrize("model_type", WRITTEN)
def test_a_size_in_numbers_does_too(model_type):
    name, size = WRITTEN[model_type]
    assert new_config(size, model_type, words_of(ARCHITECTURES[model_type])) == BertConfig.named(
        name, model_type, vocab_size=VOCABULARY
    )


def test_embeddings_of_other_widths():
    tokenizer = words_of(ARCHITECTURES["bert"])
    widths = {size: new_config(size, "albert", tokenizer).embedding_width for size in ("2x128x4", "2x512x8")}
    assert widths == {"2x128x4": 64, "2x512x8": 128}
    assert new_config("12x768x12", "electra", tokenizer).embedding_width == 768
    assert new_config("2x128x4", "albert", tokenizer, embedding_size=32).embedding_width == 32
    with pytest.raises(ConfigError, match="embedding_size is 32"):
        new_config("2x128x4", "bert", tokenizer, embedding_size=32)


def test_the_padding_id_and_the_positions_are_the_vocabularys():
    config = new_config("2x16x2", "roberta", SimpleNamespace(vocab_size=50, pad_id=1), positions=64)
    assert (config.max_position_embeddings, config.max_tokens, config.pad_token_id) == (66, 64, 1)


def test_a_vocabulary_is_named_by_its_model_or_its_folder(tmp_path, monkeypatch):
    tokenizer = make_bert(layers=1).tokenizer
    tokenizer.save(tmp_path)
    assert tokenizer_of(str(tmp_path)).vocab == tokenizer.vocab
    assert tokenizer_of("bert-small-uncased-embedded").vocab_size == 30522
    with pytest.raises(UnknownModel, match="no model or folder called 'bert-smal-uncased'"):
        tokenizer_of("bert-smal-uncased")


def test_an_objective_has_a_member_it_was_made_for():
    assert [
        model_type_of(*options) for options in (("mlm+nsp",), ("sop",), ("mlm", 0.25), ("sop", None, "roberta"))
    ] == [
        "bert",
        "albert",
        "electra",
        "roberta",
    ]
    check_objective_fits(BertConfig.named("base", "roberta"), "mlm", ("mlm",))
    with pytest.raises(ValueError, match="next-sentence head, which a RoBERTa model does not have; give"):
        check_objective_fits(BertConfig.named("base", "roberta"), "mlm+nsp", ("pooler", "mlm", "nsp"))
    with pytest.raises(ValueError, match="replaced-token head.*leave it out, or take a model of the type electra"):
        check_objective_fits(BertConfig(), "mlm", ("replaced",))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A text and a teacher."""
    folder = tmp_path_factory.mktemp("members")
    (folder / "text.txt").write_text("\n\n".join(["The cat sat on the mat.\nShe ran in the park. It was big."] * 20))
    bert = make_bert(layers=3)
    checkpoints.save(folder / "teacher", bert.config, bert.tokenizer, bert.model)
    return folder


FRESH = {
    "roberta": ["--vocab", str(GOLDEN_FOLDERS / "roberta"), "--objective", "mlm"],
    "distilbert": ["--vocab", "{folder}/teacher", "--objective", "mlm"],
    "albert": ["--vocab", str(GOLDEN_FOLDERS / "albert"), "--objective", "sop", "--ngram", "3", "--optimizer", "lamb"],
}


@pytest.mark.parametrize("model_type", FRESH)
def test_a_member_is_pretrained_from_random_weights(folder, tmp_path, model_type):
    import transformers

    options = ["--size", "2x16x2", "--positions", "64", "--model-type", model_type, *FRESH[model_type]]
    pretrain(folder, tmp_path / "run", *options)
    config, _, model = checkpoints.read(tmp_path / "run" / "model")
    assert config.model_type == model_type and config.max_tokens == 64
    assert model.bert_heads == set(ARCHITECTURES[model_type].trained)
    assert len(set(config.layer_groups)) == (1 if model_type == "albert" else 2)
    name = ARCHITECTURES[model_type].transformers_class(model.bert_heads)
    theirs, loading = getattr(transformers, name).from_pretrained(tmp_path / "run" / "model", output_loading_info=True)
    assert not loading["missing_keys"] and not loading["unexpected_keys"]
    counted = sum(int(np.prod(variable.shape)) for variable in named_variables(model).values())
    pooler = 16 * 17 if model_type == "roberta" and hasattr(theirs.base_model.pooler, "dense") else 0
    assert sum(values.numel() for values in theirs.parameters()) == counted + pooler


def test_a_distilbert_comes_out_of_bert(folder, tmp_path):
    teacher = checkpoints.read(folder / "teacher")[2]
    student = build_student(teacher, 3, model_type="distilbert")
    assert student.bert_heads == {"mlm"} and student.bert_config.type_vocab_size == 0
    ids = np.random.default_rng(0).integers(5, 40, (2, 9)).astype(np.int32)
    batch = {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}
    # With all of the layers it says of one segment what the teacher says.
    ours, theirs = (np.asarray(view(one, ("mlm_logits_all",))(batch)["mlm_logits_all"]) for one in (student, teacher))
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    pretrain(
        folder,
        tmp_path / "run",
        "--teacher",
        "{folder}/teacher",
        "--student-layers",
        "2",
        "--model-type",
        "distilbert",
        "--objective",
        "mlm",
    )
    config, _, model = checkpoints.read(tmp_path / "run" / "model")
    assert (config.model_type, config.num_hidden_layers, model.bert_heads) == ("distilbert", 2, {"mlm"})
    with pytest.raises(ValueError, match="BERT teacher's layers cannot be a roberta; it can be: bert, distilbert"):
        build_student(teacher, 2, model_type="roberta")


def test_students_of_albert_share_what_their_teacher_shares():
    teacher = checkpoints.read(GOLDEN_FOLDERS / "albert")[2]  # 4 layers, 2 sets of weights
    known = named_variables(teacher)
    name = "bert.encoder.layer.{}.attention.self.query.weight"
    student = build_student(teacher, 2)
    assert student.bert_config.layer_groups == (0, 1) and student.bert_heads == teacher.bert_heads
    for group in (0, 1):
        np.testing.assert_array_equal(named_variables(student)[name.format(group)], known[name.format(group)])
    # One layer is the teacher's last, and has the last set of weights.
    np.testing.assert_array_equal(named_variables(build_student(teacher, 1))[name.format(0)], known[name.format(1)])
    with pytest.raises(ValueError, match="3 of this ALBERT teacher's 4 layers do not share its 2 sets"):
        build_student(teacher, 3)
    keras.utils.set_random_seed(0)
    shared = build_pretraining_model(teacher.bert_config.replace(num_hidden_layers=3, num_hidden_groups=1))
    assert build_student(shared, 2).bert_config.layer_groups == (0, 0)


def test_what_does_not_go_with_a_model_type_is_told(folder, tmp_path):
    with pytest.raises(ValueError, match="is a BERT model, not of the type albert"):
        pretrain(folder, tmp_path / "a", "--init", "{folder}/teacher", "--model-type", "albert")
    with pytest.raises(ValueError, match="--generator makes an electra; leave --model-type bert out"):
        pretrain(
            folder,
            tmp_path / "b",
            "--size",
            "1x16x2",
            "--vocab",
            "{folder}/teacher",
            "--model-type",
            "bert",
            "--generator",
            "0.5",
            "--objective",
            "mlm",
        )


def test_a_run_with_embeddings_of_another_width_is_told(tmp_path):
    from bert_tf.pretraining.run_settings import check_embeddings

    config = BertConfig.named("small", "electra").replace(embedding_size=32)
    check_embeddings(tmp_path, config)
    (tmp_path / "architecture").mkdir()
    (tmp_path / "architecture" / "config.json").write_text(json.dumps(config.to_dict()))
    check_embeddings(tmp_path, config)
    with pytest.raises(ValueError, match="embeddings have 32 numbers .now 64.; give --embedding-size 32"):
        check_embeddings(tmp_path, config.replace(embedding_size=64))
