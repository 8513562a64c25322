"""The best spans by start and end scores.

n pieces of a passage. Source: Devlin et al. 2019, section 4.2; `run_squad.py`, which tries the best 20 starts
with the best 20 ends, where this tries them all.
"""

import numpy as np


def best_spans(starts, ends, max_pieces, count, allowed=None):
    """The spans with the highest sum of start and end score.

    Args:
        starts, ends: float [n]. max_pieces: the longest span. count: how many spans.
        allowed: bool [n], pieces a span may begin at; None for all.
    Returns:
        list of (score, first piece, last piece), the best first; first <= last always.
    """
    length = len(starts)
    if not length or count < 1:
        return []
    starts = np.asarray(starts, np.float64)
    if allowed is not None:
        starts = np.where(allowed, starts, -np.inf)
    sums = np.full((min(max_pieces, length), length), -np.inf)
    for extra, row in enumerate(sums):
        row[: length - extra] = starts[: length - extra] + ends[extra:]
    flat = sums.ravel()
    count = min(count, flat.size)
    best = np.argpartition(-flat, count - 1)[:count]
    found = [
        (float(flat[place]), int(place % length), int(place % length + place // length))
        for place in best
        if np.isfinite(flat[place])
    ]
    return sorted(found, key=lambda span: (-span[0], span[1], span[2]))
