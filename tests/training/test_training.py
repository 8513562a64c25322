"""Training: the optimiser's settings, learning on a small text, checkpoints that survive what happens to them."""

import errno
import itertools
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path

import keras
import numpy as np
import pytest
from filelock import FileLock
from safetensors import SafetensorError

from bert_tf import checkpoints
from bert_tf.cli import pretrain as command
from bert_tf.config import BertConfig
from bert_tf.errors import InputError
from bert_tf.folder_lock import FolderInUse, locked_folder
from bert_tf.models import build_pretraining_model, named_variables
from bert_tf.pretraining import export_run
from bert_tf.pretraining.data.documents import TextError
from bert_tf.pretraining.objectives.masked_lm import MaskedLMAndNextSentence
from bert_tf.tokenizers import Tokenizer
from bert_tf.training.checkpoint import Checkpoints, CheckpointWriteError
from bert_tf.training.logs.run_log import RunningMeans
from bert_tf.training.loop import Trainer, TrainingDiverged
from bert_tf.training.optimizers.registry import make_optimizer
from bert_tf.training.optimizers.schedule import WarmupLinearDecay
from bert_tf.training.precision import apply_precision, with_loss_scale
from bert_tf.training.run_folder import read_run
from bert_tf.training.weights import freeze
from tests.conftest import small_disk, small_vocabulary

TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
SENTENCES = {
    "cat": "The cat sat on the mat. She played in the park.",
    "law": "The legislators changed the law. They ended the war.",
    "bank": "He ran on the river bank. It was big and red.",
}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Text whose documents keep to one subject, and a random model of one layer to start from."""
    return write_start(tmp_path_factory.mktemp("start"))


@pytest.fixture(scope="module")
def start_of_two(tmp_path_factory):
    """As `start`, with a model of two layers."""
    return write_start(tmp_path_factory.mktemp("start"), num_hidden_layers=2)


def write_start(folder, **settings):
    (folder / "text.txt").write_text("\n\n".join("\n".join([text] * 4) for text in list(SENTENCES.values()) * 10))
    tokenizer = Tokenizer(small_vocabulary(), lower_case=False)
    config = BertConfig(vocab_size=tokenizer.vocab_size, max_position_embeddings=64, **{**TINY, **settings})
    keras.utils.set_random_seed(1)
    checkpoints.save(folder / "model", config, tokenizer, build_pretraining_model(config))
    return folder


def options(start, output, *extra):
    return [
        "--text",
        str(start / "text.txt"),
        "--init",
        str(start / "model"),
        "--output",
        str(output),
        "--batch-size",
        "8",
        "--length",
        "32",
        "--learning-rate",
        "3e-3",
        "--log-every",
        "5",
        *map(str, extra),
    ]


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
    ours = make_optimizer([kernel, bias], 1e-2, total_steps=20, warmup_steps=4)
    theirs = [torch.nn.Parameter(torch.tensor(value)) for value in (start, start[0])]
    reference = torch.optim.AdamW(
        [{"params": theirs[:1], "weight_decay": 0.01}, {"params": theirs[1:], "weight_decay": 0.0}], lr=1e-2, eps=1e-6
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(reference, lambda step: min((step + 1) / 4, (20 - step) / 16, 1))
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
    batch = {
        "mask_labels": np.array([[1, 2, 0], [3, 0, 0]]),
        "nsp_labels": np.array([0, 1]),
        "mask_weights": np.array([[1, 1, 0], [1, 0, 0]], "float32"),
    }
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
    # A model that does not see the words around predicts the commonest one each time.
    tokenizer = Tokenizer.from_folder(start / "model")
    counts = Counter(token for text in SENTENCES.values() for token in tokenizer.tokenize(text).tokens)
    guess = max(counts.values()) / counts.total()
    assert np.mean([record["mlm_accuracy"] for record in log[-20:]]) > 2 * guess
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


@pytest.mark.usefixtures("few_updates")
def test_fresh_head_starts_from_word_frequencies(start_of_two, tmp_path):
    config, tokenizer, model = checkpoints.read(start_of_two / "model")
    from bert_tf.models import BertModel

    headless = BertModel(config, ("sequence_output",), (), name="headless")
    for name, variable in named_variables(headless).items():
        variable.assign(named_variables(model)[name])
    checkpoints.save(tmp_path / "headless", config, tokenizer, headless)
    args = options(start_of_two, tmp_path / "run", "--steps", 1, "--learning-rate", 1e-30)
    args[args.index("--init") + 1] = str(tmp_path / "headless")
    parser = ArgumentParser()
    command.add_arguments(parser)
    command.run(parser.parse_args(args))
    trained = weights(tmp_path / "run" / "model")
    bias = trained["cls.predictions.bias"]
    assert np.exp(bias).sum() == pytest.approx(1, abs=1e-3)
    assert bias[tokenizer.token_to_id("the")] == bias.max() or bias[tokenizer.token_to_id(".")] == bias.max()
    name = "bert.encoder.layer.1.output.dense.weight"
    np.testing.assert_array_equal(trained[name], weights(start_of_two / "model")[name])


@pytest.mark.usefixtures("few_updates")
def test_frozen_layers_stay_as_they_are(start_of_two, tmp_path):
    pretrain(start_of_two, tmp_path, "--steps", 3, "--freeze-layers", 1)
    before, after = weights(start_of_two / "model"), weights(tmp_path / "model")
    moved = {name for name in before if not np.array_equal(before[name], after[name])}
    assert not any("embeddings" in name or "layer.0." in name for name in moved)
    assert any("layer.1." in name for name in moved) and "cls.predictions.bias" in moved
    with pytest.raises(ValueError, match="7.*2 layers"):
        freeze(checkpoints.read(start_of_two / "model")[2], 7)


@pytest.mark.parametrize("groups, possible", [(1, (0, 4)), (2, (0, 2, 4)), (4, (0, 1, 2, 3, 4))])
def test_no_layer_is_frozen_that_shares_its_weights_with_one_that_learns(groups, possible):
    from bert_tf.models import build_encoder

    config = BertConfig(
        vocab_size=8,
        hidden_size=4,
        num_attention_heads=1,
        intermediate_size=4,
        num_hidden_layers=4,
        max_position_embeddings=8,
        model_type="albert",
        embedding_size=4,
        num_hidden_groups=groups,
    )
    assert config.max_frozen_layers == possible
    for layers in range(5):
        model = build_encoder(config)
        if layers in possible:
            freeze(model, layers)
            learning = [model.bert_layers[f"layer_{index}"].trainable for index in range(4)]
            assert learning == [index >= layers for index in range(4)]
        else:
            fewer = ", ".join(map(str, possible[:-1]))
            output = f"layer {layers} shares its weights with layer {layers + 1}, .*{fewer} or 4"
            with pytest.raises(ValueError, match=f"--freeze-layers is {layers}, but {output}"):
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
    # The rate of a training is not that of its model, which a fine-tuning keeps.
    for folder in ("model", "architecture"):
        config = json.loads((tmp_path / "parts" / folder / "config.json").read_text())
        assert config["hidden_dropout_prob"] == config["attention_probs_dropout_prob"] == 0


@pytest.mark.usefixtures("few_updates")
def test_a_run_keeps_what_its_frozen_random_weights_were_drawn_with(start, tmp_path):
    def go(*extra):
        parser = ArgumentParser()
        command.add_arguments(parser)
        given = [
            one for one in options(start, tmp_path / "run", "--steps", 4) if one not in ("--init", str(start / "model"))
        ]
        fresh = ["--size", "2x16x2", "--vocab", start / "model", "--freeze-layers", 1, *extra]
        return command.run(parser.parse_args([*given, *map(str, fresh)]))

    go("--stop-after", 2)
    before = weights(tmp_path / "run/model")
    for option, value in (("--seed", 5), ("--dropout", 0)):
        with pytest.raises(ValueError, match=f"holds a run with another {option} .*give another --output"):
            go(option, value)
    assert go() == 0
    after = weights(tmp_path / "run/model")
    frozen = [name for name in before if ".embeddings." in name or ".layer.0." in name]
    assert frozen and all(np.array_equal(before[name], after[name]) for name in frozen)
    assert any(not np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.usefixtures("few_updates")
def test_a_run_keeps_its_text_and_its_model(start, tmp_path, capsys):
    """But steps, batch size and rates may change from call to call, as recipes/embedded.py does."""
    run, other = tmp_path / "run", tmp_path / "other.txt"
    pretrain(start, run, "--steps", 2)
    settings = (run / "settings.json").read_text()
    other.write_text((start / "text.txt").read_text() * 2)
    keras.utils.set_random_seed(2)
    checkpoints.save(tmp_path / "model", *checkpoints.read(start / "model"))
    for wrong, output in (
        (["--text", other], "on other text"),
        (["--length", 16], "another --length .32, not 16"),
        (["--max-documents", 5], "on other text"),
        (["--language", "de"], "on other text"),
        (["--objective", "mlm"], "another --objective"),
        (["--init", tmp_path / "model"], "another --init"),
        (["--optimizer", "lamb"], "another --optimizer .adamw, not lamb"),
        (["--freeze-layers", 1], "another --freeze-layers .0, not 1"),
    ):
        with pytest.raises(ValueError, match=f"holds a run .*{output}.*give another --output"):
            pretrain(start, run, "--steps", 9, *wrong)
        assert (run / "settings.json").read_text() == settings
    pretrain(start, run, *("--steps", 4, "--batch-size", 4, "--learning-rate", 1e-4, "--mask-rate", 0.2, "--seed", 1))
    assert "Resuming after step 2." in capsys.readouterr().out
    assert json.loads((run / "settings.json").read_text())["settings"]["steps"] == 4


@pytest.mark.usefixtures("few_updates")
def test_a_run_from_before_its_settings_were_noted_goes_on(start, tmp_path, capsys):
    pretrain(start, tmp_path, "--steps", 2)
    path = tmp_path / "settings.json"
    noted = json.loads(path.read_text())
    del noted["corpus"]["key"]
    for name in ("objective", "teacher", "optimizer", "freeze_layers"):
        del noted["settings"][name]
    noted["settings"].update(positions=512, distil="states")  # earlier versions noted defaults without effect
    path.write_text(json.dumps(noted))
    pretrain(start, tmp_path, "--steps", 3)
    assert "Resuming after step 2." in capsys.readouterr().out


@pytest.mark.usefixtures("few_updates")
def test_a_run_that_is_refused_late_keeps_its_settings(start, tmp_path):
    pretrain(start, tmp_path, "--steps", 2)
    path = tmp_path / "settings.json"
    noted = json.loads(path.read_text())
    for name in ("optimizer", "freeze_layers"):  # as earlier versions, so that only the checkpoint tells
        del noted["settings"][name]
    path.write_text(json.dumps(noted))
    before = path.read_text()
    for wrong in (["--optimizer", "muon"], ["--freeze-layers", 1]):
        with pytest.raises(ValueError, match="another optimizer, another precision or other layers frozen; give"):
            pretrain(start, tmp_path, "--steps", 3, *wrong)
        assert path.read_text() == before


@pytest.mark.parametrize(
    "option, value, output",
    [
        ("--vocab", "bert-small-uncased-embedded", "--vocab goes with --size; .* has its vocabulary: leave it out"),
        ("--positions", 512, "--positions goes with --size; .* has its positions: leave it out"),
        ("--embedding-size", 8, "--embedding-size goes with --size; .* has its embeddings: leave it out"),
        ("--distil", "states", "--distil states says what to learn from a teacher and needs --teacher MODEL"),
        ("--learning-rate", 0, "--learning-rate is 0.0; it must be above 0"),
        ("--weight-decay", -1, "--weight-decay is -1.0; it must be 0 or more"),
    ],
)
def test_an_option_without_effect_or_out_of_range_is_refused(start, tmp_path, option, value, output):
    with pytest.raises(ValueError, match=output):
        pretrain(start, tmp_path / "run", option, value)
    assert not (tmp_path / "run" / "settings.json").exists()


def test_the_longest_sequence_ends_with_the_position_table(start, tmp_path):
    roberta = Path(__file__).parents[1] / "golden" / "family" / "roberta"  # 32 positions, the first two not used
    with pytest.raises(
        ValueError, match="31 tokens were asked for, and this model takes 8 to 30: give another --length"
    ):
        pretrain(start, tmp_path, "--init", roberta, "--objective", "mlm", "--length", 31)


@pytest.mark.usefixtures("few_updates")
def test_a_run_without_a_checkpoint_begins_anew(start, tmp_path):
    pretrain(start, tmp_path, "--steps", 2)
    shutil.rmtree(tmp_path / "checkpoints")
    pretrain(start, tmp_path, "--steps", 2, "--length", 16)
    assert json.loads((tmp_path / "settings.json").read_text())["settings"]["length"] == 16


#: Runs the command and has it killed, or asked to stop, at a place of the writing of a checkpoint: before or after
#: "step-N" gets its name, or when the first file of one that is removed is gone.
KILLED = """
import os, shutil, signal, sys
from pathlib import Path

