"""One input through the snapshots of a training: how the answer came about.

S snapshots, P masks, V vocabulary.
"""

import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.inference.predictions import require_masks

PLACES = (10, 5, 1)


@dataclass(frozen=True, eq=False)
class SnapshotTrace:
    """What the model of one step said: its `Trace`."""

    step: int
    trace: object


@dataclass(frozen=True, eq=False)
class TokenTrajectory:
    """How one token fared at one mask over the training.

    Attributes:
        position: the mask's. token, token_id: which one is followed.
        steps: of the S snapshots. ranks: int64 [S], 1 is the likeliest. probabilities: float64 [S].
        first_step_within_rank: place -> the first step at which the rank was at most that, or None; for 10, 5 and 1.
    """

    position: int
    token: str
    token_id: int
    steps: tuple
    ranks: np.ndarray
    probabilities: np.ndarray
    first_step_within_rank: dict


def snapshot_bytes(snapshots):
    """Bytes that the weights of snapshots have on disk: about as many as a `SnapshotSeries` of them holds."""
    return sum(path.stat().st_size for one in snapshots for path in Path(one.folder).glob("*.safetensors"))


def spread_snapshots(snapshots, most_bytes):
    """As many of a run's snapshots as `most_bytes` hold, evenly spread from the first to the last: a tuple.

    All of them, if they fit; the last one alone where there is room for one; none where there is not even that.
    """
    snapshots, total = tuple(snapshots), snapshot_bytes(snapshots)
    if total <= most_bytes:
        return snapshots
    room = int(most_bytes * len(snapshots) / total)
    return tuple(snapshots[at] for at in np.linspace(len(snapshots) - 1, 0, room).round().astype(int)[::-1])


class SnapshotSeries:
    """The snapshots of one run, ready to be asked; one Keras model takes the weights of each in turn.

    Weights are held in float16, as `pretrain` writes its snapshots, where that loses nothing, else in float32.

    Args:
        snapshots: objects with `step` and `folder`, ascending; at least one.
        progress: callable (done, total), or None; False stops it.

    Attributes: steps: of the snapshots. nbytes: of the weights that are held.

    Raises:
        InputError: there is none, or they are not of one model.
        CheckpointError: one cannot be read. Cancelled: it was stopped.
    """

    def __init__(self, snapshots, progress=None):
        from bert_tf import checkpoints
        from bert_tf.inference.bert import Bert

        if not snapshots:
            raise InputError("This training has no snapshots; start it with --snapshots.")
        self.steps, self._weights, first = tuple(one.step for one in snapshots), [], None
        for number, one in enumerate(snapshots):
            config, tokenizer, model = checkpoints.read(one.folder)
            if first is None:
                first = config, tokenizer, model
            elif config != first[0] or tokenizer.vocab != first[1].vocab:
                raise InputError(f"Step {one.step} is of another model than step {self.steps[0]}.")
            self._weights.append([_held(weight.value) for weight in model.weights])
            report(progress, number + 1, len(snapshots))
        config, self.tokenizer, model = first
        self._runtime = _Given(model)
        self._bert = Bert(config, self.tokenizer, model, self._runtime, "snapshot")
        self.config, self.heads, self.max_length = config, self._bert.heads, self._bert.max_length
        self.nbytes = sum(
            weight.dtype.size * int(np.prod(weight.shape)) for weights in self._weights for weight in weights
        )
        self._lock = threading.Lock()

    def snapshot_traces(self, text_a, text_b=None, mask=(), level="token", progress=None):
        """Asks every snapshot the same.

        Args: as in `Bert.trace`; progress: callable (done, total), or None; False stops it.

        Returns: tuple of S `SnapshotTrace`. Raises: as `Bert.trace`; Cancelled: it was stopped.
        """
        found = []
        # One model for all: nobody else may give it other weights between two of ours.
        with self._lock:
            for step, weights in zip(self.steps, self._weights):
                self._runtime.take(weights)
                trace = self._bert.trace(text_a, text_b, mask, level, hidden_states=False)
                found.append(SnapshotTrace(step, trace))
                report(progress, len(found), len(self.steps))
        return tuple(found)


