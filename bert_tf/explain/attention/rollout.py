"""Attention rollout: how much each input token contributes to a token's vector at some layer, through all layers below.

Dimension legend: L layers, N heads, T tokens. Pure NumPy. Source: Abnar and Zuidema 2020, "Quantifying
Attention Flow in Transformers", section 3 (attention rollout).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bert_tf.errors import InputError
from bert_tf.explain.attention.head_summary import attention_maps

if TYPE_CHECKING:
    from bert_tf.inference.trace import Trace


def attention_rollout(trace: Trace, residual: float = 0.5) -> np.ndarray:
    """For each layer, the product of the attention maps of all layers up to it, with the residual connection.

    A layer's map is the mean over its heads, with `residual` of the identity mixed in. Rollout ignores the value
    vectors, the projections and the feed-forward blocks: it shows where a signal could have come from.

    Args:
        trace: Trace. A trace with attention maps.
        residual: float. Share of a token's vector that passes around the attention, 0 to 1; 0.5 in the paper.
    Returns:
        float64 [L, T, T]; in entry l, row: token after layer l + 1, column: input token. Rows add up to 1.
    Raises:
        InputError: the trace has no attention maps, or `residual` is out of range.

    Example:
        >>> trace = bert_tf.load().trace("Shanghai is a city in [MASK].")
        >>> attention_rollout(trace)[-1].shape  # one row and one column a token
    """
    return rollout(attention_maps(trace).mean(axis=1, dtype=np.float64), residual)


def rollout(maps: np.ndarray, residual: float = 0.5) -> np.ndarray:
    """`attention_rollout` of maps that are already averaged over the heads.

    Args:
        maps: float [L, T, T]. Rows add up to 1.
        residual: float. As in `attention_rollout`.
    Returns:
        float64 [L, T, T].
    Raises:
        InputError: `residual` is out of range.
    """
    checked_residual(residual)
    product = np.eye(maps.shape[-1])
    layers = []
    for layer in maps:
        # (1 - r) A R + r R, without building (1 - r) A + r I.
        product = (1 - residual) * (layer @ product) + residual * product
        layers.append(product)
    return np.stack(layers)


def rollout_row(maps: np.ndarray, position: int, residual: float = 0.5) -> np.ndarray:
    """Row `position` of the last map of `rollout(maps, residual)`, float64 [T]; the other rows are not computed."""
    checked_residual(residual)
    row = np.eye(1, maps.shape[-1], position)[0]
    for layer in maps[::-1]:
        row = (1 - residual) * (row @ layer) + residual * row
    return row


def checked_residual(residual: float) -> float:
    """Return `residual`; raise InputError unless it is between 0 and 1."""
    if not 0 <= residual <= 1:
        raise InputError(f"residual must be between 0 and 1, not {residual!r}.")
    return residual