place, step, *arguments = sys.argv[1:]
rename, unlink = Path.rename, os.unlink


def signalled(here, number=signal.SIGKILL):
    if here == place:
        os.kill(os.getpid(), number)


def renamed(path, target):
    named = Path(target).name == "step-" + step
    signalled("before" if named else None)
    done = rename(path, target)
    signalled("after" if named else None)
    signalled("saved" if named else None, signal.SIGTERM)
    return done


def unlinked(path, *, dir_fd=None):
    state = os.path.basename(path) in ("state.json", "state.safetensors")
    state = state and not os.readlink(f"/proc/self/fd/{dir_fd}").endswith(".part")
    unlink("state.json" if state and place == "removing" else path, dir_fd=dir_fd)
    signalled("removing" if state else None)


Path.rename, os.unlink = renamed, unlinked
from bert_tf.cli import main

sys.exit(main(arguments))
"""


def test_a_run_killed_while_it_saves_goes_on_and_sigterm_saves(start, tmp_path):
    """SIGKILL at every place of a save loses nothing before the last whole checkpoint; SIGTERM saves before leaving."""
    settings = ["--steps", 40, "--save-every", 5]
    pretrain(start, tmp_path / "whole", *settings)
    run = tmp_path / "run"
    saved = Checkpoints(run / "checkpoints")
    for place, step, code, last in (
        ("before", 10, -signal.SIGKILL, 5),
        ("removing", 15, -signal.SIGKILL, 15),
        ("after", 25, -signal.SIGKILL, 25),
        ("saved", 30, 143, 31),
    ):
        done = subprocess.run(
            [sys.executable, "-c", KILLED, place, str(step), "pretrain", *options(start, run, *settings)],
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, (place, done.stderr[-2000:])
        assert saved.steps()[-1] == last, place
        assert export_run.find_step(run) == last and export_run.find_step(run, "best") in saved.steps()
    assert pretrain(start, run, *settings) == 0
    assert not [path for path in (run / "checkpoints").iterdir() if path.name.startswith(".")]
    whole, parts = weights(tmp_path / "whole/model"), weights(run / "model")
    for name in whole:
        np.testing.assert_allclose(parts[name], whole[name], atol=1e-5, err_msg=name)


def test_what_is_left_of_a_removed_checkpoint_is_no_checkpoint(tmp_path):
    """As an earlier version left it: under its own name, without state.json; and halves of either kind."""
    variable = keras.Variable(np.zeros(2, "float32"))
    saved = Checkpoints(tmp_path, keep=2)
    for step in (20, 30):
        saved.save(step, [variable], {"loss": 1.0})
    (tmp_path / "step-20" / "state.json").unlink()
    for name in (".step-10.old", ".step-40.part"):
        (tmp_path / name).mkdir()
    assert saved.steps() == [30] and saved.best() == 30
    saved.save(40, [variable], {"loss": 0.5})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-30", "step-40"]
    assert saved.best() == 40


def test_other_accounts_can_read_a_checkpoint(tmp_path):
    """As any new file; safetensors writes files that only their owner can read."""
    Checkpoints(tmp_path).save(1, [keras.Variable(np.zeros(2, "float32"))], {"loss": 1.0})
    (tmp_path / "new").touch()
    assert {path.stat().st_mode for path in (tmp_path / "step-1").iterdir()} == {(tmp_path / "new").stat().st_mode}


def test_a_file_is_open_for_writing_when_it_is_synced(tmp_path, monkeypatch):
    """Windows refuses to sync a file that is open for reading alone; so does writing nothing to it, everywhere."""
    synced = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.write(file, b"")))
    Checkpoints(tmp_path).save(1, [keras.Variable(np.zeros(2, "float32"))], {"loss": 1.0})
    assert len(synced) == len(list((tmp_path / "step-1").iterdir()))


def cut(path, size):
    with open(path, "r+b") as file:
        file.truncate(size)


def flip(path):
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


#: What can happen to a checkpoint that was written whole.
DAMAGES = {
    "weights cut": lambda step: cut(step / "state.safetensors", 100),
    "state cut": lambda step: cut(step / "state.json", 5),
    "a bit of the weights": lambda step: flip(step / "state.safetensors"),
    "a bit of the state": lambda step: flip(step / "state.json"),
    "checksums cut": lambda step: cut(step / "checksums.json", 5),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_passed_over(tmp_path, capsys, damage):
    variable = keras.Variable(np.zeros(2, "float32"))
    saved = Checkpoints(tmp_path, keep=3)
    for step in (10, 20, 30):
        variable.assign([step, step])
        saved.save(step, [variable], {"loss": 1.0 / step})
    DAMAGES[damage](tmp_path / "step-30")
    assert saved.restore([variable])["step"] == 20
    np.testing.assert_array_equal(variable, [20, 20])
    warning = capsys.readouterr().err
    assert "step-30" in warning and warning.endswith("The checkpoint before it is read.\n")
    with pytest.raises(ValueError, match="step-30.*The other checkpoints are 10, 20"):
        saved.restore([variable], step=30)
    for step in (10, 20):
        DAMAGES[damage](tmp_path / f"step-{step}")
    with pytest.raises(ValueError, match="step-10.*No other checkpoint is left"):
        saved.restore([variable])
    np.testing.assert_array_equal(variable, [20, 20])


def test_a_damaged_checkpoint_does_not_outlast_the_whole_ones(tmp_path):
    variable = keras.Variable(np.zeros(2, "float32"))
    for step, keep in ((10, 1), (30, 2)):
        Checkpoints(tmp_path, keep).save(step, [variable], {"loss": 1.0 / step})
    flip(tmp_path / "step-30" / "state.safetensors")
    saved = Checkpoints(tmp_path, keep=1)
    assert saved.restore([variable])["step"] == 10
    saved.save(20, [variable], {"loss": 1.0 / 20})
    assert saved.steps() == [20] and saved.best() == 20
    assert saved.restore([variable])["step"] == 20


@pytest.mark.parametrize("damage", ["weights cut", "state cut"])
def test_a_cut_checkpoint_of_an_earlier_version_is_passed_over(tmp_path, damage):
    variable = keras.Variable(np.zeros(2, "float32"))
    saved = Checkpoints(tmp_path)
    for step in (10, 20):
        saved.save(step, [variable], {})
        (tmp_path / f"step-{step}" / "checksums.json").unlink()
    DAMAGES[damage](tmp_path / "step-20")
    assert saved.restore([variable])["step"] == 10


def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one(start, tmp_path, capsys):
    settings = ["--steps", 4, "--save-every", 2]
    pretrain(start, tmp_path, *settings)
    whole = weights(tmp_path / "model")
    flip(tmp_path / "checkpoints" / "step-4" / "state.safetensors")
    shutil.rmtree(tmp_path / "model")
    assert pretrain(start, tmp_path, *settings) == 0
    assert "step-4" in capsys.readouterr().err
    again = weights(tmp_path / "model")
    for name in whole:
        np.testing.assert_allclose(again[name], whole[name], atol=1e-5, err_msg=name)


def test_a_mean_over_few_updates_does_not_make_the_best_checkpoint(tmp_path):
    variable = keras.Variable(np.zeros(2, "float32"))
    saved = Checkpoints(tmp_path, keep=9)
    saved.save(1, [variable], {"loss": 2.0})  # of an earlier version, which noted no updates
    saved.save(500, [variable], {"loss": 1.0, "updates": 499})
    saved.save(501, [variable], {"loss": 0.1, "updates": 1})
    assert saved.best() == 500
    saved.save(1000, [variable], {"loss": 0.9, "updates": 250})
    assert saved.best() == 1000


def test_checkpoints_that_come_oftener_are_measured_by_their_own_rule(tmp_path):
    variable = keras.Variable(np.zeros(2, "float32"))
    saved = Checkpoints(tmp_path, keep=9)
    saved.save(1000, [variable], {"loss": 1.0, "updates": 500, "save_every": 500})
    for step, updates, loss in ((1100, 100, 0.9), (1200, 100, 0.8), (1210, 10, 0.1)):  # a signal came at the last
        saved.save(step, [variable], {"loss": loss, "updates": updates, "save_every": 100})
    assert saved.best() == 1200
    for step in (1000, 1100, 1200):
        shutil.rmtree(tmp_path / f"step-{step}")
    assert saved.best() == 1210  # there is no other one


def test_a_run_that_begins_again_keeps_nothing_of_what_lies_ahead(start, tmp_path):
    """Its snapshots and its log are of another training, or at least of other updates."""
    watched = "--snapshots", "--log-every", 2
    assert pretrain(start, tmp_path, "--steps", 10, *watched, "--save-every", 5) == 0
    for step in (5, 10):
        shutil.rmtree(tmp_path / "checkpoints" / f"step-{step}")
    first = weights(tmp_path / "snapshots" / "step-2")
    assert pretrain(start, tmp_path, "--steps", 10, *watched, "--stop-after", 4, "--learning-rate", "1e-2") == 0
    run = read_run(tmp_path)
    assert [one.step for one in run.snapshots] == [0, 1, 2]
    assert [one["step"] for one in records(tmp_path)] == [2, 4]
    second = weights(tmp_path / "snapshots" / "step-2")
    assert any(not np.array_equal(first[name], second[name]) for name in first)
    assert pretrain(start, tmp_path, "--steps", 10, *watched) == 0
    assert [one.step for one in read_run(tmp_path).snapshots] == [0, 1, 2, 5, 10]
    kept = weights(tmp_path / "snapshots" / "step-2")
    assert all(np.array_equal(kept[name], second[name]) for name in second)


@pytest.mark.parametrize(
    "option, value",
    [
        ("--save-every", 0),
        ("--log-every", 0),
        ("--keep", 0),
        ("--steps", 0),
        ("--stop-after", -1),
        ("--max-documents", -1),
        ("--seed", -1),
        ("--seed", 2**32),
    ],
)
def test_numbers_out_of_range_are_refused_before_anything_is_read(start, tmp_path, option, value, capsys):
    with pytest.raises(SystemExit) as left:
        pretrain(start, tmp_path / "run", option, value)
    assert left.value.code == 2 and not (tmp_path / "run").exists()
    assert f"argument {option}: {value} was given; it must be" in capsys.readouterr().err


def stop_at(monkeypatch, step):
    """Sends this process a SIGTERM in a run's update of that number."""
    add, calls = RunningMeans.add, itertools.count(1)

    def added(self, *values):
        add(self, *values)
        if next(calls) == step:
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(RunningMeans, "add", added)


