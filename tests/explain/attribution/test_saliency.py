"""Saliency against its definitions: small differences, the completeness axiom, and replacing by hand."""

import gc

import numpy as np
import pytest
import tensorflow as tf

import bert_tf.explain.attribution.saliency as saliency_module
from bert_tf import load
from bert_tf.errors import Cancelled, InputError
from bert_tf.explain.attribution.methods import SALIENCY_METHODS
from bert_tf.explain.attribution.saliency import (
    gradient_x_input,
    integrated_gradients,
    occlusion,
    smoothgrad,
)
from bert_tf.explain.attribution.target import mask_target, next_sentence_target


@pytest.fixture(scope="module")
def trace(tiny_bert):
    return tiny_bert.trace("the cats sat on the [MASK]", "it ran")


@pytest.fixture(scope="module", params=["mask", "next sentence"])
def target(request, tiny_bert, trace):
    return mask_target(tiny_bert, trace) if request.param == "mask" else next_sentence_target(tiny_bert, trace)


def _score(bert, trace, ids, target):
    """The target's log-probability by the model itself."""
    batch = {
        "token_ids": ids[None],
        "segment_ids": trace.segments[None],
        "padding_mask": np.ones((1, trace.length), np.int32),
        "mask_positions": np.array([[target.position or 0]], np.int32),
    }
    actual = bert.runtime.run(batch, ("mlm_logits", "nsp_logits"))
    logits = (actual["nsp_logits"][0] if target.position is None else actual["mlm_logits"][0, 0]).astype(np.float64)
    return logits[target.id] - np.log(np.exp(logits).sum())


def test_gradient_x_input_is_the_slope_when_a_vector_grows(tiny_bert, trace, target):
    actual = gradient_x_input(tiny_bert, trace, target)
    assert actual.log_probability == pytest.approx(_score(tiny_bert, trace, trace.token_ids, target), abs=1e-4)
    vectors = tiny_bert.hooked().token_vectors(trace.token_ids[None]).numpy()
    for position in (0, 2, 6, 8):
        ends = []
        for factor in (1.01, 0.99):
            grown = vectors.copy()
            grown[0, position] *= factor
            ends.append(float(tiny_bert.hooked().gradient(grown, trace.segments[None], target)[0][0]))
        assert actual.scores[position] == pytest.approx((ends[0] - ends[1]) / 0.02, rel=0.05, abs=0.003)
    assert (actual.gradient_norms >= 0).all() and actual.gradient_norms.shape == (trace.length,)


def test_smoothgrad_is_the_mean_slope_of_noisy_copies_times_the_words(tiny_bert, trace, target):
    actual = smoothgrad(tiny_bert, trace, target, copies=7, noise=0.1)
    hooked = tiny_bert.hooked()
    vectors = hooked.token_vectors(trace.token_ids[None]).numpy()
    noise_std = 0.1 * (vectors.max() - vectors.min())
    random, slopes, scores = np.random.default_rng(0), [], []
    for _ in range(7):
        noise = noise_std * random.normal(size=vectors.shape[1:])
        score, slope = hooked.gradient(vectors + noise[None], trace.segments[None], target)
        slopes.append(slope[0])
        scores.append(score[0])
    np.testing.assert_allclose(actual.scores, (np.mean(slopes, axis=0) * vectors[0]).sum(axis=1), atol=1e-3)
    assert actual.noise_std == pytest.approx(noise_std) and actual.noisy_log_probability == pytest.approx(
        np.mean(scores), abs=1e-3
    )
    assert actual.log_probability == pytest.approx(_score(tiny_bert, trace, trace.token_ids, target), abs=1e-4)
    assert actual.words[1].score == pytest.approx(actual.scores[[2, 3]].sum())
    again, other = (smoothgrad(tiny_bert, trace, target, 7, 0.1, seed) for seed in (0, 1))
    np.testing.assert_array_equal(again.scores, actual.scores)
    assert not np.allclose(other.scores, actual.scores, atol=1e-3)


def test_smoothgrad_without_noise_is_gradient_x_input(tiny_bert, trace, target):
    actual = smoothgrad(tiny_bert, trace, target, copies=3, noise=0)
    np.testing.assert_allclose(actual.scores, gradient_x_input(tiny_bert, trace, target).scores, atol=1e-4)
    assert actual.noisy_log_probability == pytest.approx(actual.log_probability, abs=1e-4) and actual.noise_std == 0


