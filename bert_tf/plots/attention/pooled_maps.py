"""Attention maps, cut to a selection of tokens and pooled to the size of a screen.

Dimension legend: L layers, N heads, T tokens, R rows and C columns after pooling.
"""

from __future__ import annotations

import base64
import functools
import string
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.runtime.half_precision import to_float32

if TYPE_CHECKING:
    from bert_tf.inference.trace import Trace

#: Key of a selection -> its label: the text whose tokens attend, and the text that they attend to.
SELECTIONS = {"all": "all tokens", "aa": "A to A", "ab": "A to B", "ba": "B to A", "bb": "B to B"}


@dataclass(frozen=True)
class Selection:
    """Which tokens attend (rows) and which tokens are attended to (columns).

    Attributes:
        rows: tuple of ints. Token positions, ascending.
        columns: tuple of ints. Token positions, ascending.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]

    def __bool__(self) -> bool:
        return bool(self.rows) and bool(self.columns)

    def window(self, start: int, size: int) -> Selection:
        """At most ``size`` of the rows and of the columns, from number ``start`` on."""

        def part(positions: tuple[int, ...]) -> tuple[int, ...]:
            first = max(0, min(start, len(positions) - size))
            return positions[first : first + size]

        return Selection(part(self.rows), part(self.columns))


def token_sources(sources: Iterable[str | None]) -> list[str]:
    """The text that each token counts to, T of "a" or "b". A special token counts to the text before it, [CLS] to the
    first text.

    Segment ids cannot replace this: RoBERTa has one segment for both texts.

    Args:
        sources: iterable of T of "a", "b", or None for tokens that the model adds.
    """
    texts: list[str] = []
    for source in sources:
        texts.append(source or (texts[-1] if texts else "a"))
    return texts


def select(trace: Trace, selection: str = "all", special: bool = True, punctuation: bool = True) -> Selection:
    """Select tokens by their text.

    Args:
        trace: Trace. Its ``tokens`` and ``sources`` (None for tokens that the model adds) are read.
        selection: str. A key of ``SELECTIONS``; with "ab" the tokens of A attend to those of B.
        special: bool. Whether to include [CLS] and [SEP], which count to the texts of `token_sources`.
        punctuation: bool. Whether to include tokens that consist of punctuation.

    Returns:
        Selection.

    Raises:
        ValueError: ``selection`` is not a key of ``SELECTIONS``.
    """
    if selection not in SELECTIONS:
        raise ValueError(f"selection must be one of {', '.join(SELECTIONS)}, not {selection!r}.")

    def is_included(position: int, source: str | None) -> bool:
        if source is None:
            return special
        return punctuation or not is_punctuation(trace.tokens[position])

    def positions_of(text: str | None) -> tuple[int, ...]:
        return tuple(
            position
            for position, (token_text, source) in enumerate(zip(token_sources(trace.sources), trace.sources))
            if is_included(position, source) and text in (None, token_text)
        )

    first, second = (None, None) if selection == "all" else (selection[0], selection[1])
    return Selection(positions_of(first), positions_of(second))


def is_punctuation(token: str) -> bool:
    """Whether a token consists of punctuation, without the mark of a word piece ("##", "Ġ", "▁")."""
    text = token.removeprefix("##").lstrip("Ġ▁") or token
    # As in BERT's tokenizer: Unicode punctuation, and ASCII signs such as $ and +.
    return all(unicodedata.category(letter).startswith("P") or letter in string.punctuation for letter in text)


def pooled(maps: np.ndarray, selection: Selection, most: int) -> np.ndarray:
    """Cut maps to a selection and pool them to at most ``most`` rows and columns.

    A block has its maximum as its value: attention is sparse, and a mean would hide single large weights.

    Args:
        maps: float [..., T, T].
        selection: Selection. The tokens of rows and columns.
        most: int. Largest number of rows and of columns.

    Returns:
        float32 [..., R, C], R and C at most ``most``.
    """
    cut = maps[..., _index(selection.rows), :][..., _index(selection.columns)]
    # NumPy compares half-precision numbers one at a time. Those of at least 0 are in the order of their bits.
    in_bits = cut.dtype == np.float16 and (cut.view(np.int16) >= 0).all()
    cut = cut.view(np.int16) if in_bits else to_float32(cut)
    for axis in (-2, -1):
        cut = _pool(cut, axis, most)
    return to_float32(np.ascontiguousarray(cut.view(np.float16) if in_bits else cut))


def _index(positions: tuple[int, ...]) -> slice | list[int]:
    # Consecutive positions are indexed by a slice, which is a view; a list would copy every map.
    if positions and positions[-1] - positions[0] + 1 == len(positions):
        return slice(positions[0], positions[-1] + 1)
    return list(positions)


def _pool(maps: np.ndarray, axis: int, most: int) -> np.ndarray:
    size = maps.shape[axis]
    if size <= most:
        return maps
    starts = block_starts(size, most)
    ends = np.append(starts[1:], size)
    # The first item of each block, then the second and so on; a short block repeats its last. `reduceat` is slower.
    offsets = range(max(ends - starts))
    return functools.reduce(np.maximum, (maps.take(np.minimum(starts + one, ends - 1), axis) for one in offsets))


def block_starts(size: int, most: int) -> np.ndarray:
    """The first index of each of ``min(size, most)`` blocks of nearly equal length that divide ``size`` items."""
    return np.arange(min(size, most)) * size // min(size, most)


@dataclass(frozen=True, eq=False)
class Tiles:
    """Small maps of all heads.

    Attributes:
        values: uint8 [L, N, R, C]. 255 for the largest weight of each head.
        sides: tuple of R of "a", "b" or "". The text of the first token of each row, "" for a special token; empty if
            the sides were not requested.
    """

    values: np.ndarray
    sides: tuple[str, ...] = ()

    @property
    def layers(self) -> int:
        """The number of layers, L."""
        return self.values.shape[0]

    @property
    def heads(self) -> int:
        """The number of heads of a layer, N."""
        return self.values.shape[1]

    @property
    def rows(self) -> int:
        """The number of rows of a map, R."""
        return self.values.shape[2]

    @property
    def columns(self) -> int:
        """The number of columns of a map, C."""
        return self.values.shape[3]

    def base64(self) -> str:
        """The values in C order as base64 text."""
        return base64.b64encode(self.values.tobytes()).decode("ascii")


def tiles(
    attentions: np.ndarray,
    selection: Selection,
    most_bytes: int = 200_000,
    sources: Sequence[str | None] | None = None,
    least: float = 0.0,
) -> Tiles:
    """Small maps of every head, together at most ``most_bytes``.

    The values are the square roots of the weights, scaled to the largest weight of each map, so that small weights stay
    visible.

    Args:
        attentions: float [L, N, T, T].
        selection: Selection. The tokens of rows and columns.
        most_bytes: int. Upper bound of L * N * R * C.
        sources: sequence of T of "a", "b" or None, or None. The ``sources`` of the trace; sets ``sides``.
        least: float. Smaller weights count as 0.
    """
    layers, heads = attentions.shape[:2]
    side = int(np.clip((most_bytes / (layers * heads)) ** 0.5, 4, 48))
    small = np.stack([pooled(layer, selection, side) for layer in attentions])
    small[small < least] = 0
    peak = small.max(axis=(2, 3), keepdims=True, initial=0)
    share = np.sqrt(np.divide(small, peak, out=np.zeros_like(small), where=peak > 0))
    sides: tuple[str, ...] = ()
    if sources is not None:
        starts = block_starts(len(selection.rows), side)
        sides = tuple(sources[selection.rows[start]] or "" for start in starts)
    return Tiles(np.rint(255 * share).astype(np.uint8), sides)


def head_cells(values: np.ndarray) -> Tiles:
    """One cell for every head, as ``Tiles``: 0 for the smallest of the values, 255 for the largest.

    Args:
        values: float [L, N].
    """
    low, high = float(values.min()), float(values.max())
    share = (values - low) / (high - low) if high > low else np.zeros_like(values)
    return Tiles(np.rint(255 * share).astype(np.uint8)[:, :, None, None])


@dataclass(frozen=True, eq=False)
class Lines:
    """The attention of one or several heads between two columns of tokens.

    Attributes:
        left: list of R strings. The tokens that attend.
        right: list of C strings. The tokens that are attended to.
        sides_left: list of R of "a", "b" or "". The text of each token on the left, "" for a special token.
        sides_right: list of C of "a", "b" or "". The text of each token on the right.
        values: uint8 [K, R, C]. A map for each of K heads; 255 for a weight of 1.
    """

    left: list[str]
    right: list[str]
    sides_left: list[str]
    sides_right: list[str]
    values: np.ndarray

    def base64(self) -> str:
        """The weights in C order as base64 text."""
        return base64.b64encode(self.values.tobytes()).decode("ascii")


def lines(trace: Trace, weights: np.ndarray, selection: Selection) -> Lines:
    """The attention of one or several heads between the tokens of a selection.

    Args:
        trace: Trace. Its ``tokens`` and ``sources`` are read.
        weights: float [T, T] of one head, or [K, T, T].
        selection: Selection. The tokens on the left (rows) and on the right (columns).
    """
    weights = weights.reshape(-1, *weights.shape[-2:])
    cut = pooled(weights, selection, max(weights.shape[-1], 1))
    return Lines(
        left=[trace.tokens[position] for position in selection.rows],
        right=[trace.tokens[position] for position in selection.columns],
        sides_left=[trace.sources[position] or "" for position in selection.rows],
        sides_right=[trace.sources[position] or "" for position in selection.columns],
        values=np.rint(255 * np.clip(cut, 0, 1)).astype(np.uint8),
    )
