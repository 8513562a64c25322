"""DeepLift: each rule against its closed form, the whole against its sum and, where nothing differs, the gradient."""

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import erf, expit, log_softmax, softmax

from bert_tf.errors import Cancelled, InputError
from bert_tf.explain import class_target
from bert_tf.explain.attribution.backward_rules import DeepLiftRules
from bert_tf.explain.attribution.deeplift import deeplift
from bert_tf.explain.attribution.rule_propagation import RulePropagation
from bert_tf.explain.attribution.saliency import baseline_token_ids, integrated_gradients, target_log_probabilities
from bert_tf.layers.common import LayerNorm, exact_gelu
from bert_tf.layers.hook_points import MASKED_SCORE
from tests.explain.attribution.test_lrp import EVERY, LEFT, asked
from tests.explain.test_class_target import made


def multipliers(function, *inputs):
    """Of each input [2, ...] (reference, then input), of the sum of all that the function gives."""
    inputs = [tf.constant(one, tf.float32) for one in inputs]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        total = tf.reduce_sum(function(*inputs)[1])
    return [actual.numpy()[-1].astype(np.float64) for actual in tape.gradient(total, inputs)]


def test_a_product_of_two_is_shared_by_their_shapley_values():
    a, b = np.array([[[2.0]], [[5.0]]]), np.array([[[-1.0]], [[3.0]]])
    of_a, of_b = multipliers(DeepLiftRules().product, a, b)
    (a0, a1), (b0, b1) = a.ravel(), b.ravel()
    assert of_a.item() * (a1 - a0) == pytest.approx(((a1 * b0 - a0 * b0) + (a1 * b1 - a0 * b1)) / 2)
    assert of_b.item() * (b1 - b0) == pytest.approx(((a0 * b1 - a0 * b0) + (a1 * b1 - a1 * b0)) / 2)


@pytest.mark.parametrize("before, after", [(-2.0, 1.0), (0.5, 0.5001), (0.7, 0.7), (30.0, -30.0)])
def test_gelu_has_the_slope_of_the_line_between(before, after):
    def gelu(x):
        return x * (1 + erf(x / np.sqrt(2))) / 2

    (actual,) = multipliers(lambda x: DeepLiftRules().activation(exact_gelu, x), [[before], [after]])
    high, low = (after, before) if after != before else (after + 1e-4, after - 1e-4)
    assert actual.item() == pytest.approx((gelu(high) - gelu(low)) / (high - low), abs=1e-4)


@pytest.mark.parametrize("scores", [([1.0, 0.2], [-0.5, 3.0]), ([1.0, 2.0], [1.0, 2.0]), ([-300.0, 0.0], [300.0, 0.0])])
def test_softmax_of_two_is_the_sigmoid_of_their_difference(scores):
    """Also where one of the exponentials has no number in float32."""

    def first(x):
        return DeepLiftRules().softmax(x)[..., :1]

    (actual,) = multipliers(first, np.array(scores)[:, None])
    before, after = scores[0][0] - scores[0][1], scores[1][0] - scores[1][1]
    slope = expit(after) * expit(-after) if before == after else (expit(after) - expit(before)) / (after - before)
    np.testing.assert_allclose(actual.ravel(), [slope, -slope], atol=1e-6)


def test_softmax_of_many_passes_all_on_and_nothing_to_what_is_not_seen():
    random = np.random.default_rng(0)
    scores, weight = random.normal(0, 4, (2, 3, 7)).astype(np.float32), random.normal(size=7).astype(np.float32)
    bias = np.where(np.arange(7) < np.array([[1], [4], [7]]), 0.0, 2 * MASKED_SCORE).astype(np.float32)
    (actual,) = multipliers(lambda x: DeepLiftRules().softmax(x + bias) * weight, scores)
    before, after = ((softmax(one.astype(np.float64) + bias, axis=-1) * weight).sum(axis=-1) for one in scores)
    np.testing.assert_allclose((actual * (scores[1] - scores[0])).sum(axis=-1), after - before, atol=1e-5)
    assert not actual[bias < 0].any() and not actual[0].any()
    np.testing.assert_allclose(actual.sum(axis=-1), 0, atol=1e-6)  # softmax is the same whatever is added to all


