"""Runs that are killed, stopped early, changed or repeated."""

import dataclasses
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.errors import TaskError
from bert_tf.files import read_json
from bert_tf.finetuning import repeated_seeds
from bert_tf.finetuning.data.sentence_examples import SentenceExample
from bert_tf.finetuning.fit import FitSettings, _Run, fit, refuse_foreign_model
from bert_tf.finetuning.repeated_seeds import best_scores, fit_seeds
from bert_tf.finetuning.report import read_progress, spread
from bert_tf.finetuning.task_settings import TaskSettings, read_settings
from bert_tf.finetuning.tasks.registry import task_type
from bert_tf.finetuning.tasks.sequence_classification import SequenceClassification, window_settings
from bert_tf.models import named_variables
from bert_tf.training import strategy
from tests.finetuning.conftest import QUICK, finetune

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = TaskSettings("classify", ("large", "little"), max_length=16)
EXAMPLES = [
    SentenceExample(f"the {word} cat", target=label) for word, label in (("big", "large"), ("small", "little"))
] * 8


def run(start, output, examples=EXAMPLES, settings=SETTINGS, copied_to=None, **changes):
    how = FitSettings(
        **{"epochs": 2, "batch_size": 8, "strategy": "one", "lengths": 1, "learning_rate": 1e-3, **changes}
    )
    return fit(task_type("classify"), start, examples, examples, settings, how, output, len, copied_to)


def weights(folder):
    return {name: np.asarray(value) for name, value in named_variables(checkpoints.read(folder)[2]).items()}


@pytest.mark.parametrize("chief, verdict, last", [(False, 0.0, False), (False, 1.0, True), (True, 1.0, True)])
def test_the_chief_decides_for_all_machines_which_round_is_the_last(monkeypatch, chief, verdict, last):
    """By the scores of another machine the training would end here: the chief would wait for it forever."""
    said = []
    monkeypatch.setattr(strategy, "sum_over_workers", lambda _, number: said.append(number) or verdict)
    one = object.__new__(_Run)
    one.how, one.settings, one.strategy = FitSettings(patience=1), SETTINGS.replace(metric="accuracy"), "several"
    one.total, one.feed, one.trainer = 9, SimpleNamespace(steps=3), SimpleNamespace(chief=chief)
    one.tracker, one.say, one._scores = SimpleNamespace(log=len), len, lambda: {"accuracy": 0.5}
    assert one._evaluate(6, [{"dev": {"accuracy": 0.6}}])["last"] is last and said == [chief]


def test_a_killed_run_goes_on_to_the_very_same_model(start_folder, trained, tmp_path):
    options = [
        "--model",
        start_folder,
        "--train",
        trained[1],
        "--dev",
        trained[2],
        "--epochs",
        10,
        "--save-every",
        3,
        "--log-every",
        1,
        *QUICK[:4],
        "--lengths",
        "1",
        "--length",
        "16",
        "--strategy",
        "one",
    ]
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    assert finetune("classify", *options, "--output", straight) == 0
    command = [
        sys.executable,
        "-m",
        "bert_tf",
        "finetune",
        "classify",
        *map(str, options),
        "--output",
        str(killed),
    ]
    log = killed / "run" / "metrics.jsonl"
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    waited = time.monotonic() + 300
    while time.monotonic() < waited and process.poll() is None:
        if log.is_file() and len(log.read_text().splitlines()) >= 12:
            break
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (killed / "report").exists()
    assert finetune("classify", *options, "--output", killed) == 0
    rounds = [json.loads((folder / "run" / "rounds.json").read_text())["rounds"] for folder in (straight, killed)]
    assert [one["step"] for one in rounds[0]] == [one["step"] for one in rounds[1]] == list(range(10, 101, 10))
    expected = weights(straight)
    for name, value in weights(killed).items():
        np.testing.assert_allclose(value, expected[name], atol=2e-5, err_msg=name)


TWO_DEVICES = """
import sys
from bert_tf.startup import lean_tensorflow
lean_tensorflow()
import tensorflow as tf
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0],
                                           [tf.config.LogicalDeviceConfiguration()] * 2)
from tests.finetuning.test_fit import run
run(sys.argv[1], sys.argv[2], batch_size=10, strategy="mirrored", accumulate=5, dropout=0.0)
"""