@pytest.mark.usefixtures("few_updates")
def test_a_signal_before_the_last_step_is_told_by_the_exit_code(start, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 3)
        assert pretrain(start, tmp_path, "--steps", 6) == 143
    state = json.loads((tmp_path / "checkpoints" / "step-3" / "state.json").read_text())
    assert state["updates"] == 3
    assert pretrain(start, tmp_path, "--steps", 6, "--stop-after", 4) == 0
    with monkeypatch.context() as patch:
        stop_at(patch, 2)  # the last one: it has come to its end
        assert pretrain(start, tmp_path, "--steps", 6) == 0


@pytest.mark.usefixtures("few_updates")
def test_two_runs_in_one_folder_are_refused(start, tmp_path):
    with locked_folder(tmp_path / "run", "pretrain"):
        with pytest.raises(FolderInUse, match=f"Another `pretrain` is writing to {tmp_path / 'run'}.*another --output"):
            pretrain(start, tmp_path / "run", "--steps", 1)
    assert pretrain(start, tmp_path / "run", "--steps", 1) == 0


def test_a_command_that_fails_at_once_leaves_no_folder(tmp_path):
    with pytest.raises(RuntimeError), locked_folder(tmp_path / "runs" / "new" / "run", "pretrain"):
        raise RuntimeError("refused")
    assert not list(tmp_path.iterdir())


