"""A map of a file's rows of which a filter leaves some, and the rows nearest to one of them.

Dimension legend: W rows that can be read, S rows that the filter leaves, K dimensions, H hidden.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.results import Result, frame, plain

if TYPE_CHECKING:
    import pandas

    from bert_tf.explain.datasets.dataset import RowMap


@dataclass(frozen=True, eq=False)
class FilteredRowMap(Result, figures={"map": "bert_tf.plots.datasets.filtered_row_map:filtered_map"}):
    """A `RowMap` of which a filter leaves some rows.

    Attributes:
        row_map: `RowMap` of all W rows: colours and symbols are chosen among all of them.
        indices: tuple of int. The S rows that the filter leaves.
        text_pairs: W pairs (text A, text B or None).
        attributes: dict name -> W values (str, float or None), all known attributes of the rows.
    """

    row_map: RowMap
    indices: tuple
    text_pairs: tuple
    attributes: dict

    def filtered(self) -> RowMap:
        """The `RowMap` of the S rows alone."""
        every, index = self.row_map, list(self.indices)
        rows, texts, values = ([values[at] for at in index] for values in (every.rows, every.texts, every.values))
        return replace(
            every,
            rows=tuple(rows),
            texts=tuple(texts),
            values=tuple(values),
            coordinates=every.coordinates[index],
            vectors=None if every.vectors is None else every.vectors[index],
        )

    def to_dict(self) -> dict[str, Any]:
        """The record of the filtered map, and all attributes of its rows."""
        return {**self.filtered().to_dict(), "attributes": plain(self._attributes())}

    def to_frame(self) -> pandas.DataFrame:
        """A row for each point: its number, its texts, its coordinates and all its attributes."""
        row_map = self.filtered()
        texts_a, texts_b = ([self.text_pairs[at][side] for at in self.indices] for side in (0, 1))
        axes = dict(zip("xyz", row_map.coordinates.T))
        return frame({"row": row_map.rows, "text_a": texts_a, "text_b": texts_b, **axes, **self._attributes()})

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Row numbers, texts, vectors [S, H], coordinates [S, K], and an array [S] for each attribute."""
        row_map = self.filtered()
        named = {"rows": np.array(row_map.rows), "texts": np.array(row_map.texts), "coordinates": row_map.coordinates}
        if row_map.vectors is not None:
            named["vectors"] = row_map.vectors
        return named | {name: _array(values) for name, values in self._attributes().items()}

    def _attributes(self) -> dict[str, list]:
        return {name: [values[index] for index in self.indices] for name, values in self.attributes.items()}


def _array(values: list) -> np.ndarray:
    """Texts, "" for None; or numbers, NaN for None."""
    if any(isinstance(value, str) for value in values):
        return np.array(["" if value is None else value for value in values])
    return np.array([np.nan if value is None else value for value in values], float)


@dataclass(frozen=True)
class NearRow:
    """A row and how near it is.

    Attributes:
        row: int. Its number. text_a, text_b: its texts; `text_b` is None without a pair.
        cosine: float. The cosine between its vector and that of the chosen row.
    """

    row: int
    text_a: str
    text_b: str | None
    cosine: float


@dataclass(frozen=True, eq=False)
class NearestRows(Result, figures={"cosines": "bert_tf.plots.datasets.filtered_row_map:nearest_row_bars"}):
    """The rows of a file nearest to one of them.

    Attributes:
        layer: int. The hidden state of the vectors, 0 is the embeddings. pooling: str, one of `row_map.POOLINGS`.
        row: int. The number of the chosen row.
        nearest: tuple of `NearRow`, the nearest first.
    """

    layer: int
    pooling: str
    row: int
    nearest: tuple

    def to_frame(self) -> pandas.DataFrame:
        """A row for each of the nearest rows."""
        names = ("row", "text_a", "text_b", "cosine")
        return frame({name: [getattr(near, name) for near in self.nearest] for name in names})
