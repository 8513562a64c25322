"""Snapshots: half-precision copies of a model during training, to see later how it learned."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf.errors import CheckpointError
from bert_tf.training.checkpoint import CheckpointWriteError, writing
from bert_tf.training.run_folder import SNAPSHOTS, find_snapshots

if TYPE_CHECKING:
    from collections.abc import Callable


def is_snapshot_step(step: int) -> bool:
    """Whether a step is one of 0, 1, 2, 5, 10, 20, 50, 100, ….

    Every power of ten has the same number of these steps, because learning slows down in about this way.

    Args:
        step: int. The number of updates done.

    Returns: bool.
    """
    if step == 0:
        return True
    while step % 10 == 0:
        step //= 10
    return step in (1, 2, 5)


class SnapshotWriter:
    """Writes model folders in half precision to `RUN/snapshots/step-N`.

    Args:
        folder: str or Path. The run folder.
        save: callable. `save(folder)` writes the current model to a folder.
        last: int. One more step to write a snapshot at, or None.
    """

    def __init__(self, folder: str | Path, save: Callable[[Path], Any], last: int | None = None) -> None:
        self.folder, self.save, self.last = Path(folder) / SNAPSHOTS, save, last

    def remove_after(self, step: int) -> None:
        """Removes the snapshots of later steps: the run that starts at this step may train differently.

        Args:
            step: int. The number of updates done; -1 for a new run.
        """
        for snapshot in find_snapshots(self.folder.parent):
            if snapshot.step > step:
                shutil.rmtree(snapshot.folder, ignore_errors=True)

    def take(self, step: int) -> None:
        """Writes a snapshot if `is_snapshot_step` or `last` selects the step and it does not exist yet.

        A snapshot folder is always complete. If it cannot be written, a warning goes to standard error and the training
        continues, as it needs no snapshots.

        Args:
            step: int. The number of updates done.
        """
        target = self.folder / f"step-{step}"
        if not (is_snapshot_step(step) or step == self.last) or target.exists():
            return
        part = self.folder / f".step-{step}.part"
        try:
            with writing(f"Snapshot {target}", "The training goes on without it."):
                shutil.rmtree(part, ignore_errors=True)
                part.mkdir(parents=True)
                self.save(part)
                part.rename(target)
        except (CheckpointWriteError, CheckpointError) as error:
            print(f"Warning: {error}", file=sys.stderr, flush=True)
        finally:
            shutil.rmtree(part, ignore_errors=True)