def test_two_devices_with_micro_batches_make_the_same_model_as_one(start_folder, tmp_path):
    # Batches of 10 of 16 examples: the second one is filled up, and unevenly over the devices.
    run(start_folder, tmp_path / "one", batch_size=10, dropout=0.0)
    done = subprocess.run(
        [sys.executable, "-c", TWO_DEVICES, str(start_folder), str(tmp_path / "two")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    expected = weights(tmp_path / "one")
    for name, value in weights(tmp_path / "two").items():
        np.testing.assert_allclose(value, expected[name], atol=1e-5, err_msg=name)


LEARNING = {"epochs": 6, "learning_rate": 3e-3, "dropout": 0.0, "log_every": 1}


@pytest.fixture(scope="module")
def exact(start_folder, tmp_path_factory):
    """The weights that are learnt in float32."""
    folder = tmp_path_factory.mktemp("exact")
    run(start_folder, folder, **LEARNING)
    return weights(folder)


@pytest.mark.parametrize(
    "how",
    [
        {"precision": "bfloat16_products"},
        {"precision": "mixed_bfloat16"},
        {"precision": "mixed_float16"},
        {"jit": True},
    ],
    ids=lambda how: str(next(iter(how.values()))),
)
def test_it_learns_in_every_precision_and_the_model_loads_in_float32(start_folder, exact, tmp_path, how):
    done = run(start_folder, tmp_path, **LEARNING, **how)
    losses = [one["loss"] for one in read_progress(tmp_path / "run")[0]]
    assert losses[-1] < 0.75 * losses[0] and best_scores(done.rounds, "accuracy")["accuracy"] == 1
    bert = bert_tf.load(tmp_path)
    assert {str(value.dtype) for value in bert.task.network.named_variables().values()} == {"float32"}
    actual = bert.task.predict([one.text_a for one in EXAMPLES])
    assert [one["label"] for one in actual] == [one.target for one in EXAMPLES]
    kept = weights(tmp_path)
    if "precision" in how:  # it was indeed computed otherwise
        assert not all(np.array_equal(value, exact[name]) for name, value in kept.items())
    else:
        for name, value in kept.items():
            np.testing.assert_allclose(value, exact[name], atol=1e-3, err_msg=name)


@pytest.mark.usefixtures("few_updates")
def test_a_finished_run_is_not_trained_again(start_folder, tmp_path):
    first = run(start_folder, tmp_path)
    before = weights(tmp_path)
    again = run(start_folder, tmp_path)
    assert again.finished and again.rounds == first.rounds
    assert all(np.array_equal(value, before[name]) for name, value in weights(tmp_path).items())
    assert not (tmp_path / "run" / "checkpoints").exists()


@pytest.mark.usefixtures("few_updates")
def test_a_run_is_not_continued_with_other_settings(start_folder, tmp_path):
    run(start_folder, tmp_path)
    with pytest.raises(TaskError, match="holds a run with another learning_rate"):
        run(start_folder, tmp_path, learning_rate=1e-4)


def test_a_model_of_another_origin_is_not_replaced(start_folder, tmp_path):
    copy = shutil.copytree(start_folder, tmp_path / "mine")
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    with pytest.raises(TaskError, match="mine holds a model and not the run .* give another --output"):
        run(start_folder, copy)
    with pytest.raises(TaskError, match="holds a model"):
        run(copy, copy)
    with pytest.raises(TaskError, match="holds a model"):
        fit_seeds(None, start_folder, [], [], None, None, copy, seeds=2)
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before


def test_a_kill_while_the_best_of_several_seeds_is_copied_costs_nothing(start_folder, tmp_path, monkeypatch):
    (tmp_path / "seed-0" / "run").mkdir(parents=True)
    (tmp_path / "seed-0" / "run" / "settings.json").write_text("{}")
    shutil.copytree(start_folder, tmp_path / "seed-0", dirs_exist_ok=True)
    copytree = shutil.copytree

    def killed(*arguments, **options):
        copytree(*arguments, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copytree", killed)
        with pytest.raises(KeyboardInterrupt):
            repeated_seeds._copy_model(tmp_path / "seed-0", tmp_path)
    refuse_foreign_model(tmp_path)
    assert (tmp_path / "config.json").is_file()


@pytest.mark.usefixtures("few_updates")
def test_a_run_is_not_continued_with_other_examples(start_folder, tmp_path):
    first = run(start_folder, tmp_path)
    changed = [dataclasses.replace(EXAMPLES[0], text_a="the red cat"), *EXAMPLES[1:]]
    relabelled = [dataclasses.replace(EXAMPLES[0], target="little"), *EXAMPLES[1:]]
    for examples in (changed, relabelled, EXAMPLES[::-1]):
        with pytest.raises(TaskError, match="holds a run with another dev_sha256 .* give another --output"):
            run(start_folder, tmp_path, examples)
    elsewhere = [dataclasses.replace(one, where="copy.csv line 2") for one in EXAMPLES]
    assert run(start_folder, tmp_path, elsewhere).rounds == first.rounds


@pytest.mark.usefixtures("few_updates")
def test_a_run_from_before_examples_were_noted_goes_on(start_folder, tmp_path):
    first = run(start_folder, tmp_path)
    path = tmp_path / "run" / "settings.json"
    noted = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in noted.items() if "sha256" not in name}))
    assert run(start_folder, tmp_path).rounds == first.rounds


