"""Results of interventions and of likelihoods: their table, their record and their figures hold the same numbers."""

import numpy as np
import pytest

from bert_tf import explain
from bert_tf.plots.interventions.ablation import effects_map
from bert_tf.results import plain

TEXTS = ("the cats [MASK] on the mat", "it ran")


@pytest.fixture(scope="module")
def trace(tiny_bert):
    return tiny_bert.trace(*TEXTS)


@pytest.fixture(scope="module")
def target(tiny_bert, trace):
    return explain.mask_target(tiny_bert, trace)


def agrees(result):
    """See that the record holds the arrays and that every figure can be drawn."""
    record = result.to_dict()
    for name, values in result.to_arrays().items():
        assert record[name] == plain(values)
    for name in result.figures:
        for dark in (False, True):
            assert result.figure(name, dark).data
    return result.to_frame()


def test_contributions(tiny_bert, trace, target):
    actual = explain.contributions(tiny_bert, trace, target)
    table = agrees(actual)
    assert np.abs(table["contribution"]).is_monotonic_decreasing
    heads = table[table["component"] == "head"].sort_values(["layer", "head"])
    np.testing.assert_array_equal(heads["contribution"], actual.heads.ravel())
    assert table["contribution"].sum() == pytest.approx(actual.total)
    (drawn,) = actual.figure().data
    assert (list(drawn.y), list(drawn.x)) == (["0", "1"], ["0", "1", "2", "3", "FF"])
    np.testing.assert_allclose(drawn.customdata, np.column_stack([actual.heads, actual.feed_forward]))
    strongest = actual.figure("strongest").data[0]
    assert list(strongest.x) == table["contribution"].tolist()[:15] and "layer " in strongest.y[0]


def test_ablation_before_and_after(tiny_bert, trace):
    actual = explain.ablation_or_sweep(tiny_bert, trace, heads=[(0, 1)])
    table = agrees(actual)
    shifts = table[table["measure"] == "attention_shift"]
    np.testing.assert_array_equal(shifts["change"], actual.attention_shifts.ravel())
    first, second, *_, shifted = actual.figure().data
    assert list(first.y) == [one.probability for one in actual.before[0].predictions]
    assert list(second.y) == [one.probability for one in actual.after[0].predictions]
    assert (first.name, second.name) == ("as it is", "without")
    np.testing.assert_array_equal(shifted.z, actual.attention_shifts)
    verdict = table[table["measure"] == "is_next"]
    assert verdict["change"].item() == pytest.approx(actual.nsp_after.is_next - actual.nsp_before.is_next)


def test_ablation_draws_every_token_once_and_as_it_is_written():
    scores = np.array([0.1, 0.2, 0.3])
    effect = explain.AblationEffect(
        tokens=("[CLS]", "&", "&"),
        ablation=explain.Ablation(heads=((0, 0),)),
        before=(),
        after=(),
        nsp_before=None,
        nsp_after=None,
        log_probability_changes=np.zeros(0),
        divergences=np.zeros(0),
        replaced_before=scores,
        replaced_after=scores[::-1],
    )
    for drawn in effect.figure().data:
        assert list(drawn.x) == ["0: [CLS]", "1: &amp;", "2: &amp;"]


def test_a_cell_without_a_value_has_no_hover_text():
    effects = np.array([[1.0, np.nan, 2.0]])
    assert effects_map(effects, "nats").data[0].hoverongaps is False


def test_a_sweep_and_what_one_answer_loses(tiny_bert, trace):
    parts = [make(tiny_bert.config) for make in (explain.every_head, explain.every_feed_forward, explain.every_layer)]
    actual = explain.sweep(tiny_bert, trace, sum(parts, ()))
    table = agrees(actual)
    order = actual.ranked()
    np.testing.assert_allclose(table["divergence_bits"], actual.divergences.mean(axis=1)[order])
    assert table["part"].tolist() == [actual.ablations[place].name for place in order]
    assert list(actual.figure().data[0].x) == table["divergence_bits"].tolist()
    drops = actual.score_drops(trace, "next", "of probability")
    table = agrees(drops)
    np.testing.assert_array_equal(np.sort(table["score_drop"]), np.sort(actual.score_drop(trace, "next")))
    drawn = drops.figure("map").data[0]
    np.testing.assert_allclose(drawn.customdata[:, :4].ravel(), drops.score_drops[:8])
    np.testing.assert_allclose(drawn.customdata[:, 4:].T.ravel(), drops.score_drops[8:])