def test_a_command_that_fails_at_once_says_why_where_an_open_file_cannot_be_deleted(tmp_path, monkeypatch):
    """As on Windows, where the release of a lock deletes its file."""
    path, unlink, release = tmp_path / "new" / "run" / ".pretrain.lock", Path.unlink, FileLock.release
    is_open = True

    def refusing(self, *arguments, **settings):
        if self == path and is_open:
            raise PermissionError(errno.EACCES, "The file is used by another process", str(self))
        unlink(self, *arguments, **settings)

    def deleting(self, *arguments, **settings):
        nonlocal is_open
        release(self, *arguments, **settings)
        is_open = False
        path.unlink(missing_ok=True)

    monkeypatch.setattr(Path, "unlink", refusing)
    monkeypatch.setattr(FileLock, "release", deleting)
    with pytest.raises(RuntimeError, match="refused"), locked_folder(path.parent, "pretrain"):
        raise RuntimeError("refused")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", ["file", "file/run"])
def test_a_file_in_the_place_of_a_folder_is_said(tmp_path, place):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file is a file, where a folder is to be written"):
        with locked_folder(tmp_path / place, "pretrain"):
            pass


def test_a_checkpoint_that_cannot_be_written_is_said_and_the_last_one_stays(tmp_path, monkeypatch):
    variable = keras.Variable(np.arange(4.0, dtype="float32"))
    saved = Checkpoints(tmp_path)
    saved.save(1, [variable], {"position": [0, 0, 1]})

    def full(*_):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    with (
        small_disk(64),
        pytest.raises(CheckpointWriteError, match="step-2 was not written: .*File too large.* are whole"),
    ):
        saved.save(2, [variable], {})
    monkeypatch.setattr("safetensors.numpy.save_file", full)
    with pytest.raises(CheckpointWriteError, match="step-2 was not written: the disk is full. Earlier .* are whole"):
        saved.save(2, [variable], {})
    variable.assign(np.zeros(4))
    assert saved.restore([variable]) == {"position": [0, 0, 1], "step": 1}
    np.testing.assert_array_equal(np.asarray(variable), np.arange(4))
    assert [path.name for path in tmp_path.iterdir()] == ["step-1"]


