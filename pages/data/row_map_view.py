"""The map of a file's rows on the page Dataset: each row a point, and the rows nearest to one of them."""

import dataclasses

import numpy as np
import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import nearest_rows, row_attributes, row_vectors
from bert_tf.explain.datasets.dataset import RowMap
from bert_tf.explain.datasets.filtered_row_map import FilteredRowMap, NearestRows, NearRow
from bert_tf.explain.datasets.row_map import (
    SAME_FIRST,
    constant_first_token,
    reads_text_a_only,
    supported_poolings,
)
from bert_tf.explain.representations.projection import PROJECTIONS
from bert_tf.plots.datasets.row_map import (
    PROBABILITY_ATTRIBUTES,
    TITLES,
    drawn_rows,
)
from ui.elements import tables
from ui.session import jobs, state
from ui.shell import snippets
from ui.widgets import export, figures, inputs
from ui.widgets.formatting import count, escape_markdown, title
from ui.widgets.projections import NAMES, can_lay_out, laid_out, projection_call

_POOLED = {"mean": "Mean of the tokens", "first": "First token"}
_PROJECTION_NOTES = {
    "pca": "PCA finds the directions in which their vectors differ most.",
    "umap": "UMAP keeps rows near each other that are near by cosine; far distances and the axes mean nothing.",
    "tsne": "t-SNE keeps rows near each other that are near by cosine; far distances, sizes of groups and the axes "
    "mean nothing.",
}
_NEAR = 8  # how many nearest rows are listed
_NONE = 0  # no row is chosen


def draw(shared, file_key, results, filtered, open_row, snippet_arguments):
    """Draw the map of a file's rows, which a background job computes.

    Args:
        shared: ``SharedModel``. file_key: ``ui.widgets.file_input.Chosen``. results: ``RowResult``s of all rows.
        filtered: those of them that the filter leaves.
        open_row: callable (``RowResult``) that draws the widgets that open the row.
        snippet_arguments: the arguments of the page's snippet without the map; the third is the ``Call`` of
            `score_rows`.
    """
    attributes = row_attributes(results)
    layer, pooling, way, name, space = _settings(shared, attributes)
    ask, rows = snippet_arguments[2]["ask"], [result.row for result in results]
    # A classifier's rows are read as it reads them; the other predictions change no vector.
    call = Call.of(row_vectors, pooling=pooling, ask=("classes",) if "classes" in ask else ())
    key = (shared.name, state.view().precision, file_key, call)
    rows_read = jobs.result(
        "dataset_vectors",
        key,
        f"Reading {count(len(rows), 'row')}",
        lambda progress: shared.run(call.run, rows, progress=progress),
    )
    if rows_read is None:
        return
    if constant_first_token(rows_read.vectors[layer], pooling):
        st.info(SAME_FIRST, icon=":material/join_inner:")
        return
    view = _Map(
        shared,
        [results[place] for place in rows_read.places],
        rows_read.vectors[layer],
        layer,
        pooling,
        way,
        name,
        [attributes[name][place] for place in rows_read.places],
        reads_text_a_only(shared.bert, ask),
    )
    numbers = {result.row.number for result in filtered}
    inside = [index for index, result in enumerate(view.rows) if result.row.number in numbers]
    if not inside:
        st.info("None of these rows can be read.", icon=":material/block:")
        return
    left, right = st.columns([6, 5], gap="large")
    with right:
        chosen = _chosen(view, inside)
        near = nearest_rows(view.vectors, chosen, _NEAR) if chosen is not None else ()
        _beside(view, chosen, near, open_row, space)
    with left:
        projection = projection_call(way, space)
        places = laid_out("dataset", rows_read, layer, projection)
        if places is not None:
            # The chosen row is drawn under every filter.
            drawn = sorted({*inside, *([] if chosen is None else [chosen])})
            _plane(_filtered(view, places, attributes, rows_read.places, drawn, chosen, near), view)
    number = None if chosen is None else view.rows[chosen].row.number
    drawn = projection if can_lay_out(projection, len(view.rows)) else None
    snippets.give(*snippet_arguments, plane=(layer, call, drawn, name, number, _NEAR))