@pytest.mark.parametrize("baseline", ["[MASK]", "[PAD]"])
def test_integrated_gradients_add_up_to_the_difference(tiny_bert, trace, target, baseline):
    actual = integrated_gradients(tiny_bert, trace, target, steps=32, baseline=baseline)
    fill = tiny_bert.tokenizer.token_to_id(baseline)
    baseline_token_ids = np.array(
        [i if s is None or p in trace.masks else fill for p, (i, s) in enumerate(zip(trace.token_ids, trace.sources))],
        np.int32,
    )
    assert actual.baseline_log_probability == pytest.approx(
        _score(tiny_bert, trace, baseline_token_ids, target), abs=1e-4
    )
    assert actual.scores.sum() == pytest.approx(actual.log_probability - actual.baseline_log_probability, abs=0.01)
    assert actual.convergence_delta == pytest.approx(
        actual.scores.sum() - actual.log_probability + actual.baseline_log_probability, abs=1e-9
    )
    fixed = [p for p, source in enumerate(trace.sources) if source is None or p in trace.masks]
    assert not actual.scores[fixed].any()


def test_integrated_gradients_equal_a_fine_riemann_sum(tiny_bert, trace, target):
    hooked, mask = tiny_bert.hooked(), tiny_bert.tokenizer.mask_id
    vectors = hooked.token_vectors(trace.token_ids).numpy()
    baseline_token_ids = [i if s is None else mask for i, s in zip(trace.token_ids, trace.sources)]
    start = hooked.token_vectors(np.array(baseline_token_ids, np.int32)).numpy()
    shares = (np.arange(300) + 0.5) / 300
    path = (start + shares[:, None, None] * (vectors - start)).astype(np.float32)
    _, gradients = hooked.gradient(path, np.repeat(trace.segments[None], 300, axis=0), target)
    expected = ((vectors - start) * gradients.mean(axis=0)).sum(axis=1)
    actual = integrated_gradients(tiny_bert, trace, target, baseline="[MASK]")
    np.testing.assert_allclose(actual.scores, expected, atol=0.005)


@pytest.mark.parametrize("method", [integrated_gradients, smoothgrad])
def test_steps_in_blocks_give_the_same(tiny_bert, trace, target, monkeypatch, method):
    whole = method(tiny_bert, trace, target, 9)
    calls = []
    monkeypatch.setattr("bert_tf.explain.attribution.saliency.TOKENS_PER_BATCH", 2 * trace.length)
    parts = method(tiny_bert, trace, target, 9, progress=lambda *at: calls.append(at))
    np.testing.assert_allclose(whole.scores, parts.scores, atol=1e-5)
    assert list(dict.fromkeys(calls)) == [(0, 9), (2, 9), (4, 9), (6, 9), (8, 9), (9, 9)] and calls == sorted(calls)
    # Also between the layers, forwards and backwards, so that others can use the model meanwhile.
    assert calls.count((0, 9)) == 2 * tiny_bert.config.num_hidden_layers


@pytest.mark.parametrize("baseline", ["[MASK]", "[PAD]"])
def test_occlusion_is_what_replacing_each_token_costs(tiny_bert, trace, target, baseline):
    actual = occlusion(tiny_bert, trace, target, baseline, unit="token")
    whole = _score(tiny_bert, trace, trace.token_ids, target)
    for position, source in enumerate(trace.sources):
        lost = 0.0
        if source is not None and position not in trace.masks:
            ids = np.array(trace.token_ids)
            ids[position] = tiny_bert.tokenizer.vocab.index(baseline)
            lost = whole - _score(tiny_bert, trace, ids, target)
        assert actual.scores[position] == pytest.approx(lost, abs=2e-4)


def test_a_whole_word_is_taken_out_at_once(tiny_bert, trace, target):
    actual = occlusion(tiny_bert, trace, target, unit="word")
    cats = trace.words()[1]
    ids = np.array(trace.token_ids)
    ids[list(cats.positions)] = tiny_bert.tokenizer.mask_id
    lost = _score(tiny_bert, trace, trace.token_ids, target) - _score(tiny_bert, trace, ids, target)
    assert len(cats.positions) == 2 and actual.words[1].word == cats
    assert actual.words[1].score == pytest.approx(lost, abs=2e-4)


