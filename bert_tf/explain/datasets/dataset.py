"""Predictions for a file of texts: each row, summaries of all rows and of subsets, a map of the rows, a class's curve.

Dimension legend: W readable rows, K dimensions of the map.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional, cast

import numpy as np

from bert_tf.analysis import ANY_ANSWER, TOP_K, Analysis, Option
from bert_tf.errors import InputError, check_hidden_state, refuse_one_alone
from bert_tf.explain.attribution.target import classifier_settings
from bert_tf.explain.datasets.class_curves import ClassCurve, check_class, class_curve
from bert_tf.explain.datasets.row_map import (
    ATTRIBUTE_ALIASES,
    POOLINGS,
    SAME_FIRST,
    available_row_attributes,
    constant_first_token,
    nearest_rows,
    row_attributes,
    row_vectors,
)
from bert_tf.explain.datasets.row_predictions import (
    ASK,
    ClassSummary,
    RowSummary,
    score_rows,
    summarise_classes,
    summarise_rows,
)
from bert_tf.explain.datasets.text_rows import HIDE_OPTION, parse_row_numbers
from bert_tf.explain.representations.projection import PROJECTIONS, project_to_plane
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas

    from bert_tf.explain.datasets.row_predictions import RowResult
    from bert_tf.explain.datasets.text_rows import TextRow
    from bert_tf.inference.bert import Bert


_SHOW = ("answers", "map", "curve")
_ANSWERS_FIGURE = {"answers": "bert_tf.plots.datasets.dataset:answers"}


@dataclass(frozen=True)
class Subset:
    """A subset of a file's rows and its summaries.

    Attributes:
        rows: tuple of int. The row numbers.
        summary: `RowSummary`.
        classes: `ClassSummary` or None.
    """

    rows: tuple
    summary: RowSummary
    classes: Optional[ClassSummary] = None


@dataclass(frozen=True, eq=False)
class RowMap(Result, figures={"map": "bert_tf.plots.datasets.row_map:map_of_rows"}):
    """The rows of a file as points.

    Attributes:
        layer: int. The layer whose hidden states the vectors are made of; 0 is the embeddings.
        pooling: str. One of `row_map.POOLINGS`.
        projection: str. One of `projection.PROJECTIONS`.
        rows: tuple of int. The numbers of the W readable rows.
        texts: tuple of W str.
        coordinates: float [W, K].
        explained_variance: tuple of K floats or None. The share of each dimension; None unless the projection is PCA.
        attribute: str. The row attribute that colours the points.
        values: tuple of W values, each a str, a float or None. The attribute of each row.
        near: int or None. The number of a row.
        nearest: tuple of pairs (number, cosine) or None. The rows nearest to `near`, the nearest first.
        vectors: float [W, H]. The vectors of the rows after the layer; not exported.
    """

    layer: int
    pooling: str
    projection: str
    rows: tuple
    texts: tuple
    coordinates: np.ndarray
    explained_variance: Optional[tuple]
    attribute: str
    values: tuple
    near: Optional[int] = None
    nearest: Optional[tuple] = None
    vectors: Optional[np.ndarray] = field(default=None, metadata={"export": False})

    def to_frame(self) -> pandas.DataFrame:
        """A row for each point, or for each of the nearest rows where these were asked for."""
        if self.nearest is not None:
            texts = dict(zip(self.rows, self.texts))
            numbers = [number for number, _ in self.nearest]
            cosines = [cosine for _, cosine in self.nearest]
            return frame({"row": numbers, "cosine": cosines, "text": [texts[number] for number in numbers]})
        axes = dict(zip("xyz", self.coordinates.T))
        return frame({"row": self.rows, **axes, self.attribute: self.values, "text": self.texts})


@dataclass(frozen=True, eq=False)
class DatasetPredictions(Result, figures=_ANSWERS_FIGURE):
    """A model's predictions for every row of a file.

    Attributes:
        ask: tuple of str. The predictions that were asked for, of `ASK`.
        hide: str. The words that were hidden, one of `text_rows.HIDE`.
        summary: `RowSummary`.
        classes: `ClassSummary` or None.
        rows: tuple of `RowResult`.
        subsets: dict str -> `Subset`.
    """

    ask: tuple
    hide: str
    summary: RowSummary
    classes: Optional[ClassSummary]
    rows: tuple
    subsets: dict = field(default_factory=dict)

    def to_frame(self) -> pandas.DataFrame:
        """A row for each row of the file; the values of several masks stand in one cell, separated by spaces."""
        rows, columns = self.rows, {}
        columns["row"] = [result.row.number for result in rows]
        columns["hidden"] = [" ".join(mask.original or "[MASK]" for mask in result.masks) for result in rows]
        columns["prediction"] = [" ".join(mask.predictions[0].token for mask in result.masks) for result in rows]
        columns["probability"] = [_joined(mask.predictions[0].probability for mask in result.masks) for result in rows]
        columns["original_rank"] = [_joined(mask.original_rank for mask in result.masks) for result in rows]
        columns["original_probability"] = [
            _joined(mask.original_probability for mask in result.masks) for result in rows
        ]
        for name in ("is_next", "in_order"):
            columns[name] = [getattr(result, name) for result in rows]
        columns["suspected"] = [result.suspected for result in rows]
        columns["most_suspected"] = [result.most_likely_replaced and result.most_likely_replaced[0] for result in rows]
        columns["replaced"] = [result.most_likely_replaced and result.most_likely_replaced[1] for result in rows]
        for name in ("label", "predicted", "predicted_probability", "perplexity", "log_likelihood", "tokens"):
            columns[name] = [getattr(result, name) for result in rows]
        if self.subsets:
            columns["subsets"] = [
                "|".join(name for name, subset in self.subsets.items() if number in subset.rows)
                for number in columns["row"]
            ]
        columns["text_a"], columns["text_b"] = (
            [getattr(result.row, name) for result in rows] for name in ("text_a", "text_b")
        )
        columns["problem"] = [result.problem for result in rows]
        return frame(columns)


@dataclass(frozen=True, eq=False)
class DatasetMap(DatasetPredictions, figures={"map": "bert_tf.plots.datasets.dataset:points", **_ANSWERS_FIGURE}):
    """`DatasetPredictions` with the rows as points.

    Attributes:
        map: `RowMap`.
    """

    map: Optional[RowMap] = None

    def to_frame(self) -> pandas.DataFrame:
        """The table of the map."""
        return cast(RowMap, self.map).to_frame()


@dataclass(frozen=True, eq=False)
class DatasetCurve(DatasetPredictions, figures={"curve": "bert_tf.plots.datasets.dataset:curve", **_ANSWERS_FIGURE}):
    """`DatasetPredictions` with one class against the rest.

    Attributes:
        curve: `ClassCurve`.
    """

    curve: Optional[ClassCurve] = None

    def to_frame(self) -> pandas.DataFrame:
        """The table of the curve."""
        return cast(ClassCurve, self.curve).to_frame()


def _joined(values):
    """The values of a row's masks as the text of one cell."""
    return " ".join("-" if value is None else f"{value:.6g}" for value in values)