def on_a_small_disk(monkeypatch, where):
    """Models below a folder of that name cannot be written. Returns: the checkpoints there were at each trial."""
    save, tried = checkpoints.save, []

    def saved(folder, *rest):
        if where not in Path(folder).parts:
            return save(folder, *rest)
        run = Path(folder).parents[list(Path(folder).parts)[::-1].index(where)]
        tried.append(Checkpoints(run / "checkpoints").steps())
        with small_disk(2000):
            return save(folder, *rest)

    monkeypatch.setattr(checkpoints, "save", saved)
    return tried


@pytest.mark.usefixtures("few_updates")
def test_a_snapshot_that_cannot_be_written_costs_the_run_nothing(start, tmp_path, monkeypatch, capsys):
    tried = on_a_small_disk(monkeypatch, "snapshots")
    assert pretrain(start, tmp_path / "run", "--steps", 3, "--save-every", 1, "--keep", 9, "--snapshots") == 0
    assert tried == [[], [1], [1, 2], [1, 2, 3]]  # a checkpoint comes before a snapshot
    output = capsys.readouterr().err
    for step in (0, 1, 2, 3):
        assert f"Warning: Snapshot {tmp_path / 'run' / 'snapshots' / f'step-{step}'} was not written" in output
    assert not list((tmp_path / "run" / "snapshots").iterdir())
    assert len(records(tmp_path / "run")) == 1


