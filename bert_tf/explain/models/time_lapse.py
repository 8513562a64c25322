"""A time lapse: how the predictions and the attention for one input change over the snapshots of a training.

Dimension legend: S snapshots, P masks, T tokens, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, cast

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option, parse_head
from bert_tf.errors import InputError
from bert_tf.explain.models.snapshot_series import SnapshotSeries, SnapshotTrace
from bert_tf.inference.predictions import fill_mask, require_masks
from bert_tf.results import Result, frame
from bert_tf.startup import import_tensorflow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas

    from bert_tf.tokenizers.base import BaseTokenizer

#: The ranks for which `TokenTrajectory.first_step_within_rank` has the first step.
PLACES = (10, 5, 1)


@dataclass(frozen=True, eq=False)
class TokenTrajectory:
    """The rank and probability of one token at one mask over the training.

    Attributes:
        position: int. The position of the mask.
        token: str. token_id: int. The token.
        steps: tuple of S int. The training steps of the snapshots.
        ranks: int64 [S]. Rank 1 is the likeliest token.
        probabilities: float64 [S].
        first_step_within_rank: dict int -> int or None. For the ranks 10, 5 and 1 the first step at which the rank of
            the token was at most that.
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
    """The predictions of one snapshot.

    Attributes:
        step: int. The training step of the snapshot.
        masks: tuple of `MaskPrediction`.
        is_next: float or None. P(IsNext).
        in_order: float or None. P(in order).
        replaced: float32 [T] or None. The probability that each token was replaced; None without such a head.
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
    """The predictions for one input by the snapshots of a training.

    Attributes:
        model: str. The name of the training.
        tokens: tuple of T str.
        steps: tuple of S int. The training steps of the snapshots.
        trajectories: tuple of `TokenTrajectory`, one for each mask.
        snapshots: tuple of S `SnapshotPrediction`.
    """

    model: str
    tokens: tuple
    steps: tuple
    trajectories: tuple
    snapshots: tuple

    @property
    def pair(self) -> tuple[str, list[float]] | None:
        """("is_next" or "in_order", list of its S probabilities); None without a pair or without such a head."""
        for name in ("is_next", "in_order"):
            scores = [getattr(snapshot, name) for snapshot in self.snapshots]
            if scores[-1] is not None:
                return name, scores
        return None

    def to_frame(self) -> pandas.DataFrame:
        """A row for each step and mask, with the first prediction and the followed token."""
        paths, rows_per_step = self.trajectories, max(len(self.trajectories), 1)
        columns: dict[str, Any] = {"step": np.repeat(self.steps, rows_per_step)}
        if paths:
            columns["position"] = [path.position for path in paths] * len(self.steps)
            columns["prediction"] = [
                mask.predictions[0].token for snapshot in self.snapshots for mask in snapshot.masks
            ]
            columns["token"] = [path.token for path in paths] * len(self.steps)
            columns["rank"] = np.stack([path.ranks for path in paths], axis=1).ravel()
            columns["probability"] = np.stack([path.probabilities for path in paths], axis=1).ravel()
        if self.pair:
            name, scores = self.pair
            columns[name] = np.repeat(scores, rows_per_step)
        return frame(columns)


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
        layer, head: int, from 0.
        attention: float32 [S, T, T]. The attention map of the head at every step.
    """

    layer: int
    head: int
    attention: np.ndarray


def token_trajectory(
    snapshot_traces: Sequence[SnapshotTrace], tokenizer: BaseTokenizer, position: int, token: str | None = None
) -> TokenTrajectory:
    """Follow a token at one mask through the training.

    Args:
        snapshot_traces: sequence of `SnapshotTrace`, from `SnapshotSeries.snapshot_traces`.
        tokenizer: `Tokenizer`. That of the series.
        position: int. The position of a mask.
        token: str or None. The token to follow; None for the masked token or, where the user typed "[MASK]", the first
            prediction of the last snapshot.

    Returns:
        `TokenTrajectory`.

    Raises:
        InputError: there is no mask at this position, or the vocabulary lacks the token.
        NothingToPredict, MissingHead: as in `fill_mask`.
    """
    last = snapshot_traces[-1].trace
    require_masks(last)
    if position not in last.masks:
        raise InputError(f"Position {position} is not masked; masked are {', '.join(map(str, last.masks))}.")
    row = last.masks.index(position)
    token_id = _followed(last, tokenizer, position, row, token)
    ranks, probabilities = [], []
    for snapshot in snapshot_traces:
        scores = cast(np.ndarray, snapshot.trace.logits)[row].astype(np.float64)
        ranks.append(1 + int(np.count_nonzero(scores > scores[token_id])))
        probabilities.append(float(np.exp(scores[token_id] - scores.max()) / np.exp(scores - scores.max()).sum()))
    steps = tuple(snapshot.step for snapshot in snapshot_traces)
    first_step_within_rank = {
        limit: next((step for step, rank in zip(steps, ranks) if rank <= limit), None) for limit in PLACES
    }
    return TokenTrajectory(
        position,
        tokenizer.id_to_token(token_id),
        token_id,
        steps,
        np.array(ranks),
        np.array(probabilities),
        first_step_within_rank,
    )


