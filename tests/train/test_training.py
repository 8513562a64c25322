"""Training: the optimiser's settings, learning on a small text, checkpoints that survive what happens to them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from argparse import ArgumentParser
from pathlib import Path

import keras
import numpy as np
import pytest

from bert_tf import checkpoints
from bert_tf.config import BertConfig
from bert_tf.models import build_pretraining_model, named_variables
from bert_tf.pretrain import command
from bert_tf.pretrain.command import freeze
from bert_tf.pretrain.objective import MaskedLMAndNextSentence
from bert_tf.text import Tokenizer
from bert_tf.train.checkpoint import Checkpoints, CheckpointWriteError
from bert_tf.train.loop import Trainer, TrainingDiverged
from bert_tf.train.optimizer import WarmupLinearDecay, adamw
from bert_tf.train.precision import apply_precision
from tests.conftest import small_vocabulary

TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
        "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
SENTENCES = {"cat": "The cat sat on the mat. She played in the park.", "law": "The legislators changed the law. "
             "They ended the war.", "bank": "He ran on the river bank. It was big and red."}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Text whose documents keep to one subject, and a random model to start from."""
    folder = tmp_path_factory.mktemp("start")
    (folder / "text.txt").write_text("\n\n".join("\n".join([text] * 4) for text in list(SENTENCES.values()) * 10))
    tokenizer = Tokenizer(small_vocabulary(), lower_case=False)
    config = BertConfig(vocab_size=tokenizer.vocab_size, max_position_embeddings=64, **TINY)
    keras.utils.set_random_seed(1)
    checkpoints.save(folder / "model", config, tokenizer, build_pretraining_model(config))
    return folder


def options(start, output, *extra):
    return ["--text", str(start / "text.txt"), "--init", str(start / "model"), "--output", str(output),
            "--batch-size", "8", "--length", "32", "--learning-rate", "3e-3", "--log-every", "5", *map(str, extra)]


def pretrain(start, output, *extra):
    parser = ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args(options(start, output, *extra)))


def records(output):
    return [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]


def weights(folder):
    model = checkpoints.read(folder)[2]
    return {name: np.asarray(variable) for name, variable in named_variables(model).items()}


def test_schedule_rises_and_falls_linearly():
    schedule = WarmupLinearDecay(1e-3, total_steps=100, warmup_steps=10)
    rates = [float(schedule(step)) for step in (0, 4, 9, 10, 55, 99, 150)]
    np.testing.assert_allclose(rates, [1e-4, 5e-4, 1e-3, 1e-3, 5e-4, 1e-3 / 90, 0], atol=1e-9)


@pytest.mark.parametrize("steps, warmup", [(1, 0), (1, 1), (2, 0), (2, 1), (2, 2), (9, 3)])
def test_no_update_has_a_rate_of_zero(steps, warmup):
    schedule = WarmupLinearDecay(1.0, steps, warmup)
    rates = [float(schedule(step)) for step in range(steps)]
    assert min(rates) > 0 and max(rates) == 1


def test_adamw_equals_torch():
    import torch

    rng = np.random.default_rng(0)
    start = rng.normal(size=(4, 3)).astype("float32")
    kernel, bias = keras.Variable(start, name="kernel"), keras.Variable(start[0], name="bias")
    ours = adamw([kernel, bias], 1e-2, total_steps=20, warmup_steps=4)
    theirs = [torch.nn.Parameter(torch.tensor(value)) for value in (start, start[0])]
    reference = torch.optim.AdamW([{"params": theirs[:1], "weight_decay": 0.01},
                                   {"params": theirs[1:], "weight_decay": 0.0}], lr=1e-2, eps=1e-6)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        reference, lambda step: min((step + 1) / 4, (20 - step) / 16, 1))
    for _ in range(12):
        gradients = [rng.normal(size=shape).astype("float32") for shape in ((4, 3), (3,))]
        for parameter, gradient in zip(theirs, gradients):
            parameter.grad = torch.tensor(gradient)
        ours.apply([keras.ops.convert_to_tensor(gradient) for gradient in gradients], [kernel, bias])
        reference.step()
        schedule.step()
    np.testing.assert_allclose(np.asarray(kernel), theirs[0].detach().numpy(), atol=2e-6)
    np.testing.assert_allclose(np.asarray(bias), theirs[1].detach().numpy(), atol=2e-6)


