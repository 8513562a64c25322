"""Which token attends to which, layer by layer: raw attention, rollout, flow, norm-weighted or effective attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError
from bert_tf.explain.attention.flow import attention_flow
from bert_tf.explain.attention.head_summary import attention_maps
from bert_tf.explain.attention.rollout import attention_rollout
from bert_tf.explain.attention.value_attention import effective_attention, norm_weighted_attention
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas

    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace

#: Names of the methods; `TokenAttention` uses the same names.
ATTENTION_METHODS = ("raw", "rollout", "flow", "norm-weighted", "effective")


@dataclass(frozen=True, eq=False)
class LayerAttention(Result, figures={"maps": "bert_tf.plots.attention.layer_attention:layer_maps"}):
    """One map for each layer, all its heads together.

    Attributes:
        method: str. One of `ATTENTION_METHODS`.
        tokens: tuple of T strings. The tokens of the input.
        maps: float [L, T, T]. Row: the token that attends; column: the token that it attends to.

    Example:
        >>> bert = bert_tf.load()
        >>> attention = layer_attention(bert, bert.trace("It is a [MASK]."), method="rollout")
        >>> print(attention.to_text())
    """

    method: str
    tokens: tuple[str, ...]
    maps: np.ndarray

    def to_frame(self) -> pandas.DataFrame:
        """A row for each layer and pair of tokens."""
        layer, position, attended = (indices.ravel() for indices in np.indices(self.maps.shape))
        tokens = np.array(self.tokens, object)
        return frame(
            {
                "layer": layer,
                "position": position,
                "token": tokens[position],
                "attended_position": attended,
                "attended_token": tokens[attended],
                self.method.replace("-", "_"): self.maps.ravel(),
            }
        )

    def to_text(self) -> str:
        """The token that each token attends to most, in the map of the last layer."""
        last = self.maps[-1]
        best = last.argmax(axis=1)
        strongest = frame(
            {
                "token": self.tokens,
                "attends most to": [self.tokens[position] for position in best],
                self.method: last[np.arange(len(last)), best],
            }
        )
        return strongest.to_string(index=False, float_format="{:.3f}".format)


def layer_attention(
    bert: Bert, trace: Trace, method: str = "rollout", progress: Callable[[int, int], Any] | None = None
) -> LayerAttention:
    """Which token attends to which, in each layer or through all layers up to it.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. A trace with attention maps.
        method: str. "raw" and "effective" are means over the heads (`effective_attention`); "norm-weighted" is the
            norm of the summed output of all heads (`norm_weighted_attention`); "rollout" and "flow" combine all
            layers up to each one (`attention_rollout`, `attention_flow`).
        progress: callable(done, total) or None. Called by "flow", counts the pairs of tokens of all layers; returning
            False cancels.
    Returns:
        `LayerAttention`.
    Raises:
        InputError: there is no such method, the trace has no attention maps, or too many tokens for flow.
        Cancelled: `progress` returned False.
    """
    if method not in ATTENTION_METHODS:
        raise InputError(f"There is no method {method!r:.40}; there are {', '.join(ATTENTION_METHODS)}.")
    maps = {
        "raw": lambda: attention_maps(trace).mean(axis=1),
        "rollout": lambda: attention_rollout(trace),
        "flow": lambda: _flow(trace, progress),
        "norm-weighted": lambda: norm_weighted_attention(bert, trace).layers,
        "effective": lambda: effective_attention(bert, trace).mean(axis=1),
    }[method]()
    return LayerAttention(method, trace.tokens, maps)


def _flow(trace: Trace, progress: Callable[[int, int], Any] | None) -> np.ndarray:
    layers = len(attention_maps(trace))

    def report_of(layer: int) -> Callable[[int, int], Any] | None:
        return progress and (lambda done, total: progress(layer * total + done, layers * total))

    return np.stack([attention_flow(trace, layer, progress=report_of(layer)) for layer in range(layers)])


ANALYSIS = Analysis(
    name="attention",
    function=layer_attention,
    summary="which token attends to which: raw, through all layers, or norm-weighted",
    source="Abnar and Zuidema 2020; Kobayashi et al. 2020; Brunner et al. 2020",
    options=(
        Option(
            "method",
            "method",
            default="rollout",
            choices=ATTENTION_METHODS,
            metavar="M",
            value_aliases={"norms": "norm-weighted"},
        ),
    ),
    attentions=True,
)
