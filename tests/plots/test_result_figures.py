"""Figures of results: effects, layers, patches, tasks, sizes, trainings. What is drawn is what was given."""

from types import SimpleNamespace

import numpy as np
import pytest
from plotly.colors import sample_colorscale, unlabel_rgb

from bert_tf.config import BertConfig
from bert_tf.explain import AttentionDivergence, InputReduction, RemovedWord, Target
from bert_tf.explain.datasets.dataset import DatasetPredictions
from bert_tf.explain.datasets.row_predictions import RowResult, summarise_rows
from bert_tf.explain.datasets.text_rows import TextRow
from bert_tf.explain.models.architecture import ModelSizes, all_sizes
from bert_tf.explain.representations.logit_lens import LogitLens
from bert_tf.inference.predictions import Prediction
from bert_tf.inference.words import WordSpan
from bert_tf.plots.diverging import diverging_ramp, diverging_scale
from bert_tf.plots.interventions.ablation import by_kind, effects_map
from bert_tf.plots.interventions.patching import patch_map, patched_heads_map
from bert_tf.plots.models.architecture import (
    MAX_TOKENS,
    MOST_UNITS,
    activations,
    sizes,
)
from bert_tf.plots.models.architecture_table import flops_or_time, parameters_by_part
from bert_tf.plots.ranked_bars import ranked_bars
from bert_tf.plots.representations.logit_lens import answer_curve, lens_map, state_names
from bert_tf.plots.training.accuracy_by_position import accuracy_by_position
from bert_tf.plots.training.curves import answer_trajectory, curves
from bert_tf.plots.training.finetuning import confusion_matrix, label_bars, learning_curve
from bert_tf.plots.training.task_predictions import answer_curves, probabilities

EVIL = "<b>x</b>"
SAFE = "&lt;b&gt;x&lt;/b&gt;"


@pytest.fixture
def lens():
    """Two positions, embeddings and two layers, two predictions each."""
    return LogitLens(
        positions=(1, 4),
        position_tokens=("x", EVIL),
        ids=np.zeros((2, 3, 2), np.int64),
        predicted_tokens=((("a", "b"), (EVIL, "b"), ("c", "a")), (("d", "b"), ("d", "b"), ("d", "a"))),
        probabilities=np.array([[[0.5, 0.1], [0.25, 0.2], [0.75, 0.1]], [[0.9, 0.1], [0.8, 0.1], [0.7, 0.2]]]),
        entropies=np.ones((2, 3)),
        answers=(Prediction("c", 3, 0.75), Prediction("d", 4, 0.7)),
        answer_ranks=np.array([[40, 7, 1], [1, 1, 1]]),
        answer_probabilities=np.array([[0.01, 0.05, 0.75], [0.9, 0.8, 0.7]]),
        first_top=np.array([2, 0]),
        stable_from=np.array([2, 0]),
    )


def test_the_likeliest_word_of_every_layer_stands_on_its_probability(lens):
    figure = lens_map(lens)
    assert figure.data[0].colorbar.title.text == "probability"
    drawn = figure.data[0]
    np.testing.assert_allclose(drawn.z, [[0.5, 0.25, 0.75], [0.9, 0.8, 0.7]])
    assert drawn.text[0][1] == SAFE and list(drawn.x) == state_names(3) == ["emb.", "1", "2"]
    assert figure.layout.yaxis.ticktext[1] == f"{lens.positions[1]}: {SAFE}" and EVIL not in figure.to_json()


def test_an_answer_s_rank_and_probability_run_over_the_layers(lens):
    ranks, shares = answer_curve(lens, 0).data
    assert list(ranks.y) == [40, 7, 1] and list(shares.y) == [0.01, 0.05, 0.75]
    assert answer_curve(lens, 0).layout.yaxis.type == "log"


