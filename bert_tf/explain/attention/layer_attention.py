"""Which token attends to which, layer by layer: the heads' mean, or what one of the other methods makes of it."""

from dataclasses import dataclass

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError
from bert_tf.explain.attention.flow import attention_flow
from bert_tf.explain.attention.head_summary import attention_maps
from bert_tf.explain.attention.rollout import attention_rollout
from bert_tf.explain.attention.value_attention import effective_attention, norm_weighted_attention
from bert_tf.results import Result, frame

#: Names of the methods, as `TokenAttention` has them too.
ATTENTION_METHODS = ("raw", "rollout", "flow", "norm-weighted", "effective")


@dataclass(frozen=True, eq=False)
class LayerAttention(Result, figures={"maps": "bert_tf.plots.attention.layer_attention:layer_maps"}):
    """A map of each layer, all its heads together.

    Attributes:
        method: one of `ATTENTION_METHODS`. tokens: T strings, the input's.
        maps: float [L, T, T]; row: the token that attends, column: the one attended to.
    """

    method: str
    tokens: tuple
    maps: np.ndarray

    def to_frame(self):
        """A row for each layer and pair of tokens."""
        layers, count, _ = self.maps.shape
        layer, position, attended = (one.ravel() for one in np.indices(self.maps.shape))
        tokens = np.array(self.tokens)
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

    def to_text(self):
        """What each token attends to most after the last layer."""
        last = self.maps[-1]
        best = last.argmax(axis=1)
        strongest = frame(
            {
                "token": self.tokens,
                "attends most to": [self.tokens[place] for place in best],
                self.method: last[np.arange(len(last)), best],
            }
        )
        return strongest.to_string(index=False, float_format="{:.3f}".format)


def layer_attention(bert, trace, method="rollout", progress=None):
    """Which token attends to which, in or up to each layer.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace` with attention maps.
        method: "raw" and "effective" are means over the heads (`effective_attention`), "norm-weighted" the norms of
            what all heads together move (`norm_weighted_attention`), "rollout" and "flow" go through all layers up to
            each (`attention_rollout`, `attention_flow`).
        progress: callable(done, total) of flow, in tokens of all layers; returning False cancels.
    Returns:
        `LayerAttention`.
    Raises:
        InputError: no such method, no attention maps, too many tokens for flow. Cancelled: by `progress`.
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


def _flow(trace, progress):
    layers = len(attention_maps(trace))

    def report_of(layer):
        return progress and (lambda done, total: progress(layer * total + done, layers * total))

    return np.stack([attention_flow(trace, layer, progress=report_of(layer)) for layer in range(layers)])


ANALYSIS = Analysis(
    name="attention",
    function=layer_attention,
    summary="which token attends to which: raw, through all layers, or weighted by what it moves",
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
)
