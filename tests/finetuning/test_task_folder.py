"""Folders of fine-tuned models: Transformers reads ours, we read theirs, and those that hold only a
difference."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.checkpoints.formats.safetensors_folder import open_tensors
from bert_tf.checkpoints.model_checksums import write_model_checksums
from bert_tf.errors import CheckpointError
from bert_tf.finetuning.data.sentence_examples import SentenceExample
from bert_tf.finetuning.export import export_task
from bert_tf.finetuning.task_folder import save_task
from bert_tf.finetuning.task_network import build_network, network_over
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks.registry import task_type
from bert_tf.models import named_variables
from tests.conftest import byte_level_tokenizers, make_bert
from tests.finetuning.conftest import QUICK, finetune

FAMILY = Path(__file__).parents[1] / "golden" / "family"
SETTINGS = TaskSettings("classify", ("large", "little"), max_length=16)
TEXTS = [("The cat sat on the mat.", None), ("a dog ran", "the river bank"), ("big", None)]


def our_logits(folder):
    """Logits [K] of each text, without softmax."""
    task = bert_tf.load(folder).task
    rows = task.task_type.encode(
        [SentenceExample(*texts) for texts in TEXTS], bert_tf.load(folder).tokenizer, task.settings
    )
    return [one["logits"] for one in task.outputs(rows)]


def their_logits(folder, kind="AutoModelForSequenceClassification"):
    import torch
    import transformers

    model = getattr(transformers, kind).from_pretrained(folder).eval()
    tokenizer = bert_tf.load(folder).tokenizer
    results = []
    for text_a, text_b in TEXTS:
        packed = tokenizer.encode(text_a, text_b)
        with torch.no_grad():
            results.append(
                model(
                    input_ids=torch.tensor(packed.token_ids)[None].long(),
                    token_type_ids=torch.tensor(packed.segment_ids)[None].long(),
                )
                .logits[0]
                .numpy()
            )
    return results


def test_transformers_gives_the_same_logits_of_our_folder(trained):
    for ours, theirs in zip(our_logits(trained[0]), their_logits(trained[0])):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    config = json.loads((trained[0] / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert config["id2label"] == {"0": "large", "1": "little"}


@pytest.mark.parametrize(
    "problem, settings",
    [
        ("multi_label_classification", TaskSettings("classify", ("a", "b", "c"), multi_label=True, max_length=16)),
        ("regression", TaskSettings("classify", regression=True, max_length=16)),
    ],
)
def test_transformers_reads_several_labels_and_numbers_as_what_they_are(tiny_bert, tmp_path, problem, settings):
    network = network_over(tiny_bert.model, task_type("classify"), settings)
    for variable in network.head.named_variables().values():
        variable.assign(np.random.default_rng(0).normal(0, 0.3, variable.shape))
    save_task(tmp_path / "own", tiny_bert.config, tiny_bert.tokenizer, network, settings)
    export_task(tmp_path / "own", tmp_path / "theirs", "hf")
    config = json.loads((tmp_path / "theirs" / "config.json").read_text())
    assert config["problem_type"] == problem and config["architectures"] == ["BertForSequenceClassification"]
    expected, actual = our_logits(tmp_path / "own"), their_logits(tmp_path / "theirs")
    assert actual[0].shape == (max(len(settings.labels), 1),)
    np.testing.assert_allclose(actual, expected, atol=1e-5)
    assert np.abs(expected[0] - expected[1]).max() > 1e-3


@pytest.mark.parametrize(
    "problem, labels",
    [("single_label_classification", 3), ("regression", 1), ("multi_label_classification", 4)],
)
def test_we_give_the_same_logits_of_their_folder(tiny_bert, tmp_path, problem, labels):
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(**tiny_bert.config.to_dict(), num_labels=labels, problem_type=problem)
    model = transformers.BertForSequenceClassification(config)
    model.classifier.bias.data.normal_()
    model.save_pretrained(tmp_path)
    tiny_bert.tokenizer.save(tmp_path)
    task = bert_tf.load(tmp_path).task
    assert task.settings.regression == (problem == "regression")
    assert len(task.settings.labels) == (0 if problem == "regression" else labels)
    for ours, theirs in zip(our_logits(tmp_path), their_logits(tmp_path)):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_a_delta_holds_what_was_trained_and_needs_its_model(start_folder, trained, tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path / "home"))
    base = tmp_path / "home" / "base"
    shutil.copytree(start_folder, base)
    folder = tmp_path / "delta"
    assert (
        finetune(
            "classify",
            "--model",
            "base",
            "--train",
            trained[1],
            "--dev",
            trained[2],
            "--output",
            folder,
            "--epochs",
            3,
            "--freeze-layers",
            1,
            "--delta",
            *QUICK,
        )
        == 0
    )
    assert set(open_tensors(folder)) == {
        "bert.pooler.dense.weight",
        "bert.pooler.dense.bias",
        "classifier.weight",
        "classifier.bias",
    }
    assert not (folder / "vocab.txt").exists()
    ours = {name: np.asarray(value) for name, value in named_variables(bert_tf.load(folder).model).items()}
    original = {name: np.asarray(value) for name, value in named_variables(checkpoints.read(base)[2]).items()}
    for name, value in ours.items():
        same = np.array_equal(value, original[name])
        assert same == ("pooler" not in name), name
    answers = bert_tf.load(folder).task.predict(["a big dog", "a small dog"])
    assert [set(answer) for answer in answers] == [{"label", "probability", "probabilities"}] * 2
    export_task(folder, tmp_path / "small", "own", "int8")
    for source in (folder, tmp_path / "small"):
        export_task(source, tmp_path / f"{source.name} for transformers", "hf")
        theirs = their_logits(tmp_path / f"{source.name} for transformers")
        for ours, other in zip(our_logits(source), theirs):
            np.testing.assert_allclose(ours, other, atol=1e-5)

    other = make_bert(seed=9, layers=1)
    checkpoints.save(base, other.config, other.tokenizer, other.model)
    with pytest.raises(CheckpointError, match="was trained on another base"):
        bert_tf.load(folder)
    shutil.rmtree(base)
    with pytest.raises(CheckpointError, match="There is no model or folder called 'base'"):
        bert_tf.load(folder)


@pytest.mark.parametrize("member", ["roberta", "albert"])
def test_a_delta_has_no_vocabulary_of_any_kind(member, tmp_path, monkeypatch):
    """And a folder that was named by a relative path is found from anywhere."""
    shutil.copytree(FAMILY / member, tmp_path / "base")
    monkeypatch.chdir(tmp_path)
    config, tokenizer, model = checkpoints.read("base")
    network = build_network(config, task_type("classify"), SETTINGS)
    for name, variable in named_variables(network.bert).items():
        variable.assign(named_variables(model)[name])
    network.bert.bert_layers["embeddings"].trainable = False
    save_task("delta", config, tokenizer, network, SETTINGS, delta_of="base")
    monkeypatch.chdir("/")
    left = {path.name for path in (tmp_path / "delta").iterdir()}
    files = {"README.md", "config.json", "model.safetensors", "task.json", "tokenizer_config.json"}
    assert left == files | {"checksums.json"}
    again = bert_tf.load(tmp_path / "delta")
    assert again.tokenizer.vocab == tokenizer.vocab
    expected = {name: np.asarray(value) for name, value in named_variables(network.bert).items()}
    for name, value in named_variables(again.model).items():
        np.testing.assert_array_equal(np.asarray(value), expected[name], err_msg=name)


def test_a_delta_keeps_a_tokenizer_that_cuts_otherwise_than_its_models(tmp_path):
    same, other = byte_level_tokenizers()
    config, _, _ = checkpoints.read(FAMILY / "roberta")
    network = build_network(config, task_type("classify"), SETTINGS)
    checkpoints.save(tmp_path / "base", config, same, network.bert)
    network.bert.bert_layers["embeddings"].trainable = False
    for tokenizer in (same, other):
        save_task(tmp_path / "delta", config, tokenizer, network, SETTINGS, delta_of=tmp_path / "base")
        assert (tmp_path / "delta" / "tokenizer.json").exists() == (tokenizer is other)
        assert bert_tf.load(tmp_path / "delta").tokenizer.cuts_alike(tokenizer)


def test_a_delta_over_a_delta_is_refused_before_training(tiny_bert, trained, tmp_path, capsys):
    base = checkpoints.save(tmp_path / "base", tiny_bert.config, tiny_bert.tokenizer, tiny_bert.model)
    network = build_network(tiny_bert.config, task_type("classify"), SETTINGS)
    save_task(tmp_path / "delta", tiny_bert.config, tiny_bert.tokenizer, network, SETTINGS, delta_of=base)
    options = ["--model", tmp_path / "delta", "--train", trained[1], "--output", tmp_path / "new", *QUICK]
    assert finetune("classify", *options, "--delta") == 2
    output = capsys.readouterr().err
    assert f"{tmp_path / 'delta'} is stored over {base}" in output and "without --delta" in output
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("pooling", ["cls", "mean", "max", "attention"])
def test_every_pooling_goes_through_a_folder(tiny_bert, tmp_path, pooling):
    settings = TaskSettings("classify", ("a", "b"), pooling)
    network = build_network(tiny_bert.config, task_type("classify"), settings)
    network.head.classifier.bias.assign([0.5, -0.5])
    save_task(tmp_path, tiny_bert.config, tiny_bert.tokenizer, network, settings, dtype="int8")
    again = bert_tf.load(tmp_path).task
    assert again.settings == settings and ("pooler" in again.network.bert_heads) == (pooling == "cls")
    for name, variable in network.head.named_variables().items():
        np.testing.assert_array_equal(np.asarray(variable), np.asarray(again.network.head.named_variables()[name]))


def test_a_head_of_another_shape_is_refused(trained, tmp_path):
    shutil.copytree(trained[0], tmp_path / "model", ignore=shutil.ignore_patterns("run", "report"))
    path = tmp_path / "model" / "task.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "labels": ["a", "b", "c"]}))
    write_model_checksums(tmp_path / "model")
    with pytest.raises(CheckpointError, match="classifier.weight has shape"):
        bert_tf.load(tmp_path / "model")
    path.write_text(json.dumps({**settings, "pooling": "attention"}))
    write_model_checksums(tmp_path / "model")
    with pytest.raises(CheckpointError, match="attention_pooling.weight is missing"):
        bert_tf.load(tmp_path / "model")
