"""Figures and small maps from a made-up trace; neither Streamlit nor TensorFlow is needed for them."""

import base64
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from bert_tf import plots
from bert_tf.plots.attention import pooled_maps


def made_up(a=5, b=4, layers=2, heads=3, seed=0):
    """A trace of [CLS] a tokens [SEP] b tokens [SEP] with random attention."""
    sources = (None, *"a" * a, None, *"b" * b, None)
    length = len(sources)
    maps = np.random.default_rng(seed).random((layers, heads, length, length), np.float32) ** 4
    return SimpleNamespace(
        tokens=("[CLS]", *(f"w{i}" for i in range(a)), "[SEP]", *(f"v{i}" for i in range(b)), "[SEP]"),
        sources=sources,
        attentions=maps / maps.sum(-1, keepdims=True),
    )


@pytest.mark.parametrize(
    "selection, special, rows, columns",
    [
        ("all", True, 12, 12),
        ("all", False, 9, 9),
        ("aa", True, 7, 7),
        ("ab", False, 5, 4),
        ("ba", True, 5, 7),
        ("bb", False, 4, 4),
    ],
)
def test_a_selection_has_the_tokens_of_its_texts(selection, special, rows, columns):
    actual = plots.select(made_up(), selection, special)
    assert (len(actual.rows), len(actual.columns)) == (rows, columns) and actual


def test_a_selection_of_a_text_that_is_not_there_is_empty():
    alone = SimpleNamespace(tokens=("[CLS]", "w0", "[SEP]"), sources=(None, "a", None))
    assert not plots.select(alone, "ab") and len(plots.select(alone, "aa").rows) == 3
    assert not plots.select(made_up(b=0), "ab", False)


def test_two_separators_between_the_texts_stand_with_the_first():
    """RoBERTa's pair: <s> A </s></s> B </s>, all of one segment."""
    pair = SimpleNamespace(
        tokens=("<s>", "a", "</s>", "</s>", "b", "c", "</s>"), sources=(None, "a", None, None, "b", "b", None)
    )
    assert pooled_maps.token_sources(pair.sources) == list("aaaabbb")
    for selection in ("aa", "ab", "ba", "bb"):
        rows, columns = ({"a": (0, 1, 2, 3), "b": (4, 5, 6)}[side] for side in selection)
        assert plots.select(pair, selection) == plots.Selection(rows, columns)
    assert plots.select(pair, "ba", special=False) == plots.Selection((4, 5), (1,))


def test_an_unknown_selection_is_refused_by_name():
    with pytest.raises(ValueError, match="'cc'"):
        plots.select(made_up(), "cc")


def test_pooling_keeps_the_greatest_of_every_block():
    maps = np.arange(36, dtype=np.float32).reshape(6, 6)
    actual = plots.pooled(maps, plots.Selection(tuple(range(6)), tuple(range(6))), 3)
    assert actual.tolist() == [[7, 9, 11], [19, 21, 23], [31, 33, 35]]


def test_what_fits_is_not_pooled():
    trace = made_up()
    chosen = plots.select(trace, "ab", False)
    cut = plots.pooled(trace.attentions[0, 0], chosen, 128)
    assert np.array_equal(cut, trace.attentions[0, 0][np.ix_(chosen.rows, chosen.columns)])


def test_a_window_stays_inside_the_selection():
    chosen = plots.select(made_up(a=100, b=3))
    assert chosen.window(1000, 64).rows == chosen.rows[-64:]
    assert chosen.window(10, 64).columns == chosen.columns[10:74]


@pytest.mark.parametrize("layers, heads, length", [(12, 12, 30), (24, 16, 128), (24, 16, 400)])
def test_small_maps_of_all_heads_stay_small(layers, heads, length):
    trace = made_up(a=length, layers=layers, heads=heads)
    small = plots.tiles(trace.attentions, plots.select(trace))
    assert small.values.nbytes <= 200_000
    assert (small.layers, small.heads) == (layers, heads)
    assert len(base64.b64decode(small.base64())) == small.values.size
    assert (small.values.max(axis=(2, 3)) == 255).all()


