"""Vectors as figures: what is drawn is what was given, and text is never markup."""

import numpy as np
import plotly.graph_objects as go
import plotly.io
import pytest

from bert_tf.plots.description import description, table
from bert_tf.plots.models.compare import answers_by_depth, difference_map, similarity_map
from bert_tf.plots.representations.factors import MAX_TOKENS, factor_map
from bert_tf.plots.representations.vectors import (
    cosine_map,
    curves,
    part_shares,
    points,
    position_map,
)
from bert_tf.plots.theme import apply_theme

EVIL = "<b>x</b>"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("count", [2, 3])
def test_points_are_grouped_by_sense_and_keep_their_places(count, dark):
    places = np.arange(4.0 * count).reshape(4, count)
    figure = points(places, ["s1", EVIL, "s3", "s4"], ["one", "two", "one", ""], dark=dark)
    assert [trace.name for trace in figure.data] == ["one", "two", "no sense given"]
    assert list(figure.data[0].x) == [0.0, 2.0 * count] and list(figure.data[0].text) == ["s1", "s3"]
    assert figure.data[1].text[0] == "&lt;b&gt;x&lt;/b&gt;"
    assert {trace.type for trace in figure.data} == {"scatter3d" if count == 3 else "scatter"}
    assert len({trace.marker.symbol for trace in figure.data}) == 3
    assert len(points(places, ["a"] * 4).data) == 1


def test_shares_are_bars_of_three_parts():
    shares = np.array([[0.6, 0.5], [0.5, 0.2], [-0.1, 0.3]])
    figure = part_shares(["a", EVIL], shares, ("token", "segment", "position"))
    assert [trace.name for trace in figure.data] == ["token", "segment", "position"]
    np.testing.assert_allclose([trace.x for trace in figure.data], shares)
    assert figure.layout.yaxis.ticktext[1] == "&lt;b&gt;x&lt;/b&gt;"


def test_colours_of_cosines_can_span_what_occurs():
    values = np.array([[1, 0.5, 0.7], [0.5, 1, 0.6], [0.7, 0.6, 1]])
    assert (cosine_map(values).data[0].zmin, cosine_map(values).data[0].zmax) == (-1, 1)
    spread = cosine_map(values, ["a", "b", EVIL], ["t1", "t2", EVIL], spread=True)
    assert (spread.data[0].zmin, spread.data[0].zmax) == (0.5, 0.7)
    assert spread.data[0].customdata[0][2] == "t1<br>&lt;b&gt;x&lt;/b&gt;"
    large = cosine_map(np.eye(90))
    assert large.data[0].customdata is None and len(large.layout.xaxis.tickvals) <= 40


def test_maps_hold_the_numbers_they_were_given():
    values = np.array([[0.25, np.nan], [0.5, 1.0], [0.75, 0.5]])
    np.testing.assert_array_equal(similarity_map(values, EVIL, "b").data[0].z, values)
    assert EVIL not in str(similarity_map(values, EVIL, "b").to_dict())
    layers = [similarity_map(np.array(one), "a", "b").data[0] for one in ([[0.53, 0.88]], [[0.5, 0.5]], [[np.nan]])]
    np.testing.assert_allclose([(one.zmin, one.zmax) for one in layers], [(0.5, 0.9), (0.5, 0.6), (0, 1)])
    assert list(position_map(np.eye(3), 4).data[0].x) == [0, 4, 8]
    difference = difference_map(np.array([[0.2, -0.3], [0, 0.1]]), ["a", "b"])
    assert difference.data[0].zmax == pytest.approx(0.3) and difference.data[0].zmin == pytest.approx(-0.3)


def test_of_many_tokens_some_are_named_along_the_difference_of_their_maps():
    tokens = ["the", "cat"] * 100
    figure = difference_map(np.eye(200, k=1), tokens)
    (cells,), axis = figure.data, figure.layout.xaxis
    assert len(set(cells.x)) == len(set(cells.y)) == 200 and list(axis.tickvals) == list(cells.x)[::4]
    assert "Highest: from the to cat, +1.000" in description(figure)
    assert list(difference_map(np.eye(2), tokens[:2]).layout.yaxis.tickvals) == ["the", "cat"]


def test_factors_are_coloured_each_by_its_own_strongest_and_told_by_their_weights():
    weights = np.array([[0, 8.0, 2], [1, 0, 0.5], [0, 0, 0]])
    figure = factor_map(weights, ["a", EVIL, "c"])
    np.testing.assert_allclose(figure.data[0].z, [[0, 1, 0.25], [1, 0, 0.5], [0, 0, 0]])
    assert figure.layout.xaxis.ticktext[1] == "&lt;b&gt;x&lt;/b&gt;" and EVIL not in str(figure.to_dict())
    assert f"factor 1, {EVIL}: 8.00; factor 2, a: 1.00" in description(figure)
    assert table(figure)[:2] == (
        ["", "a", EVIL, "c"],
        [["1", "0.00", "8.00", "2.00"], ["2", "1.00", "0.00", "0.50"], ["3", "0.00", "0.00", "0.00"]],
    )
    part = factor_map(weights, ["a", EVIL, "c"], True, 2, 1).data[0]
    assert np.asarray(part.z).tolist() == [[0.25], [0.5], [0]] and list(part.x) == [2]
    assert part.customdata[0][0][0] == "c"
    assert len(factor_map(np.ones((2, 500)), ["a"] * 500).layout.xaxis.tickvals) <= MAX_TOKENS


def test_curves_are_named_and_run_over_relative_depth():
    figure = curves({"one": [0.1, 0.2], EVIL: [0.3, 0.4]}, ["emb.", "1"], "after layer", "share", percent=True)
    assert [trace.name for trace in figure.data] == ["one", "&lt;b&gt;x&lt;/b&gt;"]
    assert figure.layout.yaxis.range == (0, 1.04)
    depth = answers_by_depth({"a": [0, 0.5, 1], "b": [0, 1]})
    assert [list(trace.x) for trace in depth.data] == [[0, 0.5, 1], [0, 1]]


def test_the_nearest_words_stand_on_their_cosines():
    from bert_tf.plots.representations.vectors import nearest_map

    (drawn,) = nearest_map([[0.5, 0.25]], [["<b>", "c"]], ["a"], ["static", "emb."]).data
    assert drawn.z.tolist() == [[0.5, 0.25]] and list(drawn.text[0]) == ["&lt;b&gt;", "c"]


@pytest.mark.parametrize("dark", [False, True])
def test_the_common_look(dark):
    figure = go.Figure(
        go.Bar(x=[1, 2], y=["a", "b"]), {"legend": {"orientation": "h"}, "xaxis": {"title": {"text": "share"}}}
    )
    layout = apply_theme(figure, dark, height=300).layout
    assert layout.height == 300 and layout.paper_bgcolor == layout.plot_bgcolor == "rgba(0,0,0,0)"
    # What was said before stays.
    assert layout.legend.orientation == "h" and layout.xaxis.title.text == "share"
    whole = plotly.io.templates["plotly_dark" if dark else "plotly_white"].layout
    template = layout.template.layout
    assert template.xaxis.gridcolor == whole.xaxis.gridcolor and template.xaxis.automargin
    # Looking for labels that stick out takes the browser longer than all other drawing.
    assert template.xaxis.ticklabeloverflow == template.yaxis.ticklabeloverflow == "allow"
    assert layout.xaxis.tickfont.color == layout.yaxis.title.font.color != layout.legend.font.color