@dataclasses.dataclass(frozen=True, eq=False)
class _Map:
    """The rows that can be read, their vectors after one layer, and the settings of the map.

    Attributes:
        shared: ``SharedModel``. rows: W ``RowResult``s. vectors: float32 [W, H].
        layer: index of the hidden state, 0 is the embeddings. pooling: one of `POOLINGS`. way: one of `PROJECTIONS`.
        name: the attribute that colours the points. values: its W values.
        alone: whether the model reads text A without text B.
    """

    shared: object
    rows: list
    vectors: np.ndarray
    layer: int
    pooling: str
    way: str
    name: str
    values: list
    alone: bool

    @property
    def tips(self):
        """The number and the text of each row."""
        return [f"{result.row.number}: {result.row.text}" for result in self.rows]


def _settings(shared, attributes):
    """The widgets of the map; returns (layer, pooling, way, attribute, whether in 3 dimensions)."""
    layers, poolings, pooling = shared.config.num_hidden_layers, supported_poolings(shared.config), "mean"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        name = st.selectbox(
            "Coloured by",
            list(attributes),
            format_func=TITLES.get,
            width=220,
            **state.bind_setting("dataset.colour", "w_dataset_colour", next(iter(attributes)), attributes),
        )
        way = st.segmented_control(
            "Laid out by",
            PROJECTIONS,
            format_func=NAMES.get,
            required=True,
            **state.bind_setting("dataset.way", "w_dataset_way", "pca", PROJECTIONS),
        )
        if len(poolings) > 1:
            pooling = st.segmented_control(
                "Vector of a row",
                poolings,
                format_func=_POOLED.get,
                required=True,
                **state.bind_setting("dataset.vector", "w_dataset_vector", pooling, poolings),
            )
        layer = st.slider(
            "After layer",
            0,
            layers,
            width=200,
            help="0 is the embeddings.",
            **state.bind_setting("dataset.layer", "w_dataset_layer", layers, range(layers + 1)),
        )
        space = st.toggle("3D", **state.bind_setting("dataset.space", "w_dataset_space", False))
    return layer, pooling, way, name, space


def _chosen(view, inside):
    """The widget that chooses a row; returns its index in ``view``, or None."""
    numbers, tips = {result.row.number: index for index, result in enumerate(view.rows)}, view.tips
    offered = {view.rows[index].row.number for index in inside}
    offered |= {state.setting("dataset.row", _NONE)} & set(numbers)
    labels = {_NONE: "None chosen"} | {number: tips[numbers[number]][:120] for number in sorted(offered)}
    number = st.selectbox(
        "Row",
        list(labels),
        format_func=labels.__getitem__,
        **state.bind_setting("dataset.row", "w_dataset_row", _NONE, numbers, labels.items()),
    )
    return numbers.get(number)


def _beside(view, chosen, near, open_row, space):
    """Draw the rows nearest to the chosen row, and the widgets that open it; in space points cannot be pressed."""
    if chosen is None:
        choose = "Choose a row here" if space else "Press a point, or choose a row here,"
        st.caption(f"{choose} to open it in another page and to see the rows nearest to it.")
        return
    open_row(view.rows[chosen])
    if not near:
        st.caption("There is no other row to compare it with.")
        return
    number = view.rows[chosen].row.number
    inputs.heading(f"Nearest to row {number:,}")
    nearest = tuple(NearRow(*_texts(view.rows[index].row), cosine) for index, cosine in near)
    result = NearestRows(view.layer, view.pooling, number, nearest)
    export.save(f"nearest-{number}", result, {"model": view.shared.name})
    # Each row has a table with a key of its own, so that no mark of an earlier table is kept.
    key = f"w_dataset_near_{number}"

    def picked():
        marked = st.session_state[key].selection.rows
        if marked and marked[0] < len(near):
            state.set_setting("dataset.row", view.rows[near[marked[0]][0]].row.number, _NONE)

    tables.show(
        {
            "cosine": [cosine for _, cosine in near],
            "row": [view.rows[index].row.number for index, _ in near],
            "value": [view.values[index] for index, _ in near],
            "text": [view.rows[index].row.text for index, _ in near],
        },
        hide_index=True,
        width="stretch",
        key=key,
        on_select=picked,
        selection_mode="single-row",
        column_config={
            "cosine": st.column_config.NumberColumn("Cosine", format="%.3f", width=70),
            "row": st.column_config.NumberColumn("Row", width=50),
            "value": _column(view),
            "text": st.column_config.TextColumn("Text", width="large"),
        },
    )
    st.caption(
        "The nearest of all rows, also of those that the filter hides, by the cosines of the vectors and not by their "
        "places on the map. Mark a row to choose it."
    )


