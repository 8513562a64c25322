"""The one training loop: a compiled step, checkpoints, a log, a clean stop.

B batch, T tokens, P predicted positions.
"""

import json
import math
import signal
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

from bert_tf.train.checkpoint import Checkpoints


class TrainingDiverged(ArithmeticError):
    """The loss is no longer a finite number."""


class Trainer:
    """Runs an objective over a feed of batches.

    Args:
        model: a Keras model. objective: callable (outputs, batch) -> dict of scalar tensors with "loss" and
            whatever else is to be logged; `objective.model_inputs` names the batch entries the model takes.
        optimizer: a built Keras optimiser over `model.trainable_variables`.
        folder: of the run: checkpoints and `metrics.jsonl`.
        clip_norm: bound of the gradients' global norm. jit_compile: XLA for the step.
    """

    def __init__(self, model, objective, optimizer, folder, clip_norm=1.0, jit_compile=False, keep=2):
        self.model, self.objective, self.optimizer = model, objective, optimizer
        self.folder, self.clip_norm = Path(folder), clip_norm
        self.variables = model.trainable_variables
        self.checkpoints = Checkpoints(self.folder / "checkpoints", keep)
        self._step = tf.function(self._update, jit_compile=jit_compile)
        self._stop = False

    def _update(self, batch):
        inputs = {name: batch[name] for name in self.objective.model_inputs}
        with tf.GradientTape() as tape:
            values = self.objective(self.model(inputs, training=True), batch)
        gradients = tape.gradient(values["loss"], self.variables)
        gradients, norm = tf.clip_by_global_norm(gradients, self.clip_norm)
        self.optimizer.apply(gradients, self.variables)
        return {**values, "gradient_norm": norm}

    def _all_variables(self):
        return [*self.variables, *self.optimizer.variables]

    def restore(self):
        """Goes back to the newest checkpoint. Returns: its state dict, or None for a fresh run."""
        return self.checkpoints.restore(self._all_variables())

    def train(self, batches, first_step, total_steps, *, encode_position, save_every=500, log_every=50,
              report=None):
        """Trains up to `total_steps` updates, or until SIGTERM or SIGINT, then saves.

        Args:
            batches: iterable of (dict of arrays, position after it).
            first_step: updates done before. total_steps: updates to have done at the end.
            encode_position: position -> JSON-able value kept in the checkpoint.
            save_every, log_every: in updates. report: called with each log record.

        Returns: the last step reached.

        Raises:
            TrainingDiverged: on a loss that is not finite, with the step and the data position.
            CheckpointWriteError: if a checkpoint cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        step, position, window = first_step, None, _Window()
        with _stop_on_signals(self), open(self.folder / "metrics.jsonl", "a", encoding="utf-8") as log:
            for batch, position in batches:
                values = self._step({name: tf.convert_to_tensor(array) for name, array in batch.items()})
                step += 1
                window.add({name: float(value) for name, value in values.items()},
                           int(batch["padding_mask"].sum()))
                if not math.isfinite(window.last["loss"]):
                    raise TrainingDiverged(f"The loss became {window.last['loss']} at step {step} (data position "
                                           f"{encode_position(position)}); resume with a lower learning rate.")
                last = step >= total_steps or self._stop
                if step % log_every == 0 or last:
                    record = window.record(step, float(self.optimizer.learning_rate))
                    log.write(json.dumps(record) + "\n")
                    log.flush()
                    if report:
                        report(record)
                if step % save_every == 0 or last:
                    self.checkpoints.save(step, self._all_variables(), {"position": encode_position(position)})
                if last:
                    break
        return step


class _Window:
    """Means since the last record."""

    def __init__(self):
        self.clear()

    def clear(self):
        self.values, self.tokens, self.start = [], 0, time.perf_counter()

    def add(self, values, tokens):
        self.last = values
        self.values.append(values)
        self.tokens += tokens

    def record(self, step, learning_rate):
        means = {name: round(float(np.mean([value[name] for value in self.values])), 5) for name in self.last}
        seconds = time.perf_counter() - self.start
        record = {"step": step, **means, "learning_rate": learning_rate,
                  "tokens_per_second": round(self.tokens / seconds, 1),
                  "seconds_per_step": round(seconds / len(self.values), 4), "time": round(time.time(), 1)}
        self.clear()
        return record


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
