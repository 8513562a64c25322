"""Reads the folder of a training run: settings, log, snapshots, and whether the run still goes on.

This module does not import TensorFlow.
"""

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

METRICS, SETTINGS, SNAPSHOTS = "metrics.jsonl", "settings.json", "snapshots"
_STEP = re.compile(r"step-(\d+)")
#: Seconds without a new log record after which a run counts as over; three times the time between two records, if that
#: is longer.
_RECORD_TIMEOUT = 90
#: The same before the first record, while the model is made and the step is compiled.
_FIRST_RECORD_TIMEOUT = 900


class RunError(ValueError):
    """A folder is not a training run; the message names it."""


@dataclass(frozen=True)
class Snapshot:
    """The model folder of one training step.

    Attributes:
        step: int. The number of updates done.
        folder: Path. The model folder.
    """

    step: int
    folder: Path


@dataclass(frozen=True)
class Run:
    """The content of a run folder at the time it was read.

    Attributes:
        folder: Path. The run folder.
        settings: dict. The options of the training command.
        text: dict. Facts about the training text.
        heads: tuple of str. The names of the model's heads.
        records: tuple of dicts with "step", ascending. The log.
        snapshots: tuple of `Snapshot`, ascending.
    """

    folder: Path
    settings: dict
    text: dict
    heads: tuple
    records: tuple
    snapshots: tuple

    @property
    def name(self) -> str:
        """The name of the folder, without its parents."""
        return self.folder.name

    @property
    def step(self) -> int:
        """The step of the last log record; 0 before the first record."""
        return self.records[-1]["step"] if self.records else 0

    @property
    def total(self) -> int | None:
        """The number of updates to train, or None if the settings do not contain it."""
        steps = self.settings.get("steps")
        return steps if isinstance(steps, int) else None

    def is_running(self, now: float | None = None) -> bool:
        """Whether the run seems to be training at this moment.

        Args:
            now: float. The time in seconds since 1970; None for the current time.

        Returns: bool.
        """
        now = time.time() if now is None else now
        if self.total is not None and self.step >= self.total:
            return False
        start = _modified_at(self.folder / SETTINGS) or _modified_at(self.folder / METRICS)
        if not self.records:
            return now - start < _FIRST_RECORD_TIMEOUT
        last, previous_step = self.records[-1], self.records[-2]["step"] if len(self.records) > 1 else 0
        # Computed from the steps, not from the times: a resumed run has a pause between two records.
        interval = last.get("seconds_per_step", 0) * (last["step"] - previous_step)
        return now - max(start, last.get("time", 0)) < max(_RECORD_TIMEOUT, 3 * interval)

    def curve(self, name: str) -> tuple[list[int], list[float]]:
        """One value of the log over the steps.

        Args:
            name: str. The key of the value in a log record.

        Returns: (steps, values), two lists; records without the value are left out.
        """
        pairs = [(record["step"], record[name]) for record in self.records if record.get(name) is not None]
        return [step for step, _ in pairs], [value for _, value in pairs]


def _modified_at(path):
    """The time of the last write to a file, in seconds since 1970; 0 if the file does not exist."""
    return path.stat().st_mtime if path.is_file() else 0


def is_run(folder: str | Path) -> bool:
    """Whether a folder contains a log or the settings of a run."""
    return any((Path(folder) / name).is_file() for name in (METRICS, SETTINGS))


def find_runs(folder: str | Path) -> list[Path]:
    """The run folders directly in a folder, as a list of Paths sorted by name; empty if the folder does not exist."""
    folder = Path(folder)
    return sorted(path for path in folder.iterdir() if is_run(path)) if folder.is_dir() else []


def read_run(folder: str | Path) -> Run:
    """Reads a run folder; the run may still be training.

    Args:
        folder: str or Path. The `--output` of `pretrain`.

    Returns: `Run`.

    Raises: RunError if the folder is not a run, or if one of its files is damaged.
    """
    folder = Path(folder)
    if not is_run(folder):
        raise RunError(f"{folder} holds no {METRICS} and no {SETTINGS}; give the --output of a training.")
    settings = _settings(folder / SETTINGS)
    return Run(
        folder,
        settings.get("settings", {}),
        settings.get("corpus", {}),
        tuple(settings.get("heads", ())),
        read_records(folder / METRICS),
        find_snapshots(folder),
    )


def _settings(path):
    if not path.is_file():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RunError(f"{path} is no JSON ({error}); the folder is damaged.") from error
    return settings if isinstance(settings, dict) else {}


def read_records(path: Path) -> tuple[dict[str, Any], ...]:
    """Reads a log; skips steps that a resumed run repeated, and an incomplete last line.

    Args:
        path: Path. A `metrics.jsonl` file.

    Returns: tuple of dicts with "step", ascending; empty if the file does not exist.

    Raises: RunError if another line is not a record.
    """
    if not path.is_file():
        return ()
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            step = record["step"]
        except (ValueError, KeyError, TypeError) as error:
            if number == len(lines):
                break
            raise RunError(f"{path}, line {number}: no record of a training; the log is damaged.") from error
        while records and records[-1]["step"] >= step:
            records.pop()
        records.append(record)
    return tuple(records)


def find_snapshots(folder: str | Path) -> tuple[Snapshot, ...]:
    """The snapshots in a run folder, as a tuple of `Snapshot`, ascending; empty if there are none."""
    folder = Path(folder) / SNAPSHOTS
    if not folder.is_dir():
        return ()
    snapshots = [Snapshot(int(match[1]), path) for path in folder.iterdir() if (match := _STEP.fullmatch(path.name))]
    return tuple(sorted(snapshots, key=lambda snapshot: snapshot.step))