def test_loss_is_a_mean_over_real_masks_only():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 3, 7)).astype("float32")
    batch = {"mask_labels": np.array([[1, 2, 0], [3, 0, 0]]), "nsp_labels": np.array([0, 1]),
             "mask_weights": np.array([[1, 1, 0], [1, 0, 0]], "float32")}
    nsp = rng.normal(size=(2, 2)).astype("float32")
    values = MaskedLMAndNextSentence()({"mlm_logits": logits, "nsp_logits": nsp}, batch)
    log_softmax = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    expected = -(log_softmax[0, 0, 1] + log_softmax[0, 1, 2] + log_softmax[1, 0, 3]) / 3
    assert float(values["mlm_loss"]) == pytest.approx(expected, abs=1e-5)
    nsp_log = nsp - np.log(np.exp(nsp).sum(-1, keepdims=True))
    assert float(values["nsp_loss"]) == pytest.approx(-(nsp_log[0, 0] + nsp_log[1, 1]) / 2, abs=1e-5)
    assert float(values["loss"]) == pytest.approx(float(values["mlm_loss"] + values["nsp_loss"]))


def test_it_learns_and_the_result_loads(start, tmp_path):
    assert pretrain(start, tmp_path, "--steps", 400) == 0
    log = records(tmp_path)
    assert log[-1]["mlm_loss"] < 0.6 * log[0]["mlm_loss"]
    assert log[-1]["mlm_accuracy"] > 0.45
    config, tokenizer, model = checkpoints.read(tmp_path / "model")
    assert model.bert_heads == {"pooler", "mlm", "nsp"} and config.hidden_size == 32


@pytest.mark.parametrize("precision", ["bfloat16_products", "mixed_bfloat16", "mixed_float16"])
def test_reduced_precision_learns_too(start, tmp_path, precision):
    pretrain(start, tmp_path, "--steps", 60, "--precision", precision)
    log = records(tmp_path)
    assert log[-1]["loss"] < 0.8 * log[0]["loss"]


def test_bfloat16_products_leave_all_else_in_float32():
    model = build_pretraining_model(BertConfig(vocab_size=50, **TINY))
    apply_precision(model, "bfloat16_products")
    layer = model.bert_layers["layer_0"]
    assert layer.feed_forward.intermediate.compute_dtype == "bfloat16"
    assert layer.attention_norm.compute_dtype == layer.attention.compute_dtype == "float32"
    assert all(variable.dtype == "float32" for variable in model.variables)
    with pytest.raises(ValueError, match="int4"):
        apply_precision(model, "int4")


def test_fresh_head_starts_from_word_frequencies(start, tmp_path):
    config, tokenizer, model = checkpoints.read(start / "model")
    from bert_tf.models import BertModel

    headless = BertModel(config, ("sequence_output",), (), name="headless")
    for name, variable in named_variables(headless).items():
        variable.assign(named_variables(model)[name])
    checkpoints.save(tmp_path / "headless", config, tokenizer, headless)
    args = options(start, tmp_path / "run", "--steps", 1, "--learning-rate", 0.0)
    args[args.index("--init") + 1] = str(tmp_path / "headless")
    parser = ArgumentParser()
    command.add_arguments(parser)
    command.run(parser.parse_args(args))
    trained = weights(tmp_path / "run" / "model")
    bias = trained["cls.predictions.bias"]
    assert np.exp(bias).sum() == pytest.approx(1, abs=1e-3)
    assert bias[tokenizer.token_to_id("the")] == bias.max() or bias[tokenizer.token_to_id(".")] == bias.max()
    name = "bert.encoder.layer.1.output.dense.weight"
    np.testing.assert_array_equal(trained[name], weights(start / "model")[name])


def test_frozen_layers_stay_as_they_are(start, tmp_path):
    pretrain(start, tmp_path, "--steps", 3, "--freeze-layers", 1)
    before, after = weights(start / "model"), weights(tmp_path / "model")
    moved = {name for name in before if not np.array_equal(before[name], after[name])}
    assert not any("embeddings" in name or "layer.0." in name for name in moved)
    assert any("layer.1." in name for name in moved) and "cls.predictions.bias" in moved
    with pytest.raises(ValueError, match="7.*2 layers"):
        freeze(checkpoints.read(start / "model")[2], 7)


