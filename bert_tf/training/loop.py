"""The training loop: steps on one or several devices, checkpoints, a log, and a clean stop on a signal.

Shapes: B sequences of an update over all devices, T tokens, P predicted positions.
"""

from __future__ import annotations

import contextlib
import math
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.resources.remote import send_mirrors
from bert_tf.training import strategy as distribution
from bert_tf.training.checkpoint import Checkpoints
from bert_tf.training.logs.run_log import RunLog, RunningMeans
from bert_tf.training.random_state import RandomStates
from bert_tf.training.step import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import keras
    import tensorflow as tf

    from bert_tf.training.snapshots import SnapshotWriter


#: The exit code of a command that a signal stopped before its end: 128 + SIGTERM, as shells define it.
STOPPED = 143

_STOP_SIGNALS = [signal.SIGTERM, signal.SIGINT]
if sys.platform == "win32":  # there a program can send another one only this signal, and SIGTERM ends it at once
    _STOP_SIGNALS.append(signal.SIGBREAK)


class TrainingDiverged(ValueError):
    """The loss or its gradient is no longer a finite number, because of the settings or the data."""


class Trainer:
    """Runs an objective over a feed of batches.

    Args:
        model: a Keras model.
        objective: callable (outputs, batch, counts) -> dict of scalar tensors: "loss" and the other values to log, each
            divided by `counts`, so that the values of all parts of a batch add up to the value of the batch.
            `objective.counts(batch)` returns a dict of scalars; `objective.model_inputs` names the batch entries that
            the model takes; `objective.ratios`, if present, is passed to `RunningMeans`. See
            `pretraining.objectives.masked_lm`.
        optimizer: a built Keras optimiser over `model.trainable_variables`.
        folder: str or Path. The run folder, for checkpoints, `metrics.jsonl` and a TensorBoard log. With several
            machines only the chief writes there, and all must be able to read it.
        clip_norm: float. The bound of the global norm of the gradients.
        jit_compile: bool. Whether XLA compiles the step.
        keep: int. How many of the newest checkpoints stay on disk.
        strategy: the `tf.distribute.Strategy` in whose scope model and optimiser were made, or None for one device.
        accumulate: int. The number of micro-batches that a device splits its part of a batch into.
        flops_of: callable batch -> the floating-point operations of its update; None to log no share of the peak.
        peak: float. The FLOP/s of all devices together; None to log no share of the peak.
    """

    def __init__(
        self,
        model: keras.Model,
        objective: Any,
        optimizer: keras.optimizers.Optimizer,
        folder: str | Path,
        clip_norm: float = 1.0,
        jit_compile: bool = False,
        keep: int = 2,
        strategy: tf.distribute.Strategy | None = None,
        accumulate: int = 1,
        flops_of: Callable[[dict[str, Any]], float] | None = None,
        peak: float | None = None,
    ) -> None:
        self.optimizer, self.folder, self.strategy = optimizer, Path(folder), strategy
        self.variables = model.trainable_variables
        self.random = RandomStates(model, strategy)
        self.chief = distribution.is_chief(strategy)
        self.checkpoints = Checkpoints(self.folder / "checkpoints", keep)
        self._step = Step(model, objective, optimizer, clip_norm, strategy, accumulate, jit_compile)
        self._ratios = getattr(objective, "ratios", None)
        self._flops_of, self._peak = flops_of or (lambda batch: 0.0), peak
        self.position = None  # of the data, after the last update
        self._stop = False
        self.stopped = False  # whether a signal came in the last `train` or `noting_signals`

    def _all_variables(self):
        return [*self.variables, *self.optimizer.variables]

    def restore(self) -> dict[str, Any] | None:
        """Restores the newest checkpoint.

        Returns: its state dict, or None if there is no checkpoint.

        Raises: ValueError if the checkpoint is of another model, or if the machines find different checkpoints.
        """
        state = self.checkpoints.restore(self._all_variables())
        self.random.restore((state or {}).get("random"))
        step = (state or {"step": 0})["step"]
        workers = distribution.sum_over_workers(self.strategy, 1)
        if distribution.sum_over_workers(self.strategy, step) != workers * step:
            raise ValueError(
                f"This machine finds step {step} in {self.folder} and another machine another "
                f"step; --output must be a folder that all of them share."
            )
        return state

    def train(
        self,
        batches: Iterable[tuple[dict[str, Any], Any]],
        first_step: int,
        total_steps: int,
        *,
        encode_position: Callable[[Any], Any],
        save_every: int = 500,
        log_every: int = 50,
        report: Callable[[dict[str, Any]], object] | None = None,
        describe_position: Callable[[Any], str] | None = None,
        snapshots: SnapshotWriter | None = None,
        advice: str = "resume with a lower --learning-rate",
    ) -> int:
        """Trains up to `total_steps` updates, or until SIGTERM or SIGINT, then saves a checkpoint.

        Args:
            batches: iterable of (dict of arrays, the data position after this batch).
            first_step: int. The number of updates done before.
            total_steps: int. The number of updates at the end.
            encode_position: callable position -> JSON value, for the checkpoint.
            save_every: int. Updates between two checkpoints.
            log_every: int. Updates between two log records.
            report: callable that gets each log record, or None.
            describe_position: callable position -> str that names the part of the data just read, for error messages;
                or None.
            snapshots: a `training.snapshots.SnapshotWriter`, or None.
            advice: str. What to do when the loss is not finite, for the error message.

        Returns: the last step reached, an int.

        Raises:
            TrainingDiverged: if the loss is not finite, or if a gradient is not finite and no loss scale skips the
                step. The message names the step and the data position. The weights are then damaged
                and are not saved.
            CheckpointWriteError: if a checkpoint cannot be written.
        """
        step, window, since_saved, self.stopped = first_step, RunningMeans(self._peak, self._ratios), [], False
        with _stop_on_signals(self), RunLog(self.folder, self.chief, first_step) as log:
            # The snapshot of step 0, or one that a killed run did not write any more.
            self._take(snapshots, step)
            for batch, position in batches:
                values = {name: float(value) for name, value in self._step(batch).items()}
                step, self.position = step + 1, position
                rate = values.pop("learning_rate")
                window.add(values, int(batch["padding_mask"].sum()), self._flops_of(batch))
                since_saved.append(values["loss"])
                if broken := _not_finite(values):
                    where = f"data position {encode_position(position)}"
                    where += f", {describe_position(position)}" if describe_position else ""
                    raise TrainingDiverged(f"{broken} at step {step} ({where}); {advice}, or look at that text.")
                self.stopped = self._asked_to_stop()
                last = step >= total_steps or self.stopped
                if step % save_every == 0 or last:
                    self._save(step, encode_position(position), since_saved, save_every)
                    since_saved.clear()
                if step % log_every == 0 or last:
                    record = window.record(step, rate)
                    log.write(record)
                    if report and self.chief:
                        report(record)
                # Last: a run can do without a snapshot, so its failure must not cost a checkpoint or a record.
                self._take(snapshots, step)
                if self.chief and (step % save_every == 0 or last):
                    send_mirrors(self.folder)
                if last:
                    break
            # A signal may have come while the last update was saved.
            self.stopped = self.stopped or self._asked_to_stop()
        return step

    @contextlib.contextmanager
    def noting_signals(self) -> Iterator[None]:
        """A block of work between two calls of `train` that a signal does not cut; afterwards `stopped` tells of it."""
        with _stop_on_signals(self):
            yield
            asked = self._asked_to_stop()  # by each machine, also by one that knows already
            self.stopped = self.stopped or asked

    def _take(self, snapshots, step):
        if snapshots and self.chief:
            snapshots.take(step)

    def _asked_to_stop(self):
        """Whether any machine was asked to stop. All stop after the same step, or the others would wait forever."""
        return distribution.sum_over_workers(self.strategy, self._stop) > 0

    def _save(self, step, position, losses, save_every):
        """Saves a checkpoint; the mean of `losses`, those since the last checkpoint, decides which one is best."""
        if self.chief:
            state = {
                "position": position,
                "random": self.random.state(),
                "loss": float(np.mean(losses)),
                "updates": len(losses),
                "save_every": save_every,
            }
            self.checkpoints.save(step, self._all_variables(), state)


def _not_finite(values):
    """The beginning of an error message if a value of an update has damaged the weights, else None."""
    if not math.isfinite(values["loss"]):
        return f"The loss became {values['loss']}"
    if "loss_scale" not in values and not math.isfinite(values["gradient_norm"]):
        return f"The gradient's norm became {values['gradient_norm']} (the loss is {values['loss']:.4g})"
    return None


class _stop_on_signals:
    """A context manager: SIGTERM, SIGINT and Windows' SIGBREAK ask the loop to save and stop after the update."""

    def __init__(self, trainer):
        self.trainer = trainer

    def __enter__(self):
        self.trainer._stop = False

        def stop(*_):
            self.trainer._stop = True

        self.before = {number: signal.signal(number, stop) for number in _STOP_SIGNALS}

    def __exit__(self, *_):
        for number, handler in self.before.items():
            signal.signal(number, handler)