def test_effects_are_coloured_each_kind_by_its_own_strongest():
    effects = np.array([[0.1, -0.2, 3.0, 10.0], [0.05, 0.0, -1.5, 5.0]])
    scaled = by_kind(effects)
    np.testing.assert_allclose(scaled, [[0.5, -1, 1, 1], [0.25, 0, -0.5, 0.5]])
    assert not by_kind(np.zeros((2, 4))).any()
    drawn = effects_map(effects, "nats").data[0]
    np.testing.assert_allclose(drawn.z, scaled)
    np.testing.assert_allclose(drawn.customdata, effects)
    assert list(drawn.x) == ["1", "2", "FF", "layer"] and list(drawn.y) == ["1", "2"]
    drawn = effects_map(effects, "nats", first=0).data[0]
    assert list(drawn.x) == ["0", "1", "FF", "layer"] and list(drawn.y) == ["0", "1"]


def test_ranked_bars_keep_their_order_and_equal_names_apart():
    bars = ranked_bars(["the", EVIL, "the"], [3, -2, 1], "nats").data[0]
    assert list(bars.x) == [3, -2, 1] and len(set(bars.y)) == 3
    assert bars.y[1] == SAFE and bars.y[2].rstrip("\u200b") == "the"
    colours = bars.marker.color
    assert colours[0] == colours[2] != colours[1]
    long = ranked_bars(["a"], [1], "what the answer loses without it, nats of log-probability")
    assert long.layout.xaxis.title.text == "what the answer loses without it,<br>nats of log-probability"