def predict_dataset(
    bert: Bert,
    rows: Sequence[TextRow],
    ask: Sequence[str] = tuple(ASK)[:-1],
    hide: str = "random",
    subset: Sequence[tuple[str, str]] = (),
    show: str = "answers",
    label: str | None = None,
    projection: str | None = None,
    dimensions: int | None = None,
    pooling: str | None = None,
    layer: int | None = None,
    colour: str | None = None,
    near: int | None = None,
    top_k: int = 5,
    progress: Callable[[int, int], object] | None = None,
) -> DatasetPredictions:
    """Ask a model about every row of a file.

    Args:
        bert: `Bert`. The model.
        rows: sequence of `TextRow`.
        ask, hide, top_k, progress: as in `score_rows`.
        subset: sequence of pairs (name, row numbers as text, such as "1-4,7"). Subsets with summaries of their own.
        show: str. "answers": the predictions; "map": also the rows' vectors as points; "curve": also one class at
            every threshold.
        label: str or None. The class of the curve; None for the last.
        projection: str or None. One of `projection.PROJECTIONS`; None for PCA.
        dimensions: int or None. The map's dimensions, 2 or 3; None for 2.
        pooling: str or None. One of `row_map.POOLINGS`; None for the mean of the tokens.
        layer: int or None. The layer of the map's vectors, 0 for the embeddings; None for the last.
        colour: str or None. The row attribute that colours the points; None for the first.
        near: int or None. The number of the row whose nearest rows are listed.
    Returns:
        `DatasetPredictions`, `DatasetMap` or `DatasetCurve`.
    Raises:
        InputError: an unknown row, class, layer, attribute, `hide` or `show`, or options that contradict each other.
        Cancelled: by `progress`.
    """
    refuse_one_alone(ask, "predictions")
    rows, ask = tuple(rows), tuple(ask)
    if show not in _SHOW:
        raise InputError(f"show is one of {', '.join(_SHOW)}, not {show!r:.40}.")
    _check_rows({"near": near, "subset": subset}, rows)
    subsets = {name: _numbers(text, rows) for name, text in subset}
    if show == "curve":
        check_class(bert, label)
    plane = None
    if show == "map":
        plane = _plane(bert, rows, ask, projection, dimensions, pooling, layer, colour, near, top_k, progress)
    results = score_rows(bert, rows, ask, hide, top_k, progress)
    classes = summarise_classes(bert, results) if "classes" in ask and classifier_settings(bert) else None
    fields: dict[str, Any] = {
        "ask": ask,
        "hide": hide,
        "summary": summarise_rows(results),
        "classes": classes,
        "rows": results,
        "subsets": {name: subset_of(bert, results, numbers, classes) for name, numbers in subsets.items()},
    }
    if show == "map":
        return DatasetMap(**fields, map=_coloured(plane, results, colour))
    if show == "curve":
        return DatasetCurve(**fields, curve=class_curve(bert, results, label))
    return DatasetPredictions(**fields)


