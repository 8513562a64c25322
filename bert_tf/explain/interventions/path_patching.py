"""Path patching: the direct effect of one part of a model on another part, and through it on the prediction.

Activation patching (see `patching`) shows the whole effect of a part's output. Path patching shows its effect along one
path: from a sender (the embeddings, one head or one feed-forward block) to a receiver (the prediction itself, one
head's queries, keys or values, or one feed-forward block). Two steps compute it:

1. Every head and every feed-forward block adds its vector from the corrupted run, except the sender, which adds its
   vector from the clean run. The difference thus moves through the residual stream alone. BERT normalises after each
   residual sum (post-LN), so the sums and the normalisations are computed again.
2. The resulting input of the receiver is patched into a corrupted run that is otherwise unchanged. All that follows the
   receiver is computed again.

Dimension legend: L layers, N heads, T tokens, H hidden, B batch. Sources: Goldowsky-Dill et al. 2023, "Localizing Model
Behavior with Path Patching"; Wang et al. 2022, "Interpretability in the Wild", section 3.1 and appendix B. Wang et al.
let the feed-forward blocks on the path compute new outputs. Here these blocks are senders and receivers themselves, and
their outputs are held like those of the heads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.analysis import ANY_ANSWER, Analysis, Option
from bert_tf.errors import InputError, check_layer, report
from bert_tf.explain.attention.head_vectors import check_head
from bert_tf.explain.attribution.target import Target, check_position
from bert_tf.explain.interventions.patching import (
    CORRUPTED,
    check_corrupted,
    clean_and_corrupted_states,
    corrupted_trace,
    share_recovered,
)
from bert_tf.inference.batching import TOKENS_PER_BATCH
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace

#: The kinds of receivers other than the prediction -> the hook point of the receiver's output.
RECEIVERS = {"queries": "q", "keys": "k", "values": "v", "feed_forward": "mlp_out"}


@dataclass(frozen=True)
class Receiver:
    """The end of a path: a part of one layer.

    Attributes:
        part: str. One of `RECEIVERS`.
        layer: int. From 0.
        head: int. From 0; None for a feed-forward block.

    Raises:
        InputError: the layer or the head is no whole number.

    Example:
        >>> Receiver("queries", 3, 11)
    """

    part: str
    layer: int
    head: int | None = None

    def __post_init__(self) -> None:
        for name, number in (("layer", self.layer), ("head", self.head)):
            if not (isinstance(number, (int, np.integer)) or (name == "head" and number is None)):
                raise InputError(f"The {name} of a receiver must be a whole number, not {number!r:.40}.")


@dataclass(frozen=True, eq=False)
class PathPatchingResult(
    Result,
    figures={
        "map": "bert_tf.plots.interventions.patching:path_map",
        "strongest": "bert_tf.plots.interventions.patching:strongest_paths",
    },
):
    """A target's log-probability with one sender's path to the receiver patched.

    Attributes:
        tokens, corrupted_tokens: tuple of str. The T tokens of the clean and of the corrupted input.
        target: Target. The prediction.
        receiver: Receiver. None for the prediction itself.
        position: int. The only position at which a sender is patched; None for all.
        clean, corrupted: float. The target's log-probability (natural logarithm) in the clean and in the corrupted run.
        whole: float. The target's log-probability in the corrupted run if the receiver gets its whole input from the
            clean run.
        embeddings: float. The same with the path from the embeddings patched.
        scores: np.ndarray. float64 [L, N + 1], the same with the path from each head of a layer, or from its
            feed-forward block (the last column), patched. Without such a path it is `corrupted`.
        has_path: np.ndarray. bool [L, N + 1], whether there is a path: the sender comes before the receiver and, where
            two layers stand side by side, a sending head is on the same side as the receiving head.
        recovered: np.ndarray. float64 [L, N + 1], the share of the difference that each path recovers, as in
            `PatchingResult`.
    """

    tokens: tuple
    corrupted_tokens: tuple
    target: Target
    receiver: Receiver | None
    position: int | None
    clean: float
    corrupted: float
    whole: float
    embeddings: float
    scores: np.ndarray
    has_path: np.ndarray

    recovered: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "recovered", self.share(self.scores))

    def share(self, score: Any) -> Any:
        """The share of the difference that a score recovers: 0 for nothing, 1 for all, NaN without a difference."""
        return share_recovered(self, score)

    def to_frame(self) -> pd.DataFrame:
        """A row for the embeddings, for each sender with a path (strongest first), and for the whole input.

        The whole input is everything that the receiver reads.
        """
        heads = self.scores.shape[1] - 1
        layers, columns = np.nonzero(self.has_path)
        order = np.argsort(-np.abs(self.scores[self.has_path] - self.corrupted), kind="stable")
        layers, columns = layers[order], columns[order]
        scores = np.array([self.embeddings, *self.scores[layers, columns], self.whole])
        senders = ["feed_forward" if column == heads else "head" for column in columns]
        return frame(
            {
                "sender": ["embeddings", *senders, "everything"],
                "layer": [None, *layers, None],
                "head": [None, *(None if column == heads else column for column in columns), None],
                "log_probability": scores,
                "recovered": self.share(scores),
            }
        ).astype({"layer": "Int64", "head": "Int64"})


def patch_paths(
    bert: Bert,
    clean: Trace,
    corrupted: Trace,
    target: Target,
    receiver: Receiver | None = None,
    position: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> PathPatchingResult:
    """Patch the direct path from each sender to one receiver, one at a time.

    Args:
        bert: Bert. The model that made the traces.
        clean, corrupted: Trace. Two inputs of equal length.
        target: Target. Usually the prediction for the clean trace.
        receiver: Receiver. None for the prediction, which is read from the last hidden state.
        position: int. The only token at which a sender is patched; None for all.
        progress: callable(done, total). Called with numbers of senders; it cancels by returning False.
    Returns:
        `PathPatchingResult`.
    Raises:
        NotComparable: the inputs differ in length.
        InputError: the receiver does not exist.
        MaskPositionError: the position does not exist.
        Cancelled: by `progress`.
    """
    clean_states, corrupted_states = clean_and_corrupted_states(bert, clean, corrupted)
    if receiver is not None:
        check_receiver(bert, receiver)
    if position is not None:
        check_position(clean, position)
    hooked, layers, heads = bert.steps(), bert.config.num_hidden_layers, bert.config.num_attention_heads
    last = layers if receiver is None else receiver.layer
    into_block = receiver is not None and receiver.part == "feed_forward"
    has_path = _paths(bert.config, receiver)
    places = np.full((clean.length, 1), True) if position is None else np.arange(clean.length)[:, None] == position
    # Layer -> what its attention and feed-forward blocks add in the corrupted run; filled from the receiver downwards.
    held: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def scored(receiver_input):
        """The target's score [B] if the receiver reads `receiver_input`, [B, T, H]."""
        if receiver is None:
            return hooked.score(receiver_input, target)
        # Compute the receiver's output from this input, and patch it into the corrupted run's layer.
        point = RECEIVERS[receiver.part]
        if into_block:
            everywhere = {"resid_mid": (None, receiver_input)}
            output = hooked.values(last, corrupted_states[last], (point,), replace=everywhere)[point]
            replace = {point: (None, output)}
        else:
            output = hooked.values(last, receiver_input, (point,))[point]
            replace = {point: ((np.arange(heads) == receiver.head)[None, :, None, None], output)}
        after_layer = hooked.layer(last, corrupted_states[last], replace=replace)
        return hooked.score(hooked.finish(after_layer, last + 1), target)

    def receiver_input_from(first, x, *added):
        """The receiver's input [B, T, H] if layer `first` reads x, [B, T, H], and its two blocks add `added`."""
        for layer in range(first, last + into_block):
            attention, feed_forward = added if layer == first and added else held[layer]
            replace = {"attn_out": (None, attention), "mlp_out": (None, feed_forward)}
            point = "resid_post" if layer < last else "resid_mid"
            x = hooked.values(layer, x, (point,), replace=replace)[point]
        return x

    clean_score, corrupted_score = (
        float(hooked.score(states[-1], target)[0]) for states in (clean_states, corrupted_states)
    )
    scores = np.full(has_path.shape, corrupted_score)
    block, done, total = max(1, TOKENS_PER_BATCH // clean.length), 0, 1 + int(has_path.sum())
    for layer in reversed(range(min(last + into_block, layers))):
        held[layer], (attention, feed_forward) = _added(
            hooked, layer, heads, clean_states[layer], corrupted_states[layer], places
        )
        senders = np.flatnonzero(has_path[layer])
        for start in range(0, len(senders), block):
            chosen = senders[start : start + block]
            receiver_input = receiver_input_from(
                layer, corrupted_states[layer], attention[chosen], feed_forward[chosen]
            )
            scores[layer, chosen] = scored(receiver_input)
            done += len(chosen)
            report(progress, done, total)
    clean_input = clean_states[last]
    if into_block:
        clean_input = hooked.values(last, clean_input, ("resid_mid",))["resid_mid"]
    from_embeddings = receiver_input_from(0, np.where(places, clean_states[0], corrupted_states[0]))
    whole, embeddings = (float(scored(receiver_input)[0]) for receiver_input in (clean_input, from_embeddings))
    report(progress, total, total)
    outcome = clean_score, corrupted_score, whole, embeddings, scores, has_path
    return PathPatchingResult(clean.tokens, corrupted.tokens, target, receiver, position, *outcome)


def _paths(config, receiver):
    """Whether there is a path to the receiver from each sender: bool [L, N + 1], the feed-forward block last."""
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    last = layers if receiver is None else receiver.layer
    has_path = np.arange(layers)[:, None] < np.full((1, heads + 1), last)
    if receiver is not None and receiver.part == "feed_forward":
        has_path[last, :heads] = True
    elif receiver is not None:
        # Where two stacks of layers stand side by side, their heads meet only in the last hidden state.
        stack_heads = heads // config.stacks
        has_path[:, :heads] &= np.arange(heads) // stack_heads == receiver.head // stack_heads
    return has_path


def _added(hooked, layer, heads, clean_state, corrupted_state, places):
    """What the two blocks of a layer add: in the corrupted run, and with each sender patched at the places [T, 1].

    Returns: two pairs (attention, feed-forward block); [1, T, H], and [N + 1, T, H], a row for each sender: the heads,
    then the feed-forward block.
    """
    clean_values = hooked.values(layer, clean_state, ("z", "mlp_out"))
    corrupted_values = hooked.values(layer, corrupted_state, ("attn_out", "mlp_out"))
    held = np.asarray(corrupted_values["attn_out"]), np.asarray(corrupted_values["mlp_out"])
    each_head = {"z": (np.eye(heads, dtype=bool)[..., None, None], clean_values["z"])}
    patched = np.asarray(hooked.values(layer, corrupted_state, ("attn_out",), replace=each_head)["attn_out"])
    attention, feed_forward = (np.repeat(added, heads + 1, axis=0) for added in held)
    attention[:heads] = np.where(places, patched, attention[:heads])
    feed_forward[heads] = np.where(places, np.asarray(clean_values["mlp_out"])[0], feed_forward[heads])
    return held, (attention, feed_forward)


def path_patching(
    bert: Bert,
    clean: Trace,
    target: Target,
    corrupted: Trace | str,
    receiver: Receiver | None = None,
    at: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> PathPatchingResult:
    """`patch_paths` with the arguments of `patch`.

    Args:
        bert, clean, target, corrupted, progress: as in `patch`.
        receiver: Receiver. As in `patch_paths`.
        at: int. The `position` of `patch_paths`.
    Returns:
        `PathPatchingResult`.
    Raises:
        As `patch_paths`.
    """
    return patch_paths(bert, clean, corrupted_trace(bert, clean, corrupted), target, receiver, at, progress)


def check_receiver(bert: Bert, receiver: Receiver) -> None:
    """Raise InputError unless the model has the receiver."""
    if receiver.part not in RECEIVERS:
        raise InputError(f"There is no receiver {receiver.part!r:.40}; choose from {', '.join(RECEIVERS)}.")
    check_layer(receiver.layer, bert.config.num_hidden_layers)
    if receiver.part == "feed_forward":
        if receiver.head is not None:
            raise InputError("A feed-forward block has no heads: name its layer alone.")
    elif receiver.head is None:
        raise InputError(f"Name the head whose {receiver.part} are the receiver.")
    else:
        check_head(bert, receiver.layer, receiver.head)


def receiver_of(text: str) -> Receiver | None:
    """The `Receiver` of "3.11.queries" or "3.feed-forward"; None for "answer".

    Raises:
        InputError: any other text.
    """
    if text == "answer":
        return None
    layer, *head, part = text.replace("-", "_").split(".") if "." in text else ("", "")
    numbers = [layer, *head]
    if part in RECEIVERS and len(head) == (part != "feed_forward") and all(number.isdecimal() for number in numbers):
        return Receiver(part, *map(int, numbers))
    raise InputError(
        "A receiver is answer, LAYER.HEAD.queries (or .keys, .values) or LAYER.feed-forward, all from 0;"
        f" not {text!r:.40}."
    )


ANALYSIS = Analysis(
    name="path-patching",
    function=path_patching,
    summary="the direct effect of each part on one other part, or on the prediction",
    source="Goldowsky-Dill et al. 2023, Localizing Model Behavior with Path Patching; Wang et al. 2022",
    options=(
        CORRUPTED,
        Option(
            "receiver",
            "the end of the paths: answer (default), L.H.queries, L.H.keys, L.H.values or L.feed-forward",
            parse=receiver_of,
            metavar="PART",
            aliases=("to",),
        ),
        Option("at", "patch at this token alone", int, metavar="P"),
    ),
    target=True,
    needs=ANY_ANSWER,
    check=check_corrupted,
    aliases=("paths",),
)
