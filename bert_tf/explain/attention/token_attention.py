"""One token's attention by several methods side by side.

Dimension legend: L layers, N heads, T tokens, D head size. The modules `value_attention`, `rollout` and `flow` give
the methods and their sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError
from bert_tf.explain.attention.flow import attention_flow
from bert_tf.explain.attention.head_summary import attention_maps
from bert_tf.explain.attention.head_vectors import POSITION
from bert_tf.explain.attention.rollout import rollout_row
from bert_tf.explain.attention.value_attention import (
    output_kernels,
    project,
    value_grams,
    value_vectors,
    weighted_norms,
)
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas

    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace


@dataclass(frozen=True, eq=False)
class TokenAttention(Result, figures={"methods": "bert_tf.plots.attention.token_attention:method_bars"}):
    """What one token attends to, by each method.

    Attributes:
        layer: int. From 0.
        head: int or None. From 0; None for the mean over the layer's heads.
        position: int. Position of the token that attends, from 0.
        tokens: tuple of T strings. The tokens of the input.
        raw: float64 [T]. The attention weights.
        effective: float64 [T]. The part of the weights that changes the layer's output.
        norm_weighted: float64 [T]. Norms of the value vectors weighted by attention, scaled to add up to 1; of all
            heads together the norms of their sums, in which heads may cancel each other.
        rollout: float64 [T]. How much each input token contributes to the vector after the layer, through all heads
            of all layers up to it.
        flow: float64 [T] or None. The maximum flow from the vector after the layer to each input token, scaled to add
            up to 1; None if it was not requested.

    Example:
        >>> bert = bert_tf.load()
        >>> attention = token_attention(bert, bert.trace("It is a [MASK]."), layer=5, position=4)
        >>> attention.to_frame()
    """

    layer: int
    head: int | None
    position: int
    tokens: tuple[str, ...]
    raw: np.ndarray
    effective: np.ndarray
    norm_weighted: np.ndarray
    rollout: np.ndarray
    flow: np.ndarray | None = None

    @property
    def methods(self) -> dict[str, np.ndarray]:
        """Dict from the name of each method to its values [T]."""
        values = {
            "raw": self.raw,
            "effective": self.effective,
            "norm-weighted": self.norm_weighted,
            "rollout": self.rollout,
        }
        return values if self.flow is None else {**values, "flow": self.flow}

    def to_frame(self) -> pandas.DataFrame:
        """A row for each token that is attended to, a column for each method."""
        columns = {name.replace("-", "_"): values for name, values in self.methods.items()}
        return frame({"position": np.arange(len(self.tokens)), "token": self.tokens, **columns})


def token_attention(
    bert: Bert,
    trace: Trace,
    layer: int = 0,
    position: int = 1,
    head: int | None = None,
    flow: bool = False,
    values: np.ndarray | None = None,
    means: np.ndarray | None = None,
) -> TokenAttention:
    """Raw, effective and norm-weighted attention and rollout of one token at one layer.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. A trace with attention maps.
        layer: int. From 0.
        position: int. Position of the token that attends, from 0.
        head: int or None. From 0; None for all heads of the layer together.
        flow: bool. Whether to compute `attention_flow` too, for at most 128 tokens.
        values: float32 [N, T, D] or None. The value vectors of the layer, from `value_vectors`; None runs the model
            once.
        means: float32 [L, T, T] or None. The result of `mean_maps`; None computes it.
    Returns:
        `TokenAttention`.
    Raises:
        InputError: the trace has no attention maps, there is no such layer, head or position, or there are too many
            tokens for flow.
    """
    maps = attention_maps(trace)
    sizes = {"layer": (layer, maps.shape[0]), "position": (position, maps.shape[2])}
    if head is not None:
        sizes["head"] = (head, maps.shape[1])
    for name, (value, size) in sizes.items():
        if not 0 <= value < size:
            raise InputError(f"There is no {name} {value}: they are numbered 0 to {size - 1}.")
    values = value_vectors(bert, trace)[layer] if values is None else values
    values, kernels = values[None], output_kernels(bert)[layer : layer + 1]
    # Only the row of this token: complete maps of 512 tokens would take a second.
    weights = maps[layer : layer + 1, :, position : position + 1].astype(np.float32)
    effective = project(weights, values, kernels)[0, :, 0].astype(np.float64)
    weighted = weighted_norms(weights, value_grams(values, kernels))
    norms = (weighted.layers[0, 0] if head is None else weighted.heads[0, head, 0]).astype(np.float64)
    raw = weights[0, :, 0].astype(np.float64)
    if means is None:
        means = mean_maps(trace)
    rollout = rollout_row(means[: layer + 1], position)
    return TokenAttention(
        layer,
        head,
        position,
        trace.tokens,
        raw.mean(axis=0) if head is None else raw[head],
        effective.mean(axis=0) if head is None else effective[head],
        scaled(norms),
        rollout,
        scaled(attention_flow(trace, layer, (position,))[0]) if flow else None,
    )


def mean_maps(trace: Trace) -> np.ndarray:
    """The mean attention map over the heads of each layer, float32 [L, T, T]."""
    return attention_maps(trace).mean(axis=1, dtype=np.float32)


def scaled(values: np.ndarray) -> np.ndarray:
    """The values divided by their sum, so that they add up to 1; unchanged if all are 0."""
    total = values.sum()
    return values / total if total > 0 else values


ANALYSIS = Analysis(
    name="attention-methods",
    function=token_attention,
    summary="one token's attention by several methods side by side",
    source="Brunner et al. 2020; Kobayashi et al. 2020; Abnar and Zuidema 2020",
    options=(
        Option("layer", "layer, from 0", int, 0, minimum=0, metavar="L"),
        Option("head", "head, from 0 (default: all heads of the layer together)", int, minimum=0, metavar="H"),
        POSITION,
        Option("flow", "also compute attention flow, for at most 128 tokens", bool, False),
    ),
    aliases=("methods",),
    attentions=True,
)
