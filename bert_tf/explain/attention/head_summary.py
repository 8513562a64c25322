"""What a head does, in a few numbers: how spread out, how far, and how much on the special tokens.

Dimension legend: L layers, N heads, T tokens. Pure NumPy. After Clark et al. 2019, "What Does BERT Look At?",
section 3, where each number is likewise a mean over the tokens that look (the rows).
"""

from dataclasses import dataclass

import numpy as np

from bert_tf.errors import InputError
from bert_tf.results import Result, frame


@dataclass(frozen=True, eq=False)
class HeadSummary(Result, figures={"measures": "bert_tf.plots.attention.head_profile:summary_maps"}):
    """One number a head, each float64 [L, N].

    Attributes:
        entropy: mean entropy of a row in bits; log2(T) where a token looks everywhere alike, 0 at one place.
        distance: mean distance in tokens between the one that looks and where it looks.
        cls_share: share of the attention that goes to [CLS].
        sep_share: share that goes to the [SEP] tokens, both together.
        previous_share, next_share, self_share: share that goes to the token before, the token after, and
            itself.
    """

    entropy: np.ndarray
    distance: np.ndarray
    cls_share: np.ndarray
    sep_share: np.ndarray
    previous_share: np.ndarray
    next_share: np.ndarray
    self_share: np.ndarray

    def to_frame(self):
        """A row for each head, a column for each measure."""
        layers, heads = np.indices(self.entropy.shape)
        measures = {name: values.ravel() for name, values in self.to_arrays().items()}
        return frame({"layer": layers.ravel(), "head": heads.ravel(), **measures})


def summarise_heads(trace):
    """Summary statistics of every head of a trace.

    Args:
        trace: a `Trace` with attention maps.
    Returns:
        `HeadSummary`.
    Raises:
        InputError: the trace holds no attention maps.
    """
    maps = attention_maps(trace)
    tokens = maps.shape[-1]
    positions = np.arange(tokens)
    distances = np.abs(positions[:, None] - positions).astype(np.float32)
    separators = [p for p in positions[1:] if trace.sources[p] is None]
    # A layer at a time: at 512 tokens all of Large's maps together would be 400 MB once more.
    columns = {name: [] for name in HeadSummary.__dataclass_fields__}
    for layer in maps:
        # The explorer keeps the maps of long texts in half precision, which knows no 1e-30.
        layer = layer.astype(np.float32, copy=False)
        received = layer.mean(axis=1, dtype=np.float64)
        columns["entropy"].append(-np.sum(layer * np.log2(np.maximum(layer, 1e-30)), axis=(1, 2)) / tokens)
        columns["distance"].append(np.einsum("nqk,qk->n", layer, distances) / tokens)
        columns["cls_share"].append(received[:, 0])
        columns["sep_share"].append(received[:, separators].sum(axis=1))
        for name, offset in (("previous_share", -1), ("self_share", 0), ("next_share", 1)):
            columns[name].append(np.trace(layer, offset=offset, axis1=1, axis2=2) / tokens)
    return HeadSummary(**{name: np.asarray(rows, np.float64) for name, rows in columns.items()})


def attention_maps(trace):
    """The trace's maps, float32 [L, N, T, T]; InputError if they were not asked for."""
    if trace.attentions is None:
        raise InputError("This trace holds no attention maps: trace again with attentions=True.")
    return trace.attentions
