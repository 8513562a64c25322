"""Summary statistics of heads, on maps whose answers are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.explain import summarise_heads
from bert_tf.explain.attention.head_summary import head_entropies

SOURCES = (None, "a", "a", None, "b", None)


def _trace(*heads):
    return SimpleNamespace(attentions=np.array([heads], np.float32), sources=SOURCES)


def test_uniform_attention_has_full_entropy_and_even_shares():
    summary = summarise_heads(_trace(np.full((6, 6), 1 / 6)))
    assert summary.entropy[0, 0] == pytest.approx(np.log2(6), abs=1e-5)
    assert summary.cls_share[0, 0] == pytest.approx(1 / 6)
    assert summary.sep_share[0, 0] == pytest.approx(2 / 6)
    assert summary.self_share[0, 0] == pytest.approx(1 / 6)
    by_hand = np.mean([abs(i - j) for i in range(6) for j in range(6)])
    assert summary.distance[0, 0] == pytest.approx(by_hand)


def test_a_head_that_looks_at_the_token_before_is_told_from_one_that_looks_after():
    before, after = np.eye(6, k=-1), np.eye(6, k=1)
    before[0, 0] = after[5, 5] = 1
    summary = summarise_heads(_trace(before, after))
    np.testing.assert_allclose(summary.previous_share[0], [5 / 6, 0])
    np.testing.assert_allclose(summary.next_share[0], [0, 5 / 6])
    np.testing.assert_allclose(summary.distance[0], [5 / 6, 5 / 6])
    np.testing.assert_allclose(summary.entropy[0], [0, 0], atol=1e-6)


def test_a_trace_without_maps_says_so(tiny_bert):
    with pytest.raises(InputError, match="attentions=True"):
        summarise_heads(tiny_bert.trace("the cat", attentions=False))


def test_maps_in_half_precision_have_the_same_summary(tiny_bert):
    trace = tiny_bert.trace("the cat sat", "it ran")
    half = SimpleNamespace(attentions=trace.attentions.astype(np.float16), sources=trace.sources)
    half.attentions[..., 2] = 0
    assert np.isfinite(summarise_heads(half).entropy).all()
    half.attentions = trace.attentions.astype(np.float16)
    np.testing.assert_allclose(summarise_heads(half).entropy, summarise_heads(trace).entropy, atol=0.01)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_the_entropies_alone_are_those_of_the_summary(tiny_bert, dtype):
    trace = tiny_bert.trace("the cat sat", "it ran")
    stored = SimpleNamespace(attentions=trace.attentions.astype(dtype), sources=trace.sources)
    rows = stored.attentions.astype(np.float64)
    expected = -(rows * np.log2(np.maximum(rows, 1e-30))).sum(-1).mean(-1)
    np.testing.assert_allclose(head_entropies(stored), expected, atol=1e-5)
    np.testing.assert_array_equal(summarise_heads(stored).entropy, head_entropies(stored))
    with pytest.raises(InputError, match="attentions=True"):
        head_entropies(tiny_bert.trace("the cat", attentions=False))
