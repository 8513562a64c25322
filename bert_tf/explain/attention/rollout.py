"""Attention through all layers at once: from which input tokens a token's vector at some layer was mixed.

Dimension legend: L layers, N heads, T tokens. Pure NumPy. Source: Abnar and Zuidema 2020, "Quantifying
Attention Flow in Transformers", section 3 (attention rollout).
"""

import numpy as np

from bert_tf.errors import InputError
from bert_tf.explain.attention.head_summary import attention_maps


def attention_rollout(trace, residual=0.5):
    """The attention maps of all layers up to each one multiplied together, the residual connection included.

    A layer's map is the mean over its heads, `residual` of the identity mixed in. What values, projections
    and feed-forward blocks do to the vectors on their way is left out: read it as where signal could have
    come from.

    Args:
        trace: a `Trace` with attention maps.
        residual: share of a token's vector that passes around the attention, 0 to 1; 0.5 in the paper.
    Returns:
        float64 [L, T, T]; in entry l, row: token after layer l + 1, column: input token. Rows add up to 1.
    Raises:
        InputError: no attention maps in the trace, or `residual` out of range.
    """
    return rollout(attention_maps(trace).mean(axis=1, dtype=np.float64), residual)


def rollout(maps, residual=0.5):
    """The product of any maps [L, T, T] whose rows add up to 1, as `attention_rollout` of a trace's."""
    checked_residual(residual)
    so_far = np.eye(maps.shape[-1])
    layers = []
    for layer in maps:
        # (1 - r) A R + r R, without building (1 - r) A + r I.
        so_far = (1 - residual) * (layer @ so_far) + residual * so_far
        layers.append(so_far)
    return np.stack(layers)


def rollout_row(maps, position, residual=0.5):
    """The row of `position` in the last of `rollout(maps, residual)`, without the other rows: float64 [T]."""
    checked_residual(residual)
    row = np.eye(1, maps.shape[-1], position)[0]
    for layer in maps[::-1]:
        row = (1 - residual) * (row @ layer) + residual * row
    return row


def checked_residual(residual):
    """`residual` if it is a share, else an InputError."""
    if not 0 <= residual <= 1:
        raise InputError(f"residual must be between 0 and 1, not {residual!r}.")
    return residual