def _held(weight):
    """A copy of a weight as a tensor, of half as many bytes where it stays the same."""
    import tensorflow as tf

    # Not NumPy's: it takes several times as long.
    half = tf.cast(weight, tf.float16)
    return half if bool(tf.reduce_all(tf.cast(half, weight.dtype) == weight)) else tf.identity(weight)


class _Given:
    """Runs a model with the `weights` it is given, tensors in the order of the model's; a `Runtime` keeps its own."""

    def __init__(self, model):
        self._model, self._views, self.weights = model, {}, [variable.value for variable in model.weights]

    def take(self, weights):
        """Weights as they are held, to be run with."""
        import tensorflow as tf

        self.weights = [tf.cast(weight, given.dtype) for weight, given in zip(weights, self.weights)]

    def run(self, batch, outputs):
        if outputs not in self._views:
            self._views[outputs] = self._compiled(outputs)
        names, function = self._views[outputs]
        found = function({name: np.asarray(batch[name], np.int32) for name in names}, self.weights)
        return {
            name: [np.asarray(layer) for layer in value] if isinstance(value, list) else np.asarray(value)
            for name, value in found.items()
        }

    def _compiled(self, outputs):
        """(names of the inputs, a function of them and the weights, compiled once for every batch and length)."""
        import tensorflow as tf

        from bert_tf.models import view

        model = view(self._model, outputs)
        signature = {name: tf.TensorSpec((None, None), tf.int32, name) for name in model.input}
        order = {id(variable): place for place, variable in enumerate(self._model.weights)}

        def given(batch, weights):
            # A view has the model's own variables, but not all of them; its random numbers' states are not used.
            trained, fixed = (
                [weights[order[id(one)]] if id(one) in order else one.value for one in variables]
                for variables in (model.trainable_variables, model.non_trainable_variables)
            )
            return model.stateless_call(trained, fixed, batch, training=False)[0]

        shapes = [tf.TensorSpec(weight.shape, weight.dtype) for weight in self.weights]
        return tuple(model.input), tf.function(given, input_signature=[signature, shapes], autograph=False)


def token_trajectory(snapshot_traces, tokenizer, position, token=None):
    """Follows a token at one mask through the training.

    Args:
        snapshot_traces: from `SnapshotSeries.snapshot_traces`. tokenizer: the series'.
        position: of a mask. token: which to follow; default the one that stands in the text there or, where the
            user typed "[MASK]", the last snapshot's first guess.

    Returns: `TokenTrajectory`.

    Raises:
        InputError: no mask at this position, or no such token.
        NothingToPredict, MissingHead: as `fill_mask`.
    """
    last = snapshot_traces[-1].trace
    require_masks(last)
    if position not in last.masks:
        raise InputError(f"Position {position} is not masked; masked are {', '.join(map(str, last.masks))}.")
    row = last.masks.index(position)
    token_id = _followed(last, tokenizer, position, row, token)
    ranks, shares = [], []
    for moment in snapshot_traces:
        scores = moment.trace.logits[row].astype(np.float64)
        ranks.append(1 + int(np.count_nonzero(scores > scores[token_id])))
        shares.append(float(np.exp(scores[token_id] - scores.max()) / np.exp(scores - scores.max()).sum()))
    steps = tuple(moment.step for moment in snapshot_traces)
    first_step_within_rank = {
        place: next((step for step, rank in zip(steps, ranks) if rank <= place), None) for place in PLACES
    }
    return TokenTrajectory(
        position,
        tokenizer.id_to_token(token_id),
        token_id,
        steps,
        np.array(ranks),
        np.array(shares),
        first_step_within_rank,
    )


def _followed(trace, tokenizer, position, row, token):
    if token is not None:
        if token not in tokenizer:
            raise InputError(f"The vocabulary of this training has no token {token!r:.60}.")
        return tokenizer.token_to_id(token)
    original = int(trace.original_ids[position])
    return int(trace.logits[row].argmax()) if original == tokenizer.mask_id else original
