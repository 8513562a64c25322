"""One input through the snapshots of a training: how the answer came about.

S snapshots, P masks, V vocabulary.
"""

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option, parse_head
from bert_tf.errors import InputError, report
from bert_tf.inference.predictions import fill_mask, require_masks
from bert_tf.quiet_import import import_tensorflow
from bert_tf.results import Result, frame

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


@dataclass(frozen=True, eq=False)
class SnapshotPrediction:
    """What the model of one step predicts.

    Attributes:
        step: of the training. masks: `MaskPrediction`s. is_next: P(IsNext), or None. in_order: P(in order), or None.
        replaced: float32 [T], the probability that each token was put there; None without such a head.
    """

    step: int
    masks: tuple = ()
    is_next: Optional[float] = None
    in_order: Optional[float] = None
    replaced: Optional[np.ndarray] = None


@dataclass(frozen=True, eq=False)
class TimeLapse(
    Result,
    figures={
        "trajectory": "bert_tf.plots.training.time_lapse:token_ranks",
    },
):
    """One input through the snapshots of a training.

    Attributes:
        model: name of the training. tokens: T strings. steps: of the S snapshots.
        trajectories: a `TokenTrajectory` for each mask. snapshots: S `SnapshotPrediction`s.
    """

    model: str
    tokens: tuple
    steps: tuple
    trajectories: tuple
    snapshots: tuple

    @property
    def pair(self):
        """What the model says of a pair at every step, None without one: ("is_next" or "in_order", S probabilities)."""
        for name in ("is_next", "in_order"):
            scores = [getattr(one, name) for one in self.snapshots]
            if scores[-1] is not None:
                return name, scores
        return None

    def to_frame(self):
        """A row for each step and mask, with the likeliest token there and the one that is followed."""
        count = len(self.trajectories)
        steps, followed = np.repeat(self.steps, max(count, 1)), {}
        if count:
            tops = [mask.predictions[0].token for one in self.snapshots for mask in one.masks]
            followed = {
                "position": [one.position for one in self.trajectories] * len(self.steps),
                "prediction": tops,
                "token": [one.token for one in self.trajectories] * len(self.steps),
                "rank": np.stack([one.ranks for one in self.trajectories], axis=1).ravel(),
                "probability": np.stack([one.probabilities for one in self.trajectories], axis=1).ravel(),
            }
        name, scores = self.pair or (None, ())
        return frame({"step": steps, **followed, **({name: np.repeat(scores, max(count, 1))} if name else {})})


@dataclass(frozen=True, eq=False)
class AttentionTimeLapse(
    TimeLapse,
    figures={
        "attention": "bert_tf.plots.training.time_lapse:attention_maps",
        "trajectory": "bert_tf.plots.training.time_lapse:token_ranks",
    },
):
    """A `TimeLapse` with one head's attention at every step.

    Attributes:
        layer, head: whose, from 0. attention: float32 [S, T, T].
    """

    layer: int
    head: int
    attention: np.ndarray


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


def time_lapse_of(name, tokenizer, snapshot_traces, target=None, head=None, top_k=5):
    """What the snapshots of a training say of one input.

    Args:
        name: of the training. tokenizer: its own. snapshot_traces: of `SnapshotSeries.snapshot_traces`.
        target: the token to follow at every mask; None as of `token_trajectory`.
        head: (layer, head) from 0, whose attention comes along, or None. top_k: predictions a mask.
    Returns:
        `TimeLapse`, `AttentionTimeLapse` with a head.
    Raises:
        InputError: no such token or head.
    """
    last = snapshot_traces[-1].trace
    masks = last.masks if last.logits is not None else ()
    fields = {
        "model": name,
        "tokens": last.tokens,
        "steps": tuple(one.step for one in snapshot_traces),
        "trajectories": tuple(token_trajectory(snapshot_traces, tokenizer, position, target) for position in masks),
        "snapshots": tuple(
            SnapshotPrediction(
                one.step,
                fill_mask(one.trace, tokenizer, top_k) if masks else (),
                one.trace.nsp and one.trace.nsp.is_next,
                one.trace.sop and one.trace.sop.in_order,
                one.trace.replaced,
            )
            for one in snapshot_traces
        ),
    }
    if head is None:
        return TimeLapse(**fields)
    (layer, head), (layers, heads) = head, last.attentions.shape[:2]
    if not (0 <= layer < layers and 0 <= head < heads):
        raise InputError(f"There is no head {layer}.{head}: this model has {layers} layers of {heads}, from 0.")
    attention = np.stack([one.trace.attentions[layer, head] for one in snapshot_traces])
    return AttentionTimeLapse(**fields, layer=layer, head=head, attention=attention)


def time_lapse(text_a, text_b, mask, folder, target=None, head=None, top_k=5, progress=None):
    """One input through the snapshots of a training.

    Args:
        text_a, text_b, mask: as of `Bert.trace`. folder: of a training that has kept snapshots.
        target, head, top_k: as of `time_lapse_of`. progress: callable (done, total), or None; False stops it.
    Returns:
        `TimeLapse`, `AttentionTimeLapse` with a head.
    Raises:
        RunError: no such folder. InputError: it has no snapshots; as `time_lapse_of`.
    """
    read = _run_with_snapshots(folder)
    import_tensorflow()
    series = SnapshotSeries(read.snapshots)
    snapshot_traces = series.snapshot_traces(text_a, text_b, mask, progress=progress)
    return time_lapse_of(read.name, series.tokenizer, snapshot_traces, target, head, top_k)


def _run_with_snapshots(folder):
    from bert_tf.training.run_folder import read_run

    read = read_run(folder)
    if not read.snapshots:
        raise InputError(f"{folder} has kept no snapshots; start a training with --snapshots.")
    return read


ANALYSIS = Analysis(
    name="time-lapse",
    function=time_lapse,
    summary="one text through the snapshots of a training",
    options=(
        Option(
            "folder", "the --output of a pre-training with snapshots", metavar="RUN", required=True, positional=True
        ),
        Option("target", "the token to follow (default: the hidden one, or the last prediction)", metavar="TOKEN"),
        Option("head", "also the attention of this head at every step, from 0", parse=parse_head, metavar="L.H"),
        TOP_K,
    ),
    inputs="texts",
    model=False,
    check=lambda options: _run_with_snapshots(options["folder"]),
    aliases=("timelapse",),
)