def subset_of(bert: Bert, results: Sequence[RowResult], numbers: Sequence[int], classes: ClassSummary | None) -> Subset:
    """The summaries of some rows.

    Args:
        bert: `Bert`. The model that made the results.
        results: sequence of `RowResult`.
        numbers: sequence of int. The row numbers of the subset.
        classes: `ClassSummary` or None. That of all rows; with None the subset has none either.
    Returns:
        `Subset`.
    """
    chosen = [result for result in results if result.row.number in numbers]
    return Subset(tuple(numbers), summarise_rows(chosen), None if classes is None else summarise_classes(bert, chosen))


def _numbers(text, rows):
    numbers = parse_row_numbers(text, [row.number for row in rows])
    if not numbers:
        raise InputError(f"The file has none of the rows {text!r:.40}.")
    return numbers


def _plane(bert, rows, ask, projection, dimensions, pooling, layer, colour, near, top_k, progress):
    """The rows' vectors projected, before the rows are scored: (indices of the readable rows, fields of `RowMap`)."""
    layers, pooling, projection = bert.config.num_hidden_layers, pooling or POOLINGS[0], projection or PROJECTIONS[0]
    layer = layers if layer is None else layer
    check_hidden_state(layer, layers)
    _check_colour(colour, available_row_attributes(bert, rows, ask))
    row_states = row_vectors(bert, rows, pooling, progress, ask)
    vectors, numbers = row_states.vectors[layer], tuple(rows[place].number for place in row_states.places)
    if constant_first_token(vectors, pooling):
        raise InputError(SAME_FIRST)
    nearest = None
    if near is not None:
        if near not in numbers:
            raise InputError(f"Row {near} cannot be read, so it has no nearest rows.")
        neighbours = nearest_rows(vectors, numbers.index(near), top_k)
        nearest = tuple((numbers[index], cosine) for index, cosine in neighbours)
    coordinates, shares = project_to_plane(vectors, projection, dimensions or 2)
    return row_states.places, {
        "layer": layer,
        "pooling": pooling,
        "projection": projection,
        "rows": numbers,
        "texts": tuple(rows[place].text for place in row_states.places),
        "coordinates": np.asarray(coordinates),
        "explained_variance": None if shares is None else tuple(shares),
        "near": near,
        "nearest": nearest,
        "vectors": vectors,
    }