def test_a_normalisation_of_two_numbers_hangs_on_their_difference_alone():
    layer = LayerNorm(1e-3)
    layer.build((None, 2))
    layer.gamma.assign([2.0, 0.5])
    (actual,) = multipliers(lambda x: DeepLiftRules().norm([layer], x), [[[1.0, 4.0]], [[3.0, -2.0]]])

    def normal(half):
        return half / np.sqrt(half**2 + 1e-3) * (2 - 0.5)

    slope = (normal(2.5) - normal(-1.5)) / 4
    np.testing.assert_allclose(actual.ravel(), [slope / 2, -slope / 2], atol=1e-5)


@pytest.mark.parametrize(
    "before, after, wanted",
    [
        ([1.0, 5.0, 2.0], [7.0, 3.0, 2.0], [2 / 6, 0, 0]),  # up: by the one that is the highest now
        ([7.0, 3.0, 2.0], [1.0, 5.0, 2.0], [2 / 6, 0, 0]),  # down: by the one that was
        ([1.0, 5.0, 2.0], [2.0, 6.0, 2.0], [0, 1, 0]),
    ],
)
def test_the_maximum(before, after, wanted):
    (actual,) = multipliers(DeepLiftRules().highest, np.array([before, after])[..., None])
    np.testing.assert_allclose(actual.ravel(), wanted, atol=1e-6)


def test_the_log_probability_of_one_of_many_passes_all_on():
    logits = np.random.default_rng(1).normal(0, 5, (2, 9)).astype(np.float32)
    logits[1] += 200
    (actual,) = multipliers(lambda x: DeepLiftRules().one_of_all(x, 3), logits)
    before, after = log_softmax(logits.astype(np.float64), axis=-1)[:, 3]
    assert (actual * (logits[1] - logits[0])).sum() == pytest.approx(after - before, abs=1e-3)
    assert actual.sum() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("name", EVERY)
def test_the_scores_add_up_to_the_difference(name):
    bert, trace, target = asked(name)
    actual, ids = deeplift(bert, trace, target, "[PAD]"), baseline_token_ids(bert, trace, "[PAD]")
    here, there = target_log_probabilities(bert, np.stack([trace.token_ids, ids]), trace.segments, target)
    assert (actual.log_probability, actual.baseline_log_probability) == pytest.approx((here, there), abs=1e-4)
    assert actual.scores.sum() == pytest.approx(here - there, abs=1e-4) and abs(actual.convergence_delta) < 1e-4
    assert actual.convergence_delta == pytest.approx(
        actual.scores.sum() - actual.log_probability + actual.baseline_log_probability, abs=1e-9
    )
    fixed = [place for place, source in enumerate(trace.sources) if source is None or place in trace.masks]
    assert not actual.scores[fixed].any() and np.abs(actual.scores).max() > 1e-4
    assert [one.score for one in actual.words] == pytest.approx(
        [actual.scores[list(one.word.positions)].sum() for one in actual.words]
    )
    check_where_nothing_differs(bert, trace, target)


def check_where_nothing_differs(bert, trace, target):
    """The multipliers are the gradient there."""
    vectors = bert.hooked().token_vectors(trace.token_ids[None]).numpy()
    score, wanted = bert.hooked().gradient(vectors, trace.segments[None], target)
    twice = np.repeat(vectors, 2, axis=0), np.repeat(trace.segments[None], 2, axis=0)
    scores, actual, _, _ = RulePropagation(bert.hooked(), DeepLiftRules()).gradients(*twice, target)
    np.testing.assert_allclose(scores, [score[0]] * 2, atol=1e-5)
    np.testing.assert_allclose(actual[1], wanted[0], atol=1e-4)


