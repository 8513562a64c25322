"""Attention as a network of pipes: how much can flow from a token at some layer down to each input token.

Dimension legend: L layers, N heads, T tokens, K looking tokens. Source: Abnar and Zuidema 2020, "Quantifying
Attention Flow in Transformers", section 3 (attention flow).
"""

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.explain.attention.head_summary import attention_maps
from bert_tf.explain.attention.rollout import checked_residual

#: Flows are counted in whole numbers of this part of the attention: what is lost by it is below 1e-6 a pipe.
_UNIT = 1 << 20


def attention_flow(trace, layer=-1, positions=None, residual=0.5, most_tokens=128, progress=None):
    """The greatest flow from tokens after a layer to every input token through all layers' attention.

    Between two layers a pipe from token i to token j holds the mean of the heads' attention, `residual` of
    the identity mixed in. Each input token is the one drain of a maximum-flow problem of its own, as in the
    paper, so a row need not add up to 1.

    Args:
        trace: a `Trace` with attention maps. layer: from 0; -1 for the last.
        positions: K tokens the flow starts from; None for all of them.
        residual: share that passes around the attention, 0 to 1; 0.5 in the paper.
        most_tokens: longer inputs are refused: the work grows with the third power of T.
        progress: callable(done, total) in looking tokens; returning False cancels.
    Returns:
        float64 [K, T]; row: token after the layer, column: input token; between 0 and 1.
    Raises:
        InputError: no attention maps, more than `most_tokens` tokens, a layer, position or residual out of
            range.
        Cancelled: by `progress`.
    """
    maps = attention_maps(trace)
    tokens = maps.shape[-1]
    if tokens > most_tokens:
        raise InputError(f"Flow is worked out for at most {most_tokens} tokens, not {tokens}: shorten the text.")
    if not -len(maps) <= layer < len(maps):
        raise InputError(f"There is no layer {layer}: this model has {len(maps)}, numbered from 0.")
    wanted = list(range(tokens) if positions is None else positions)
    if not all(0 <= position < tokens for position in wanted):
        raise InputError(f"The positions must be 0 to {tokens - 1}, not {wanted!r:.60}.")
    depth = range(len(maps))[layer] + 1
    rows = []
    for done, position in enumerate(wanted, 1):
        rows.append(flow(maps[:depth].mean(axis=1, dtype=np.float64), position, residual))
        report(progress, done, len(wanted))
    return np.asarray(rows).reshape(len(wanted), tokens)


def flow(maps, position, residual=0.5):
    """The flows from `position` after the last of any maps [L, T, T] to each input token, float64 [T]."""
    from scipy.sparse.csgraph import maximum_flow

    checked_residual(residual)
    layers, tokens = maps.shape[:2]
    network = _network(maps, residual)
    source = layers * tokens + position
    return np.array([maximum_flow(network, source, drain).flow_value for drain in range(tokens)]) / _UNIT


def _network(maps, residual):
    """The pipes as a sparse matrix: token i after layer l is node l * T + i, the input layer 0."""
    from scipy.sparse import csr_array

    layers, tokens = maps.shape[:2]
    mixed = (1 - residual) * maps + residual * np.eye(tokens)
    above = (np.arange(1, layers + 1)[:, None, None] * tokens) + np.arange(tokens)[:, None]
    below = (np.arange(layers)[:, None, None] * tokens) + np.arange(tokens)
    shape = mixed.shape
    places = (np.broadcast_to(above, shape).ravel(), np.broadcast_to(below, shape).ravel())
    nodes = (layers + 1) * tokens
    capacities = np.rint(mixed * _UNIT).astype(np.int32).ravel()
    held = capacities > 0
    return csr_array((capacities[held], tuple(place[held] for place in places)), shape=(nodes, nodes))