def test_maps_of_nothing_but_zeros_stay_zero():
    trace = made_up()
    assert plots.tiles(np.zeros_like(trace.attentions), plots.select(trace)).values.max() == 0


def test_maps_in_half_precision_are_taken():
    trace = made_up()
    chosen = plots.select(trace)
    whole, half = (
        plots.tiles(maps, chosen).values.astype(int) for maps in (trace.attentions, trace.attentions.astype(np.float16))
    )
    assert np.abs(whole - half).max() <= 1


@pytest.mark.parametrize("sign", [1, -1])
def test_pooling_in_half_precision_is_exact(sign):
    trace = made_up()
    half, chosen = (sign * trace.attentions).astype(np.float16), plots.select(trace)
    pooled = plots.pooled(half, chosen, 5)
    assert pooled.dtype == np.float32 and pooled.shape[-2:] == (5, 5)
    np.testing.assert_array_equal(pooled, plots.pooled(half.astype(np.float32), chosen, 5))


def test_lines_carry_weights_tokens_and_sides():
    trace = made_up()
    actual = plots.lines(trace, trace.attentions[1, 2], plots.select(trace, "ab"))
    assert actual.left[0] == "[CLS]" and actual.sides_left[0] == "" and set(actual.sides_right) == {"b", ""}
    expected = trace.attentions[1, 2][1, 7]
    assert actual.values[0, 1, 0] == pytest.approx(255 * expected, abs=0.51)


def test_lines_carry_several_heads():
    trace = made_up()
    several = plots.lines(trace, trace.attentions[0, [2, 0]], plots.select(trace))
    assert several.values.shape == (2, 12, 12)
    one = plots.lines(trace, trace.attentions[0, 0], plots.select(trace))
    np.testing.assert_array_equal(several.values[1], one.values[0])


def test_punctuation_can_be_left_out():
    trace = SimpleNamespace(
        tokens=("[CLS]", "No", ",", "it", "##'", "Ġ.", "$", "#", "a.b", "[MASK]", "[SEP]"),
        sources=(None, *"a" * 9, None),
    )
    chosen = plots.select(trace, special=False, punctuation=False)
    assert [trace.tokens[place] for place in chosen.rows] == ["No", "it", "a.b", "[MASK]"]
    assert plots.select(trace, punctuation=False).columns == (0, 1, 3, 8, 9, 10)


def test_small_maps_know_the_sides_of_their_rows():
    trace = made_up(a=5, b=4)
    small = plots.tiles(trace.attentions, plots.select(trace), sources=trace.sources)
    assert "".join(side or "-" for side in small.sides) == "-aaaaa-bbbb-"
    pooled = plots.tiles(trace.attentions, plots.select(trace), most_bytes=6 * 16, sources=trace.sources)
    assert pooled.values.shape[2:] == (4, 4) and pooled.sides == ("", "a", "", "b")


def test_a_heatmap_of_128_tokens_is_light_and_one_of_512_is_pooled():
    for length in (125, 509):
        trace = made_up(a=length, b=0, layers=1, heads=1)
        figure = plots.heatmap(trace, trace.attentions[0, 0], plots.select(trace))
        assert len(figure.data[0].y) == 128 and len(figure.to_json()) < 300_000
        assert len(set(figure.data[0].y)) == 128


def test_equal_tokens_keep_rows_of_their_own():
    trace = made_up(a=3, b=0)
    trace.tokens = ("[CLS]", "the", "the", "the", "[SEP]", "[SEP]")
    figure = plots.heatmap(trace, trace.attentions[0, 0], plots.select(trace))
    assert len(set(figure.data[0].x)) == 6
    assert [name.strip("\u200b") for name in figure.data[0].x][1:4] == ["the"] * 3


