"""LoRA: what is trained, what the folder holds, how it is read, and the merged model."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file

import bert_tf
from bert_tf.checkpoints import save
from bert_tf.errors import CheckpointError
from bert_tf.finetuning.export import export_task
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks.registry import task_type
from tests.conftest import make_bert
from tests.finetuning.conftest import QUICK, finetune, make_set, one_label

TEXTS = ["the big cat sat", "a small dog ran in the park"]


@pytest.fixture(scope="module")
def adapter(start_folder, tmp_path_factory):
    """(folder of an adapter, its held.csv)."""
    folder = tmp_path_factory.mktemp("lora")
    train, held = make_set(folder / "data", one_label)
    data = ("--model", start_folder, "--train", train, "--dev", held, "--output", folder / "model")
    assert (
        finetune("classify", *data, "--epochs", 4, "--lora", 4, "--pooling", "mean", *QUICK, "--learning-rate", "0.02")
        == 0
    )
    return folder / "model", held


def test_it_learns_and_stores_only_the_updates_and_the_head(adapter, start_folder):
    folder, _ = adapter
    metrics = json.loads((folder / "report" / "metrics.json").read_text())
    assert metrics["dev"]["accuracy"] > 0.9
    tensors = load_file(folder / "model.safetensors")
    updates = {name for name in tensors if "lora_" in name}
    assert len(updates) == 12 and set(tensors) - updates == {"classifier.weight", "classifier.bias"}
    assert tensors["bert.encoder.layer.0.intermediate.dense.lora_A.weight"].shape == (4, 32)
    size = (folder / "model.safetensors").stat().st_size
    assert size < (start_folder / "model.safetensors").stat().st_size / 3
    assert not (folder / "vocab.txt").exists()


def test_a_matrix_is_that_of_the_base_model_and_the_update(adapter, start_folder):
    from bert_tf.checkpoints.reading import open_folder

    name = "bert.encoder.layer.0.attention.self.value"
    base = load_file(start_folder / "model.safetensors")[f"{name}.weight"]
    tensors = load_file(adapter[0] / "model.safetensors")
    update = tensors[f"{name}.lora_B.weight"] @ tensors[f"{name}.lora_A.weight"]
    assert np.abs(update).max() > 1e-3
    read = open_folder(adapter[0])[2][f"{name}.weight"]
    np.testing.assert_allclose(read.read(), base + update, atol=1e-6)
    np.testing.assert_allclose(read.read(slice(3, 5)), (base + update)[3:5], atol=1e-6)


def test_over_a_base_model_in_eight_bits_the_sum_is_rounded_to_eight_bits(adapter, start_folder, tmp_path):
    from bert_tf.checkpoints.convert import convert
    from bert_tf.checkpoints.reading import open_folder

    base, name = tmp_path / "base", "bert.encoder.layer.0.attention.self.value.weight"
    shutil.copytree(adapter[0], tmp_path / "adapter", ignore=shutil.ignore_patterns("run"))
    convert(start_folder, base, "own", dtype="int8")
    task = json.loads((adapter[0] / "task.json").read_text())
    (tmp_path / "adapter" / "task.json").write_text(json.dumps({**task, "base_model": str(base)}))
    whole, read = (open_folder(folder)[2][name] for folder in (adapter[0], tmp_path / "adapter"))
    weight = read.weight()
    assert weight.values.dtype == np.int8 and weight.scales.shape == read.shape[:1]
    np.testing.assert_array_equal(weight.float32(), read.read())
    np.testing.assert_array_equal(read.read(slice(3, 5)), read.read()[3:5])
    assert np.abs(read.read() - whole.read()).max() <= 1.01 * weight.scales.max()


def test_merging_writes_a_whole_model_with_the_same_predictions(adapter, tmp_path):
    expected = [one["probabilities"] for one in bert_tf.load(adapter[0]).task.predict(TEXTS)]
    whole = export_task(adapter[0], tmp_path / "whole", "own")
    tensors = load_file(whole / "model.safetensors")
    assert not any("lora" in name for name in tensors) and (whole / "vocab.txt").is_file()
    actual = [one["probabilities"] for one in bert_tf.load(whole).task.predict(TEXTS)]
    for one, other in zip(actual, expected):
        assert one == pytest.approx(other, abs=1e-5)


@pytest.mark.parametrize("model_type", ["distilbert", "albert", "modernbert"])
def test_the_networks_of_the_family_have_the_same_outputs_when_read(model_type, tmp_path):
    from bert_tf.finetuning.task_folder import save_task
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.training.lora import add_lora
    from tests.architectures.test_architectures import GOLDEN

    start = bert_tf.load(GOLDEN.parent / "modernbert" if model_type == "modernbert" else GOLDEN / model_type)
    settings = TaskSettings("classify", ("no", "yes"), pooling="mean")
    save(tmp_path / "base", start.config, start.tokenizer, start.model)
    network = network_over(start.model, task_type("classify"), settings)
    add_lora(network, 2)
    rng = np.random.default_rng(0)
    for variable in network.trainable_variables:
        if "lora" in variable.name:
            variable.assign(rng.normal(0, 0.2, variable.shape))
    save_task(tmp_path / "adapter", start.config, start.tokenizer, network, settings, delta_of=tmp_path / "base")
    ids = np.arange(5, 12, dtype=np.int32)[None]
    batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids**0}
    expected = np.asarray(network(batch)["logits"])
    loaded = bert_tf.load(tmp_path / "adapter")
    states = loaded.runtime.run(batch, ("sequence_output",))["sequence_output"]
    actual = loaded.task.weights.outputs(states, None, batch["padding_mask"])["logits"]
    np.testing.assert_allclose(actual, expected, atol=1e-4)


def test_what_cannot_be_is_refused_in_a_sentence(adapter, start_folder, tmp_path, capsys):
    from bert_tf.checkpoints.lora_tensors import merged
    from bert_tf.checkpoints.reading import open_folder
    from bert_tf.training.lora import add_lora

    with pytest.raises(ValueError, match="--lora is 99; the rank of the updates must be from 1 to 32"):
        add_lora(make_bert(layers=1).model, 99)
    data = ("--train", adapter[1], "--output", tmp_path / "out")
    assert finetune("classify", "--model", adapter[0], *data, "--lora", 2, *QUICK) == 2
    assert "is stored over" in capsys.readouterr().err
    tensors = open_folder(start_folder)[2]
    name = "bert.encoder.layer.0.attention.self.value"
    lone = {f"{name}.lora_A.weight": tensors[f"{name}.weight"]}
    with pytest.raises(CheckpointError, match="only one factor"):
        merged(tmp_path, tensors, lone)
    with pytest.raises(CheckpointError, match="do not fit its shape"):
        merged(
            tmp_path, tensors, {**lone, f"{name}.lora_B.weight": tensors["bert.encoder.layer.0.output.dense.weight"]}
        )