@pytest.mark.parametrize("groups, possible", [(1, (0, 4)), (2, (0, 2, 4)), (4, (0, 1, 2, 3, 4))])
def test_no_layer_is_frozen_that_shares_its_weights_with_one_that_learns(groups, possible):
    from bert_tf.models import build_encoder

    config = BertConfig(vocab_size=8, hidden_size=4, num_attention_heads=1, intermediate_size=4, num_hidden_layers=4,
                        max_position_embeddings=8, model_type="albert", embedding_size=4, num_hidden_groups=groups)
    assert config.freezable == possible
    for layers in range(5):
        model = build_encoder(config)
        if layers in possible:
            freeze(model, layers)
            learning = [model.bert_layers[f"layer_{index}"].trainable for index in range(4)]
            assert learning == [index >= layers for index in range(4)]
        else:
            fewer = ", ".join(map(str, possible[:-1]))
            said = f"layer {layers} shares its weights with layer {layers + 1}, .*{fewer} or 4"
            with pytest.raises(ValueError, match=f"--freeze-layers is {layers}, but {said}"):
                freeze(model, layers)
            assert all(layer.trainable for layer in model.bert_layers.values())


def test_a_resumed_run_equals_an_unbroken_one(start, tmp_path):
    """Dropout, too, goes on with the very next mask."""
    settings = ["--steps", 14, "--dropout", 0.2]
    pretrain(start, tmp_path / "whole", *settings)
    pretrain(start, tmp_path / "parts", *settings, "--stop-after", 6)
    pretrain(start, tmp_path / "parts", *settings)
    whole, parts = weights(tmp_path / "whole/model"), weights(tmp_path / "parts/model")
    for name in whole:
        np.testing.assert_allclose(parts[name], whole[name], atol=1e-6, err_msg=name)


def test_a_run_keeps_its_text_and_its_model(start, tmp_path, capsys):
    """But steps, batch size and rates may change from call to call, as recipes/embedded.py does."""
    run, other = tmp_path / "run", tmp_path / "other.txt"
    pretrain(start, run, "--steps", 2)
    settings = (run / "settings.json").read_text()
    other.write_text((start / "text.txt").read_text() * 2)
    keras.utils.set_random_seed(2)
    checkpoints.save(tmp_path / "model", *checkpoints.read(start / "model"))
    for wrong, said in ((["--text", other], "on other text"), (["--length", 16], "another --length .32, not 16"),
                        (["--max-documents", 5], "on other text"), (["--language", "de"], "on other text"), (["--objective", "mlm"], "another --objective"),
                        (["--init", tmp_path / "model"], "another --init")):
        with pytest.raises(ValueError, match=f"holds a run .*{said}.*give another --output"):
            pretrain(start, run, "--steps", 9, *wrong)
        assert (run / "settings.json").read_text() == settings
    pretrain(start, run, "--steps", 4, "--batch-size", 4, "--learning-rate", 1e-4, "--mask-rate", 0.2)
    assert "Resuming after step 2." in capsys.readouterr().out
    assert json.loads((run / "settings.json").read_text())["settings"]["steps"] == 4


def test_a_run_from_before_its_settings_were_noted_goes_on(start, tmp_path, capsys):
    pretrain(start, tmp_path, "--steps", 2)
    path = tmp_path / "settings.json"
    noted = json.loads(path.read_text())
    del noted["corpus"]["key"], noted["settings"]["objective"], noted["settings"]["teacher"]
    path.write_text(json.dumps(noted))
    pretrain(start, tmp_path, "--steps", 3)
    assert "Resuming after step 2." in capsys.readouterr().out


def test_the_longest_sequence_ends_with_the_position_table(start, tmp_path):
    roberta = Path(__file__).parents[1] / "golden" / "family" / "roberta"   # 32 positions, the first two not used
    with pytest.raises(ValueError, match="31 tokens were asked for; this model takes 8 to 30"):
        pretrain(start, tmp_path, "--init", roberta, "--objective", "mlm", "--length", 31)


def test_a_run_without_a_checkpoint_begins_anew(start, tmp_path):
    pretrain(start, tmp_path, "--steps", 2)
    shutil.rmtree(tmp_path / "checkpoints")
    pretrain(start, tmp_path, "--steps", 2, "--length", 16)
    assert json.loads((tmp_path / "settings.json").read_text())["settings"]["length"] == 16


