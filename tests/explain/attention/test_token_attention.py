"""The methods side by side are those that the library has one by one."""

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.explain import attention_rollout, effective_attention, norm_weighted_attention, token_attention


@pytest.fixture(scope="module")
def trace(tiny_bert):
    return tiny_bert.trace("the cats sat on the mat in the park", "it ran")


@pytest.mark.parametrize("layer, position", [(0, 3), (1, 7)])
def test_all_heads_together(tiny_bert, trace, layer, position):
    actual = token_attention(tiny_bert, trace, layer, position)
    norms = norm_weighted_attention(tiny_bert, trace).layers[layer, position]
    effective = effective_attention(tiny_bert, trace)[layer].mean(axis=0)[position]
    np.testing.assert_allclose(actual.raw, trace.attentions[layer].mean(axis=0)[position], atol=1e-6)
    np.testing.assert_allclose(actual.norm_weighted, norms / norms.sum(), atol=1e-5)
    np.testing.assert_allclose(actual.effective, effective, atol=1e-5)
    np.testing.assert_allclose(actual.rollout, attention_rollout(trace)[layer, position], atol=1e-5)
    assert actual.norm_weighted.sum() == pytest.approx(1) and actual.rollout.sum() == pytest.approx(1, abs=1e-5)


def test_one_head(tiny_bert, trace):
    actual = token_attention(tiny_bert, trace, 1, 4, head=2)
    norms = norm_weighted_attention(tiny_bert, trace).heads[1, 2, 4]
    np.testing.assert_allclose(actual.raw, trace.attentions[1, 2, 4], atol=1e-6)
    np.testing.assert_allclose(actual.norm_weighted, norms / norms.sum(), atol=1e-5)
    np.testing.assert_allclose(actual.effective, effective_attention(tiny_bert, trace)[1, 2, 4], atol=1e-5)


@pytest.mark.parametrize(
    "place, says",
    [
        ({"layer": 2, "position": 0}, "no layer 2: they are numbered 0 to 1"),
        ({"layer": 0, "position": -1}, "no position -1"),
        ({"layer": 0, "position": 0, "head": 4}, "no head 4: they are numbered 0 to 3"),
    ],
)
def test_a_place_that_is_not_there_is_named(tiny_bert, trace, place, says):
    with pytest.raises(InputError, match=says):
        token_attention(tiny_bert, trace, **place)


def test_what_was_worked_out_before_is_used(tiny_bert, trace):
    from bert_tf.explain.attention.token_attention import mean_maps
    from bert_tf.explain.attention.value_attention import value_vectors

    fresh = token_attention(tiny_bert, trace, 1, 4)
    values = value_vectors(tiny_bert, trace)
    from_values = token_attention(tiny_bert, trace, 1, 4, values=values[1], means=mean_maps(trace))
    for name in ("raw", "effective", "norm_weighted", "rollout"):
        np.testing.assert_array_equal(getattr(from_values, name), getattr(fresh, name))
    other = token_attention(tiny_bert, trace, 1, 4, values=values[0], means=np.eye(trace.length)[None].repeat(2, 0))
    assert other.rollout[4] == 1 and not np.allclose(other.norm_weighted, from_values.norm_weighted)
