"""Activation patching: where in a model the difference between two inputs turns into a different answer.

One vector of the run on one input (the clean one) is put into the run on another (the corrupted one): a hidden state,
or what the attention block, one of its heads or the feed-forward block of a layer adds to it. Where that brings the
clean answer back, the vector carried what the answer hangs on.

Dimension legend: L layers, N heads, D head size, T tokens, H hidden, B batch, R rows and C columns of a map. Source:
Meng et al. 2022, "Locating and Editing Factual Associations in GPT", section 2 (causal tracing, of states and of both
kinds of blocks); Vig et al. 2020 (interventions in BERT-like models, single heads too).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Optional

import numpy as np

from bert_tf.errors import InputError, NotComparable, report
from bert_tf.explain.attribution.target import Target, check_position
from bert_tf.inference.batching import TOKENS_PER_BATCH

#: What can be carried over.
PARTS = ("state", "attention", "feed_forward", "head")
#: Block -> the hook point of what it adds.
_BLOCKS = {"attention": "attn_out", "feed_forward": "mlp_out"}


@dataclass(frozen=True, eq=False)
class PatchingResult:
    """A target's log-probability with one vector patched.

    Attributes:
        target: the `Target`. part: what was carried over, out of `PARTS`.
        clean, corrupted: its log-probability (natural logarithm) in either run as it is.
        scores: float64 [R, C], in the corrupted run with the vector of row r at position c from the clean one. Of
            states R is L + 1, row 0 the embeddings; of blocks R is L, row 0 the first layer's. Of heads R is L too, and
            column c is head c, put over at all positions.
        position: the only one where heads are put over; None for all.
    """

    target: Target
    part: str
    clean: float
    corrupted: float
    scores: np.ndarray
    position: Optional[int] = None

    @property
    def recovered(self):
        """float64 [R, C], share of the difference that the patch brings back: 0 nothing, 1 all; NaN if
        there is no difference."""
        difference = self.clean - self.corrupted
        return (self.scores - self.corrupted) / (difference if difference else np.nan)


def patch_states(bert, clean, corrupted, target, progress=None):
    """Patch every hidden state at every position, one at a time.

    Args:
        bert: the `Bert` that made the traces.
        clean, corrupted: `Trace`s of equal length.
        target: a `Target`, usually the clean trace's answer.
        progress: callable(done, total) in patches; returning False cancels.
    Returns:
        `PatchingResult`.
    Raises:
        NotComparable: the inputs differ in length. Cancelled: by `progress`.
    """
    good, bad = clean_and_corrupted_states(bert, clean, corrupted)

    def patched(layer, positions):
        states = np.repeat(bad[layer].numpy(), len(positions), axis=0)
        states[np.arange(len(positions)), positions] = good[layer].numpy()[0, positions]
        return states, layer

    return _mapped(bert, good, bad, target, "state", (len(good), clean.length), patched, progress)


def patch_blocks(bert, clean, corrupted, target, block, progress=None):
    """Patch what a block of every layer adds at every position, one at a time; residual and norm go on from there.

    These are the vectors that TransformerLens calls attn_out and mlp_out.

    Args:
        block: "attention", the output of the attention block with its projection, or "feed_forward". The others as of
            `patch_states`.
    Returns:
        `PatchingResult`.
    Raises:
        InputError: no such block. Otherwise as `patch_states`.
    """
    if block not in _BLOCKS:
        raise InputError(f"There is no block {block!r:.40}; choose from {', '.join(_BLOCKS)}.")
    good, bad = clean_and_corrupted_states(bert, clean, corrupted)
    layers = len(good) - 1
    hooked, point = bert.hooked(), _BLOCKS[block]
    added = [hooked.values(layer, good[layer], (point,))[point] for layer in range(layers)]

    def patched(layer, positions):
        places = (np.arange(clean.length) == positions[:, None])[..., None]
        return hooked.layer(layer, bad[layer], replace={point: (places, added[layer])}), layer + 1

    return _mapped(bert, good, bad, target, block, (layers, clean.length), patched, progress)


def patch_heads(bert, clean, corrupted, target, position=None, progress=None):
    """Patch what every head adds, one at a time; the other heads stay, residual and norm go on from there.

    What a head adds are its values, weighed by its attention and taken through its rows of the output matrix:
    TransformerLens' result, or z before that matrix, which brings back the same.

    Args:
        position: the only token at which a head's vector is put over; None for all. The others as of `patch_states`.
    Returns:
        `PatchingResult`, a row for each layer and a column for each head.
    Raises:
        MaskPositionError: no such position. Otherwise as `patch_states`.
    """
    good, bad = clean_and_corrupted_states(bert, clean, corrupted)
    if position is not None:
        check_position(clean, position)
    size = len(good) - 1, bert.config.num_attention_heads
    hooked, places = bert.hooked(), np.full((1, 1, clean.length, 1), True)
    if position is not None:
        places = np.arange(clean.length)[:, None] == position

    @lru_cache(maxsize=1)
    def clean_z(layer):
        return hooked.values(layer, good[layer], ("z",))["z"]

    def patched(layer, heads):
        chosen = (np.arange(size[1]) == heads[:, None])[..., None, None]  # [B, N, 1, 1]
        return hooked.layer(layer, bad[layer], replace={"z": (chosen & places, clean_z(layer))}), layer + 1

    return _mapped(bert, good, bad, target, "head", size, patched, progress, position)


def clean_and_corrupted_states(bert, *traces):
    """The hidden states of two inputs, lists of L + 1 tensors [1, T, H].

    Raises:
        NotComparable: they differ in length.
    """
    lengths = [trace.length for trace in traces]
    if lengths[0] != lengths[1]:
        raise NotComparable(
            f"The inputs must have equally many tokens: the first has {lengths[0]}, the second "
            f"{lengths[1]}. Replace a word by one that is cut into as many pieces."
        )
    return [bert.hooked().states(trace.token_ids[None], trace.segments[None]) for trace in traces]


def _mapped(bert, good, bad, target, part, size, patched, progress, position=None):
    """The `PatchingResult` of `size` (R, C); patched(row, columns [B]) -> (states [B, T, H], the layer that reads them)."""
    hooked, (rows, columns) = bert.hooked(), size
    scores = np.empty(size)
    block = max(1, TOKENS_PER_BATCH // good[0].shape[1])
    for row in range(rows):
        for start in range(0, columns, block):
            chosen = np.arange(start, min(start + block, columns))
            scores[row, chosen] = hooked.score(hooked.finish(*patched(row, chosen)), target)
            report(progress, row * columns + int(chosen[-1]) + 1, scores.size)
    ends = (float(hooked.score(states[-1], target)[0]) for states in (good, bad))
    return PatchingResult(target, part, *ends, scores, position)
