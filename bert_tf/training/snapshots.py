"""Small copies of a model on its way, kept to see later how it learned."""

import shutil
import sys
from pathlib import Path

from bert_tf.errors import CheckpointError
from bert_tf.training.checkpoint import CheckpointWriteError, writing
from bert_tf.training.run_folder import SNAPSHOTS, find_snapshots


def is_snapshot_step(step):
    """Whether a step is one of 0, 1, 2, 5, 10, 20, 50, 100, …: as many in every tenfold, as learning slows so."""
    if step == 0:
        return True
    while step % 10 == 0:
        step //= 10
    return step in (1, 2, 5)


class SnapshotWriter:
    """Writes model folders of half precision to `RUN/snapshots/step-N`.

    Args:
        folder: of the run. save: `save(folder)` writes the model as it is now. last: a step that is kept too.
    """

    def __init__(self, folder, save, last=None):
        self.folder, self.save, self.last = Path(folder) / SNAPSHOTS, save, last

    def remove_after(self, step):
        """Removes those of later steps: the run that begins again there may go another way, or be another one.

        Args: step: updates done; -1 for a run that begins anew.
        """
        for one in find_snapshots(self.folder.parent):
            if one.step > step:
                shutil.rmtree(one.folder, ignore_errors=True)

    def take(self, step):
        """Writes one if the step is on the grid and not there yet; a folder of that name is always whole.

        Where it cannot be written, standard error says so and the training goes on: it does not need any.
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
