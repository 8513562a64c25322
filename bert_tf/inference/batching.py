"""Many inputs of one length read in passes of bounded size.

Dimension legend: T tokens, R rows, K possible answers.
"""

import numpy as np

# More is no faster, and takes longer to stop; so many fit in memory at any length.
TOKENS_PER_BATCH = 1024


def batched_answers(bert, token_ids, segments, target):
    """What could be said where a target is, pass by pass.

    Args:
        bert: a `Bert`. token_ids: int32 [R, T]. segments: int32 [T], of all rows. target: a `Target`.
    Returns:
        generator of (rows read so far; log-probabilities of all answers, float32 [rows of this pass, K]).
    """
    block = max(1, TOKENS_PER_BATCH // token_ids.shape[1])
    for start in range(0, len(token_ids), block):
        rows = token_ids[start : start + block]
        states = bert.hooked().embed(rows, np.repeat(segments[None], len(rows), axis=0))
        yield start + len(rows), bert.hooked().answers(bert.hooked().finish(states, 0), target)
