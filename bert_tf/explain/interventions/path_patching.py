"""Path patching: what one part of a model tells another directly, and what the answer makes of that.

Activation patching (see `patching`) shows all that a part's output does on its way. Here one path of that is looked at:
from a sender (the embeddings, one head or one feed-forward block) to a receiver (the answer itself, one head's queries,
keys or values, or one feed-forward block). First the corrupted run is held: every head and every feed-forward block
adds what it adds there, but the sender what it adds in the clean run, so that its difference goes along the residual
stream alone. BERT normalises after each residual sum (post-LN), so the sums and the normalisations are worked out anew.
What then enters the receiver is put into a corrupted run that is otherwise as it is, and all that follows the receiver
works on from there.

Dimension legend: L layers, N heads, T tokens, H hidden, B batch. Source: Goldowsky-Dill et al. 2023, "Localizing Model
Behavior with Path Patching"; Wang et al. 2022, "Interpretability in the Wild", section 3.1 and appendix B, who let the
feed-forward blocks on the way work on: here these are senders and receivers of their own, and held as the heads are.
"""

from dataclasses import dataclass, field
from typing import Optional

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError, report
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

#: What can receive beside the answer -> the hook point that it makes.
RECEIVERS = {"queries": "q", "keys": "k", "values": "v", "feed_forward": "mlp_out"}


@dataclass(frozen=True)
class Receiver:
    """Where a path leads: a part of one layer.

    Attributes:
        part: out of `RECEIVERS`. layer: from 0. head: from 0, None of a feed-forward block.
    """

    part: str
    layer: int
    head: Optional[int] = None


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
        tokens, corrupted_tokens: T strings each, of the clean and of the corrupted input.
        target: the `Target`. receiver: a `Receiver`; None for the answer itself.
        position: the only one at which a sender is put over; None for all.
        clean, corrupted: the target's log-probability (natural logarithm) in either run as it is.
        whole: that in the corrupted run whose receiver reads all that it reads in the clean one.
        embeddings: that with the path from the embeddings.
        scores: float64 [L, N + 1], that with the path from each layer's heads, then its feed-forward block; where no
            path leads to the receiver, as it is.
        has_path: bool [L, N + 1], whether there is such a path: the sender comes before the receiver, and where two
            layers stand side by side a sending head is on the side of the receiving head.
        recovered: float64 [L, N + 1], share of the difference that each path brings back, as of `PatchingResult`.
    """

    tokens: tuple
    corrupted_tokens: tuple
    target: Target
    receiver: Optional[Receiver]
    position: Optional[int]
    clean: float
    corrupted: float
    whole: float
    embeddings: float
    scores: np.ndarray
    has_path: np.ndarray

    recovered: np.ndarray = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "recovered", self.share(self.scores))

    def share(self, score):
        """What of the difference a score brings back: 0 nothing, 1 all; NaN if there is no difference."""
        return share_recovered(self, score)

    def to_frame(self):
        """A row for the embeddings, for each sender with a path, the strongest first, and for the whole input.

        The whole input is all that enters the receiver.
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