def _followed(trace, tokenizer, position, row, token):
    if token is not None:
        if token not in tokenizer:
            raise InputError(f"The vocabulary of this training has no token {token!r:.60}.")
        return tokenizer.token_to_id(token)
    original = int(trace.original_ids[position])
    return int(trace.logits[row].argmax()) if original == tokenizer.mask_id else original


def time_lapse_of(
    name: str,
    tokenizer: BaseTokenizer,
    snapshot_traces: Sequence[SnapshotTrace],
    target: str | None = None,
    head: tuple[int, int] | None = None,
    top_k: int = 5,
) -> TimeLapse:
    """The predictions of the snapshots of a training, from their traces of one input.

    Args:
        name: str. The name of the training.
        tokenizer: `Tokenizer`. That of the series.
        snapshot_traces: sequence of `SnapshotTrace`, from `SnapshotSeries.snapshot_traces`.
        target: str or None. The token to follow at every mask; None as in `token_trajectory`.
        head: (layer, head) from 0, or None. The head whose attention maps are added.
        top_k: int. The number of predictions per mask.
    Returns:
        `TimeLapse`; with a head `AttentionTimeLapse`.
    Raises:
        InputError: an unknown token or head.
    """
    last = snapshot_traces[-1].trace
    masks = last.masks if last.logits is not None else ()
    fields: dict[str, Any] = {
        "model": name,
        "tokens": last.tokens,
        "steps": tuple(snapshot.step for snapshot in snapshot_traces),
        "trajectories": tuple(token_trajectory(snapshot_traces, tokenizer, position, target) for position in masks),
        "snapshots": tuple(
            SnapshotPrediction(
                snapshot.step,
                fill_mask(snapshot.trace, tokenizer, top_k) if masks else (),
                snapshot.trace.nsp and snapshot.trace.nsp.is_next,
                snapshot.trace.sop and snapshot.trace.sop.in_order,
                snapshot.trace.replaced,
            )
            for snapshot in snapshot_traces
        ),
    }
    if head is None:
        return TimeLapse(**fields)
    layer, number = head
    maps = [cast(np.ndarray, snapshot.trace.attentions) for snapshot in snapshot_traces]
    layers, heads = maps[-1].shape[:2]
    if not (0 <= layer < layers and 0 <= number < heads):
        raise InputError(f"There is no head {layer}.{number}: this model has {layers} layers of {heads} heads, from 0.")
    attention = np.stack([attentions[layer, number] for attentions in maps])
    return AttentionTimeLapse(**fields, layer=layer, head=number, attention=attention)


def time_lapse(
    text_a: str,
    text_b: str | None,
    mask: Sequence,
    folder: str | Path,
    target: str | None = None,
    head: tuple[int, int] | None = None,
    top_k: int = 5,
    progress: Callable[[int, int], object] | None = None,
) -> TimeLapse:
    """The predictions for one input by the snapshots of a training.

    Args:
        text_a, text_b, mask: as in `Bert.trace`.
        folder: str or path. The folder of a training with snapshots.
        target, head, top_k: as in `time_lapse_of`.
        progress: callable(done, total) in snapshots, or None; returning False cancels.
    Returns:
        `TimeLapse`; with a head `AttentionTimeLapse`.
    Raises:
        RunError: there is no such folder.
        InputError: the training has no snapshots, or as in `time_lapse_of`.
    """
    run = _run_with_snapshots(folder)
    import_tensorflow()
    series = SnapshotSeries(run.snapshots)
    snapshot_traces = series.snapshot_traces(text_a, text_b, mask, progress=progress)
    return time_lapse_of(run.name, series.tokenizer, snapshot_traces, target, head, top_k)


def _run_with_snapshots(folder):
    from bert_tf.training.run_folder import read_run

    run = read_run(folder)
    if not run.snapshots:
        raise InputError(f"{folder} has no snapshots; start a training with --snapshots.")
    return run


ANALYSIS = Analysis(
    name="time-lapse",
    function=time_lapse,
    summary="predictions for one text by the snapshots of a training",
    options=(
        Option(
            "folder", "the --output of a pre-training with snapshots", metavar="RUN", required=True, positional=True
        ),
        Option(
            "target",
            "the token to follow (default: the masked one, or the last snapshot's prediction)",
            metavar="TOKEN",
        ),
        Option("head", "also the attention of this head, from 0, at every step", parse=parse_head, metavar="L.H"),
        TOP_K,
    ),
    inputs="texts",
    model=False,
    check=lambda options: _run_with_snapshots(options["folder"]),
    aliases=("timelapse",),
)