def test_tokens_are_escaped_in_every_figure():
    trace = made_up(a=1, b=0)
    trace.tokens = ("[CLS]", "<b>", "[SEP]", "[SEP]")
    prediction = SimpleNamespace(token="<i>", id=1, probability=0.5)
    answer = SimpleNamespace(position=1, original="<b>", predictions=(prediction,), targets=())
    for figure in (
        plots.heatmap(trace, trace.attentions[0, 0], plots.select(trace), title="<u>"),
        plots.predictions([answer]),
    ):
        text = str(figure.to_dict())
        assert "<b>" not in text and "<i>" not in text and "<u>" not in text and "&lt;" in text


@pytest.mark.parametrize("dark", [False, True])
def test_every_figure_can_be_drawn_on_light_and_dark(dark):
    trace = made_up()
    prediction = SimpleNamespace(token="x", id=1, probability=0.5)
    answers = [SimpleNamespace(position=1, original=None, predictions=(prediction,), targets=())] * 2
    for figure in (
        plots.overview(trace, plots.select(trace), dark),
        plots.predictions(answers, dark),
        plots.depth_profile({"one": [1, 2], "two": [1, 2, 3]}, "bits", dark),
        plots.heatmap(trace, trace.attentions[0, 0], plots.select(trace), dark=dark),
    ):
        assert figure.layout.height and figure.to_html(include_plotlyjs=False)


@pytest.mark.parametrize("dark", [False, True])
def test_scales_run_evenly_in_lightness(dark):
    def lightness(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        return 116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance

    steps = np.diff([lightness(colour) for colour in plots.ramp(dark)])
    assert (steps > 5).all() if dark else (steps < -5).all()


def test_plots_import_neither_tensorflow_nor_streamlit():
    names = "('tensorflow', 'streamlit')"
    code = f"import sys, bert_tf.plots; sys.exit(any(name in sys.modules for name in {names}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_number_of_every_head_becomes_a_cell():
    cells = plots.head_cells(np.array([[0.0, 0.5], [1.0, 0.25]]))
    assert cells.values.shape == (2, 2, 1, 1) and cells.values.ravel().tolist() == [0, 128, 255, 64]
    assert plots.head_cells(np.full((2, 3), 0.7)).values.max() == 0


def test_weights_below_the_least_are_left_out_of_every_map():
    trace = made_up()
    every, weights = plots.select(trace), trace.attentions[1, 2]
    (drawn,) = plots.heatmap(trace, weights, every, least=0.2).data
    assert np.array_equal(np.isnan(drawn.z), weights < 0.2)
    assert np.array_equal(drawn.z[weights >= 0.2], weights[weights >= 0.2])
    small = plots.tiles(trace.attentions, every, least=0.2).values
    assert np.array_equal(small > 0, trace.attentions >= 0.2)


def test_several_heads_are_drawn_below_each_other_on_one_scale():
    trace = made_up()
    maps = trace.attentions[[0, 1], [2, 0]]
    figure = plots.heatmaps(trace, maps, plots.select(trace, "ab", False), ["one", "<two>"])
    rows, columns = list(range(1, 6)), list(range(7, 11))
    for drawn, weights in zip(figure.data, maps, strict=True):
        assert np.array_equal(drawn.z, weights[np.ix_(rows, columns)])
    assert figure.layout.coloraxis.cmax == pytest.approx(maps[:, rows][..., columns].max())
    assert [one.text for one in figure.layout.annotations] == ["one", "&lt;two&gt;"]


def test_blocks_are_named_by_their_first_token():
    trace = made_up()
    assert plots.block_names(trace, (1, 2, 3, 4), 2) == ["w0", "w2"]
    assert plots.block_names(trace, (1, 2), 2) == ["w0", "w1"]


def test_predictions_can_be_named_by_their_models():
    prediction = SimpleNamespace(token="a", probability=0.5)
    answer = SimpleNamespace(position=3, original="b", predictions=(prediction,), targets=())
    assert plots.predictions([answer]).layout.annotations[0].text == "token 3: b"
    assert plots.predictions([answer], names=["<i>"]).layout.annotations[0].text == "&lt;i&gt;"
