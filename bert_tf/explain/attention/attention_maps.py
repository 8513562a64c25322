"""The attention maps of a trace between chosen tokens, as results that can be saved.

Dimension legend: L layers, N heads, K chosen heads, R tokens that attend, C tokens attended to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bert_tf.explain.attention.head_summary import attention_maps
from bert_tf.results import Result, frame, plain

if TYPE_CHECKING:
    import pandas

    from bert_tf.inference.trace import Trace

_FIGURES = "bert_tf.plots.attention.attention_maps"


@dataclass(frozen=True, eq=False, kw_only=True)
class AttentionMaps(Result, figures={"all-heads": f"{_FIGURES}:all_heads"}):
    """The attention of every head between the chosen tokens of a trace.

    The weights stay in the trace and are cut out when they are asked for: all heads of Large at 512 tokens are 400 MB.
    With more tokens than `most_tokens` the record and the table hold pooled maps (each block of neighbouring tokens
    has the position and token of its first and the greatest weight of all); the arrays always hold every weight.

    Attributes:
        trace: a `Trace` with attention maps.
        positions: R ints, ascending. The positions of the tokens that attend.
        attended_positions: C ints, ascending. The positions of the tokens attended to.
        threshold: float. Weights below it are left empty in the figures; the files hold all weights.
    """

    trace: Trace = field(metadata={"export": False})
    positions: tuple[int, ...]
    attended_positions: tuple[int, ...]
    threshold: float = field(default=0.0, metadata={"export": False})

    #: Tokens a side of the maps in the record and the table: the table of all heads at 512 tokens would be a gigabyte.
    most_tokens: ClassVar[int | None] = 64

    def head_maps(self) -> np.ndarray:
        """The maps of the heads between all tokens of the trace, float [L, N, T, T]."""
        return attention_maps(self.trace)

    def heads_of_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The layers and the heads of the maps in their order, two int arrays."""
        layers, heads = np.indices(self.head_maps().shape[:2])
        return layers.ravel(), heads.ravel()

    def to_dict(self) -> dict[str, Any]:
        """Positions, tokens and the weights as nested lists [L, N, R, C], R and C at most `most_tokens`."""
        positions, attended_positions, weights = self._pooled(self.most_tokens)
        return {
            **super().to_dict(),
            "positions": plain(positions),
            "tokens": self._tokens(positions),
            "attended_positions": plain(attended_positions),
            "attended_tokens": self._tokens(attended_positions),
            "weights": _nested_lists(weights),
        }

    def to_frame(self) -> pandas.DataFrame:
        """A row for each head and token that attends; a column of weights for each token attended to, named by its
        position and the token, as "3 cat"."""
        positions, attended_positions, weights = self._pooled(self.most_tokens)
        layers, heads = self.heads_of_rows()
        rows, columns = len(positions), len(attended_positions)
        names = [f"{position} {self.trace.tokens[position]}" for position in attended_positions]
        return frame(
            {
                "layer": np.repeat(layers, rows),
                "head": np.repeat(heads, rows),
                "position": np.tile(positions, len(layers)),
                "token": self._tokens(positions) * len(layers),
                **dict(zip(names, weights.reshape(-1, columns).T)),
            }
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The weights, float32 [L, N, R, C], with the positions and the tokens of both sides."""
        positions, attended_positions, weights = self._pooled(None)
        return {
            "weights": weights,
            "positions": positions,
            "tokens": np.array(self._tokens(positions)),
            "attended_positions": attended_positions,
            "attended_tokens": np.array(self._tokens(attended_positions)),
        }

    def _tokens(self, positions: np.ndarray) -> list[str]:
        return [self.trace.tokens[position] for position in positions]

    def _pooled(self, most: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The positions of both sides and the maps, pooled to at most `most` tokens a side; None for all tokens."""
        # Plotly comes with the plots: it is imported only when weights are asked for.
        from bert_tf.plots.attention.pooled_maps import Selection, block_starts, pooled

        sides = np.array(self.positions), np.array(self.attended_positions)
        most = max(map(len, sides)) if most is None else most
        weights = pooled(self.head_maps(), Selection(self.positions, self.attended_positions), most)
        positions, attended_positions = (side[block_starts(len(side), most)] for side in sides)
        return positions, attended_positions, weights


def _nested_lists(weights: np.ndarray) -> list[Any]:
    """What `plain` makes of the weights; it visits each number, which takes seconds for the weights of all heads."""
    rounded = np.round(weights.astype(np.float64), 7)
    return rounded.tolist() if np.isfinite(rounded).all() else plain(weights)


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadAttention(
    AttentionMaps,
    figures={"heatmap": f"{_FIGURES}:chosen_heads", "all-heads": f"{_FIGURES}:all_heads"},
):
    """The attention of K chosen heads between the chosen tokens of a trace; the record and the table hold all weights.

    Weights are [K, R, C] wherever those of `AttentionMaps` are [L, N, R, C].

    Attributes:
        layers: K ints, from 0. The layer of each chosen head.
        heads: K ints, from 0. The number of each chosen head in its layer.

    Example:
        >>> trace = bert.trace("The cat sat.", attentions=True)
        >>> tokens = tuple(range(trace.length))
        >>> maps = HeadAttention(trace=trace, layers=(1,), heads=(0,), positions=tokens, attended_positions=tokens)
        >>> maps.to_frame()
    """

    layers: tuple[int, ...]
    heads: tuple[int, ...]

    most_tokens: ClassVar[int | None] = None

    def head_maps(self) -> np.ndarray:
        """The maps of the chosen heads between all tokens of the trace, float [K, T, T]."""
        return attention_maps(self.trace)[list(self.layers), list(self.heads)]

    def heads_of_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The layers and the heads of the maps in their order, two int arrays [K]."""
        return np.array(self.layers), np.array(self.heads)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The weights, float32 [K, R, C], with their layers and heads and the positions and tokens of both sides."""
        layers, heads = self.heads_of_rows()
        return {**super().to_arrays(), "layers": layers, "heads": heads}
