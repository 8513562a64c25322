"""Activation patching: where in a model the difference between two inputs turns into a different answer.

One hidden vector of the run on one input (the clean one) is put into the run on another (the corrupted one);
where that brings the clean answer back, the vector carried what the answer hangs on.

Dimension legend: L layers, T tokens, H hidden. Source: Meng et al. 2022, "Locating and Editing Factual
Associations in GPT", section 2 (causal tracing); Vig et al. 2020 (interventions in BERT-like models).
"""

from dataclasses import dataclass

import numpy as np

from bert_tf.explain.errors import NotComparable, report
from bert_tf.explain.target import Target

# Tokens in one pass; more is no faster, and takes longer to stop.
TOKENS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class PatchMap:
    """A target's log-probability with one vector patched.

    Attributes:
        target: the `Target`.
        clean, corrupted: its log-probability (natural logarithm) in either run as it is.
        scores: float64 [L+1, T], in the corrupted run with hidden state l at position t from the clean one;
            row 0 the embeddings.
    """

    target: Target
    clean: float
    corrupted: float
    scores: np.ndarray

    @property
    def recovered(self):
        """float64 [L+1, T], share of the difference that the patch brings back: 0 nothing, 1 all; NaN if
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
    if clean.length != corrupted.length:
        raise NotComparable(
            f"The inputs must have equally many tokens: the first has {clean.length}, the second "
            f"{corrupted.length}. Replace a word by one that is cut into as many pieces."
        )
    opened, length = bert.opened, clean.length
    good, bad = (opened.states(trace.token_ids[None], trace.segments[None]) for trace in (clean, corrupted))
    scores = np.empty((len(good), length))
    block = max(1, TOKENS_AT_ONCE // length)
    for layer, (source, victim) in enumerate(zip(good, bad)):
        for start in range(0, length, block):
            positions = np.arange(start, min(start + block, length))
            patched = np.repeat(victim.numpy(), len(positions), axis=0)
            patched[np.arange(len(positions)), positions] = source.numpy()[0, positions]
            scores[layer, positions] = opened.score(opened.finish(patched, layer), target)
            report(progress, layer * length + int(positions[-1]) + 1, scores.size)
    ends = (float(opened.score(states[-1], target)[0]) for states in (good, bad))
    return PatchMap(target, *ends, scores)
