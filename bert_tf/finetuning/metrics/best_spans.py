"""The best answer spans by start and end scores.

Source: Devlin et al. 2019, section 4.2; `run_squad.py` tries the best 20 starts with the best 20 ends, this module
tries all.

Shapes: n pieces of a passage.
"""

import numpy as np


def best_spans(
    starts: np.ndarray, ends: np.ndarray, max_pieces: int, count: int, allowed: np.ndarray | None = None
) -> list[tuple[float, int, int]]:
    """The spans with the highest sum of start and end score.

    Args:
        starts: float [n]. The start scores.
        ends: float [n]. The end scores.
        max_pieces: int. The longest span.
        count: int. The number of spans to return.
        allowed: bool [n]. The pieces at which a span may start; None for all.

    Returns: list of (score, first piece, last piece), the best span first; first piece <= last piece.
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
    spans = [
        (float(flat[index]), int(index % length), int(index % length + index // length))
        for index in best
        if np.isfinite(flat[index])
    ]
    return sorted(spans, key=lambda span: (-span[0], span[1], span[2]))
