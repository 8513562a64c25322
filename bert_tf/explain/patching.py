"""Activation patching: where in a model the difference between two inputs turns into a different answer.

One vector of the run on one input (the clean one) is put into the run on another (the corrupted one): a hidden state,
or what the attention block or the feed-forward block of a layer adds to it. Where that brings the clean answer back,
the vector carried what the answer hangs on.

Dimension legend: L layers, T tokens, H hidden, B batch, R rows of a map. Source: Meng et al. 2022, "Locating and
Editing Factual Associations in GPT", section 2 (causal tracing, of states and of both kinds of blocks); Vig et al.
2020 (interventions in BERT-like models).
"""

from dataclasses import dataclass

import numpy as np

from bert_tf.explain.architecture import passing_state
from bert_tf.explain.errors import InputError, NotComparable, report
from bert_tf.explain.target import Target

#: What can be carried over.
PARTS = ("state", "attention", "feed_forward")

# Tokens in one pass; more is no faster, and takes longer to stop.
TOKENS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class PatchMap:
    """A target's log-probability with one vector patched.

    Attributes:
        target: the `Target`. part: what was carried over, out of `PARTS`.
        clean, corrupted: its log-probability (natural logarithm) in either run as it is.
        scores: float64 [R, T], in the corrupted run with the vector of row r at position t from the clean one. Of
            states R is L + 1, row 0 the embeddings; of blocks R is L, row 0 the first layer's.
    """

    target: Target
    part: str
    clean: float
    corrupted: float
    scores: np.ndarray

    @property
    def recovered(self):
        """float64 [R, T], share of the difference that the patch brings back: 0 nothing, 1 all; NaN if
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
        `PatchMap`.
    Raises:
        NotComparable: the inputs differ in length. Cancelled: by `progress`.
    """
    good, bad = _states(bert, clean, corrupted)

    def patched(layer, positions):
        states = np.repeat(bad[layer].numpy(), len(positions), axis=0)
        states[np.arange(len(positions)), positions] = good[layer].numpy()[0, positions]
        return states, layer

    return _mapped(bert, good, bad, target, "state", len(good), patched, progress)


def patch_blocks(bert, clean, corrupted, target, block, progress=None):
    """Patch what a block of every layer adds at every position, one at a time; residual and norm go on from there.

    These are the vectors that TransformerLens calls attn_out and mlp_out.

    Args:
        block: "attention", the output of the attention block with its projection, or "feed_forward". The others as of
            `patch_states`.
    Returns:
        `PatchMap`.
    Raises:
        InputError: no such block. Otherwise as `patch_states`.
    """
    if block not in PARTS[1:]:
        raise InputError(f"There is no block {block!r:.40}; choose from {', '.join(PARTS[1:])}.")
    good, bad = _states(bert, clean, corrupted)
    layers = len(good) - 1
    added = [passing_state(bert, good[layer].numpy()[0], layer)[block][None] for layer in range(layers)]

    def patched(layer, positions):
        places = np.arange(clean.length) == positions[:, None]
        states = np.repeat(bad[layer].numpy(), len(positions), axis=0)
        return bert.opened.layer_instead(layer, states, {block: (places, added[layer])}), layer + 1

    return _mapped(bert, good, bad, target, block, layers, patched, progress)


def _states(bert, *traces):
    """The hidden states of two inputs, lists of L + 1 tensors [1, T, H]."""
    lengths = [trace.length for trace in traces]
    if lengths[0] != lengths[1]:
        raise NotComparable(
            f"The inputs must have equally many tokens: the first has {lengths[0]}, the second "
            f"{lengths[1]}. Replace a word by one that is cut into as many pieces."
        )
    return [bert.opened.states(trace.token_ids[None], trace.segments[None]) for trace in traces]


def _mapped(bert, good, bad, target, part, rows, patched, progress):
    """The `PatchMap` of `rows` rows; patched(row, positions [B]) -> (states [B, T, H], the layer that reads them)."""
    opened, length = bert.opened, good[0].shape[1]
    scores = np.empty((rows, length))
    block = max(1, TOKENS_AT_ONCE // length)
    for row in range(rows):
        for start in range(0, length, block):
            positions = np.arange(start, min(start + block, length))
            scores[row, positions] = opened.score(opened.finish(*patched(row, positions)), target)
            report(progress, row * length + int(positions[-1]) + 1, scores.size)
    ends = (float(opened.score(states[-1], target)[0]) for states in (good, bad))
    return PatchMap(target, part, *ends, scores)