@pytest.mark.usefixtures("few_updates")
def test_settings_that_were_refused_do_not_bind_the_next_call(start_folder, tmp_path):
    for wrong, output in (
        ({"freeze_layers": 9}, "--freeze-layers is 9"),
        ({"optimizer": "sgd"}, "'sgd'"),
        ({"weight_decay": -1.0}, "--weight-decay is -1.0"),
    ):
        with pytest.raises(ValueError, match=output):
            run(start_folder, tmp_path, **wrong)
    assert run(start_folder, tmp_path, epochs=1).finished


@pytest.mark.usefixtures("few_updates")
def test_layers_that_share_their_weights_are_frozen_together(tmp_path, capsys):
    albert = ROOT / "tests" / "golden" / "family" / "albert"  # four layers, two by two the same
    data, output = tmp_path / "train.csv", tmp_path / "model"
    data.write_text("text,label\nthe work,a\nthe license,b\n")
    options = ["--model", albert, "--train", data, "--output", output, *QUICK, "--epochs", 1, "--freeze-layers"]
    assert finetune("classify", *options, 3) == 2
    message = "layer 3 shares its weights with layer 4, which is to learn; with this model it can be 0, 2 or 4."
    assert message in capsys.readouterr().err
    assert finetune("classify", *options, 2) == 0
    assert "the lowest 2 layers frozen" in (output / "README.md").read_text()
    before, after = weights(albert), weights(output)
    layers = {name for name in after if ".layer." in name}
    assert {name for name in layers if np.array_equal(before[name], after[name])} == {
        name for name in layers if ".layer.0." in name
    }


