"""Predictions for a file of texts: each row, summaries of all rows and of subsets, a map of the rows, a class's curve.

Dimension legend: W rows that can be read, K dimensions.
"""

from dataclasses import dataclass, field
from typing import Optional

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.errors import InputError
from bert_tf.explain.attribution.target import classifier_settings
from bert_tf.explain.datasets.class_curves import ClassCurve, check_class, class_curve
from bert_tf.explain.datasets.row_map import (
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

_SHOW = ("answers", "map", "curve")


@dataclass(frozen=True)
class Subset:
    """Some rows of a file together.

    Attributes:
        rows: their numbers. summary: `RowSummary`. classes: `ClassSummary`, or None.
    """

    rows: tuple
    summary: RowSummary
    classes: Optional[ClassSummary] = None


@dataclass(frozen=True, eq=False)
class RowMap(Result, figures={"map": "bert_tf.plots.datasets.row_map:map_of_rows"}):
    """The rows of a file as points.

    Attributes:
        layer: whose hidden states the vectors are of, 0 what goes in. pooling: one of `row_map.POOLINGS`.
        projection: how they are laid out, one of `projection.PROJECTIONS`.
        rows: numbers of the W rows that can be read. texts: theirs. coordinates: float [W, K].
        explained_variance: share of each dimension, of PCA; else None.
        attribute: what is known of the rows that colours them. values: of each row str, float or None.
        near: number of a row, or None. nearest: pairs (number, cosine) of the rows nearest to it, the nearest first.
        vectors: float [W, H], of the rows after the layer; no part of the record.
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

    def to_frame(self):
        """A row for each point; where nearest rows are asked for, those."""
        if self.nearest is not None:
            texts = dict(zip(self.rows, self.texts))
            numbers, cosines = ([one[part] for one in self.nearest] for part in (0, 1))
            return frame({"row": numbers, "cosine": cosines, "text": [texts[number] for number in numbers]})
        axes = dict(zip("xyz", self.coordinates.T))
        return frame({"row": self.rows, **axes, self.attribute: self.values, "text": self.texts})


@dataclass(frozen=True, eq=False)
class DatasetPredictions(Result, figures={"answers": "bert_tf.plots.datasets.dataset:answers"}):
    """What a model says of every row of a file.

    Attributes:
        ask: what was asked for, of `ASK`. hide: what was hidden.
        summary: `RowSummary`. classes: `ClassSummary`, or None. rows: `RowResult`s.
        subsets: dict name -> `Subset`.
    """

    ask: tuple
    hide: str
    summary: RowSummary
    classes: Optional[ClassSummary]
    rows: tuple
    subsets: dict = field(default_factory=dict)

    def to_frame(self):
        """A row for each row of the file; several masks of a row with spaces between."""
        rows, columns = self.rows, {}
        columns["row"] = [one.row.number for one in rows]
        columns["hidden"] = [" ".join(mask.original or "[MASK]" for mask in one.masks) for one in rows]
        columns["prediction"] = [" ".join(mask.predictions[0].token for mask in one.masks) for one in rows]
        columns["probability"] = [_joined(mask.predictions[0].probability for mask in one.masks) for one in rows]
        columns["original_rank"] = [_joined(mask.original_rank for mask in one.masks) for one in rows]
        columns["original_probability"] = [_joined(mask.original_probability for mask in one.masks) for one in rows]
        for name in ("is_next", "in_order"):
            columns[name] = [getattr(one, name) for one in rows]
        columns["suspected"] = [one.suspected for one in rows]
        columns["most_suspected"] = [one.most_likely_replaced and one.most_likely_replaced[0] for one in rows]
        columns["replaced"] = [one.most_likely_replaced and one.most_likely_replaced[1] for one in rows]
        columns["label"] = [one.row.label for one in rows]
        for name in ("predicted", "predicted_probability", "perplexity", "log_likelihood", "tokens"):
            columns[name] = [getattr(one, name) for one in rows]
        if self.subsets:
            columns["subsets"] = [
                "|".join(name for name, one in self.subsets.items() if number in one.rows) for number in columns["row"]
            ]
        columns["text_a"], columns["text_b"] = (
            [getattr(one.row, name) for one in rows] for name in ("text_a", "text_b")
        )
        columns["problem"] = [one.problem for one in rows]
        return frame(columns)


@dataclass(frozen=True, eq=False)
class DatasetMap(
    DatasetPredictions, figures={"map": "bert_tf.plots.datasets.dataset:points", **DatasetPredictions.figures}
):
    """`DatasetPredictions` with the rows as points.

    Attributes:
        map: `RowMap`.
    """

    map: Optional[RowMap] = None

    def to_frame(self):
        """The table of the map."""
        return self.map.to_frame()


@dataclass(frozen=True, eq=False)
class DatasetCurve(
    DatasetPredictions, figures={"curve": "bert_tf.plots.datasets.dataset:curve", **DatasetPredictions.figures}
):
    """`DatasetPredictions` with one class against the rest.

    Attributes:
        curve: `ClassCurve`.
    """

    curve: Optional[ClassCurve] = None

    def to_frame(self):
        """The table of the curve."""
        return self.curve.to_frame()


def _joined(values):
    """The values of a row's masks in one cell."""
    return " ".join("-" if one is None else f"{one:.6g}" for one in values)


def predict_dataset(
    bert,
    rows,
    ask=tuple(ASK)[:-1],
    hide="random",
    subset=(),
    show="answers",
    label=None,
    projection=None,
    dimensions=None,
    pooling=None,
    layer=None,
    colour=None,
    near=None,
    top_k=5,
    progress=None,
):
    """Ask a model about every row of a file.

    Args:
        bert: a `Bert`. rows: `TextRow`s. ask, hide, top_k, progress: as of `score_rows`.
        subset: pairs (name, text of row numbers as "1-4,7"), rows that are also summarised together.
        show: "answers"; "map", the rows' vectors as points besides; "curve", one class at every threshold besides.
        label: the class of the curve; None for the last.
        projection, dimensions, pooling, layer, colour, near: settings of the map. In this order: the projection, 2 or 3
            dimensions, how tokens become a row's vector, the layer, the attribute that colours the points, and the
            number of the row whose neighbours are listed. None for PCA, 2, the mean of the tokens, the last layer, the
            first attribute, no row.
    Returns:
        `DatasetPredictions`, `DatasetMap` or `DatasetCurve`.
    Raises:
        InputError: what does not go together or is not there. Cancelled: by `progress`.
    """
    rows, ask = tuple(rows), tuple(ask)
    _check_rows({"near": near, "subset": subset}, rows)
    subsets = {name: _numbers(name, text, rows) for name, text in subset}
    if show == "curve":
        check_class(bert, label)
    plane = None
    if show == "map":
        plane = _plane(bert, rows, ask, projection, dimensions, pooling, layer, colour, near, top_k, progress)
    results = score_rows(bert, rows, ask, hide, top_k, progress)
    classes = summarise_classes(bert, results) if "classes" in ask and classifier_settings(bert) else None
    fields = {
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


def subset_of(bert, results, numbers, classes):
    """The `Subset` of the `RowResult`s with some numbers; classes: the `ClassSummary` of all, or None."""
    own = [one for one in results if one.row.number in numbers]
    return Subset(tuple(numbers), summarise_rows(own), None if classes is None else summarise_classes(bert, own))


def _numbers(name, text, rows):
    found = parse_row_numbers(text, [row.number for row in rows])
    if not found:
        raise InputError(f"The file has none of the rows {text!r:.40}.")
    return found


def _plane(bert, rows, ask, projection, dimensions, pooling, layer, colour, near, top_k, progress):
    """The rows' vectors laid out, before they are asked: (indices of the rows that can be read, fields of `RowMap`)."""
    layers, pooling, projection = bert.config.num_hidden_layers, pooling or POOLINGS[0], projection or PROJECTIONS[0]
    layer = layers if layer is None else layer
    if not 0 <= layer <= layers:
        raise InputError(f"There is no layer {layer}: give 0, what goes in, to {layers}.")
    _check_colour(colour, available_row_attributes(bert, rows, ask))
    read = row_vectors(bert, rows, pooling, progress, ask)
    vectors, numbers = read.vectors[layer], tuple(rows[place].number for place in read.places)
    if constant_first_token(vectors, pooling):
        raise InputError(SAME_FIRST)
    nearest = None
    if near is not None:
        if near not in numbers:
            raise InputError(f"Row {near} cannot be read, so nothing is near to it.")
        found = nearest_rows(vectors, numbers.index(near), top_k)
        nearest = tuple((numbers[index], cosine) for index, cosine in found)
    coordinates, shares = project_to_plane(vectors, projection, dimensions or 2)
    return read.places, {
        "layer": layer,
        "pooling": pooling,
        "projection": projection,
        "rows": numbers,
        "texts": tuple(rows[place].text for place in read.places),
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
        raise InputError(f"--colour takes what is known of these rows: {', '.join(known)}; not {name!r:.40}.")


def _named_rows(text):
    """(name, row numbers as text) of "NAME=1-4,7"."""
    name, equals, rows = text.partition("=")
    if not (name.strip() and equals):
        raise InputError(f"--subset takes NAME=ROWS, such as short=1-4,7; not {text!r:.40}.")
    return name.strip(), rows


def _check(options):
    unknown = [one for one in options["ask"] if one not in ASK]
    if unknown:
        raise InputError(f"--ask takes {', '.join(ASK)}; not {unknown[0]!r:.40}.")
    of_map = ("projection", "dimensions", "pooling", "layer", "colour", "near")
    if options["show"] != "map" and any(options[name] is not None for name in of_map):
        raise InputError("--projection, --dimensions, --pooling, --layer, --colour and --near go with --show map.")
    if options["show"] != "curve" and options["label"] is not None:
        raise InputError("--label goes with --show curve.")
    if options["show"] == "curve" and "classes" not in options["ask"]:
        raise InputError("--show curve is of classes: put them into --ask.")


def _check_rows(options, rows):
    near = options["near"]
    if near is not None and near not in [row.number for row in rows]:
        raise InputError(f"There is no row {near} in the file.")
    for one in options["subset"]:
        _numbers(*one, rows)


ANALYSIS = Analysis(
    name="dataset",
    function=predict_dataset,
    summary="hidden words, pairs, replaced tokens and classes of every row of a file",
    source="Salazar et al. 2020 (pseudo-perplexity); Tenney et al. 2020, LIT (the map)",
    options=(
        Option(
            "ask",
            f"{', '.join(ASK)}; the last takes as many passes as tokens (default: all but it)",
            default=tuple(ASK)[:-1],
            several=True,
            metavar="A",
        ),
        HIDE_OPTION,
        Option(
            "subset",
            "rows that are also summarised together, by their numbers, such as short=1-4,7",
            several=True,
            default=(),
            parse=_named_rows,
            metavar="NAME=ROWS",
        ),
        Option("show", "what is shown", default="answers", choices=_SHOW, metavar="F"),
        Option("label", "the class of the curve (default: the last)", metavar="CLASS"),
        Option(
            "projection",
            "how the map is laid out (default pca)",
            choices=PROJECTIONS,
            metavar="W",
            aliases=("by",),
        ),
        Option("dimensions", "of the map (default 2)", int, choices=(2, 3), metavar="K"),
        Option("pooling", "a row's vector on the map (default mean)", choices=POOLINGS, metavar="P"),
        Option("layer", "after which layer, 0 what goes in (default: the last)", int, metavar="L"),
        Option("colour", "what colours the map, such as label, predicted, right, is_next", metavar="C"),
        Option("near", "list the rows of the map nearest to this one, by cosine", int, metavar="ROW"),
        TOP_K,
    ),
    inputs="file",
    check=_check,
    check_rows=_check_rows,
)