def test_near_the_reference_it_is_what_integrated_gradients_give():
    """Both are complete, and of a small step every way of sharing it out is the slope's."""
    bert, trace, target = asked("mask")
    table = bert.model.bert_layers["embeddings"].token_table
    kept = np.array(table)
    table.assign(np.float32(0.02) * (kept - kept[bert.tokenizer.pad_id]) + kept[bert.tokenizer.pad_id])
    try:
        actual, wanted = (
            deeplift(bert, trace, target, "[PAD]"),
            integrated_gradients(bert, trace, target, baseline="[PAD]"),
        )
    finally:
        table.assign(kept)
    np.testing.assert_allclose(actual.scores, wanted.scores, atol=2e-3 * np.abs(wanted.scores).max())


def test_what_a_reader_has_not_read_scores_nothing():
    bert, trace, target = asked(LEFT)
    actual = deeplift(bert, trace, target)
    assert not actual.scores[target.position :].any() and actual.scores[1]


def test_another_reference_no_words_and_mistakes():
    bert, trace, target = asked("mask")
    actual = deeplift(bert, trace, target)
    (there,) = target_log_probabilities(bert, baseline_token_ids(bert, trace, "[MASK]")[None], trace.segments, target)
    assert actual.baseline_log_probability == pytest.approx(there, abs=1e-5)
    messages = []
    deeplift(bert, trace, target, progress=lambda *steps: messages.append(steps))
    assert messages == [(done, 6) for done in range(6)]
    with pytest.raises(Cancelled):
        deeplift(bert, trace, target, progress=lambda done, total: done < 2)
    with pytest.raises(InputError, match="'nothing' is no token"):
        deeplift(bert, trace, target, "nothing")
    assert not deeplift(bert, bert.trace("[MASK]"), target.__class__(1, 5, "the")).scores.any()
    bert = made(labels=("good",))
    trace = bert.trace("it was a good film")
    assert not deeplift(bert, trace, class_target(bert, trace, "good")).scores.any()  # always certain


def test_several_references_give_the_mean_over_each():
    """Each is the tokens of a text, from its first on and over again, where this text's are replaced."""
    bert, trace, target = asked("mask")
    texts = ["the", "the cats sat on the mat and the cats sat on the mat and the cats sat on it", ""]
    messages = []
    actual = deeplift(bert, trace, target, texts, progress=lambda *steps: messages.append(steps))
    assert messages == [(done, 12) for done in range(12)]
    open_places, references = np.flatnonzero(baseline_token_ids(bert, trace, "[PAD]") != trace.token_ids), []
    for text in texts[:2]:
        ids, reference = bert.tokenizer.batch_ids([text])[0], trace.token_ids.copy()
        for number, place in enumerate(open_places):
            reference[place] = ids[number % len(ids)]
        references.append(reference)
    *there, here = target_log_probabilities(bert, np.stack([*references, trace.token_ids]), trace.segments, target)
    assert actual.log_probability == pytest.approx(here, abs=1e-4) and actual.baseline_log_probability == pytest.approx(
        np.mean(there), abs=1e-4
    )
    assert (
        actual.scores.sum() == pytest.approx(here - np.mean(there), abs=1e-4) and abs(actual.convergence_delta) < 1e-4
    )
    # A text of one token is that token everywhere.
    first, second = (deeplift(bert, trace, target, one) for one in ("the", texts[1:2]))
    np.testing.assert_allclose(deeplift(bert, trace, target, ["the"]).scores, first.scores, atol=1e-5)
    np.testing.assert_allclose(actual.scores, (first.scores + second.scores) / 2, atol=1e-5)
    with pytest.raises(InputError, match="reference texts have no tokens"):
        deeplift(bert, trace, target, [" "])
    with pytest.raises(Cancelled):
        deeplift(bert, trace, target, texts, progress=lambda done, total: done < 8)
