"""Figures in words and as tables."""

from types import SimpleNamespace

import numpy as np
import plotly.graph_objects as go
import pytest

from bert_tf.plots import heatmap, select
from bert_tf.plots.description import (
    MOST_ROWS,
    description,
    plain,
    table,
    written,
)
from bert_tf.plots.interventions.ablation import effects_map
from bert_tf.plots.interventions.patching import patch_map
from bert_tf.plots.models.compare import difference_map, similarity_map
from bert_tf.plots.ranked_bars import ranked_bars
from bert_tf.plots.representations.vectors import cosine_map, curves, points
from bert_tf.plots.training.finetuning import learning_curve

TRACE = SimpleNamespace(tokens=("[CLS]", "the", "<b>", "the"), sources=(None, "a", "a", "a"))
WEIGHTS = np.array([[0.7, 0.1, 0.1, 0.1], [0.2, 0.3, 0.5, 0], [0, 0, 0, 1], [0.25, 0.25, 0.25, 0.25]])


def test_a_map_is_said_by_its_greatest_and_least_in_the_words_of_hovering():
    output = description(heatmap(TRACE, WEIGHTS, select(TRACE)))
    assert output == (
        "4 rows by 4 columns. Highest: from <b> to the, 1.000; from [CLS] to [CLS], 0.700; "
        "from the to <b>, 0.500. Lowest: from <b> to <b>, 0.000."
    )


def test_a_map_as_a_table_has_all_its_numbers_with_their_tokens():
    header, rows, left_out = table(heatmap(TRACE, WEIGHTS, select(TRACE)))
    assert header == ["", *TRACE.tokens] and [row[0] for row in rows] == list(TRACE.tokens)
    assert [[float(cell) for cell in row[1:]] for row in rows] == WEIGHTS.tolist()
    assert left_out == (0, 0)


def test_names_along_the_axes_are_said_in_the_place_of_numbers():
    figure = difference_map(np.array([[0, 0.4], [-0.2, 0]]), ["one", "two"])
    assert "Highest: from one to two, +0.400" in description(figure)
    assert table(figure)[:2] == (["", "one", "two"], [["one", "+0.000", "+0.400"], ["two", "-0.200", "+0.000"]])


def test_likeness_is_said_of_different_things_and_once_a_pair():
    values = np.array([[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]])
    figure = cosine_map(values, ["a", "b", "c"], ["first", "mid", "x"])
    output = "Highest: mid, first, cosine 0.900; x, mid, cosine 0.200; x, first, cosine 0.100."
    assert description(figure).endswith(output)
    assert [row[0] for row in table(figure)[1]] == ["first", "mid", "x"]


def test_a_map_with_names_along_one_axis_alone_is_described():
    figure = go.Figure(go.Heatmap(z=[[1.0, 0.2], [0.2, 1.0]], x=["a", "b"]))
    assert "2 rows by 2 columns." in description(figure)


def test_what_the_colours_scale_is_said_in_its_own_numbers():
    assert "layer 1, 1: 3.0000 nats" in description(effects_map(np.array([[3.0, 1, 2], [0, -1, 0]]), "nats"))
    figure = patch_map(np.array([[2.0, 0.5], [0, 1]]), ("a", "b"), ("a", "c"))
    assert table(figure)[1] == [["a", "200.0%", "0.0%"], ["b | c", "50.0%", "100.0%"]]


def test_sentences_behind_points_are_rows():
    figure = points(np.eye(3), ["The bank, by the river.", "A bank & a loan.", "Banks"], ["river", "money", "money"])
    assert description(figure) in ("3 points: river 1, money 2.", "3 points: money 2, river 1.")
    header, rows, _ = table(figure)
    assert header == ["Series", "Point"]
    assert sorted(rows) == [["money", "A bank & a loan."], ["money", "Banks"], ["river", "The bank, by the river."]]


def test_curves_are_said_by_their_ends_and_extremes():
    figure = curves({"mean": [0.2, 0.9, 0.1, 0.5]}, ["emb.", "1", "2", "3"], "layer", "cosine")
    assert description(figure) == "mean: from emb.: 0.200; to 3: 0.500; highest 1: 0.900; lowest 2: 0.100."
    assert table(figure)[1] == [["emb.: 0.200"], ["1: 0.900"], ["2: 0.100"], ["3: 0.500"]]
    assert "training loss: from 1: 2; to 2: 1." in description(
        learning_curve([{"step": 1, "loss": 2}, {"step": 2, "loss": 1}], [], "f1")
    )


def test_few_bars_are_all_said_and_of_many_the_longest():
    assert description(ranked_bars(["a", "b"], [0.5, -1.0], "nats")) == "a: 0.5000; b: -1.0000."
    many = ranked_bars([str(n) for n in range(9)], list(range(9)), "nats")
    assert description(many) == "9 bars, the longest: 8: 8.0000; 7: 7.0000; 6: 6.0000."


def test_a_large_table_ends_and_says_so():
    figure = go.Figure(go.Scatter(x=list(range(1000)), y=list(range(1000)), mode="lines"))
    _, rows, left_out = table(figure)
    assert len(rows) == MOST_ROWS and left_out == (1000 - MOST_ROWS, 0)


def test_markup_of_labels_is_not_said_and_text_is():
    assert plain("<b>&lt;b&gt; | x</b><br>y\u200b") == "<b> | x, y"


@pytest.mark.parametrize(
    "value, form, text",
    [
        (1234567, ",", "1,234,567"),
        (2.5e9, ".3s", "2.5G"),
        (0.5, ".1%", "50.0%"),
        (2.5, ".2~f", "2.5"),
        (3.0, ".2~f", "3"),
        (2e-4, ".1~e", "2e-04"),
    ],
)
def test_numbers_are_written_as_d3_does(value, form, text):
    assert written(value, form) == text


def test_an_empty_cell_of_a_map_is_a_dash():
    figure = similarity_map(np.array([[1.0, np.nan], [0.5, 0.25]]), "a", "b")
    assert table(figure)[1] == [["emb.", "1.000", "–"], ["1", "0.500", "0.250"]]
    figure.add_trace(figure.data[0])  # several maps are a table of points
    assert [row[-1] for row in table(figure)[1]][1].endswith("CKA –")


def test_a_point_without_a_value_is_not_known():
    figure = go.Figure(
        go.Scatter(x=[1.5, None], y=["a", "b"], mode="markers", hovertemplate="%{y}: %{x:.3~g} ms<extra></extra>")
    )
    assert [row[0] for row in table(figure)[1]] == ["a: 1.5 ms", "b: not known ms"]
