"""Checkpoints of a run: atomic, the last few and the best kept; weights, optimiser, step, data position and
random state.

A checkpoint is a folder `step-N` with `state.safetensors` and `state.json`. It is written under another name
and renamed when whole, so a folder of that name is always complete.
"""

import errno
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np

_NAME = re.compile(r"step-(\d+)$")


class CheckpointWriteError(OSError):
    """A checkpoint could not be written; the earlier ones are untouched."""


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
        return sorted(int(found[1]) for path in self.folder.iterdir() if (found := _NAME.match(path.name)))

    def best(self):
        """The step whose checkpoint has the lowest loss, or None if none was saved with one."""
        losses = {step: loss for step in self.steps() if (loss := self._loss(step)) is not None}
        return min(losses, key=losses.get, default=None)

    def _loss(self, step):
        return json.loads((self.folder / f"step-{step}" / "state.json").read_text()).get("loss")

    def save(self, step, variables, state):
        """Writes one and removes those beyond `keep`, but for the best.

        Args:
            step: updates done. variables: Keras variables, in the order `restore` will get them.
            state: JSON-able dict; its "loss", if any, is what `best` goes by.

        Raises: CheckpointWriteError (the disk is full, say).
        """
        from safetensors.numpy import save_file

        target, part = self.folder / f"step-{step}", self.folder / f".step-{step}.part"
        try:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            save_file({f"{index:05d}": np.asarray(variable) for index, variable in enumerate(variables)},
                      part / "state.safetensors")
            (part / "state.json").write_text(json.dumps({**state, "step": step}))
            for path in part.iterdir():
                with open(path, "rb") as file:
                    os.fsync(file.fileno())
            if target.exists():
                shutil.rmtree(target)
            part.rename(target)
        except Exception as error:
            shutil.rmtree(part, ignore_errors=True)
            full = isinstance(error, OSError) and error.errno == errno.ENOSPC or "No space" in str(error)
            reason = "the disk is full" if full else str(error)
            raise CheckpointWriteError(f"Checkpoint {target} was not written: {reason}. Earlier checkpoints "
                                       f"are whole; free space and resume.") from error
        best = self.best()
        for old in (old for old in self.steps()[:-self.keep] if old != best):
            shutil.rmtree(self.folder / f"step-{old}")

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
        with safe_open(folder / "state.safetensors", framework="np") as file:
            names = sorted(file.keys())[:len(variables) if partly else None]
            shapes = [tuple(file.get_slice(name).get_shape()) for name in names]
            if shapes != [tuple(variable.shape) for variable in variables]:
                raise ValueError(f"{folder} is a checkpoint of another model or with other layers frozen; "
                                 f"give the settings it was made with, or another --output.")
            for name, variable in zip(names, variables):
                variable.assign(file.get_tensor(name))
        return json.loads((folder / "state.json").read_text())