def test_a_killed_run_resumes_and_sigterm_saves(start, tmp_path):
    """SIGKILL in mid-step loses nothing before the last checkpoint; SIGTERM saves before leaving."""
    pretrain(start, tmp_path / "whole", "--steps", 400)
    arguments = [sys.executable, "-m", "bert_tf", "pretrain",
                 *options(start, tmp_path / "run", "--steps", 400, "--save-every", 10)]
    for number in (signal.SIGKILL, signal.SIGTERM):
        run = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        folder = Checkpoints(tmp_path / "run" / "checkpoints")
        before = (folder.steps() or [0])[-1]
        deadline = time.monotonic() + 240
        while (folder.steps() or [0])[-1] < before + 20 and run.poll() is None:
            assert time.monotonic() < deadline, "the run made no checkpoints"
            time.sleep(0.02)
        os.kill(run.pid, number)
        code = run.wait(timeout=120)
        assert code in (-number, 0)
    pretrain(start, tmp_path / "run", "--steps", 400, "--save-every", 10)
    whole, run = weights(tmp_path / "whole/model"), weights(tmp_path / "run/model")
    for name in whole:
        np.testing.assert_allclose(run[name], whole[name], atol=1e-4, err_msg=name)


def test_a_full_disk_is_said_and_the_last_checkpoint_stays(tmp_path, monkeypatch):
    variable = keras.Variable(np.arange(4.0, dtype="float32"))
    saved = Checkpoints(tmp_path)
    saved.save(1, [variable], {"position": [0, 0, 1]})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.numpy.save_file", full)
    with pytest.raises(CheckpointWriteError, match="disk is full"):
        saved.save(2, [variable], {})
    variable.assign(np.zeros(4))
    assert saved.restore([variable]) == {"position": [0, 0, 1], "step": 1}
    np.testing.assert_array_equal(np.asarray(variable), np.arange(4))
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]


def test_only_the_newest_checkpoints_are_kept(tmp_path):
    variable = keras.Variable(np.zeros(2, "float32"))
    saved = Checkpoints(tmp_path, keep=2)
    for step in (5, 10, 200):
        saved.save(step, [variable], {})
    assert saved.steps() == [10, 200]
    with pytest.raises(ValueError, match="another model"):
        saved.restore([keras.Variable(np.zeros(3, "float32"))])


def test_the_best_checkpoint_is_kept_besides_the_newest(tmp_path):
    variable = keras.Variable(np.zeros(2, "float32"))
    saved = Checkpoints(tmp_path, keep=2)
    assert saved.best() is None
    for step, loss in ((1, 3.0), (2, 1.0), (3, 2.0), (4, 1.5), (5, 1.2)):
        variable.assign([step, step])
        saved.save(step, [variable], {"loss": loss})
    assert saved.steps() == [2, 4, 5] and saved.best() == 2
    assert saved.restore([variable], step=saved.best())["step"] == 2 and float(variable[0]) == 2
    saved.save(6, [variable], {"loss": 0.5})
    assert saved.steps() == [5, 6] and saved.best() == 6


def test_a_loss_that_is_not_finite_stops_the_run(start, tmp_path):
    _, _, model = checkpoints.read(start / "model")
    model.bert_layers["nsp"].dense.bias.assign([np.nan, 0])
    trainer = Trainer(model, MaskedLMAndNextSentence(), adamw(model.trainable_variables, 1e-3, 5, 1), tmp_path)
    ones = np.ones((2, 4), "int32")
    batch = {"token_ids": ones, "segment_ids": ones * 0, "padding_mask": ones, "mask_positions": ones[:, :1],
             "mask_labels": ones[:, :1], "mask_weights": ones[:, :1].astype("float32"), "nsp_labels": ones[:, 0]}
    with pytest.raises(TrainingDiverged, match=r"step 1 \(data position \[0, 0, 7\]\)"):
        trainer.train([(batch, (0, 0, 7))], 0, 5, encode_position=list)
    assert not trainer.checkpoints.steps()


def test_a_size_without_a_vocabulary_is_refused(start, tmp_path):
    parser = ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args(["--text", str(start / "text.txt"), "--size", "tiny", "--output", str(tmp_path)])
    with pytest.raises(ValueError, match="--vocab"):
        command.run(args)
