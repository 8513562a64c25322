"""Checkpoints of a training run: weights, optimiser state, step, data position and random state.

A run keeps its newest checkpoints and the best one. A checkpoint is a folder `step-N` with `state.safetensors` and
`state.json`. It is written under a temporary name, renamed when it is complete, and renamed again before it is
removed. So a folder named `step-N` is always complete. Its `checksums.json` shows later damage, such as a file that was
cut or a disk's flipped bit.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.checksums import find_damage, has_checksums, write_checksums
from bert_tf.files import atomic_write

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import keras


_NAME = re.compile(r"step-(\d+)$")
_WEIGHTS, _STATE = "state.safetensors", "state.json"


class CheckpointWriteError(OSError):
    """A checkpoint or a model could not be written; the earlier checkpoints are untouched."""


@contextmanager
def writing(subject: str, advice: str) -> Iterator[None]:
    """Turns the disk errors of a block that writes weights into one error with a clear message.

    Args:
        subject: str. What the block writes, for example "Checkpoint run/step-5"; the message begins with it.
        advice: str. A sentence that says which data is safe and what to do.

    Raises: CheckpointWriteError if the block raises an OSError or a SafetensorError.
    """
    from safetensors import SafetensorError

    try:
        yield
    # On a full disk safetensors raises its own error, not an OSError.
    except (OSError, SafetensorError) as error:
        full = getattr(error, "errno", None) == errno.ENOSPC or "No space" in str(error)
        reason = "the disk is full" if full else str(error).rstrip(".")
        raise CheckpointWriteError(f"{subject} was not written: {reason}. {advice}") from error


class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: str or Path. The folder that holds the checkpoint folders.
        keep: int. How many of the newest checkpoints stay on disk; the best one stays too.

    Example:
        variables = [keras.Variable([1.0, 2.0])]
        checkpoints = Checkpoints("run/checkpoints", keep=2)
        checkpoints.save(100, variables, {"loss": 2.5})
        state = checkpoints.restore(variables)
    """

    def __init__(self, folder: str | Path, keep: int = 2) -> None:
        self.folder, self.keep = Path(folder), keep

    def steps(self) -> list[int]:
        """The steps that have a complete checkpoint, as an ascending list."""
        if not self.folder.is_dir():
            return []
        return sorted(
            int(match[1]) for path in self.folder.iterdir() if (match := _NAME.match(path.name)) and _is_whole(path)
        )

    def best(self) -> int | None:
        """The step whose checkpoint has the lowest loss, or None if no checkpoint has a loss.

        A loss that is the mean over less than half of the updates between two checkpoints is too uncertain. It counts
        only if every checkpoint has such a loss.
        """
        states = {step: state for step in self.steps() if (state := self._state(step)).get("loss") is not None}
        longest = max((state.get("updates", 0) for state in states.values()), default=0)

        def is_measure(step):
            # Earlier versions did not save "updates", or not "save_every".
            expected = states[step].get("save_every", longest)
            return 2 * states[step].get("updates", expected) >= expected

        return min(list(filter(is_measure, states)) or states, key=lambda step: states[step]["loss"], default=None)

    def _state(self, step):
        try:
            return json.loads((self.folder / f"step-{step}" / _STATE).read_text())
        except (FileNotFoundError, ValueError):
            return {}  # a training that is still running has just removed it, or it is damaged

    def save(self, step: int, variables: Sequence[keras.Variable], state: dict[str, Any]) -> None:
        """Writes a checkpoint, then removes the older ones beyond `keep`, except the best.

        Checkpoints of later steps are removed too: a run comes to an earlier step again only if they are damaged.

        Args:
            step: int. The number of updates done.
            variables: list of Keras variables, in the order in which `restore` will get them.
            state: dict of JSON values. `best` compares its "loss", if it has one; "updates" is the number of updates
                that the loss is the mean of, and "save_every" the usual number.

        Raises: CheckpointWriteError if a file cannot be written, for example because the disk is full.
        """
        from safetensors.numpy import save_file

        target, part = self.folder / f"step-{step}", self.folder / f".step-{step}.part"
        earlier = "Earlier checkpoints are whole" if self.steps() else "There is no earlier checkpoint"
        with writing(f"Checkpoint {target}", f"{earlier}; free space and give the command again."):
            try:
                shutil.rmtree(part, ignore_errors=True)
                part.mkdir(parents=True)
                with atomic_write(part / _WEIGHTS) as path:
                    save_file({f"{index:05d}": np.asarray(one) for index, one in enumerate(variables)}, path)
                (part / _STATE).write_text(json.dumps({**state, "step": step}))
                write_checksums(part, (_WEIGHTS, _STATE))
                for path in part.iterdir():
                    # "r+b": Windows syncs only files that are open for writing.
                    with open(path, "r+b") as file:
                        os.fsync(file.fileno())
                self._set_aside(step)
                part.rename(target)
            finally:
                shutil.rmtree(part, ignore_errors=True)
        for later in (later for later in self.steps() if later > step):
            self._set_aside(later)
        best = self.best()
        for old in (old for old in self.steps()[: -self.keep] if old != best):
            self._set_aside(old)
        self._sweep()

    def _set_aside(self, step):
        """Renames a checkpoint that is to be removed: a kill during the removal leaves no incomplete `step-N`."""
        path, old = self.folder / f"step-{step}", self.folder / f".step-{step}.old"
        if path.exists():
            shutil.rmtree(old, ignore_errors=True)
            path.rename(old)

    def _sweep(self):
        """Removes the folders set aside, and incomplete ones that killed runs (also of earlier versions) left."""
        for path in self.folder.iterdir():
            if (
                path.match(".step-*.part")
                or path.match(".step-*.old")
                or _NAME.match(path.name)
                and not _is_whole(path)
            ):
                shutil.rmtree(path, ignore_errors=True)

    def restore(
        self, variables: Sequence[keras.Variable], step: int | None = None, partly: bool = False
    ) -> dict[str, Any] | None:
        """Assigns the values of a checkpoint to variables.

        Args:
            variables: list of Keras variables, in the order of `save`.
            step: int. The checkpoint to read; None for the newest.
            partly: bool. Whether `variables` may be only the first ones (the model's, without the optimiser's).

        Returns: the state dict of the checkpoint, with "step"; None if there is no checkpoint. Where the newest is
            damaged, the newest whole one is read, and a warning on standard error says so.

        Raises: ValueError if the checkpoint is of another model or optimiser, or if `step` or all checkpoints are
            damaged; then nothing is assigned.
        """
        steps = self.steps()
        if not steps:
            return None
        for candidate in reversed(steps) if step is None else [step]:
            folder = self.folder / f"step-{candidate}"
            damage = _damage(folder)
            if not damage:
                return _assign(folder, variables, partly)
            if step is None and candidate != steps[0]:
                print(f"Warning: {damage} The checkpoint before it is read.", file=sys.stderr, flush=True)
        others = ", ".join(str(other) for other in steps if other != step)
        advice = f"The other checkpoints are {others}." if step and others else "No other checkpoint is left."
        raise ValueError(f"{damage} {advice}")