@pytest.mark.usefixtures("few_updates")
@pytest.mark.parametrize(
    "task, settings, output",
    [
        ("classify", SETTINGS, "--pooling mean, max or attention"),
        ("choose", TaskSettings("choose", max_length=16), "a bidirectional model"),
    ],
)
def test_a_first_token_that_has_read_nothing_is_not_learnt_from(task, settings, output, tmp_path):
    from tests.layers.test_causal import LEFT, make_reader

    reader = make_reader(LEFT)
    start = checkpoints.save(tmp_path / "start", reader.config, reader.tokenizer, reader.model)
    how = FitSettings(epochs=1, batch_size=8, strategy="one", lengths=1)
    with pytest.raises(TaskError, match=f"first token of a left to right model .* give {output}"):
        fit(task_type(task), start, EXAMPLES, [], settings, how, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    if task == "classify":
        for pooling in ("mean", "max", "attention"):
            run(start, tmp_path / pooling, settings=SETTINGS.replace(pooling=pooling), epochs=1)


def test_of_an_undefined_score_the_latest_model_is_kept(start_folder, tmp_path):
    numbers = [SentenceExample("the cat", target=float(number % 3)) for number in range(16)]
    equal = [SentenceExample("the cat", target=1.0)] * 4
    settings = TaskSettings("classify", regression=True, max_length=16, metric="spearman")
    task = task_type("classify")
    done = fit(task, start_folder, numbers, equal, settings, FitSettings(epochs=2), tmp_path / "m", lambda line: None)
    assert [one["best"] for one in done.rounds] == [True, True] and np.isnan(done.rounds[0]["dev"]["spearman"])
    written = read_json(tmp_path / "m" / "run" / "rounds.json")["rounds"]  # JSON knows no NaN
    assert written[0]["dev"]["spearman"] is None
    assert best_scores(done.rounds, "spearman") == done.rounds[-1]["dev"] and (tmp_path / "m" / "task.json").is_file()


def test_the_epoch_with_the_lowest_error_is_kept(start_folder, tmp_path, monkeypatch):
    errors, kept = [3.0, 1.0, 2.0, 4.0], []

    def score(*_):
        kept.append(weights(tmp_path) if kept else None)  # in the folder since the round before
        return {"mean_squared_error": errors[len(kept) - 1]}

    monkeypatch.setattr(SequenceClassification, "score", score)
    numbers = [SentenceExample("the cat", target=float(number % 3)) for number in range(16)]
    settings = TaskSettings("classify", regression=True, max_length=16, metric="mean_squared_error")
    done = run(start_folder, tmp_path, numbers, settings, epochs=9, patience=2)
    assert [one["best"] for one in done.rounds] == [True, True, False, False]
    assert best_scores(done.rounds, "mean_squared_error") == {"mean_squared_error": 1.0}
    actual = weights(tmp_path)
    assert all(np.array_equal(value, kept[2][name]) for name, value in actual.items())
    assert not all(np.array_equal(value, kept[1][name]) for name, value in actual.items())


def test_the_threshold_is_that_of_the_kept_model(start_folder, tmp_path, monkeypatch):
    thresholds, scores = iter([1.0, 2.0, 3.0]), iter([0.5, 0.9, 0.7])

    def tune(self, examples, outputs, rows, settings):
        return settings.replace(extra={**settings.extra, "threshold": next(thresholds)})

    monkeypatch.setattr(SequenceClassification, "tune", tune)
    monkeypatch.setattr(SequenceClassification, "score", lambda *_: {"accuracy": next(scores)})
    done = run(start_folder, tmp_path, epochs=3)
    assert [one["best"] for one in done.rounds] == [True, True, False]
    assert done.settings.extra["threshold"] == 2.0 == read_settings(tmp_path).extra["threshold"]
    assert run(start_folder, tmp_path, epochs=3).settings == done.settings  # it is finished already


def test_a_metric_that_is_not_measured_is_refused_before_training(start_folder, tmp_path):
    with pytest.raises(TaskError, match="--metric is 'acuracy'; these examples are measured by accuracy, "):
        run(start_folder, tmp_path, settings=SETTINGS.replace(metric="acuracy"))
    assert not tmp_path.joinpath("run").exists()


@pytest.mark.usefixtures("few_updates")
def test_a_learning_rate_that_is_far_too_high_ends_in_a_sentence(start_folder, trained, tmp_path, capsys):
    options = ["--model", start_folder, "--train", trained[1], "--output", tmp_path / "model", *QUICK]
    assert finetune("classify", *options, "--learning-rate", "1e38") == 2
    output = capsys.readouterr().err.strip().splitlines()[-1]
    assert "The loss became" in output and "give another --output with a lower --learning-rate" in output


def test_it_stops_when_the_score_no_longer_rises(start_folder, tmp_path):
    done = run(start_folder, tmp_path, epochs=20, learning_rate=1e-12, patience=2)
    assert done.finished and len(done.rounds) == 3 and done.rounds[-1]["last"]
    assert [one["best"] for one in done.rounds] == [True, False, False]


def test_the_model_card_tells_the_epochs_that_were_trained(start_folder, tmp_path):
    data, output = tmp_path / "train.csv", tmp_path / "model"
    data.write_text("text,label\nthe big cat,large\nthe small cat,little\n")
    options = ["--model", start_folder, "--train", data, "--dev", data, "--output", output, *QUICK]
    assert finetune("classify", *options, "--learning-rate", 1e-12, "--epochs", 20, "--patience", 2) == 0
    metrics, card = read_json(output / "report" / "metrics.json"), (output / "README.md").read_text()
    assert (metrics["epochs_trained"], metrics["epoch_kept"]) == (3, 1)
    assert "2 examples, 3 of 20 epochs, " in card and "by which the best epoch (1) was chosen" in card


def test_the_model_card_tells_how_long_inputs_are_read_and_what_was_frozen():
    from bert_tf.checkpoints.library import embedded_dir
    from bert_tf.finetuning.model_card import _making

    def making(settings, **changes):
        return _making({"train_examples": 2, "training": dataclasses.asdict(FitSettings(**changes))}, settings)

    shipped = {
        "questions-small-uncased": "long inputs read in windows of 256 tokens",
        "entities-base-cased": "long inputs read in windows of 96 tokens",
        "parts-of-speech-base-cased": "long inputs read in windows of 96 tokens",
        "sentiment-base-cased": "inputs cut to 128 tokens",
    }
    for name, reading in shipped.items():
        folder = embedded_dir() / name
        assert f"; {reading}" in making(read_settings(folder)) and f"; {reading}" in (folder / "README.md").read_text()
    windows = SETTINGS.replace(extra=window_settings(SimpleNamespace(windows="mean")))
    assert making(windows).endswith("; long inputs read in windows of 16 tokens.")
    low_rank = "low-rank updates (LoRA) of rank 4 in the place of the encoder's matrices"
    assert making(SETTINGS, lora=4).endswith(f"; inputs cut to 16 tokens; {low_rank}.")
    assert making(SETTINGS, lora=4, freeze_layers=2).endswith(f"{low_rank}, except in the lowest 2 layers.")


def test_the_model_card_names_the_model_it_started_from_as_the_hub_does(tmp_path, monkeypatch):
    from bert_tf.checkpoints.library import models_dir
    from bert_tf.finetuning.model_card import _start_name

    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    (models_dir() / "somebody--bert--main").mkdir(parents=True)
    names = {
        "bert-base-cased": "google-bert/bert-base-cased",
        "somebody/bert@main": "somebody/bert",
        "runs/model": "model",
        "/a/folder/2024": "2024",
        "bert-base-cased-embedded": "bert-base-cased-embedded",
    }
    assert {start: _start_name(start) for start in names} == names


@pytest.mark.usefixtures("few_updates")
def test_it_measures_between_epochs_where_asked(start_folder, tmp_path):
    assert [one["step"] for one in run(start_folder, tmp_path, epochs=2, evaluate_every=3).rounds] == [3, 4]


@pytest.mark.usefixtures("few_updates")
def test_without_a_dev_set_the_last_model_is_kept(start_folder, tmp_path):
    how = FitSettings(epochs=1, batch_size=8, strategy="one", lengths=1)
    done = fit(task_type("classify"), start_folder, EXAMPLES, [], SETTINGS, how, tmp_path, say=lambda line: None)
    assert done.finished and done.rounds[-1]["dev"] == {} and checkpoints.read(tmp_path)


def test_frozen_layers_stay_as_they_were(start_folder, tmp_path):
    run(start_folder, tmp_path, freeze_layers=1, learning_rate=1e-2)
    before, after = weights(start_folder), weights(tmp_path)
    for name, value in after.items():
        assert np.array_equal(value, before[name]) == ("pooler" not in name), name


@pytest.mark.usefixtures("few_updates")
def test_lower_layers_learn_slower_where_asked(start_folder, tmp_path):
    def learnt(name, **changes):
        run(start_folder, tmp_path / name, **{"dropout": 0.0, "learning_rate": 1e-2, "epochs": 1, **changes})
        return bert_tf.load(tmp_path / name).task.network.named_variables()

    start = learnt("start", learning_rate=1e-12)
    lower = {name for name in start if ".embeddings." in name or ".layer." in name}
    assert lower and "classifier.weight" in start and not any("classifier" in name for name in lower)
    for name, slowly in (("even", {}), ("decay", {"layer_decay": 1e-6})):
        after = learnt(name, **slowly)
        moved = {name: np.abs(np.asarray(value) - np.asarray(start[name])).max() for name, value in after.items()}
        assert moved["classifier.weight"] > 1e-3
        if slowly:
            assert max(moved[name] for name in lower) < 1e-6
        else:
            assert min(moved[name] for name in lower if "key.bias" not in name) > 1e-3


def test_the_command_has_the_defaults_of_the_settings():
    from bert_tf.cli import argument_parser
    from bert_tf.cli.finetune import fit_settings

    command = ["finetune", "classify", "--model", "m", "--train", "t", "--output", "o"]
    how = fit_settings(argument_parser(command).parse_args(command))
    assert how == FitSettings()
    assert (how.epochs, how.learning_rate, how.batch_size, how.warmup) == (3, 3e-5, 32, 0.1)


@pytest.mark.parametrize(
    "wrong, output",
    [
        ({"epochs": 0}, "--epochs is 0"),
        ({"learning_rate": 0}, "--learning-rate"),
        ({"dropout": 1.0}, "--dropout is 1.0"),
        ({"seed": -1}, "--seed is -1"),
        ({"store": "fp16"}, "--store is 'fp16'; choose from float32, float16, int8"),
    ],
)
def test_settings_that_cannot_be_are_refused(wrong, output):
    with pytest.raises(TaskError, match=output):
        FitSettings(**wrong)


def test_a_length_the_model_does_not_read_is_refused(start_folder, tmp_path):
    with pytest.raises(TaskError, match="--length is 500; this model reads at most 128"):
        fit(
            task_type("classify"),
            start_folder,
            EXAMPLES,
            [],
            SETTINGS.replace(max_length=500),
            FitSettings(strategy="one"),
            tmp_path,
        )


def test_the_longest_input_ends_with_the_position_table(tmp_path):
    roberta = ROOT / "tests" / "golden" / "family" / "roberta"  # 32 positions, of which the first two are not used
    with pytest.raises(TaskError, match="--length is 31; this model reads at most 30"):
        run(roberta, tmp_path, settings=SETTINGS.replace(max_length=31))


def test_a_log_that_was_cut_off_is_reported_to_its_last_whole_line(tmp_path):
    (tmp_path / "rounds.json").write_text('{"rounds": [{"step": 2, "dev": {"accuracy": 0.5, "spearman": null}}]}')
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0}\n{"step": 3, "lo')
    records, [last] = read_progress(tmp_path)
    assert records == [{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}]
    assert last["step"] == 2 and last["dev"]["accuracy"] == 0.5
    assert math.isnan(last["dev"]["spearman"])


def test_mean_and_spread_over_seeds():
    actual = spread([{"seed": 0, "accuracy": 0.8}, {"seed": 1, "accuracy": 0.9}])
    assert actual["accuracy"]["mean"] == pytest.approx(0.85)
    assert actual["accuracy"]["std"] == pytest.approx(np.std([0.8, 0.9], ddof=1))
    assert list(spread([{"seed": 0, "f1": 0.8, "words": 9}, {"seed": 1, "f1": 0.9, "words": 9}])) == ["f1"]


@pytest.mark.usefixtures("few_updates")
def test_several_seeds_do_not_replace_the_model_of_another_training(start_folder, tmp_path):
    run(start_folder, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(TaskError, match=f"{tmp_path} holds a run with another learning_rate"):
        run(start_folder, tmp_path / "seed-5", learning_rate=1e-4, seed=5, copied_to=tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    run(start_folder, tmp_path / "seed-5", seed=5, copied_to=tmp_path)


@pytest.mark.usefixtures("few_updates")
def test_several_seeds_keep_the_best_model(start_folder, trained, tmp_path):
    assert (
        finetune(
            "classify",
            "--model",
            start_folder,
            "--train",
            trained[1],
            "--dev",
            trained[2],
            "--output",
            tmp_path,
            "--epochs",
            1,
            "--seeds",
            2,
            "--max-train",
            64,
            *QUICK,
        )
        == 0
    )
    metrics = json.loads((tmp_path / "report" / "metrics.json").read_text())
    values = metrics["seeds"]["accuracy"]["values"]
    assert len(values) == 2 and metrics["dev"]["accuracy"] == pytest.approx(max(values), abs=0.03)
    assert metrics["train_examples"] == 64
    best = metrics["training"]["seed"]
    assert best == np.argmax(values) and f"seed {best}, " in (tmp_path / "README.md").read_text()
    kept = weights(tmp_path / f"seed-{best}")
    assert all(np.array_equal(value, kept[name]) for name, value in weights(tmp_path).items())


@pytest.mark.usefixtures("few_updates")
def test_a_stop_during_the_last_update_of_an_epoch_stops(start_folder, tmp_path, monkeypatch):
    from bert_tf.training.logs.run_log import RunningMeans

    add = RunningMeans.add

    def stopped(self, *values):
        add(self, *values)
        stopped.calls += 1
        if stopped.calls == 2:  # ends the first epoch
            os.kill(os.getpid(), signal.SIGTERM)

    stopped.calls = 0
    monkeypatch.setattr(RunningMeans, "add", stopped)
    done = run(start_folder, tmp_path / "a")
    assert not done.finished and done.steps == 2 and not done.rounds
    done = run(start_folder, tmp_path / "a")
    assert done.finished and [one["step"] for one in done.rounds] == [2, 4]
    whole = run(start_folder, tmp_path / "b")
    assert whole.rounds == done.rounds


@pytest.mark.usefixtures("few_updates")
def test_a_stop_during_an_evaluation_waits_for_its_model(start_folder, tmp_path, monkeypatch):
    from bert_tf.finetuning.fit import _Run

    scores = _Run._scores

    def stopped(self):
        os.kill(os.getpid(), signal.SIGTERM)
        return scores(self)

    with monkeypatch.context() as patch:
        patch.setattr(_Run, "_scores", stopped)
        done = run(start_folder, tmp_path / "a")
    assert not done.finished and done.stopped and [one["step"] for one in done.rounds] == [2]
    assert (tmp_path / "a" / "task.json").is_file()
    done = run(start_folder, tmp_path / "a")
    assert done.finished and done.rounds == run(start_folder, tmp_path / "b").rounds


def test_a_stop_from_outside_is_told_by_the_exit_code_and_two_runs_in_one_folder_are_refused(
    start_folder, trained, tmp_path, monkeypatch, capsys
):
    from bert_tf.folder_lock import locked_folder
    from bert_tf.training.logs.run_log import RunningMeans

    add = RunningMeans.add

    def stopped(self, *values):
        add(self, *values)
        os.kill(os.getpid(), signal.SIGTERM)

    arguments = ["--model", start_folder, "--train", trained[1], "--epochs", 1, "--output", tmp_path / "a", *QUICK]
    with monkeypatch.context() as patch:
        patch.setattr(RunningMeans, "add", stopped)
        assert finetune("classify", *arguments) == 143
    assert "Stopped; give the same command to resume" in capsys.readouterr().out
    with locked_folder(tmp_path / "a" / "run", "finetune"):
        assert finetune("classify", *arguments) == 2
    assert f"Another `finetune` is writing to {tmp_path / 'a'};" in capsys.readouterr().err
    assert finetune("classify", *arguments) == 0


@pytest.mark.usefixtures("few_updates")
@pytest.mark.parametrize("call", [4, 6], ids=["last update of the first", "second update of the second"])
def test_several_seeds_that_were_stopped_go_on(start_folder, trained, tmp_path, monkeypatch, call):
    from bert_tf.training.logs.run_log import RunningMeans

    add, calls = RunningMeans.add, []

    def stopped(self, *values):
        add(self, *values)
        calls.append(values)
        if len(calls) == call:  # each seed makes four updates
            os.kill(os.getpid(), signal.SIGTERM)

    arguments = [
        "--model",
        start_folder,
        "--train",
        trained[1],
        "--dev",
        trained[2],
        "--output",
        tmp_path / "a",
        "--epochs",
        1,
        "--seeds",
        2,
        "--max-train",
        64,
        *QUICK,
    ]
    with monkeypatch.context() as patch:
        patch.setattr(RunningMeans, "add", stopped)
        assert finetune("classify", *arguments) == 143
    assert len(calls) == call and not (tmp_path / "a" / "report").exists()
    first = weights(tmp_path / "a" / "seed-0")
    assert finetune("classify", *arguments) == 0
    metrics = json.loads((tmp_path / "a" / "report" / "metrics.json").read_text())
    assert len(metrics["seeds"]["accuracy"]["values"]) == 2
    after = weights(tmp_path / "a" / "seed-0")
    assert all(np.array_equal(value, first[name]) for name, value in after.items())
    second = weights(tmp_path / "a" / "seed-1")
    assert not all(np.array_equal(value, first[name]) for name, value in second.items())
