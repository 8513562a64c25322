"""`--log-to`: the records of a training in a tracker, a run that goes on, a package that is missing.

The trackers here are stand-ins with the functions that are called; benchmarks/trackers.py runs the real ones.
"""

import sys
import time
from types import ModuleType, SimpleNamespace

import pytest

from bert_tf.cli import main
from bert_tf.errors import InputError
from bert_tf.training.logs.trackers import check_tracker, open_tracker

RECORD = {"step": 3, "loss": 2.5, "norm": float("nan"), "time": 1000.5}


@pytest.fixture
def calls(monkeypatch):
    """The calls of stand-ins for mlflow and wandb."""
    calls = []
    mlflow, entities, wandb = ModuleType("mlflow"), ModuleType("mlflow.entities"), ModuleType("wandb")
    entities.Metric = lambda name, value, time, step: (name, value, time, step)
    entities.Param = lambda name, value: (name, value)

    class Client:
        def get_experiment_by_name(self, name):
            calls.append(("experiment", name))

        def create_experiment(self, name):
            return "7"

        def create_run(self, experiment, run_name):
            calls.append(("create", experiment, run_name))
            return SimpleNamespace(info=SimpleNamespace(run_id="abc"))

        def update_run(self, run, status):
            calls.append(("go on", run, status))

        def log_batch(self, run, metrics=(), params=()):
            calls.append(("log", run, [*metrics, *params]))

        def set_terminated(self, run, status):
            calls.append(("end", run, status))

    def init(**options):
        calls.append(("init", options["name"], options["id"], options["config"]))
        return SimpleNamespace(
            id="xyz",
            log=lambda values, step: calls.append(("log", values, step)),
            finish=lambda exit_code: calls.append(("end", exit_code)),
        )

    mlflow.MlflowClient, mlflow.entities, wandb.init = Client, entities, init
    for module in (mlflow, entities, wandb):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    return calls


def test_mlflow_gets_the_finite_numbers_and_a_resumed_run_goes_on(calls, tmp_path):
    folder = tmp_path / "one"
    folder.mkdir()
    with open_tracker("mlflow", folder, {"steps": 9, "init": None, "run": print}) as tracker:
        tracker.log(RECORD)
    begun = [("experiment", "bert_tf"), ("create", "7", "one"), ("log", "abc", [("steps", "9")])]
    assert calls == [*begun, ("log", "abc", [("loss", 2.5, 1000500, 3)]), ("end", "abc", "FINISHED")]
    calls.clear()
    with pytest.raises(KeyError), open_tracker("mlflow", folder, {"steps": 9}):
        raise KeyError
    assert calls == [("go on", "abc", "RUNNING"), ("end", "abc", "FAILED")]


def test_wandb_gets_the_same(calls, tmp_path):
    for identifier in (None, "xyz"):
        with open_tracker("wandb", tmp_path, {"steps": 9}) as tracker:
            tracker.log(RECORD)
        assert calls == [("init", tmp_path.name, identifier, {"steps": 9}), ("log", {"loss": 2.5}, 3), ("end", 0)]
        calls.clear()


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_a_tracker_that_fails_costs_the_run_nothing(calls, tmp_path, monkeypatch, capsys, name):
    def fail(*_, **__):
        raise RuntimeError("no connection")

    tracker = open_tracker(name, tmp_path, {})
    service = sys.modules["mlflow"].MlflowClient if name == "mlflow" else tracker._run
    for function in ("log_batch", "set_terminated") if name == "mlflow" else ("log", "finish"):
        monkeypatch.setattr(service, function, fail)
    with tracker:
        tracker.log(RECORD)
    assert capsys.readouterr().err.splitlines() == [
        "Warning: Step 3 did not reach the tracker (no connection); the run folder has the whole log.",
        "Warning: The tracker did not end its run (no connection); the run folder has the whole log.",
    ]


def test_a_missing_package_is_told_before_the_training(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(InputError, match="pip install wandb"):
        check_tracker("wandb")
    options = ["--model", "none", "--train", str(tmp_path / "none.csv"), "--output", str(tmp_path / "run")]
    assert main(["finetune", "classify", *options, "--log-to", "wandb"]) == 2
    assert "--log-to wandb needs its package" in capsys.readouterr().err
    check_tracker(None)
    with open_tracker(None, tmp_path, {}) as tracker:
        tracker.log(RECORD)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_fine_tuning_sends_its_log_and_its_dev_scores(calls, tiny_folder, tmp_path):
    (tmp_path / "train.csv").write_text("text,label\n" + "the cat ran,a\nshe ran far,b\n" * 8)
    data = ["--train", str(tmp_path / "train.csv"), "--dev", str(tmp_path / "train.csv"), "--log-every", "1"]
    options = ["--model", str(tiny_folder), *data, "--output", str(tmp_path / "model"), "--epochs", "1"]
    options += ["--batch-size", "8", "--length", "16", "--lengths", "1", "--log-to", "mlflow"]
    assert main(["finetune", "classify", *options]) == 0
    logged = {(metric[0], metric[3]) for call in calls if call[0] == "log" for metric in call[2] if len(metric) == 4}
    assert {("loss", 1), ("loss", 2), ("dev_accuracy", 2)} <= logged
    assert calls[-1] == ("end", "abc", "FINISHED")


def test_scores_without_a_time_are_of_now(calls, tmp_path):
    with open_tracker("mlflow", tmp_path, {}) as tracker:
        tracker.log({"step": 2, "dev_accuracy": 0.5})
    ((_, _, ((name, value, milliseconds, step),)),) = [call for call in calls if call[0] == "log" and call[2]]
    assert (name, value, step) == ("dev_accuracy", 0.5, 2) and abs(milliseconds / 1000 - time.time()) < 60
