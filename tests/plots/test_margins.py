"""What a page settles of a figure before it is drawn: margins that hold the labels, and the colour scale beside it."""

from datetime import datetime
from types import SimpleNamespace

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from bert_tf.explain import AttentionDivergence
from bert_tf.plots.attention.heatmaps import heatmap
from bert_tf.plots.attention.pooled_maps import Selection
from bert_tf.plots.interventions.patching import patched_heads_map
from bert_tf.plots.margins import detach_colorbar, fix_margins
from bert_tf.plots.models.compare import difference_map, similarity_map
from bert_tf.plots.representations.vectors import cosine_map, nearest_map, position_map
from bert_tf.plots.theme import apply_theme


def bars(labels, **settings):
    figure = go.Figure(go.Bar(x=[0.5] * len(labels), y=labels, orientation="h"), layout=settings)
    return apply_theme(figure)


def left(figure):
    fix_margins(figure)
    assert figure.layout.yaxis.automargin is False
    return figure.layout.margin.l


def test_the_margin_grows_with_the_longest_label_and_with_a_title():
    short, long = left(bars(["a", "b"])), left(bars(["a", "a rather long label"]))
    assert 20 < short < 40 and 100 < long < 150
    assert left(bars(["a", "b"], yaxis={"title": "layer"})) == short + 34
    assert left(bars(["a"], yaxis={"showticklabels": False}, xaxis={"visible": False})) == 8
    # Wide letters need more, marks that combine and letters without a width nothing.
    assert left(bars(["\u6f22\u5b57\u6f22\u5b57"])) > left(bars(["abcd"])) > left(bars(["illi"]))
    assert left(bars(["e\u0301\u200b"])) == left(bars(["e"]))
    # Markup of a label is not drawn.
    assert left(bars(["&lt;b&gt;<span style='font-size:1px'> 12345678</span>"])) == left(bars(["&lt;b&gt;"]))


def test_turned_labels_need_height_and_those_that_may_be_turned_are_left_to_the_browser():
    names = ["a rather long label", "b"]

    def columns(**axis):
        figure = apply_theme(go.Figure(go.Bar(x=names, y=[1, 2]), layout={"xaxis": axis}))
        fix_margins(figure)
        return figure.layout

    turned, flat, free = columns(tickangle=-90), columns(tickangle=0), columns()
    assert turned.margin.b > 100 and 25 < flat.margin.b < 45 and free.margin.b == 8
    assert (turned.xaxis.automargin, flat.xaxis.automargin, free.xaxis.automargin) == (False, False, None)
    assert free.yaxis.automargin is False and 30 < free.margin.l < 60


@pytest.mark.parametrize("axis", [{"side": "top"}, {"ticktext": ["x" * 60], "tickvals": [0], "tickangle": -90}])
def test_the_browser_measures_an_axis_at_the_top_and_very_long_labels(axis):
    figure = apply_theme(go.Figure(go.Bar(x=["a"], y=[1]), layout={"xaxis": axis}))
    fix_margins(figure)
    assert figure.layout.xaxis.automargin is None and figure.layout.margin.b == 8


def test_plots_beside_each_other_are_left_alone_those_below_each_other_are_not():
    for rows, columns, fixed in ((1, 2, None), (2, 1, False)):
        figure = make_subplots(rows=rows, cols=columns)
        figure.add_bar(x=["a"], y=[1], row=1, col=1)
        figure.add_bar(x=["b"], y=[1], row=rows, col=columns)
        fix_margins(apply_theme(figure))
        assert figure.layout.yaxis.automargin is fixed and figure.layout.yaxis2.automargin is fixed


def test_the_colour_scale_leaves_the_figure_and_is_told():
    def scaled(values, **settings):
        return go.Figure(go.Heatmap(z=values, colorscale=[[0, "#ffffff"], [1, "#000000"]], **settings))

    values = np.array([[0.1, np.nan], [0.2, 0.45]])
    figure = scaled(values, zmin=0, zmax=0.5, colorbar={"tickformat": ".2f", "title": {"text": "bits"}})
    assert detach_colorbar(figure) == {
        "stops": [(0, "#ffffff"), (1, "#000000")],
        "marks": [(0, "0"), (1, "0.50")],
        "name": "bits",
    }
    assert figure.data[0].showscale is False
    # A figure that is drawn once more still has its scale.
    assert detach_colorbar(figure)["marks"] == [(0, "0"), (1, "0.50")]
    marks = detach_colorbar(scaled(values, zmin=-1, zmax=1, colorbar={"tickformat": "+.1f"}))["marks"]
    assert marks == [(0, "-1.0"), (0.5, "0"), (1, "+1.0")]
    named = {"tickvals": [-1, 0, 1], "ticktext": ["against", "none", "for"]}
    assert [name for _, name in detach_colorbar(scaled(values, zmin=-1, zmax=1, colorbar=named))["marks"]] == named[
        "ticktext"
    ]
    # Without ends of its own it has those of its numbers.
    assert [name for _, name in detach_colorbar(scaled(values, colorbar={"thickness": 8}))["marks"]] == ["0.1", "0.45"]


