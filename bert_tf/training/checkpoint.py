"""Checkpoints of a run: atomic, the last few and the best kept; weights, optimiser, step, data position and
random state.

A checkpoint is a folder `step-N` with `state.safetensors` and `state.json`. It is written under another name
and renamed when whole, and renamed again before it is removed, so a folder of that name is always complete.
"""

import errno
import json
import os
import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np

_NAME = re.compile(r"step-(\d+)$")
_WEIGHTS, _STATE = "state.safetensors", "state.json"


class CheckpointWriteError(OSError):
    """A checkpoint or a model could not be written; the earlier checkpoints are untouched."""


@contextmanager
def writing(what, advice):
    """Brings what a disk can do to weights that are written into one sentence.

    Args: what: is written, "Checkpoint run/step-5" say. advice: a sentence on what is safe and what to do.

    Raises: CheckpointWriteError.
    """
    from safetensors import SafetensorError

    try:
        yield
    # On a full disk safetensors raises its own error, which is none of the operating system's.
    except (OSError, SafetensorError) as error:
        full = getattr(error, "errno", None) == errno.ENOSPC or "No space" in str(error)
        reason = "the disk is full" if full else str(error).rstrip(".")
        raise CheckpointWriteError(f"{what} was not written: {reason}. {advice}") from error


class Checkpoints:
    """The checkpoints of one run.

    Args:
        folder: of the run. keep: how many of the newest to leave on disk, besides the best.
    """

    def __init__(self, folder, keep=2):
        self.folder, self.keep = Path(folder), keep

    def steps(self):
        """Steps with a complete checkpoint, ascending."""
        if not self.folder.is_dir():
            return []
        return sorted(
            int(found[1]) for path in self.folder.iterdir() if (found := _NAME.match(path.name)) and _is_whole(path)
        )

    def best(self):
        """The step whose checkpoint has the lowest loss, or None if none was saved with one.

        A mean over less than half of the updates between two checkpoints is no measure beside others, and does not
        count where there are any.
        """
        found = {step: state for step in self.steps() if (state := self._state(step)).get("loss") is not None}
        longest = max((state.get("updates", 0) for state in found.values()), default=0)

        def is_measure(step):
            # Earlier versions did not note the number of updates, or not how many there were to be.
            wanted = found[step].get("save_every", longest)
            return 2 * found[step].get("updates", wanted) >= wanted

        return min(list(filter(is_measure, found)) or found, key=lambda step: found[step]["loss"], default=None)

    def _state(self, step):
        try:
            return json.loads((self.folder / f"step-{step}" / _STATE).read_text())
        except FileNotFoundError:
            return {}  # the run that goes on has just removed it

    def save(self, step, variables, state):
        """Writes one and removes those beyond `keep`, but for the best.

        Args:
            step: updates done. variables: Keras variables, in the order `restore` will get them.
            state: JSON-able dict; its "loss", if any, is what `best` goes by, "updates" over how many it is the
                mean, and "save_every" over how many such means usually are.

        Raises: CheckpointWriteError (the disk is full, say).
        """
        from safetensors.numpy import save_file

        target, part = self.folder / f"step-{step}", self.folder / f".step-{step}.part"
        with writing(f"Checkpoint {target}", "Earlier checkpoints are whole; free space and resume."):
            try:
                shutil.rmtree(part, ignore_errors=True)
                part.mkdir(parents=True)
                save_file(
                    {f"{index:05d}": np.asarray(variable) for index, variable in enumerate(variables)}, part / _WEIGHTS
                )
                (part / _STATE).write_text(json.dumps({**state, "step": step}))
                for path in part.iterdir():
                    with open(path, "rb") as file:
                        os.fsync(file.fileno())
                self._set_aside(step)
                part.rename(target)
            finally:
                shutil.rmtree(part, ignore_errors=True)
        best = self.best()
        for old in (old for old in self.steps()[: -self.keep] if old != best):
            self._set_aside(old)
        self._sweep()

    def _set_aside(self, step):
        """Takes a checkpoint's name from it, so that a kill while it is removed leaves nothing of that name."""
        path, old = self.folder / f"step-{step}", self.folder / f".step-{step}.old"
        if path.exists():
            shutil.rmtree(old, ignore_errors=True)
            path.rename(old)

    def _sweep(self):
        """Removes what was set aside, and what killed runs left half written or (earlier versions) half removed."""
        for path in self.folder.iterdir():
            if (
                path.match(".step-*.part")
                or path.match(".step-*.old")
                or _NAME.match(path.name)
                and not _is_whole(path)
            ):
                shutil.rmtree(path, ignore_errors=True)

    def restore(self, variables, step=None, partly=False):
        """Assigns a checkpoint to the variables.

        Args:
            variables: as for `save`. step: which one; default the newest.
            partly: whether `variables` may be just the first ones (a model's, without its optimiser's).

        Returns: its state dict (with "step"), or None if there is none.

        Raises: ValueError if it is of another model or optimiser; nothing is assigned then.
        """
        from safetensors import safe_open

        steps = self.steps()
        if not steps:
            return None
        folder = self.folder / f"step-{step or steps[-1]}"
        with safe_open(folder / _WEIGHTS, framework="np") as file:
            names = sorted(file.keys())[: len(variables) if partly else None]
            shapes = [tuple(file.get_slice(name).get_shape()) for name in names]
            if shapes != [tuple(variable.shape) for variable in variables]:
                raise ValueError(
                    f"{folder} is a checkpoint of another model or with other layers frozen; "
                    f"give the settings it was made with, or another --output."
                )
            for name, variable in zip(names, variables):
                variable.assign(file.get_tensor(name))
        return json.loads((folder / _STATE).read_text())


def _is_whole(folder):
    return all((folder / name).is_file() for name in (_WEIGHTS, _STATE))
