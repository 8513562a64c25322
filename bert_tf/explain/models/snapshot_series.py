"""One input through the snapshots of a training: a model whose weights are swapped, and the trace of each snapshot."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.errors import InputError, report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bert_tf.inference.trace import Trace

_LOOK = 0.2  # seconds between two looks of a thread that waits for the series


@dataclass(frozen=True, eq=False)
class SnapshotTrace:
    """The `Trace` of one snapshot.

    Attributes:
        step: int. The training step of the snapshot.
        trace: `Trace`.
    """

    step: int
    trace: Trace


def snapshot_bytes(snapshots: Sequence) -> int:
    """The size of the snapshots' weights on disk in bytes, about the memory that a `SnapshotSeries` of them takes."""
    return sum(path.stat().st_size for snapshot in snapshots for path in Path(snapshot.folder).glob("*.safetensors"))


def spread_snapshots(snapshots: Sequence, most_bytes: float) -> tuple:
    """The snapshots of a run that fit into memory, evenly spread from the first to the last.

    Args:
        snapshots: sequence of objects with `step` and `folder`, ascending.
        most_bytes: int. The available memory in bytes.
    Returns:
        tuple of snapshots: all if they fit, the last alone if only one fits, empty if none fits.
    """
    snapshots, total = tuple(snapshots), snapshot_bytes(snapshots)
    if total <= most_bytes:
        return snapshots
    count = int(most_bytes * len(snapshots) / total)
    return tuple(snapshots[index] for index in np.linspace(len(snapshots) - 1, 0, count).round().astype(int)[::-1])


class SnapshotSeries:
    """The snapshots of one run in memory; one Keras model runs with the weights of each in turn.

    Weights are held in float16, as `pretrain` writes its snapshots, where the conversion is exact, otherwise in
    float32.

    Args:
        snapshots: sequence of objects with `step` and `folder`, ascending; at least one.
        progress: callable(done, total) in snapshots, or None; returning False cancels.

    Attributes:
        steps: tuple of S int. The training steps of the snapshots.
        nbytes: int. The size of the weights in memory.
        config, tokenizer, heads, max_length: those of the model.

    Raises:
        InputError: there is no snapshot, or the snapshots are of different models.
        CheckpointError: a snapshot cannot be read.
        Cancelled: by `progress`.

    Example:
        series = SnapshotSeries(read_run("run").snapshots)
        traces = series.snapshot_traces("The capital of France is [MASK].")
    """

    def __init__(self, snapshots: Sequence, progress: Callable[[int, int], object] | None = None):
        from bert_tf import checkpoints
        from bert_tf.inference.bert import Bert

        if not snapshots:
            raise InputError("This training has no snapshots; start it with --snapshots.")
        self.steps = tuple(snapshot.step for snapshot in snapshots)
        self._weights, first = [], None
        for number, snapshot in enumerate(snapshots, 1):
            config, tokenizer, model = checkpoints.read(snapshot.folder)
            if first is None:
                first = config, tokenizer, model
            elif config != first[0] or tokenizer.vocab != first[1].vocab:
                raise InputError(f"Step {snapshot.step} is of another model than step {self.steps[0]}.")
            self._weights.append([_compact_copy(weight.value) for weight in model.weights])
            report(progress, number, len(snapshots))
        assert first is not None
        config, self.tokenizer, model = first
        self._runtime = _SwappedWeights(model)
        self._bert = Bert(config, self.tokenizer, model, self._runtime, "snapshot")
        self.config, self.heads, self.max_length = config, self._bert.heads, self._bert.max_length
        self.nbytes = sum(weight.nbytes for weights in self._weights for weight in weights)
        self._lock = threading.Lock()

    def snapshot_traces(
        self,
        text_a: str,
        text_b: str | None = None,
        mask: Sequence = (),
        level: str = "token",
        progress: Callable[[int, int], object] | None = None,
    ) -> tuple[SnapshotTrace, ...]:
        """Trace one input with every snapshot.

        Args:
            text_a, text_b, mask, level: as in `Bert.trace`.
            progress: callable(done, total) in snapshots, or None; returning False cancels. It is called with (0, 0)
                while another thread uses the series.
        Returns:
            tuple of S `SnapshotTrace`.
        Raises:
            As `Bert.trace`. Cancelled: by `progress`.
        """
        traces = []
        # All requests share one model: the lock keeps another request from changing its weights in between.
        while not self._lock.acquire(timeout=_LOOK):
            report(progress, 0, 0)
        try:
            for step, weights in zip(self.steps, self._weights):
                self._runtime.set_weights(weights)
                trace = self._bert.trace(text_a, text_b, mask, level, hidden_states=False)
                traces.append(SnapshotTrace(step, trace))
                report(progress, len(traces), len(self.steps))
        finally:
            self._lock.release()
        return tuple(traces)


def _compact_copy(weight):
    """A copy of a weight as an array, in float16 where the conversion is exact.

    TensorFlow would keep the memory of tensors when the series is dropped.
    """
    import tensorflow as tf

    # NumPy's conversion takes several times as long.
    half = tf.cast(weight, tf.float16)
    return np.array(half if bool(tf.reduce_all(tf.cast(half, weight.dtype) == weight)) else weight)


class _SwappedWeights:
    """A `ModelRunner` whose weights can be exchanged: tensors in the order of the model's weights."""

    precision = "float32"

    def __init__(self, model):
        self._model, self.weights = model, [variable.value for variable in model.weights]
        self._views: dict[tuple[str, ...], tuple] = {}

    def set_weights(self, weights):
        """Cast weights (arrays) to the dtypes of the model's and use them in the next runs."""
        import tensorflow as tf

        self.weights = [tf.cast(weight, current.dtype) for weight, current in zip(weights, self.weights)]

    def run(self, batch, outputs):
        if outputs not in self._views:
            self._views[outputs] = self._compiled(outputs)
        names, function = self._views[outputs]
        results = function({name: np.asarray(batch[name], np.int32) for name in names}, self.weights)
        return {
            name: [np.asarray(layer) for layer in value] if isinstance(value, list) else np.asarray(value)
            for name, value in results.items()
        }

    def _compiled(self, outputs):
        """(names of the inputs, function of the inputs and the weights, compiled once for all batches and lengths)."""
        import tensorflow as tf

        from bert_tf.models import view

        model = view(self._model, outputs)
        signature = {name: tf.TensorSpec((None, None), tf.int32, name) for name in model.input}
        order = {id(variable): place for place, variable in enumerate(self._model.weights)}

        def values(variables, weights):
            # A view has only some of the model's variables; the states of its random generators are not used.
            return [weights[order[id(variable)]] if id(variable) in order else variable.value for variable in variables]

        def run_with_weights(batch, weights):
            trainable = values(model.trainable_variables, weights)
            fixed = values(model.non_trainable_variables, weights)
            return model.stateless_call(trainable, fixed, batch, training=False)[0]

        shapes = [tf.TensorSpec(weight.shape, weight.dtype) for weight in self.weights]
        return tuple(model.input), tf.function(run_with_weights, input_signature=[signature, shapes], autograph=False)