def patch_paths(bert, clean, corrupted, target, receiver=None, position=None, progress=None):
    """Patch the direct path from each sender to one receiver, one at a time.

    Args:
        bert: the `Bert` that made the traces.
        clean, corrupted: `Trace`s of equal length.
        target: a `Target`, usually the clean trace's answer.
        receiver: a `Receiver`; None for the answer, which reads the last state.
        position: the only token at which a sender is put over; None for all.
        progress: callable(done, total) in senders; returning False cancels.
    Returns:
        `PathPatchingResult`.
    Raises:
        NotComparable: the inputs differ in length. InputError: there is no such receiver. MaskPositionError: no such
        position. Cancelled: by `progress`.
    """
    good, bad = clean_and_corrupted_states(bert, clean, corrupted)
    if receiver is not None:
        check_receiver(bert, receiver)
    if position is not None:
        check_position(clean, position)
    hooked, layers, heads = bert.hooked(), bert.config.num_hidden_layers, bert.config.num_attention_heads
    last = layers if receiver is None else receiver.layer
    into_block = receiver is not None and receiver.part == "feed_forward"
    has_path = np.arange(layers)[:, None] < np.full((1, heads + 1), last)
    if into_block:
        has_path[last, :heads] = True
    elif receiver is not None:
        # Sides that stand beside each other meet in no state but the last.
        own = heads // bert.config.stacks
        has_path[:, :heads] &= np.arange(heads) // own == receiver.head // own
    places = np.full((clean.length, 1), True) if position is None else np.arange(clean.length)[:, None] == position
    held = {}  # what both blocks of the corrupted run add, from the receiver downwards

    def answered(entering):
        """The target's score, [B], where the receiver reads `entering`, [B, T, H]."""
        if receiver is None:
            return hooked.score(entering, target)
        # What the receiver makes of `entering` is put into the corrupted run's layer.
        point = RECEIVERS[receiver.part]
        if into_block:
            everywhere = {"resid_mid": (None, entering)}
            made = hooked.values(last, bad[last], (point,), replace=everywhere)[point]
            replace = {point: (None, made)}
        else:
            made = hooked.values(last, entering, (point,))[point]
            replace = {point: ((np.arange(heads) == receiver.head)[None, :, None, None], made)}
        return hooked.score(hooked.finish(hooked.layer(last, bad[last], replace=replace), last + 1), target)

    def sent(first, x, *added):
        """What enters the receiver of x, [B, T, H], that goes into layer `first`; `added`: what both its blocks add."""
        for layer in range(first, last + into_block):
            attention, widened = added if layer == first and added else held[layer]
            replace = {"attn_out": (None, attention), "mlp_out": (None, widened)}
            point = "resid_post" if layer < last else "resid_mid"
            x = hooked.values(layer, x, (point,), replace=replace)[point]
        return x

    ends = [float(hooked.score(states[-1], target)[0]) for states in (good, bad)]
    scores = np.full(has_path.shape, ends[1])
    block, done, total = max(1, TOKENS_PER_BATCH // clean.length), 0, 1 + int(has_path.sum())
    for layer in reversed(range(min(last + into_block, layers))):
        ours = hooked.values(layer, good[layer], ("z", "mlp_out"))
        theirs = hooked.values(layer, bad[layer], ("attn_out", "mlp_out"))
        held[layer] = theirs["attn_out"].numpy(), theirs["mlp_out"].numpy()
        each_head = {"z": (np.eye(heads, dtype=bool)[..., None, None], ours["z"])}
        moved = hooked.values(layer, bad[layer], ("attn_out",), replace=each_head)["attn_out"].numpy()
        # A row for each sender: the heads, then the feed-forward block.
        attention, widened = (np.repeat(one, heads + 1, axis=0) for one in held[layer])
        attention[:heads] = np.where(places, moved, attention[:heads])
        widened[heads] = np.where(places, ours["mlp_out"].numpy()[0], widened[heads])
        senders = np.flatnonzero(has_path[layer])
        for start in range(0, len(senders), block):
            chosen = senders[start : start + block]
            scores[layer, chosen] = answered(sent(layer, bad[layer], attention[chosen], widened[chosen]))
            done += len(chosen)
            report(progress, done, total)
    entering = hooked.values(last, good[last], ("resid_mid",))["resid_mid"] if into_block else good[last]
    whole, embedded = (float(answered(one)[0]) for one in (entering, sent(0, np.where(places, good[0], bad[0]))))
    report(progress, total, total)
    tokens = clean.tokens, corrupted.tokens
    return PathPatchingResult(*tokens, target, receiver, position, *ends, whole, embedded, scores, has_path)


def path_patching(bert, clean, target, corrupted, receiver=None, at=None, progress=None):
    """`patch_paths` with the corrupted input as of `patch`: a `Trace`, or its first text. `at` is the position."""
    return patch_paths(bert, clean, corrupted_trace(bert, clean, corrupted), target, receiver, at, progress)


def check_receiver(bert, receiver):
    """Raises: InputError: the model has no such part."""
    if receiver.part not in RECEIVERS:
        raise InputError(f"There is no receiver {receiver.part!r:.40}; choose from {', '.join(RECEIVERS)}.")
    layers = bert.config.num_hidden_layers
    if not 0 <= receiver.layer < layers:
        raise InputError(f"There is no layer {receiver.layer}; the model has layers 0 to {layers - 1}.")
    if receiver.part == "feed_forward":
        if receiver.head is not None:
            raise InputError("A feed-forward block has no heads: name its layer alone.")
    elif receiver.head is None:
        raise InputError(f"Name the head whose {receiver.part} are to receive.")
    else:
        check_head(bert, receiver.layer, receiver.head)


def receiver_of(text):
    """The `Receiver` of "3.11.queries" or "3.feed-forward"; None of "answer".

    Raises: InputError: anything else.
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
    summary="what each part tells one other, or the answer, directly",
    source="Goldowsky-Dill et al. 2023, Localizing Model Behavior with Path Patching; Wang et al. 2022",
    options=(
        CORRUPTED,
        Option(
            "receiver",
            "where the paths lead: answer (default), L.H.queries, L.H.keys, L.H.values or L.feed-forward",
            parse=receiver_of,
            metavar="PART",
            aliases=("to",),
        ),
        Option("at", "put a part's output over at this token alone", int, metavar="P"),
    ),
    target=True,
    check=check_corrupted,
    aliases=("paths",),
)