@pytest.mark.usefixtures("few_updates")
def test_a_model_that_cannot_be_written_leaves_its_checkpoint(start, tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(CheckpointWriteError) as actual:
        on_a_small_disk(patch, "model")
        pretrain(start, tmp_path / "run", "--steps", 2)
    assert f"The model {tmp_path / 'run' / 'model'} was not written" in str(actual.value)
    assert "The checkpoint of step 2 is complete" in str(actual.value)
    assert pretrain(start, tmp_path / "run", "--steps", 2) == 0
    assert checkpoints.read(tmp_path / "run" / "model")


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


def ones_batch():
    ones = np.ones((2, 4), "int32")
    return {
        "token_ids": ones,
        "segment_ids": ones * 0,
        "padding_mask": ones,
        "mask_positions": ones[:, :1],
        "mask_labels": ones[:, :1],
        "mask_weights": ones[:, :1].astype("float32"),
        "nsp_labels": ones[:, 0],
    }


@pytest.mark.usefixtures("few_updates")
def test_a_signal_while_the_last_update_is_saved_stops_the_run(start, tmp_path):
    _, _, model = checkpoints.read(start / "model")
    trainer = Trainer(model, MaskedLMAndNextSentence(), make_optimizer(model.trainable_variables, 1e-3, 5, 1), tmp_path)
    how = {"encode_position": list, "save_every": 1, "log_every": 1}
    batches = [(ones_batch(), (0, 0, 1))]
    trainer.train(batches, 0, 1, **how)
    assert not trainer.stopped
    # A record is reported when it is known that the update is the last one.
    trainer.train(batches, 1, 2, report=lambda record: os.kill(os.getpid(), signal.SIGTERM), **how)
    assert trainer.stopped


@pytest.mark.usefixtures("few_updates")
def test_a_loss_that_is_not_finite_stops_the_run(start, tmp_path):
    _, _, model = checkpoints.read(start / "model")
    model.bert_layers["nsp"].dense.bias.assign([np.nan, 0])
    trainer = Trainer(model, MaskedLMAndNextSentence(), make_optimizer(model.trainable_variables, 1e-3, 5, 1), tmp_path)
    with pytest.raises(TrainingDiverged, match=r"step 1 \(data position \[0, 0, 7\]\)"):
        trainer.train([(ones_batch(), (0, 0, 7))], 0, 5, encode_position=list)
    assert not trainer.checkpoints.steps()


class BrokenGradient(MaskedLMAndNextSentence):
    """A finite loss whose gradient is none: the root of 0."""

    def __call__(self, outputs, batch, counts=None):
        values = super().__call__(outputs, batch, counts)
        return {**values, "loss": values["loss"] + keras.ops.sqrt(values["loss"] * 0.0)}


@pytest.mark.usefixtures("few_updates")
@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_a_gradient_that_is_not_finite_stops_the_run_unless_a_loss_scale_leaves_it_out(start, tmp_path, precision):
    _, _, model = checkpoints.read(start / "model")
    before = np.asarray(model.trainable_variables[0])
    optimizer = with_loss_scale(
        make_optimizer(model.trainable_variables, 1e-3, 5, 1), model.trainable_variables, precision
    )
    trainer = Trainer(model, BrokenGradient(), optimizer, tmp_path)
    how = {"encode_position": list, "save_every": 1, "log_every": 1}
    if precision == "float32":
        with pytest.raises(
            TrainingDiverged, match=r"gradient's norm became nan \(the loss is .*step 1 \(data position"
        ):
            trainer.train([(ones_batch(), (0, 0, 7))] * 2, 0, 5, **how)
        assert not trainer.checkpoints.steps()
        return
    trainer.train([(ones_batch(), (0, 0, 7))] * 2, 0, 2, **how)
    np.testing.assert_array_equal(np.asarray(model.trainable_variables[0]), before)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    actual = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    assert len(actual) == 2 and all("gradient_norm" not in one and one["loss_scale"] > 0 for one in actual)


def test_the_norm_of_a_step_that_was_left_out_counts_in_no_mean():
    window = RunningMeans()
    for norm in (1.0, math.inf, 3.0):
        window.add({"loss": 1.0, "gradient_norm": norm}, 10)
    assert window.record(3, 0.1)["gradient_norm"] == 2.0


@pytest.mark.usefixtures("few_updates")
def test_the_log_has_the_rate_of_the_update_made(start, tmp_path):
    pretrain(start, tmp_path, "--steps", 4, "--warmup", 2, "--log-every", 1)
    assert [record["learning_rate"] for record in records(tmp_path)] == pytest.approx(
        [3e-3 * share for share in (1 / 2, 1, 1, 1 / 2)]
    )


@pytest.mark.usefixtures("few_updates")
def test_one_document_is_no_text_for_next_sentences(start, tmp_path):
    (tmp_path / "text.txt").write_text((start / "text.txt").read_text().replace("\n\n", "\n"))
    with pytest.raises(TextError, match="one document.*blank line.*--objective mlm"):
        pretrain(start, tmp_path / "run", "--steps", 1, "--text", tmp_path / "text.txt")
    assert pretrain(start, tmp_path / "mlm", "--steps", 1, "--text", tmp_path / "text.txt", "--objective", "mlm") == 0


@pytest.mark.usefixtures("few_updates")
def test_a_position_of_an_earlier_version_is_not_misread(start, tmp_path, capsys):
    pretrain(start, tmp_path, "--steps", 2)
    path = tmp_path / "checkpoints" / "step-2" / "state.json"
    state = json.loads(path.read_text())
    assert (state["position"]["epoch"], state["position"]["block"], state["position"]["batch"]) == (0, 0, 2)
    path.write_text(json.dumps({**state, "position": [4, 0, 2]}))
    (path.parent / "checksums.json").unlink()  # earlier versions wrote none
    pretrain(start, tmp_path, "--steps", 3)
    assert "Resuming after step 2. The text comes in another order than before; its next" in capsys.readouterr().out
    state = json.loads((tmp_path / "checkpoints" / "step-3" / "state.json").read_text())
    assert (state["position"]["epoch"], state["position"]["batch"]) == (5, 1)


def test_a_size_without_a_vocabulary_is_refused(start, tmp_path):
    parser = ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args(["--text", str(start / "text.txt"), "--size", "tiny", "--output", str(tmp_path / "run")])
    with pytest.raises(ValueError, match="--vocab"):
        command.run(args)
    assert not (tmp_path / "run").exists()


def test_where_there_is_no_earlier_checkpoint_none_is_promised(tmp_path, monkeypatch):
    def full(*_):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("safetensors.numpy.save_file", full)
    with pytest.raises(CheckpointWriteError, match="the disk is full. There is no earlier checkpoint; free space"):
        Checkpoints(tmp_path).save(1, [keras.Variable([1.0])], {})


@pytest.mark.parametrize("place", [".", "model"])
def test_a_model_of_another_origin_is_not_replaced(start, tmp_path, place):
    folder = shutil.copytree(start / "model", tmp_path / "mine" / place)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError, match="holds a model and not the run .* give another --output"):
        pretrain(start, tmp_path / "mine", "--steps", 2)
    assert {name: (folder / name).read_bytes() for name in before} == before
