"""Attention flow: attention maps as a flow network, and the maximum flow from a token to each input token.

Dimension legend: L layers, N heads, T tokens, K query tokens. Source: Abnar and Zuidema 2020, "Quantifying
Attention Flow in Transformers", section 3 (attention flow).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.explain.attention.head_summary import attention_maps
from bert_tf.explain.attention.rollout import checked_residual

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from bert_tf.inference.trace import Trace

#: SciPy takes whole numbers as capacities: an attention weight of 1 is this many. Rounding changes an edge by less
#: than 1e-6.
_UNIT = 1 << 20


def attention_flow(
    trace: Trace,
    layer: int = -1,
    positions: Iterable[int] | None = None,
    residual: float = 0.5,
    most_tokens: int = 128,
    progress: Callable[[int, int], Any] | None = None,
) -> np.ndarray:
    """The maximum flow from tokens after a layer to every input token, through the attention of all layers below.

    The edge from token i to token j between two layers has the mean attention of the heads as its capacity, with
    `residual` of the identity mixed in. Each input token is the only sink of its own maximum-flow problem, as in the
    paper, so a row need not add up to 1.

    Args:
        trace: Trace. A trace with attention maps.
        layer: int. From 0; -1 for the last layer.
        positions: iterable of K ints. The tokens that the flow starts from; None for all tokens.
        residual: float. Share that passes around the attention, 0 to 1; 0.5 in the paper.
        most_tokens: int. Longer inputs are refused, because the work grows with the third power of T.
        progress: callable(done, total) or None. Counts the K x T maximum flows; returning False cancels.
    Returns:
        float64 [K, T] between 0 and 1; row: token after the layer, column: input token.
    Raises:
        InputError: the trace has no attention maps or more than `most_tokens` tokens, or a layer, position or
            `residual` is out of range.
        Cancelled: `progress` returned False.
    """
    maps = attention_maps(trace)
    tokens = maps.shape[-1]
    if tokens > most_tokens:
        raise InputError(f"Attention flow takes at most {most_tokens} tokens, not {tokens}: shorten the text.")
    if not -len(maps) <= layer < len(maps):
        raise InputError(f"There is no layer {layer}: this model has {len(maps)}, numbered from 0.")
    starts = list(range(tokens) if positions is None else positions)
    if not all(0 <= position < tokens for position in starts):
        raise InputError(f"The positions must be 0 to {tokens - 1}, not {starts!r:.60}.")
    depth = range(len(maps))[layer] + 1
    means = maps[:depth].mean(axis=1, dtype=np.float64)

    def report_of(row: int) -> Callable[[int, int], None]:
        return lambda done, _: report(progress, row * tokens + done, len(starts) * tokens)

    rows = [flow(means, position, residual, report_of(row)) for row, position in enumerate(starts)]
    return np.asarray(rows).reshape(len(starts), tokens)


def flow(
    maps: np.ndarray,
    position: int,
    residual: float = 0.5,
    progress: Callable[[int, int], Any] | None = None,
) -> np.ndarray:
    """The maximum flow from the token at `position` after the last layer to each input token.

    Args:
        maps: float [L, T, T]. One attention map a layer.
        position: int. From 0.
        residual: float. As in `attention_flow`.
        progress: callable(done, total) or None. Counts the T input tokens; returning False cancels.
    Returns:
        float64 [T].
    Raises:
        InputError: `residual` is out of range.
        Cancelled: `progress` returned False.
    """
    from scipy.sparse.csgraph import maximum_flow

    checked_residual(residual)
    layers, tokens = maps.shape[:2]
    network = _network(maps, residual)
    source = layers * tokens + position
    flows = np.zeros(tokens)
    for drain in range(tokens):
        flows[drain] = maximum_flow(network, source, drain).flow_value / _UNIT
        report(progress, drain + 1, tokens)
    return flows


def _network(maps: np.ndarray, residual: float) -> csr_array:
    """The capacities of the edges as a sparse matrix: token i after layer l is node l * T + i; the input is layer 0."""
    from scipy.sparse import csr_array

    layers, tokens = maps.shape[:2]
    mixed = (1 - residual) * maps + residual * np.eye(tokens)
    above = (np.arange(1, layers + 1)[:, None, None] * tokens) + np.arange(tokens)[:, None]
    below = (np.arange(layers)[:, None, None] * tokens) + np.arange(tokens)
    shape = mixed.shape
    edges = (np.broadcast_to(above, shape).ravel(), np.broadcast_to(below, shape).ravel())
    nodes = (layers + 1) * tokens
    capacities = np.rint(mixed * _UNIT).astype(np.int32).ravel()
    positive = capacities > 0
    return csr_array((capacities[positive], tuple(ends[positive] for ends in edges)), shape=(nodes, nodes))
