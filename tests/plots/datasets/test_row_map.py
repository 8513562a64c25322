"""The map of a file's rows: every row a point in its place, in the colour of what is known of it."""

import math

import numpy as np
import pytest

from bert_tf.plots.datasets.row_map import (
    TITLES,
    drawn_rows,
    groups_of,
    row_scatter,
)
from bert_tf.plots.description import description, table
from bert_tf.plots.margins import detach_colorbar
from bert_tf.plots.representations.vectors import component_titles

PLACES = np.arange(10.0).reshape(5, 2)
TIPS = ["1: a", "2: <b>x</b>", "3: c", "4: d", "5: e"]


def test_names_are_grouped_and_those_beyond_six_are_others():
    assert groups_of(["x", None, "a", "x", None]) == [("a", [2]), ("x", [0, 3]), ("not known", [1, 4])]
    assert groups_of([0.5, None, 1.0]) == [("", [0, 2]), ("not known", [1])]
    letters = list("ggfedcba")
    assert [name for name, _ in groups_of(letters[:7])] == list("bcdefg")
    many = groups_of([*letters, None])
    assert many[:-1] == [(name, [letters.index(name)]) for name in "abcd"] + [("g", [0, 1]), ("others", [2, 3])]
    assert groups_of(["others", *"aabbccddeef"])[-1] == ("others", [0, 11])
    assert sum(len(rows) for _, rows in groups_of(["others", *"aabbccddeef"])) == 12


def test_a_group_keeps_its_look_under_a_filter():
    values = ["right", "wrong", "right", None, "wrong"]
    every, some = (row_scatter(PLACES, TIPS, "right", values, visible=visible) for visible in (None, [1, 3]))
    looks = {trace.name: (trace.marker.color, trace.marker.symbol) for trace in every.data}
    assert list(looks) == ["right", "wrong", "not known"] and len(set(looks.values())) == 3
    assert {trace.name: (trace.marker.color, trace.marker.symbol) for trace in some.data} == {
        name: looks[name] for name in ("wrong", "not known")
    }
    assert [list(trace.x) for trace in some.data] == [[2.0], [6.0]]
    assert drawn_rows(values, [1, 3]) == [(1, "wrong", [1]), (2, "not known", [3])]


@pytest.mark.parametrize("dark", [False, True])
def test_points_lie_where_they_were_laid_and_say_their_rows(dark):
    figure = row_scatter(
        PLACES, TIPS, "label", ["y", "x", "y", "x", "<i>"], ("one", "two"), chosen=1, near=[0], dark=dark
    )
    assert [trace.name for trace in figure.data[:3]] == ["&lt;i&gt;", "x", "y"]
    assert list(figure.data[1].x) == [2.0, 6.0] and list(figure.data[1].y) == [3.0, 7.0]
    assert [list(ring.x) for ring in figure.data[3:]] == [[2.0], [0.0]]
    assert table(figure)[1] == [
        ["<i>", "5: e, Label in the file: <i>"],
        ["x", "2: <b>x</b>, Label in the file: x"],
        ["x", "4: d, Label in the file: x"],
        ["y", "1: a, Label in the file: y"],
        ["y", "3: c, Label in the file: y"],
    ]
    assert description(figure) == "5 points: <i> 1, x 2, y 2."


def test_rows_in_space_have_shapes_of_their_own_and_rings():
    places = np.arange(15.0).reshape(5, 3)
    figure = row_scatter(places, TIPS, "label", list("abcde"), ("one", "two", "three"), chosen=4, near=[1])
    assert [list(trace.z) for trace in figure.data] == [[2.0], [5.0], [8.0], [11.0], [14.0], [14.0], [5.0]]
    assert {trace.type for trace in figure.data} == {"scatter3d"} and figure.layout.scene.zaxis.title.text == "three"
    assert len({trace.marker.symbol for trace in figure.data[:5]}) == 5
    assert figure.data[5].marker.size > figure.data[6].marker.size > figure.data[0].marker.size
    assert description(figure) == "5 points: a 1, b 1, c 1, d 1, e 1."
    many = row_scatter(np.zeros((7, 3)), list("abcdefg"), "perplexity", [1.0, 2.0, None, 4.0, 5.0, 6.0, 7.0])
    assert detach_colorbar(many) is not None and len(many.data) == 2


def test_numbers_have_a_scale_that_spans_all_rows_and_is_told():
    values = [2.0, 8.0, None, 4.0, 32.0]
    figure = row_scatter(PLACES, TIPS, "perplexity", values, visible=[0, 2, 3])
    coloured, unknown = figure.data
    assert list(coloured.marker.color) == pytest.approx([math.log(2), math.log(4)]) and list(unknown.x) == [4.0]
    assert table(figure)[1][0] == ["", "1: a, Pseudo-perplexity: 2"]
    assert description(figure) == "3 points: not known 1. Pseudo-perplexity: from 2 to 32."
    scale = detach_colorbar(figure)
    assert scale["marks"] == [(0, "2"), (1, "32")] and scale["name"] == "Pseudo-perplexity"
    assert coloured.marker.showscale is False
    assert (coloured.marker.cmin, coloured.marker.cmax) == pytest.approx((math.log(2), math.log(32)))
    shares = row_scatter(PLACES, TIPS, "is_next", [0.25, 0.5, 0.5, 0.5, 0.75])
    assert detach_colorbar(shares)["marks"] == [(0, "0.0%"), (1, "100.0%")]
    assert table(shares)[1][0] == ["1: a, P(IsNext): 25.0%"]
    equal = row_scatter(PLACES, TIPS, "tokens", [5.0] * 5)
    assert detach_colorbar(equal)["marks"] == [(0, "5")] and description(equal) == "5 points. Tokens: from 5 to 5."


def test_whatever_is_known_of_a_row_has_a_title():
    from bert_tf.explain import RowResult, row_attributes
    from bert_tf.explain.datasets.text_rows import TextRow
    from bert_tf.inference.predictions import MaskPrediction

    output = {"probabilities": {"x": 1.0}, "label": "x", "probability": 1.0}
    one = RowResult(
        TextRow(1, "a", label="x"),
        3,
        0,
        (),
        (MaskPrediction(1, "a", 1, 0.5, ()),),
        0.5,
        2.0,
        -1.0,
        None,
        0.5,
        (("a", 0.5),),
        output,
    )
    assert list(row_attributes([one])) == list(TITLES)


def test_axes_of_components_name_their_shares():
    assert component_titles([0.5, 0.1234]) == ("component 1: 50.0%", "component 2: 12.3%")
    assert component_titles(None) == ("", "") and component_titles(None, 3) == ("", "", "")
