"""Summary statistics of attention heads: entropy, distance, and the shares that go to special and neighbouring tokens.

Dimension legend: L layers, N heads, T tokens. After Clark et al. 2019, "What Does BERT Look At?",
section 3, where each number is also a mean over the queries (the rows of the map).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.errors import InputError
from bert_tf.results import Result, frame
from bert_tf.runtime.half_precision import to_float32

if TYPE_CHECKING:
    import pandas

    from bert_tf.inference.trace import Trace


@dataclass(frozen=True, eq=False)
class HeadSummary(Result, figures={"measures": "bert_tf.plots.attention.head_profile:summary_maps"}):
    """One number for each head and measure; each array is float64 [L, N].

    Attributes:
        entropy: float64 [L, N]. Mean entropy of a row in bits: log2(T) for uniform attention, 0 where each token
            attends to a single token.
        distance: float64 [L, N]. Mean distance in tokens between the query and the tokens it attends to.
        cls_share: float64 [L, N]. Share of the attention that goes to [CLS].
        sep_share: float64 [L, N]. Share of the attention that goes to all [SEP] tokens together.
        previous_share: float64 [L, N]. Share of the attention that goes to the token before the query.
        next_share: float64 [L, N]. Share of the attention that goes to the token after the query.
        self_share: float64 [L, N]. Share of the attention that goes to the query's own token.
    """

    entropy: np.ndarray
    distance: np.ndarray
    cls_share: np.ndarray
    sep_share: np.ndarray
    previous_share: np.ndarray
    next_share: np.ndarray
    self_share: np.ndarray

    def to_frame(self) -> pandas.DataFrame:
        """A row for each head, a column for each measure."""
        layers, heads = np.indices(self.entropy.shape)
        measures = {name: values.ravel() for name, values in self.to_arrays().items()}
        return frame({"layer": layers.ravel(), "head": heads.ravel(), **measures})


def summarise_heads(trace: Trace) -> HeadSummary:
    """Summary statistics of every head of a trace.

    Args:
        trace: Trace. A trace with attention maps.
    Returns:
        `HeadSummary`.
    Raises:
        InputError: the trace has no attention maps.

    Example:
        >>> trace = bert_tf.load().trace("Shanghai is a city in [MASK].")
        >>> summarise_heads(trace).to_frame().sort_values("sep_share").tail()
    """
    maps = attention_maps(trace)
    tokens = maps.shape[-1]
    positions = np.arange(tokens)
    distances = np.abs(positions[:, None] - positions).astype(np.float32)
    separators = [p for p in positions[1:] if trace.sources[p] is None]
    columns: dict[str, list[np.ndarray]] = {name: [] for name in HeadSummary.__dataclass_fields__}
    for layer, entropies in _layers(maps):
        received = layer.mean(axis=1, dtype=np.float64)
        columns["entropy"].append(entropies)
        # Row by row, as `einsum` loses digits in long sums.
        columns["distance"].append(np.einsum("nqk,qk->nq", layer, distances).mean(axis=1))
        columns["cls_share"].append(received[:, 0])
        columns["sep_share"].append(received[:, separators].sum(axis=1))
        for name, offset in (("previous_share", -1), ("self_share", 0), ("next_share", 1)):
            columns[name].append(np.trace(layer, offset=offset, axis1=1, axis2=2) / tokens)
    return HeadSummary(**{name: np.asarray(rows, np.float64) for name, rows in columns.items()})


def head_entropies(trace: Trace) -> np.ndarray:
    """`HeadSummary.entropy` alone, float64 [L, N], in half the time; the errors are those of `summarise_heads`."""
    return np.asarray([entropies for _, entropies in _layers(attention_maps(trace))], np.float64)


def _layers(maps: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The maps [N, T, T] of each layer, and the mean entropies [N] of their rows.

    A layer at a time, in memory that the next one overwrites: a float32 copy of all maps of BERT-Large at 512 tokens
    would take 400 MB more.
    """
    values, logarithms = (np.empty(maps.shape[1:], np.float32) for _ in range(2))
    for layer in maps:
        # The explorer stores the maps of long texts in half precision, which cannot represent 1e-30.
        layer = to_float32(layer, values)
        np.log2(np.maximum(layer, 1e-30, out=logarithms), out=logarithms)
        yield layer, -np.einsum("nqk,nqk->nq", layer, logarithms).mean(axis=1)


def attention_maps(trace: Trace) -> np.ndarray:
    """The attention maps of a trace, float [L, N, T, T]; raises InputError if it has none."""
    if trace.attentions is None:
        raise InputError("This trace holds no attention maps: trace again with attentions=True.")
    return trace.attentions
