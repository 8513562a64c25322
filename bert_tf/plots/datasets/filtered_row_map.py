"""A map of some rows of a file, and the rows nearest to one of them, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.datasets.row_map import row_scatter
from bert_tf.plots.ranked_bars import ranked_bars
from bert_tf.plots.representations.vectors import component_titles

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.datasets.filtered_row_map import FilteredRowMap, NearestRows

_LONGEST = 60  # characters of a bar's label


def filtered_map(filtered: FilteredRowMap, dark: bool = False) -> go.Figure:
    """The rows that the filter leaves as points; the chosen row and the drawn ones near it have rings."""
    row_map = filtered.row_map
    index_of = {number: index for index, number in enumerate(row_map.rows)}
    near = [index_of[number] for number, _ in row_map.nearest or () if index_of[number] in filtered.indices]
    return row_scatter(
        row_map.coordinates,
        [f"{number}: {text}" for number, text in zip(row_map.rows, row_map.texts)],
        row_map.attribute,
        list(row_map.values),
        component_titles(row_map.explained_variance, row_map.coordinates.shape[1]),
        filtered.indices,
        None if row_map.near is None else index_of[row_map.near],
        near,
        dark,
    )


def nearest_row_bars(nearest_rows: NearestRows, dark: bool = False) -> go.Figure:
    """The cosines of the nearest rows as bars."""
    names = []
    for near in nearest_rows.nearest:
        text = f"{near.text_a} · {near.text_b}" if near.text_b else near.text_a
        names.append(f"{near.row}: {text}"[:_LONGEST])
    return ranked_bars(names, [near.cosine for near in nearest_rows.nearest], "cosine", dark)