@pytest.mark.parametrize(
    "figure, output",
    [
        (heatmap(SimpleNamespace(tokens=["a", "b"]), np.eye(2), Selection((0, 1), (0, 1))), "weight"),
        (cosine_map(np.eye(2)), "cosine"),
        (position_map(np.eye(2), 4), "cosine"),
        (nearest_map(np.eye(2), [["a", "b"], ["c", "d"]], ["x", "y"], ["emb.", "1"]), "cosine"),
        (similarity_map(np.eye(2), "one", "other", measure="CKA"), "CKA"),
        (difference_map(np.eye(2), ["a", "b"]), "difference"),
        (patched_heads_map(np.eye(2)), "brings back"),
    ],
)
def test_the_scale_of_a_map_says_what_its_colours_measure(figure, output):
    assert detach_colorbar(figure)["name"] == output


def test_the_colours_are_those_that_the_scale_tells():
    """Plotly takes no notice of one end without the other."""
    figure = AttentionDivergence("a", "b", (), np.linspace(0.2, 0.3, 144).reshape(12, 12)).figure()
    assert detach_colorbar(figure)["marks"] == [(0, "0"), (1, "0.3")]
    assert (figure.data[0].zmin, figure.data[0].zmax) == (0, 0.3)


def test_no_mark_of_the_scale_lies_over_another_or_beside_it():
    def marks(low, high, **bar):
        colours = [[0, "#ffffff"], [1, "#000000"]]
        figure = go.Figure(
            go.Heatmap(z=[[low, high]], zmin=low, zmax=high, colorscale=colours, colorbar={"tickformat": ".2f", **bar})
        )
        return [name for _, name in detach_colorbar(figure)["marks"]]

    assert marks(-0.03, 0.6) == ["-0.03", "0.60"] and marks(-0.3, 0.6) == ["-0.30", "0", "0.60"]
    assert marks(0, 1, tickvals=[-1, 0, 1, 2], ticktext=["a", "b", "c", "d"]) == ["b", "c"]


def test_a_label_at_the_end_of_an_axis_has_room_for_its_other_half():
    figure = apply_theme(go.Figure(go.Scatter(x=[0, 100_000], y=[0, 1]), layout={"xaxis": {"tickformat": "~s"}}))
    fix_margins(figure)
    assert figure.layout.margin.r >= 14
    figure = apply_theme(
        go.Figure(go.Bar(x=["a" * 9], y=[1]), layout={"xaxis": {"tickangle": 0}, "yaxis": {"visible": False}})
    )
    fix_margins(figure)
    assert min(figure.layout.margin.l, figure.layout.margin.r) >= 25


@pytest.mark.parametrize(
    "trace, layout",
    [
        (go.Scatter3d(x=[1], y=[2], z=[3]), {}),
        (go.Bar(x=["the", "cat"], y=[1, 2]), {"xaxis": {"tickangle": -60}, "yaxis": {"side": "right"}}),
        (go.Scatter(x=[datetime(2020, 1, 1)], y=[datetime(2020, 1, 1)]), {}),
        (go.Bar(x=[["a", "a"], ["b", "c"]], y=[1, 2]), {"yaxis": {"side": "right"}}),
    ],
)
def test_what_cannot_be_told_is_left_to_the_browser(trace, layout):
    figure = apply_theme(go.Figure(trace, layout))
    fix_margins(figure)
    assert (figure.layout.margin.l, figure.layout.margin.b) == (8, 8)
    assert figure.layout.xaxis.automargin is None and figure.layout.yaxis.automargin is None


@pytest.mark.parametrize("values", [[[1.0, 1.0]], [[np.nan]], np.zeros((0, 0))])
def test_a_figure_of_one_number_or_none_keeps_its_bar(values):
    figure = go.Figure(go.Heatmap(z=values, colorbar={"thickness": 8}))
    assert detach_colorbar(figure) is None and figure.data[0].showscale is None
    assert detach_colorbar(go.Figure(go.Heatmap(z=[[1, 2]]))) is None
    colours = [[0, "#ffffff"], [1, "#000000"]]
    for settings in ({}, {"colorscale": colours, "reversescale": True}):
        assert detach_colorbar(go.Figure(go.Heatmap(z=[[1, 2]], colorbar={"thickness": 8}, **settings))) is None