@pytest.mark.parametrize("component, rows", [("hidden_state", 3), ("attention", 2), ("head", 2)])
def test_patching(tiny_bert, trace, target, component, rows):
    actual = explain.patch(tiny_bert, trace, target, "the dogs [MASK] on the mat", component)
    table = agrees(actual)
    np.testing.assert_array_equal(table["recovered"], actual.recovered.ravel())
    first = "hidden_state" if component == "hidden_state" else "layer"
    assert table.columns[0] == first and table[first].max() == rows - 1
    (drawn,) = actual.figure().data
    if component == "head":
        assert (list(drawn.y), list(drawn.x)) == (["0", "1"], ["0", "1", "2", "3"])
        np.testing.assert_allclose(drawn.customdata[..., 0], actual.recovered, rtol=1e-5)
    else:
        assert list(drawn.x) == {"hidden_state": ["emb.", "1", "2"]}.get(component, ["0", "1"])
        np.testing.assert_allclose(drawn.customdata[..., 0], actual.recovered.T, rtol=1e-5)


def test_path_patching(tiny_bert, trace, target):
    receiver = explain.Receiver("feed_forward", 1)
    actual = explain.path_patching(tiny_bert, trace, target, "the dogs [MASK] on the mat", receiver)
    table = agrees(actual)
    (drawn,) = actual.figure().data
    assert (list(drawn.y), list(drawn.x)) == (["0", "1"], ["0", "1", "2", "3", "FF"])
    assert actual.has_path.sum() == 9 and np.isnan(drawn.z[~actual.has_path]).all()
    np.testing.assert_allclose(drawn.customdata[actual.has_path], actual.recovered[actual.has_path])
    heads = table[table["sender"] == "head"].sort_values(["layer", "head"])
    np.testing.assert_array_equal(heads["log_probability"], actual.scores[:, :4].ravel())
    assert table["log_probability"].iloc[-1] == actual.whole


def test_counterfactuals(tiny_bert, trace):
    actual = explain.counterfactuals(tiny_bert, trace, [("cats", "dogs")], top_k=2)
    table = agrees(actual)
    first = table[table["rank"].fillna(1) == 1]
    assert first["variant"].tolist() == [one.variant.label for one in actual.variants]
    masked = [one for one in actual.variants if one.masks]
    np.testing.assert_array_equal(first["divergence_bits"].dropna(), [one.divergences[0] for one in masked])
    assert list(actual.figure().data[0].x) == [one.divergences[0] for one in masked]
    verdicts = explain.counterfactuals(tiny_bert, tiny_bert.trace("the cat sat", "it ran"))
    table = agrees(verdicts)
    assert list(verdicts.figure("predictions").data[0].x) == [verdicts.nsp_before.is_next, *table["is_next"]]


def test_likelihoods(tiny_bert):
    pairs = explain.minimal_pairs(
        tiny_bert, [("the cats sat", "a dog ran"), ("it ran", "ran it")], names=("one", "two")
    )
    table = agrees(pairs)
    assert table["row"].tolist() == ["one", "two"] and table["margin"].tolist() == [one.margin for one in pairs]
    (first, _), (good, bad) = pairs, (pairs.pairs[0].good, pairs.pairs[0].bad)
    table = agrees(first)
    scores = np.concatenate([good.log_probabilities, bad.log_probabilities])
    np.testing.assert_array_equal(table["log_probability"], scores[~np.isnan(scores)])
    assert list(first.figure().data[0].x) == table["log_probability"].tolist()
    assert agrees(good)["log_probability"].sum() == pytest.approx(good.total)