def _damage(folder: Path) -> str:
    """What is wrong with the files of a checkpoint, in sentences; "" if they are whole."""
    if has_checksums(folder):
        return " ".join(find_damage(folder))
    # Earlier versions wrote no checksums; a file that was cut shows all the same.
    from safetensors import SafetensorError, safe_open

    try:
        json.loads((folder / _STATE).read_text())
        with safe_open(folder / _WEIGHTS, framework="np"):
            return ""
    except (ValueError, SafetensorError) as error:
        return f"{folder} is damaged: {str(error).rstrip('.')}."


def _assign(folder: Path, variables: Sequence[keras.Variable], partly: bool) -> dict[str, Any]:
    """Assigns the values of a whole checkpoint to variables; returns its state."""
    from safetensors import safe_open

    with safe_open(folder / _WEIGHTS, framework="np") as file:
        names = sorted(file.keys())[: len(variables) if partly else None]
        shapes = [tuple(file.get_slice(name).get_shape()) for name in names]
        if shapes != [tuple(variable.shape) for variable in variables]:
            raise ValueError(
                f"{folder} is a checkpoint of another model, or of a run with another optimizer, another precision or "
                "other layers frozen; give the settings it was made with, or another --output."
            )
        for name, variable in zip(names, variables):
            variable.assign(file.get_tensor(name))
    return json.loads((folder / _STATE).read_text())


def _is_whole(folder):
    return all((folder / name).is_file() for name in (_WEIGHTS, _STATE))