def test_words_are_the_sums_of_their_tokens(tiny_bert, trace, target):
    actual = gradient_x_input(tiny_bert, trace, target)
    for one in actual.words:
        assert one.score == pytest.approx(actual.scores[list(one.word.positions)].sum())
    assert [one.word.text for one in actual.words][:3] == ["the", "cats", "sat"]


def test_long_work_can_be_cancelled(tiny_bert, trace, target):
    with pytest.raises(Cancelled, match="Stopped after"):
        occlusion(tiny_bert, trace, target, progress=lambda done, total: False)
    for method in (integrated_gradients, smoothgrad):
        with pytest.raises(Cancelled):
            method(tiny_bert, trace, target, progress=lambda done, total: False)


def test_bad_settings_are_refused(tiny_bert, trace, target):
    with pytest.raises(InputError, match="steps.*0"):
        integrated_gradients(tiny_bert, trace, target, steps=0)
    with pytest.raises(InputError, match="copies.*0.5"):
        smoothgrad(tiny_bert, trace, target, copies=0.5)
    with pytest.raises(InputError, match="noise.*-0.1"):
        smoothgrad(tiny_bert, trace, target, noise=-0.1)
    with pytest.raises(InputError, match="'nothing' is no token"):
        occlusion(tiny_bert, trace, target, "nothing")
    with pytest.raises(InputError, match="unit.*'line'"):
        occlusion(tiny_bert, trace, target, unit="line")


def test_gradients_are_taken_until_the_gap_is_small(tiny_bert, trace, target):
    few = integrated_gradients(tiny_bert, trace, target, steps=1)
    explained = abs(few.log_probability - few.baseline_log_probability)
    gap = abs(few.convergence_delta) / explained
    enough = integrated_gradients(tiny_bert, trace, target, steps=1, most_gap=gap / 10)
    assert 0 < abs(enough.convergence_delta) <= explained * gap / 10
    assert integrated_gradients(tiny_bert, trace, target, steps=1, most_gap=gap).scores == pytest.approx(few.scores)


def test_the_steep_part_of_the_path_gets_the_gradients():
    class Steep:
        """Two tokens; the first one's answer changes by 2 within some thousandths of the way, the second's evenly."""

        left = most = 400

        def gradients(self, shares):
            self.left -= len(shares)
            return np.stack(
                [1000 / np.cosh(np.clip((shares - 0.37) * 1000, -50, 50)) ** 2, np.full(len(shares), 0.5)], 1
            )

        def log_probabilities(self, shares):
            return [float(np.tanh((share - 0.37) * 1000) + 0.5 * share) for share in shares]

    path = Steep()
    parts = saliency_module._parts(path, [(0.0, 1.0)], 32)
    assert saliency_module._share_missed(parts) > 0.1
    evenly = saliency_module._parts(Steep(), [(0.0, 1.0)], 256)
    while saliency_module._share_missed(parts) > 0.001:
        assert path.left > 0
        parts = saliency_module._with_halves(path, parts)
    assert path.most - path.left < 256 and saliency_module._share_missed(evenly) > 0.01
    assert sum(part.scores for part in parts) == pytest.approx([2, 0.5], abs=0.005)
    assert [part.first for part in parts[1:]] == [part.last for part in parts[:-1]]
    widths = {part.last - part.first: part for part in parts}
    narrowest = widths[min(widths)]
    assert abs((narrowest.first + narrowest.last) / 2 - 0.37) < 0.02


@pytest.mark.parametrize("method", SALIENCY_METHODS)
def test_nothing_of_a_dropped_model_stays_in_tensorflow(tiny_folder, method):
    """TensorFlow keeps what is registered with it, such as custom gradients, and all that they refer to."""

    def graphs():
        gc.collect()
        return sum(isinstance(value, tf.Graph) for value in gc.get_objects())

    before = graphs()
    bert = load(tiny_folder)
    trace = bert.trace("the [MASK] of the work")
    SALIENCY_METHODS[method](bert, trace, mask_target(bert, trace))
    del bert, trace
    assert graphs() == before
