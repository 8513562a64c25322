"""One token's attention by several methods side by side.

Dimension legend: L layers, N heads, T tokens, D head size. The methods and their sources: `value_attention`,
`rollout`, `flow`.
"""

from dataclasses import dataclass
from typing import Optional

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


@dataclass(frozen=True, eq=False)
class TokenAttention(Result, figures={"methods": "bert_tf.plots.attention.token_attention:method_bars"}):
    """What one token attends to, by method; each float64 [T].

    Attributes:
        layer, position: from 0. tokens: T strings, the input's.
        head: from 0, or None for the mean of the layer's heads.
        raw: the weights themselves.
        effective: the part of them that reaches the layer's output.
        norm_weighted: lengths of the vectors that are moved; of all heads together that of their sum, in which they
            may cancel. Scaled to add up to 1.
        rollout: which input tokens the vector after the layer was mixed from, through all heads of all layers
            up to it.
        flow: the greatest flow from the vector after the layer to each input token, scaled to add up to 1; None where
            it was not asked for.
    """

    layer: int
    head: Optional[int]
    position: int
    tokens: tuple
    raw: np.ndarray
    effective: np.ndarray
    norm_weighted: np.ndarray
    rollout: np.ndarray
    flow: Optional[np.ndarray] = None

    @property
    def methods(self):
        """Name of each method -> its values [T]."""
        values = {
            "raw": self.raw,
            "effective": self.effective,
            "norm-weighted": self.norm_weighted,
            "rollout": self.rollout,
        }
        return values if self.flow is None else {**values, "flow": self.flow}

    def to_frame(self):
        """A row for each token that is attended to, a column for each method."""
        columns = {name.replace("-", "_"): values for name, values in self.methods.items()}
        return frame({"position": np.arange(len(self.tokens)), "token": self.tokens, **columns})


def token_attention(bert, trace, layer=0, position=1, head=None, flow=False, values=None, means=None):
    """Raw, effective and norm-weighted attention and rollout of one token at one layer.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace` with attention maps.
        layer, position: from 0. head: from 0; None for all of the layer together.
        flow: whether `attention_flow` is worked out too, for at most 128 tokens.
        values: the layer's value vectors [N, T, D], as `value_vectors` gives them; None runs the model once.
        means: the means of each layer's heads, [L, T, T]; None works them out.
    Returns:
        `TokenAttention`.
    Raises:
        InputError: no attention maps, a layer, head or position that is not there, too many tokens for flow.
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
    # Only the row of this token: whole maps of 512 tokens would take a second.
    weights = maps[layer : layer + 1, :, position : position + 1].astype(np.float32)
    effective = project(weights, values, kernels)[0, :, 0].astype(np.float64)
    moved = weighted_norms(weights, value_grams(values, kernels))
    norms = (moved.layers[0, 0] if head is None else moved.heads[0, head, 0]).astype(np.float64)
    raw = weights[0, :, 0].astype(np.float64)
    if means is None:
        means = mean_maps(trace)
    mixed = rollout_row(means[: layer + 1], position)
    return TokenAttention(
        layer,
        head,
        position,
        trace.tokens,
        raw.mean(axis=0) if head is None else raw[head],
        effective.mean(axis=0) if head is None else effective[head],
        scaled(norms),
        mixed,
        scaled(attention_flow(trace, layer, (position,))[0]) if flow else None,
    )


def mean_maps(trace):
    """The means of each layer's heads, float32 [L, T, T]."""
    return attention_maps(trace).mean(axis=1, dtype=np.float32)


def scaled(values):
    """Values that add up to 1, or as they are where all are 0."""
    total = values.sum()
    return values / total if total > 0 else values


ANALYSIS = Analysis(
    name="attention-methods",
    function=token_attention,
    summary="one token's attention by several methods side by side",
    source="Brunner et al. 2020; Kobayashi et al. 2020; Abnar and Zuidema 2020",
    options=(
        Option("layer", "layer, from 0", int, 0, minimum=0, metavar="L"),
        Option("head", "head, from 0 (default: all of the layer together)", int, minimum=0, metavar="H"),
        POSITION,
        Option("flow", "also attention flow, for at most 128 tokens", bool, False),
    ),
    aliases=("methods",),
)