@pytest.mark.parametrize("dark", [False, True])
def test_the_two_ends_of_a_diverging_scale_differ_and_meet_in_the_middle(dark):
    ramp = diverging_ramp(dark)
    assert len({ramp[0], ramp[len(ramp) // 2], ramp[-1]}) == 3
    assert [place for place, _ in diverging_scale(dark)][:: len(ramp) - 1] == [0, 1]


def test_a_patch_map_holds_shares_and_names_where_the_inputs_differ():
    recovered = np.array([[0.0, 1.5, np.nan], [0.25, -2.0, 0.5]])
    figure = patch_map(recovered, ["a", EVIL, "c"], ["a", "b", "c"])
    drawn = figure.data[0]
    np.testing.assert_allclose(drawn.z, [[0, 0.25], [1, -1], [0, 0.5]])
    np.testing.assert_allclose(drawn.customdata[..., 0], [[0, 0.25], [1.5, -2], [0, 0.5]])
    assert list(figure.layout.yaxis.ticktext) == ["a", f"<b>{SAFE} | b</b>", "c"]
    tall = patch_map(np.zeros((2, 200)), ["w"] * 200, ["w"] * 200)
    assert tall.layout.height <= 1400 and len(tall.layout.yaxis.tickvals) < 200


def test_heads_put_back_count_as_the_page_does_or_as_the_command_line():
    recovered = np.array([[0.0, 1.5, np.nan], [0.25, -2.0, 0.5]])
    drawn = patched_heads_map(recovered).data[0]
    np.testing.assert_allclose(drawn.z, [[0, 1, 0], [0.25, -1, 0.5]])
    np.testing.assert_allclose(drawn.customdata[..., 0], [[0, 1.5, 0], [0.25, -2, 0.5]])
    assert (list(drawn.x), list(drawn.y)) == (["1", "2", "3"], ["1", "2"])
    drawn = patched_heads_map(recovered, first=0).data[0]
    assert (list(drawn.x), list(drawn.y)) == (["0", "1", "2"], ["0", "1"])


def test_classes_and_endings_are_bars_of_their_probabilities():
    figure = probabilities([EVIL, "b"], [0.8, 0.2])
    bars = figure.data[0]
    assert list(bars.x) == [0.8, 0.2] and list(bars.y) == [SAFE, "b"] and bars.text[0] == "80.0%"
    assert figure.layout.xaxis.title.text == "probability"


def test_a_certain_class_is_counted_in_the_last_of_ten_bins():
    results = [
        RowResult(TextRow(number, "a"), task_prediction={"label": "b", "probability": probability})
        for number, probability in enumerate([0.0, 0.55, 0.95, 1.0, 1.0])
    ]
    figure = DatasetPredictions((), "given", summarise_rows(results), None, tuple(results)).figure()
    (bars,) = figure.data
    np.testing.assert_allclose(bars.x, [0, 0.55, 0.95, 1, 1], atol=1e-8)
    bins = bars.xbins
    assert (bins.start, bins.end, bins.size) == (0, 1, 0.1) and max(bars.x) < bins.end


def test_the_ends_of_an_answer_are_two_curves_over_the_pieces():
    begins, ends = answer_curves([EVIL, "b"], [0.9, 0.1], [0.2, 0.8]).data
    assert list(begins.y) == [0.9, 0.1] and list(ends.y) == [0.2, 0.8] and begins.customdata[0] == SAFE


def test_of_a_long_passage_the_likely_ends_are_named_and_stand_apart():
    begins, ends = np.zeros(96), np.zeros(96)
    begins[41], ends[43], begins[90] = 0.9, 0.8, 0.1
    axis = answer_curves([f"w{place}" for place in range(96)], begins, ends).layout.xaxis
    assert {"w41", "w90"} <= set(axis.ticktext) and axis.title.text == "pieces of the passage"
    assert min(np.diff(axis.tickvals)) >= 4 and len(axis.tickvals) <= 24
    assert len(answer_curves(["a", "b"], [1, 0], [0, 1]).layout.xaxis.ticktext) == 2


def test_heads_that_moved_are_drawn_layers_downwards():
    values = np.array([[0.1, 0.2, 0.3], [0.0, 0.5, 0.9]])
    figure = AttentionDivergence("a", "b", (), values).figure()
    np.testing.assert_array_equal(figure.data[0].z, values)
    assert list(figure.data[0].x) == ["1", "2", "3"] and figure.layout.yaxis.autorange == "reversed"


def test_activations_show_the_first_units_and_spare_the_outliers():
    values = np.random.default_rng(0).normal(size=(60, 100))
    values[0, 0] = 1000
    drawn = activations(values, [EVIL] * 60).data[0]
    assert drawn.z.shape == (MAX_TOKENS, MOST_UNITS) and drawn.zmax < 10 and drawn.zmin == -drawn.zmax
    np.testing.assert_allclose(drawn.z[1:], values[1:MAX_TOKENS, :MOST_UNITS], atol=1e-4)
    assert len(set(drawn.y)) == MAX_TOKENS and EVIL not in str(drawn.y)
    assert activations(np.zeros((2, 3)), ["a", "b"]).data[0].zmax == 1
    # Blue is above zero, as on every other map.
    assert [colour for _, colour in drawn.colorscale] == diverging_ramp()


def test_a_window_over_activations_keeps_their_colours_and_says_where_it_is():
    values = np.arange(70 * 100).reshape(70, 100)
    whole, later = activations(values, ["w"] * 70).data[0], activations(values, ["w"] * 70, False, 22, 36).data[0]
    np.testing.assert_array_equal(later.z, values[22:70, 36:100])
    assert (later.x[0], later.x[-1], later.zmax) == (37, 100, whole.zmax) and len(later.y) == MAX_TOKENS
    named = activations(values[:2, :2], ["a", "b"], units=[EVIL, "O"]).data[0]
    assert list(named.x) == [SAFE, "O"]


def test_sizes_are_stacked_by_part():
    figure = sizes([("tiny", {"embeddings": 4, "encoder": 6}), (EVIL, {"embeddings": 1, "pooler": 2})])
    assert {bar.name: list(bar.x) for bar in figure.data} == {
        "embeddings": [4, 1],
        "encoder": [6, 0],
        "pooler": [0, 2],
    }
    assert figure.layout.barmode == "stack" and list(figure.data[0].y) == ["tiny", SAFE]


def test_the_parts_of_the_sizes_are_named_in_words():
    figure = ModelSizes(9, 2, tuple(all_sizes(BertConfig.named("base"), 9, masks=2))).figure()
    heads = ["pooler", "masked word head", "next sentence head"]
    assert [bar.name for bar in figure.data] == ["embeddings", "encoder", *heads]


def test_every_size_of_the_family_has_its_parts_and_its_cost():
    def row(name, embeddings, encoder, flops, whole=True):
        parts = {"embeddings": embeddings, "encoder": encoder, "output heads": 1}
        return SimpleNamespace(name=name, parts=parts, flops=flops, tokens=10, timed_whole=whole)

    rows = [row("BERT base", 24, 85, 2200), row(EVIL, 4, 7, 2200), row("BERT large", 32, 302, 7800, False)]
    assert {bar.name: list(bar.x) for bar in parameters_by_part(rows).data} == {
        "embeddings": [24, 4, 32],
        "encoder": [85, 7, 302],
        "output heads": [1, 1, 1],
    }
    figure = flops_or_time(rows)
    (work,) = figure.data
    assert list(work.x) == [220, 220, 780] and list(work.y) == ["BERT base", SAFE, "BERT large"]
    assert figure.layout.xaxis.type == "log" and set(work.marker.symbol) == {"circle"}
    (time,) = flops_or_time(rows, {"BERT base": 0.5, "BERT large": 2.0}).data
    assert list(time.x) == [500, None, 2000] and list(time.marker.symbol) == ["circle", "circle", "circle-open"]


def test_a_learning_curve_has_the_loss_and_the_score_beside_it():
    records = [{"step": 1, "loss": 0.9}, {"step": 2, "loss": 0.5}]
    rounds = [{"step": 2, "dev": {"accuracy": 0.75}}, {"step": 4, "dev": {"f1": 0.5}}]
    loss, score = learning_curve(records, rounds, "accuracy").data
    assert list(loss.y) == [0.9, 0.5] and (list(score.x), list(score.y)) == ([2], [0.75])
    assert len(learning_curve(records, [], "accuracy").data) == 1


def test_confusions_are_shares_of_the_true_label():
    figure = confusion_matrix([EVIL, "b", "none"], [[3, 1, 0], [0, 2, 0], [0, 0, 0]])
    drawn = figure.data[0]
    np.testing.assert_allclose(drawn.z, [[0.75, 0.25, 0], [0, 1, 0], [0, 0, 0]])
    assert drawn.text[0][:2] in ((3, 1), [3, 1]) and drawn.y[0] == SAFE
    assert [one.text for one in figure.layout.annotations] == list("310020000")
    many = confusion_matrix(list(map(str, range(21))), np.eye(21, dtype=int).tolist())
    assert not many.layout.annotations


@pytest.mark.parametrize("dark", [False, True])
def test_numbers_stand_out_from_every_colour_of_the_scale(dark):
    counts = [[part, 20 - part] for part in range(21)]
    figure = confusion_matrix(list(map(str, range(20))), [[*counts[row], *[0] * 18] for row in range(20)], dark)
    for one in figure.layout.annotations:
        share = figure.data[0].z[int(one.y)][int(one.x)]
        (ground,) = sample_colorscale(list(map(list, figure.data[0].colorscale)), [share])
        assert contrast(unlabel_rgb(ground), [0] * 3 if one.font.color == "#000000" else [255] * 3) >= 4.5


def contrast(one, other):
    """WCAG 2.2's ratio of two colours of 0 to 255."""
    light = []
    for colour in (one, other):
        parts = [part / 255 for part in colour]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        light.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(light) + 0.05) / (min(light) + 0.05)


def test_labels_have_bars_of_their_f1():
    bars = label_bars([{"label": EVIL, "f1": 0.5, "examples": 7}, {"label": 2, "f1": 1.0, "support": 3}]).data[0]
    assert list(bars.x) == [0.5, 1.0] and list(bars.y) == [SAFE, "2"] and list(bars.customdata) == [7, 3]


def test_a_run_has_a_curve_for_each_number_that_was_logged():
    logged = {"loss": ([1, 2, 3], [9, 8, 7]), "mlm_loss": ([1, 2, 3], [8, 7, 6])}
    run = SimpleNamespace(curve=lambda name: logged.get(name, ([], [])))
    figure = curves(run, "Loss")
    assert {line.name: list(line.y) for line in figure.data} == {"total": [9, 8, 7], "masked words": [8, 7, 6]}
    assert figure.layout.showlegend and not curves(run, "Accuracy").data


def test_rates_are_written_as_plain_numbers():
    run = SimpleNamespace(curve=lambda name: ([1, 2], [1.5e-3, 0]) if name == "learning_rate" else ([], []))
    figure = curves(run, "Learning rate")
    assert figure.layout.yaxis.tickformat == ".3~g" and "%{y:.3~g}" in figure.data[0].hovertemplate


@pytest.mark.parametrize("shares, top", [([0.066, 0.08, 0.05], 0.1), ([0.9, 0.95], 1.04)])
def test_an_answer_of_a_few_percent_fills_its_axis(shares, top):
    whole, *others = np.log(shares)
    removed = tuple(RemovedWord(WordSpan("a", 0, "w", (1,), 0, 1), score) for score in others)
    reduction = InputReduction(Target(None, 0, "bank"), whole, True, removed, (), others[-1], ())
    axis = reduction.figure().layout.yaxis
    assert axis.range[0] == 0 and axis.range[1] == pytest.approx(top)


@pytest.mark.parametrize(
    "parts", [{"mlm", "replaced"}, {"mlm", "nsp", "soft", "cosine"}, {"mlm", "sop", "attention", "value"}]
)
def test_every_objective_s_parts_have_a_curve_of_their_own_colour(parts):
    logged = {f"{part}_loss" for part in parts} | {"loss"}
    run = SimpleNamespace(curve=lambda name: ([1, 2], [9, 8]) if name in logged else ([], []))
    drawn = curves(run, "Loss").data
    assert len(drawn) == len(logged) == len({line.line.color for line in drawn})
    rates = SimpleNamespace(curve=lambda name: ([1, 2], [0.1, 0.9]) if name == "replaced_accuracy" else ([], []))
    (line,) = curves(rates, "Accuracy").data
    assert line.name == "replaced words" and list(line.y) == [0.1, 0.9]


def test_an_answer_s_course_is_drawn_over_the_snapshots():
    token_trajectory = SimpleNamespace(
        token=EVIL, ranks=np.array([900, 12, 1]), probabilities=np.array([0.0, 0.1, 0.8])
    )
    figure = answer_trajectory([token_trajectory], (0, 10, 100), 1, [0.5, 0.6, 0.9])
    line, follows = figure.data
    assert list(line.y) == [900, 12, 1] and line.name == SAFE and list(follows.y) == [0.5, 0.6, 0.9]
    assert list(figure.layout.yaxis2.tickvals) == [0, 0.5, 1]
    assert list(figure.layout.xaxis.ticktext) == ["0", "10", "100"] and figure.layout.shapes[0].x0 == 1
    alone = answer_trajectory([], (0, 10), 0, [0.5, 0.6])
    assert len(alone.data) == 1 and not alone.layout.yaxis.visible and alone.layout.yaxis2.visible


def test_tokens_that_were_replaced_have_a_colour_of_their_own():
    from bert_tf.plots.interventions.ablation import replaced_bars

    (bars,) = replaced_bars(["the", "dog", "the"], [0.1, 0.9, 0.2], [False, True, False]).data
    assert list(bars.x) == [0.1, 0.9, 0.2] and len(set(bars.y)) == 3
    assert bars.marker.color[0] == bars.marker.color[2] != bars.marker.color[1]
    assert len(set(replaced_bars(["a", "b"], [0.1, 0.9]).data[0].marker.color)) == 1


def test_a_spread_counts_the_numbers_it_was_given():
    from bert_tf.plots.interventions.ablation import spread

    figure = spread(np.array([1.0, 2.0, 2.0]), "rank")
    assert list(figure.data[0].x) == [1.0, 2.0, 2.0] and figure.layout.xaxis.title.text == "rank"


def test_the_accuracy_by_position_is_a_line_for_each_length():
    groups = [
        {"first": 0, "last": 31, "top1": 0.5, "masked_tokens": 40},
        {"first": 32, "last": 63, "top1": 0.25, "masked_tokens": 20},
    ]
    figure = accuracy_by_position([{"length": 32, "by_position": groups[:1]}, {"length": 64, "by_position": groups}])
    assert [line.name for line in figure.data] == ["sequences of 32 tokens", "sequences of 64 tokens"]
    assert list(figure.data[1].x) == [15.5, 47.5] and list(figure.data[1].y) == [0.5, 0.25]
    assert [list(row) for row in figure.data[1].customdata] == [[0, 31, 40], [32, 63, 20]]
