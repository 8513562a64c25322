"""How far two models' heads lie apart."""

import dataclasses

import numpy as np
import pytest

from bert_tf.errors import NotComparable
from bert_tf.explain import attention_divergence
from tests.conftest import make_bert


@pytest.fixture(scope="module")
def trace():
    return make_bert(seed=1).trace("the cat sat on the mat")


def test_the_same_heads_lie_nowhere_apart(trace):
    np.testing.assert_allclose(attention_divergence(trace, trace).divergences, 0, atol=1e-12)


def test_heads_that_look_at_other_tokens_lie_one_bit_apart(trace):
    length = trace.length
    here, there = np.zeros_like(trace.attentions), np.zeros_like(trace.attentions)
    here[..., 0], there[..., 0] = 1, 1
    there[0, 1] = np.roll(np.eye(length), 1, axis=1)
    there[0, 1, :, 0] = 0
    there[0, 1, length - 1] = np.eye(length)[1]
    actual = attention_divergence(
        dataclasses.replace(trace, attentions=here), dataclasses.replace(trace, attentions=there)
    ).divergences
    assert actual[0, 1] == pytest.approx(1) and actual.sum() == pytest.approx(1)


def test_it_is_the_divergence_of_scipy(trace):
    from scipy.spatial.distance import jensenshannon

    other = make_bert(seed=2).trace("the cat sat on the mat")
    actual = attention_divergence(trace, other).divergences
    wanted = jensenshannon(trace.attentions, other.attentions, base=2, axis=-1) ** 2
    np.testing.assert_allclose(actual, wanted.mean(axis=-1), atol=1e-6)


def test_other_tokens_are_refused(trace):
    with pytest.raises(NotComparable, match="different tokens"):
        attention_divergence(trace, make_bert(seed=1).trace("the cat"))