def _coloured(plane, results, colour):
    (places, fields), known = plane, row_attributes(results)
    name = colour or next(iter(known))
    _check_colour(name, known)
    return RowMap(**fields, attribute=name, values=tuple(known[name][place] for place in places))


def _check_colour(name, known):
    if name is not None and name not in known:
        raise InputError(f"--colour takes an attribute of these rows: {', '.join(known)}; not {name!r:.40}.")


def _named_rows(text):
    """(name, row numbers as text) of a text such as "NAME=1-4,7"."""
    name, equals, rows = text.partition("=")
    if not (name.strip() and equals):
        raise InputError(f"--subset takes NAME=ROWS, such as short=1-4,7; not {text!r:.40}.")
    return name.strip(), rows


def _check(options):
    unknown = [name for name in options["ask"] if name not in ASK]
    if unknown:
        raise InputError(f"--ask takes {', '.join(ASK)}; not {unknown[0]!r:.40}.")
    of_map = ("projection", "dimensions", "pooling", "layer", "colour", "near")
    if options["show"] != "map" and any(options[name] is not None for name in of_map):
        raise InputError("--projection, --dimensions, --pooling, --layer, --colour and --near go with --show map.")
    if options["show"] != "curve" and options["label"] is not None:
        raise InputError("--label goes with --show curve.")
    if options["show"] == "curve" and "classes" not in options["ask"]:
        raise InputError("--show curve draws a class: add classes to --ask.")


def _check_rows(options, rows):
    near = options["near"]
    if near is not None and near not in [row.number for row in rows]:
        raise InputError(f"There is no row {near} in the file.")
    for _, text in options["subset"]:
        _numbers(text, rows)


ANALYSIS = Analysis(
    name="dataset",
    function=predict_dataset,
    needs=ANY_ANSWER,
    summary="hidden words, pairs, replaced tokens and classes of every row of a file",
    source="Salazar et al. 2020 (pseudo-perplexity); Tenney et al. 2020, LIT (the map)",
    options=(
        Option(
            "ask",
            f"{', '.join(ASK)}; the last takes one forward pass per token",
            default=tuple(ASK)[:-1],
            several=True,
            metavar="A",
        ),
        HIDE_OPTION,
        Option(
            "subset",
            "a named subset of rows with its own summary, such as short=1-4,7",
            several=True,
            default=(),
            parse=_named_rows,
            metavar="NAME=ROWS",
        ),
        Option("show", "predictions, or a map or curve as well", default="answers", choices=_SHOW, metavar="F"),
        Option("label", "the class of the curve (default: the last)", metavar="CLASS"),
        Option(
            "projection",
            "projection of the map (default pca)",
            choices=PROJECTIONS,
            metavar="W",
            aliases=("by",),
        ),
        Option("dimensions", "dimensions of the map (default 2)", int, choices=(2, 3), metavar="K"),
        Option("pooling", "pooling of a row's tokens into its vector (default mean)", choices=POOLINGS, metavar="P"),
        Option("layer", "layer of the map's vectors, 0 for the embeddings (default: the last)", int, metavar="L"),
        Option(
            "colour",
            "attribute that colours the map, such as label, predicted, right, is_next",
            metavar="C",
            value_aliases=ATTRIBUTE_ALIASES,
        ),
        Option("near", "row whose nearest rows on the map are listed, by cosine", int, metavar="ROW"),
        TOP_K,
    ),
    inputs="file",
    check=_check,
    check_rows=_check_rows,
)
