"""Factors of feed-forward activations: planted ones are found, and a model's are as scikit-learn alone finds them."""

import numpy as np
import pytest
from sklearn.decomposition import NMF

from bert_tf.errors import Cancelled, InputError
from bert_tf.explain import factorise, feed_forward_activations
from bert_tf.explain.models.architecture import layer_activations
from bert_tf.explain.representations import factors as module

TEXT = "the cats sat on the mat in the park and played"


@pytest.fixture(scope="module")
def planted():
    """(activations [2, 8, 9], tokens [3, 9], units [3, 2, 8]): three groups of units, each at tokens of its own."""
    rng = np.random.default_rng(0)
    tokens, units = np.zeros((3, 9)), np.zeros((3, 16))
    for group, (strength, places) in enumerate(((9, range(2, 6)), (4, (0, 6)), (1, (1, 7, 8)))):
        tokens[group, list(places)] = strength * rng.uniform(0.5, 1, len(places))
        units[group, 5 * group : 5 * group + 5] = rng.uniform(0.2, 1, 5)  # the sixteenth unit never fires
    return (units.T @ tokens).reshape(2, 8, 9), tokens, units.reshape(3, 2, 8)


def test_planted_factors_are_found_the_longest_first(planted):
    activations, tokens, units = planted
    lengths = np.linalg.norm(units, axis=(1, 2))
    actual = factorise(activations, 3)
    np.testing.assert_allclose(actual.weights, tokens * lengths[:, None], atol=2e-3)
    np.testing.assert_allclose(actual.unit_weights, units / lengths[:, None, None], atol=2e-3)
    assert actual.explained == pytest.approx(1, abs=1e-5)
    whole = (activations**2).sum()
    # Factors that share neither a unit nor a token add up.
    np.testing.assert_allclose(
        actual.shares, [np.sum(np.outer(u, t) ** 2) / whole for u, t in zip(units.reshape(3, -1), tokens)], atol=1e-4
    )
    assert sum(actual.shares) == pytest.approx(1, abs=1e-4)
    assert module.MIN_FACTORS == 2 and factorise(activations, 2).explained < 0.995


def test_the_strongest_units_of_a_factor_are_named_by_layer_and_number(planted):
    activations, _, units = planted
    actual = factorise(activations, 3)
    named = actual.named([str(place) for place in range(activations.shape[2])], range(activations.shape[2]), 4).units[1]
    weights = units[1] / np.linalg.norm(units[1])
    assert [(one.layer, one.unit) for one in named] == [
        (4 + at // 8, at % 8) for at in np.argsort(-weights, axis=None)[: len(named)].tolist()
    ]
    wanted = sorted(weights[weights > 0], reverse=True)
    assert len(named) == 5 and [one.weight for one in named] == pytest.approx(wanted, abs=2e-3)
    assert len(actual.strongest_units(1, 2)) == 2


def test_activations_are_those_inside_the_blocks_without_what_is_below_0(tiny_bert):
    trace = tiny_bert.trace(TEXT, hidden_states=True)
    wide = np.stack([layer_activations(tiny_bert, trace, layer)["feed_forward_wide"].T for layer in range(2)])
    assert (wide < 0).any()
    seen = []
    actual = feed_forward_activations(tiny_bert, trace, progress=lambda *at: seen.append(at))
    np.testing.assert_allclose(actual, np.where(wide > 0, wide, 0), atol=1e-6)
    assert seen == [(1, 2), (2, 2)]
    part = feed_forward_activations(tiny_bert, trace, 1, 1, [3, 1])
    np.testing.assert_allclose(part, actual[1:, :, [3, 1]], atol=1e-6)


def test_a_model_s_factors_leave_as_little_as_scikit_learn_s_own_run(tiny_bert):
    trace = tiny_bert.trace(TEXT, "it ran", hidden_states=True)
    activations = feed_forward_activations(tiny_bert, trace)
    flat = activations.reshape(-1, trace.length)
    for count in (2, 5):
        actual = factorise(activations, count)
        model = NMF(count, init="nndsvd", max_iter=1000, tol=1e-6, random_state=0)
        rest = flat - model.fit_transform(flat) @ model.components_
        assert actual.explained == pytest.approx(1 - (rest**2).sum() / (flat**2).sum(), abs=5e-3)
        left = flat - actual.unit_weights.reshape(count, -1).T @ actual.weights
        assert actual.explained == pytest.approx(1 - (left**2).sum() / (flat**2).sum(), abs=1e-5)
        assert (actual.weights >= 0).all() and (actual.unit_weights >= 0).all()
        np.testing.assert_allclose(np.linalg.norm(actual.unit_weights, axis=(1, 2)), 1, atol=1e-5)
        np.testing.assert_allclose(actual.shares, (actual.weights**2).sum(axis=1) / (flat**2).sum(), atol=1e-5)
        assert (np.diff(actual.shares) <= 0).all() and 0 < sum(actual.shares) <= actual.explained + 1e-3
        np.testing.assert_array_equal(
            factorise(activations, count).weights, actual.weights
        )  # nothing is left to chance


def test_there_are_no_more_factors_than_tokens(planted):
    assert factorise(planted[0][..., 2:5], 12).weights.shape == (3, 3)
    alike = factorise(np.ones((1, 4, 3)), 3)  # one factor is all there is
    assert alike.explained == pytest.approx(1, abs=1e-5) and alike.shares[0] == pytest.approx(1, abs=1e-4)
    assert (alike.weights.max(axis=1) > 0).all() and (alike.unit_weights.max(axis=(1, 2)) > 0).all()


def test_what_cannot_be_taken_apart_is_refused(tiny_bert, planted, monkeypatch):
    trace = tiny_bert.trace(TEXT, hidden_states=True)
    for factors in (1, 13):
        with pytest.raises(InputError, match="2 to 12 factors"):
            factorise(planted[0], factors)
    for activations in (-planted[0], np.zeros((1, 4, 3))):
        with pytest.raises(InputError, match="none is below 0"):
            factorise(activations, 2)
    for shape in ((4, 3), (1, 4, 0)):
        with pytest.raises(InputError, match=r"shape \[L, F, T\], not"):
            factorise(np.ones(shape), 2)
    for layers in ((0, 2), (-1, 1), (1, 0)):
        with pytest.raises(InputError, match="has layers 0 to 1"):
            feed_forward_activations(tiny_bert, trace, *layers)
    for positions in ([], [trace.length], [-1]):
        with pytest.raises(InputError, match="positions of tokens"):
            feed_forward_activations(tiny_bert, trace, positions=positions)
    with pytest.raises(ValueError, match="no hidden states"):
        feed_forward_activations(tiny_bert, tiny_bert.trace(TEXT, hidden_states=False))
    monkeypatch.setattr(module, "MAX_ACTIVATIONS", 2 * tiny_bert.config.intermediate_size * trace.length - 1)
    with pytest.raises(InputError, match="choose fewer layers or a shorter text"):
        feed_forward_activations(tiny_bert, trace)
    feed_forward_activations(tiny_bert, trace, 1)
    for work in (
        lambda stop: feed_forward_activations(tiny_bert, trace, 1, progress=stop),
        lambda stop: factorise(planted[0], 2, stop),
    ):
        with pytest.raises(Cancelled):
            work(lambda done, total: False)
