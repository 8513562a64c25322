"""A run's folder, read: its settings, its log and its snapshots, whether it is over or goes on. No TensorFlow."""

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path

METRICS, SETTINGS, SNAPSHOTS = "metrics.jsonl", "settings.json", "snapshots"
_STEP = re.compile(r"step-(\d+)")
#: Seconds without a word after which a run counts as over: while it writes its log (or thrice the time between two
#: records, if that is longer), and before its first record, when the model is made and the step compiled.
_QUIET, _FIRST = 90, 900


class RunError(ValueError):
    """A folder is no run of a training; the message names it."""


@dataclass(frozen=True)
class Snapshot:
    """A model folder of one step."""

    step: int
    folder: Path


@dataclass(frozen=True)
class Run:
    """What a run's folder says at this moment.

    Attributes:
        folder: Path. settings: dict, as the options of the command were. text: dict of facts about its text.
        heads: tuple of the model's heads.
        records: tuple of dicts with "step", ascending. snapshots: tuple of `Snapshot`, ascending.
    """

    folder: Path
    settings: dict
    text: dict
    heads: tuple
    records: tuple
    snapshots: tuple

    @property
    def name(self):
        """The folder's own name."""
        return self.folder.name

    @property
    def step(self):
        """The last step in the log; 0 before the first record."""
        return self.records[-1]["step"] if self.records else 0

    @property
    def total(self):
        """Updates it was started for, or None where the settings do not say."""
        steps = self.settings.get("steps")
        return steps if isinstance(steps, int) else None

    def is_running(self, now=None):
        """Whether it seems to be trained at this moment. Args: now: seconds since 1970; None for the clock's."""
        now = time.time() if now is None else now
        if self.total is not None and self.step >= self.total:
            return False
        begun = _written(self.folder / SETTINGS) or _written(self.folder / METRICS)
        if not self.records:
            return now - begun < _FIRST
        last, before = self.records[-1], self.records[-2]["step"] if len(self.records) > 1 else 0
        # By the steps, not by the clock: a pause lies between two records of a resumed run.
        between = last.get("seconds_per_step", 0) * (last["step"] - before)
        return now - max(begun, last.get("time", 0)) < max(_QUIET, 3 * between)

    def curve(self, name):
        """(steps, values) of one number of the log, two lists; records without it are left out."""
        pairs = [(record["step"], record[name]) for record in self.records if record.get(name) is not None]
        return [step for step, _ in pairs], [value for _, value in pairs]


def _written(path):
    """When a file was written last, in seconds since 1970; 0 where it is not there."""
    return path.stat().st_mtime if path.is_file() else 0


def is_run(folder):
    """Whether a folder has the files of a run."""
    return any((Path(folder) / name).is_file() for name in (METRICS, SETTINGS))


def find_runs(folder):
    """The runs directly in a folder, a list of Paths by name; empty where there is no such folder."""
    folder = Path(folder)
    return sorted(path for path in folder.iterdir() if is_run(path)) if folder.is_dir() else []


def read_run(folder):
    """Reads a run, also while it is written.

    Args:
        folder: the `--output` of `pretrain`.

    Returns: `Run`.

    Raises: RunError if it is no run, or a file of it is damaged.
    """
    folder = Path(folder)
    if not is_run(folder):
        raise RunError(f"{folder} holds no {METRICS} and no {SETTINGS}; give the --output of a training.")
    found = _settings(folder / SETTINGS)
    return Run(
        folder,
        found.get("settings", {}),
        found.get("corpus", {}),
        tuple(found.get("heads", ())),
        read_records(folder / METRICS),
        find_snapshots(folder),
    )


def _settings(path):
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RunError(f"{path} is no JSON ({error}); the folder is damaged.") from error
    return found if isinstance(found, dict) else {}


def read_records(path):
    """The log without what a resumed run did a second time, and without a last line half written.

    Args: path: of a `metrics.jsonl`. Returns: tuple of dicts with "step", ascending; empty without the file.

    Raises: RunError on another line that is no record.
    """
    if not path.is_file():
        return ()
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    records = []
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


def find_snapshots(folder):
    """The snapshots of a run's folder, a tuple of `Snapshot`, ascending; empty where it has none."""
    folder = Path(folder) / SNAPSHOTS
    if not folder.is_dir():
        return ()
    found = [Snapshot(int(match[1]), path) for path in folder.iterdir() if (match := _STEP.fullmatch(path.name))]
    return tuple(sorted(found, key=lambda snapshot: snapshot.step))
