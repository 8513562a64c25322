"""Experiment trackers: `--log-to mlflow` and `--log-to wandb` send each record of `metrics.jsonl` there too.

The tracker's own settings hold: MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME, WANDB_PROJECT, WANDB_MODE=offline. A
run that is resumed goes on in the tracker; `tracker.json` in its folder holds the identifier.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from bert_tf.errors import InputError
from bert_tf.files import read_json, write_json

TRACKERS = ("mlflow", "wandb")
_PACKAGES = {"mlflow": "mlflow-skinny"}  # of a tracker, where it has another name
_FILE = "tracker.json"
_NAME = "bert_tf"  # of the experiment or project, if the tracker's settings name none
_LONGEST_PARAMETER = 6000  # characters of a value that MLflow keeps


class Tracker:
    """A run in a tracker; this class sends nothing.

    If a record cannot be sent, a warning goes to standard error and the training continues, as `metrics.jsonl` has it.

    Example:
        with open_tracker("mlflow", "run", {"steps": 1000}) as tracker:
            tracker.log({"step": 1, "loss": 2.5})

    Attributes:
        identifier: str. What the tracker calls the run.
    """

    identifier = ""

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        self.close(kind is not None)

    def log(self, record: Mapping[str, Any]) -> None:
        """Send the numbers of a record, with its "step"."""
        with _errors_as_warnings(f"Step {record['step']} did not reach the tracker"):
            self._send(record)

    def close(self, failed: bool = False) -> None:
        """End the run."""
        with _errors_as_warnings("The tracker did not end its run"):
            self._end(failed)

    def _send(self, record):
        pass

    def _end(self, failed):
        pass


@contextmanager
def _errors_as_warnings(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # each tracker has errors of its own
        print(f"Warning: {what} ({error}); the run folder has the whole log.", file=sys.stderr, flush=True)


def check_tracker(name: str | None) -> None:
    """Check that the package of a tracker is installed, before a training starts; None is no tracker.

    Raises: InputError if it is not.
    """
    if name is None:
        return
    try:
        import_module(name)
    except ImportError as error:
        raise InputError(
            f"--log-to {name} needs its package ({error}): `pip install {_PACKAGES.get(name, name)}`."
        ) from error


def open_tracker(
    name: str | None, folder: str | Path, settings: Mapping[str, Any], title: str | None = None
) -> Tracker:
    """Start a run in a tracker, or go on with that of a folder.

    Args:
        name: str. One of `TRACKERS`; None for a tracker that sends nothing.
        folder: str or Path. The run folder.
        settings: dict. The options of the training.
        title: str. The name of the run; None for the name of the folder.

    Returns: `Tracker`.

    Raises: InputError if the package is not installed.
    """
    if name is None:
        return Tracker()
    check_tracker(name)
    path = Path(folder) / _FILE
    saved = read_json(path) if path.is_file() else {}
    settings = {key: value for key, value in settings.items() if value is not None and not callable(value)}
    tracker_class = {"mlflow": _MLflow, "wandb": _WeightsAndBiases}[name]
    tracker = tracker_class(Path(folder), title or Path(folder).name, saved.get(name), settings)
    write_json(path, {**saved, name: tracker.identifier})
    return tracker


class _MLflow(Tracker):
    """Uses MLflow's client, which has no global state."""

    def __init__(self, folder, title, identifier, settings):
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param

        self._client, self._metric = MlflowClient(), Metric
        if identifier is None:
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME", _NAME)
            experiment = self._client.get_experiment_by_name(name)
            number = experiment.experiment_id if experiment else self._client.create_experiment(name)
            identifier = self._client.create_run(number, run_name=title).info.run_id
            values = [Param(key, str(value)[:_LONGEST_PARAMETER]) for key, value in settings.items()]
            self._client.log_batch(identifier, params=values)
        else:
            self._client.update_run(identifier, status="RUNNING")
        self.identifier = identifier

    def _send(self, record):
        milliseconds = int(1000 * record.get("time", time.time()))
        metrics = [self._metric(name, value, milliseconds, record["step"]) for name, value in _numbers(record)]
        self._client.log_batch(self.identifier, metrics=metrics)

    def _end(self, failed):
        self._client.set_terminated(self.identifier, "FAILED" if failed else "FINISHED")


class _WeightsAndBiases(Tracker):
    def __init__(self, folder, title, identifier, settings):
        import wandb

        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", _NAME),
            name=title,
            id=identifier,
            resume="allow",
            dir=folder,
            config=json.loads(json.dumps(settings, default=str)),
        )
        self.identifier = self._run.id

    def _send(self, record):
        self._run.log(dict(_numbers(record)), step=record["step"])

    def _end(self, failed):
        self._run.finish(exit_code=int(failed))


def _numbers(record):
    """(name, value) of the finite numbers of a record, without its step and time."""
    return [
        (name, float(value))
        for name, value in record.items()
        if name not in ("step", "time") and isinstance(value, (int, float)) and math.isfinite(value)
    ]
