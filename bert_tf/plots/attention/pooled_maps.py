"""Attention maps cut and pooled to what a screen can show.

Dimension legend: L layers, N heads, T tokens, R rows and C columns shown.
"""

import base64
import string
import unicodedata
from dataclasses import dataclass

import numpy as np

SELECTIONS = {"all": "all tokens", "aa": "A to A", "ab": "A to B", "ba": "B to A", "bb": "B to B"}


@dataclass(frozen=True)
class Selection:
    """Which tokens look (rows) and which are looked at (columns).

    Attributes:
        rows, columns: token positions, ascending.
    """

    rows: tuple
    columns: tuple

    def __bool__(self):
        return bool(self.rows) and bool(self.columns)

    def window(self, start, size):
        """The part of at most ``size`` tokens from the ``start``-th on, of rows and of columns."""

        def part(places):
            first = max(0, min(start, len(places) - size))
            return places[first : first + size]

        return Selection(part(self.rows), part(self.columns))


def token_sources(sources):
    """The text each token stands with, T of "a" or "b": an added one with the text before it, [CLS] with the first.

    Segment ids do not tell it: RoBERTa has one segment for both texts.

    Args:
        sources: T of "a", "b", or None for tokens the model adds.
    """
    found = []
    for source in sources:
        found.append(source or (found[-1] if found else "a"))
    return found


def select(trace, shown="all", special=True, punctuation=True):
    """Choose tokens by the text they stand with.

    Args:
        trace: has ``tokens`` and ``sources`` (None for tokens the model adds).
        shown: a key of ``SELECTIONS``; "ab" are the tokens of A looking at those of B.
        special: whether [CLS] and [SEP] are among them, on the sides that `token_sources` gives them.
        punctuation: whether tokens of punctuation alone are among them.

    Returns:
        Selection.

    Raises:
        ValueError: unknown ``shown``.
    """
    if shown not in SELECTIONS:
        raise ValueError(f"shown must be one of {', '.join(SELECTIONS)}, not {shown!r}.")

    def wanted(position, source):
        if source is None:
            return special
        return punctuation or not is_punctuation(trace.tokens[position])

    def places(side):
        return tuple(
            position
            for position, (own, source) in enumerate(zip(token_sources(trace.sources), trace.sources))
            if wanted(position, source) and side in (None, own)
        )

    first, second = (None, None) if shown == "all" else shown
    return Selection(places(first), places(second))


def is_punctuation(token):
    """Whether a token has nothing but punctuation in it, the mark of a piece aside."""
    text = token.removeprefix("##").lstrip("Ġ▁") or token
    # As BERT's own tokenizer has it: all that Unicode calls so, and ASCII's signs such as $ and +.
    return all(unicodedata.category(letter).startswith("P") or letter in string.punctuation for letter in text)


def pooled(maps, selection, most):
    """Cut maps to a selection and pool them to at most ``most`` rows and columns.

    The greatest value of a block stands for it: attention is sparse, and a mean would wash its lines away.

    Args:
        maps: float [..., T, T].
        selection: Selection.
        most: greatest number of rows and of columns.

    Returns:
        float32 [..., R, C], R and C at most ``most``.
    """
    cut = maps[..., _index(selection.rows), :][..., _index(selection.columns)]
    # NumPy compares half precision one number at a time: in single it is ten times as fast.
    cut = np.asarray(cut, np.float32)
    for axis in (-2, -1):
        cut = _pool(cut, axis, most)
    return np.ascontiguousarray(cut)


def _index(places):
    # A run of neighbours is a view; a list of places would copy every map.
    if places and places[-1] - places[0] + 1 == len(places):
        return slice(places[0], places[-1] + 1)
    return list(places)


def _pool(maps, axis, most):
    size = maps.shape[axis]
    if size <= most:
        return maps
    return np.maximum.reduceat(maps, block_starts(size, most), axis=axis)


def block_starts(size, most):
    """First index of each of ``min(size, most)`` nearly equal blocks of ``size`` things."""
    return np.arange(min(size, most)) * size // min(size, most)


@dataclass(frozen=True, eq=False)
class Tiles:
    """Small maps of all heads.

    Attributes:
        values: uint8 [L, N, R, C], 255 where a head's attention is greatest.
        sides: R of "a", "b", or "" for a special token: the first token of each row.
    """

    values: np.ndarray
    sides: tuple = ()

    @property
    def layers(self):
        return self.values.shape[0]

    @property
    def heads(self):
        return self.values.shape[1]

    @property
    def rows(self):
        return self.values.shape[2]

    @property
    def columns(self):
        return self.values.shape[3]

    def base64(self):
        """The values in C order as base64 text."""
        return base64.b64encode(self.values.tobytes()).decode("ascii")


def tiles(attentions, selection, most_bytes=200_000, sources=None, least=0.0):
    """Small maps of every head, together at most ``most_bytes``.

    Each map is scaled to its own greatest value, by the square root, so that faint patterns stay visible.

    Args:
        attentions: float [L, N, T, T].
        selection: Selection.
        most_bytes: bounds L * N * R * C.
        sources: of a trace, where the rows' sides are wanted.
        least: weights below it count as 0.
    """
    layers, heads = attentions.shape[:2]
    side = int(np.clip((most_bytes / (layers * heads)) ** 0.5, 4, 48))
    small = np.stack([pooled(layer, selection, side) for layer in attentions])
    small[small < least] = 0
    peak = small.max(axis=(2, 3), keepdims=True, initial=0)
    share = np.sqrt(np.divide(small, peak, out=np.zeros_like(small), where=peak > 0))
    sides = ()
    if sources is not None:
        starts = block_starts(len(selection.rows), side)
        sides = tuple(sources[selection.rows[start]] or "" for start in starts)
    return Tiles(np.rint(255 * share).astype(np.uint8), sides)


def head_cells(values):
    """A single cell for every head, as ``Tiles``: from the least of the values to the greatest.

    Args:
        values: float [L, N].
    """
    low, high = float(values.min()), float(values.max())
    share = (values - low) / (high - low) if high > low else np.zeros_like(values)
    return Tiles(np.rint(255 * share).astype(np.uint8)[:, :, None, None])


@dataclass(frozen=True, eq=False)
class Lines:
    """One head or several as weights between two columns of tokens.

    Attributes:
        left, right: the tokens that look and those looked at.
        sides_left, sides_right: "a", "b", or "" for a special token, of each.
        values: uint8 [K, R, C], a map for each of K heads; 255 for a weight of 1.
    """

    left: list
    right: list
    sides_left: list
    sides_right: list
    values: np.ndarray

    def base64(self):
        """The weights in C order as base64 text."""
        return base64.b64encode(self.values.tobytes()).decode("ascii")


def lines(trace, weights, selection):
    """One head or several between the tokens of a selection.

    Args:
        trace: has ``tokens`` and ``sources``.
        weights: float [T, T], one head, or [K, T, T].
        selection: Selection.
    """
    weights = weights.reshape(-1, *weights.shape[-2:])
    cut = pooled(weights, selection, max(weights.shape[-1], 1))
    return Lines(
        left=[trace.tokens[place] for place in selection.rows],
        right=[trace.tokens[place] for place in selection.columns],
        sides_left=[trace.sources[place] or "" for place in selection.rows],
        sides_right=[trace.sources[place] or "" for place in selection.columns],
        values=np.rint(255 * np.clip(cut, 0, 1)).astype(np.uint8),
    )
