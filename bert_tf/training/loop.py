"""The one training loop: steps on one device or many, checkpoints, a log, a clean stop.

B sequences of an update, over all devices; T tokens, P predicted positions.
"""

import math
import signal
from pathlib import Path

import numpy as np

from bert_tf.training import strategy as distribution
from bert_tf.training.checkpoint import Checkpoints
from bert_tf.training.random_state import RandomStates
from bert_tf.training.run_log import RunLog, RunningMeans
from bert_tf.training.step import Step

#: A command's exit code when a signal has stopped it before its end: 128 + SIGTERM, as a shell has it.
STOPPED = 143


class TrainingDiverged(ValueError):
    """The loss or its gradient is no longer a finite number: the settings or the data are not fit for it."""


class Trainer:
    """Runs an objective over a feed of batches.

    Args:
        model: a Keras model. objective: callable (outputs, batch, counts) -> dict of scalar tensors with
            "loss" and whatever else is to be logged, each the batch's share when divided by `counts`;
            `objective.counts(batch)` -> dict of scalars; `objective.model_inputs` names the batch entries
            the model takes; `objective.ratios`, if it has them, are those of a `RunningMeans`. See
            `pretraining.objectives.masked_lm`.
        optimizer: a built Keras optimiser over `model.trainable_variables`.
        folder: of the run: checkpoints, `metrics.jsonl` and a TensorBoard log. With several machines only the chief
            writes there, and all must be able to read it.
        clip_norm: bound of the gradients' global norm. jit_compile: XLA for the step.
        keep: checkpoints to leave on disk. strategy: a `tf.distribute.Strategy` in whose scope model and
            optimiser were made, or None for one device. accumulate: micro-batches that a device's part is
            taken in.
        flops_of: batch -> floating-point operations of its update, and peak: FLOP/s of all devices; for the
            share of the peak in the log, which is left out without them.
    """

    def __init__(
        self,
        model,
        objective,
        optimizer,
        folder,
        clip_norm=1.0,
        jit_compile=False,
        keep=2,
        strategy=None,
        accumulate=1,
        flops_of=None,
        peak=None,
    ):
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
        self.stopped = False  # whether a signal ended the last `train`

    def _all_variables(self):
        return [*self.variables, *self.optimizer.variables]

    def restore(self):
        """Goes back to the newest checkpoint. Returns: its state dict, or None for a fresh run.

        Raises: ValueError if it is of another model, or if the machines do not find the same one.
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
        batches,
        first_step,
        total_steps,
        *,
        encode_position,
        save_every=500,
        log_every=50,
        report=None,
        describe_position=None,
        snapshots=None,
        advice="resume with a lower --learning-rate",
    ):
        """Trains up to `total_steps` updates, or until SIGTERM or SIGINT, then saves.

        Args:
            batches: iterable of (dict of arrays, position after it).
            first_step: updates done before. total_steps: updates to have done at the end.
            encode_position: position -> JSON-able value kept in the checkpoint.
            save_every, log_every: in updates. report: called with each log record.
            describe_position: position -> words that say which part of the data was just given, for errors.
            snapshots: a `training.snapshots.Snapshots`, or None. advice: what to do when the loss is not finite.

        Returns: the last step reached.

        Raises:
            TrainingDiverged: on a loss that is not finite, or (without a loss scale, which leaves such a step out) a
                gradient; with the step and the data position. The weights are spoilt then, and are not saved.
            CheckpointWriteError: if a checkpoint cannot be written.
        """
        step, window, since_saved, self.stopped = first_step, RunningMeans(self._peak, self._ratios), [], False
        with _stop_on_signals(self), RunLog(self.folder, self.chief, first_step) as log:
            # Of step 0, or one that a kill came before.
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
                # Last, as a run can do without: what fails before must not cost a checkpoint or a record.
                self._take(snapshots, step)
                if last:
                    break
        return step

    def _take(self, snapshots, step):
        if snapshots and self.chief:
            snapshots.take(step)

    def _asked_to_stop(self):
        """Whether any machine was: all leave after the same step, or the rest would wait without end."""
        return distribution.sum_over_workers(self.strategy, self._stop) > 0

    def _save(self, step, position, losses, save_every):
        """`losses`: since the checkpoint before, in this call; by their mean the best one is told."""
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
    """What of an update's values has spoilt the weights: the beginning of a sentence, or None."""
    if not math.isfinite(values["loss"]):
        return f"The loss became {values['loss']}"
    if "loss_scale" not in values and not math.isfinite(values["gradient_norm"]):
        return f"The gradient's norm became {values['gradient_norm']} (the loss is {values['loss']:.4g})"
    return None


class _stop_on_signals:
    """SIGTERM and SIGINT ask the loop to save and leave after the update under way."""

    def __init__(self, trainer):
        self.trainer = trainer

    def __enter__(self):
        self.trainer._stop = False

        def stop(*_):
            self.trainer._stop = True

        self.before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}

    def __exit__(self, *_):
        for number, handler in self.before.items():
            signal.signal(number, handler)