def _column(view):
    """The column of the attribute that colours the map."""
    if any(isinstance(value, float) for value in view.values):
        form = "percent" if view.name in PROBABILITY_ATTRIBUTES else "%.4g"
        return st.column_config.NumberColumn(TITLES[view.name], format=form, width=90)
    return st.column_config.TextColumn(TITLES[view.name], width=90)


def _texts(row):
    return row.number, row.text_a, row.text_b


def _filtered(view, places, file_attributes, read, drawn, chosen, near):
    """The ``FilteredRowMap`` of the rows that are drawn.

    Args:
        view: ``_Map``. places: coordinates of its rows, and each axis's share of the variance or None.
        file_attributes: attributes of all rows of the file. read: indices, among these, of the rows of ``view``.
        drawn: indices, in ``view``, of the rows that are drawn. chosen: index of the chosen row, or None.
        near: pairs (index, cosine) of the rows nearest to it.
    """
    rows, (coordinates, shares) = [result.row for result in view.rows], places
    row_map = RowMap(
        layer=view.layer,
        pooling=view.pooling,
        projection=view.way,
        rows=tuple(row.number for row in rows),
        texts=tuple(row.text for row in rows),
        coordinates=np.asarray(coordinates),
        explained_variance=None if shares is None else tuple(shares),
        attribute=view.name,
        values=tuple(view.values),
        near=None if chosen is None else rows[chosen].number,
        nearest=None if chosen is None else tuple((rows[index].number, cosine) for index, cosine in near),
        vectors=view.vectors,
    )
    attributes = {name: [values[place] for place in read] for name, values in file_attributes.items()}
    return FilteredRowMap(row_map, tuple(drawn), tuple((row.text_a, row.text_b) for row in rows), attributes)


def _plane(result, view):
    inputs.heading("Where the rows lie")
    export.save(f"row-map-{view.layer}", result, {"model": view.shared.name})
    # Points in space cannot be pressed; another kind of figure is another widget.
    space = result.row_map.coordinates.shape[1] == 3
    presses = {} if space else {"on_select": _pressed(view, result.indices), "selection_mode": "points"}
    figures.show(
        f"The rows as points, coloured by: {TITLES[view.name]}",
        result.figure(dark=state.is_dark()),
        key="w_dataset_space_map" if space else "w_dataset_map",
        config=export.plot_config(f"row-map-{view.layer}"),
        **presses,
    )
    point = "text A of a row" if view.alone and any(result.row.text_b for result in view.rows) else "a row"
    st.caption(
        f"A point is {point}, as {escape_markdown(title(view.shared.name))} reads it with nothing hidden. Point at one "
        f"to read its text. {_PROJECTION_NOTES[view.way]}"
    )


def _pressed(view, drawn):
    """The callback of the map. Each curve of the figure is a group of rows, its points are the rows in order."""
    groups = [rows for _, _, rows in drawn_rows(view.values, drawn)]

    def pressed():
        points = st.session_state["w_dataset_map"].selection.points
        rows = groups[points[0]["curve_number"]] if points and points[0]["curve_number"] < len(groups) else ()
        if points and points[0]["point_index"] < len(rows):
            state.set_setting("dataset.row", view.rows[rows[points[0]["point_index"]]].row.number, _NONE)

    return pressed
