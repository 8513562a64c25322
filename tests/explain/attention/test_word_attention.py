"""Attention between words, against sums and means written out."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.explain import word_attention, word_trace


def test_words_attend_with_the_mean_and_are_attended_with_the_sum(tiny_bert):
    trace = tiny_bert.trace("the cats sat")
    actual = word_attention(trace, [[1], [2, 3], [4]])
    maps = trace.attentions
    np.testing.assert_allclose(actual[:, :, 0, 1], maps[:, :, 1, 2] + maps[:, :, 1, 3], rtol=1e-5)
    np.testing.assert_allclose(actual[:, :, 1, 2], (maps[:, :, 2, 4] + maps[:, :, 3, 4]) / 2, rtol=1e-5)


def test_the_maps_are_not_all_held_in_float32():
    maps = np.random.default_rng(0).random((8, 4, 120, 120)).astype(np.float16)
    groups = [range(start, start + 10) for start in range(0, 120, 10)]
    tracemalloc.start()
    try:
        actual = word_attention(SimpleNamespace(attentions=maps, length=120), groups)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < maps.nbytes and actual.dtype == np.float32
    pieces = maps.astype(np.float64).reshape(8, 4, 12, 10, 12, 10)
    np.testing.assert_allclose(actual, pieces.sum(axis=5).mean(axis=3), rtol=1e-5)


def test_a_trace_of_words_has_a_row_that_adds_up_to_one_for_every_word(tiny_bert):
    trace = tiny_bert.trace("the cats sat", "the cats", mask=[2, 3])
    words = word_trace(trace)
    assert words.tokens == ("[CLS]", "the", "[MASK]", "sat", "[SEP]", "the", "cats", "[SEP]")
    assert words.original_tokens[2] == "cats" and words.sources == (None, "a", "a", "a", None, "b", "b", None)
    assert words.offsets[2] == (4, 8) and words.offsets[0] is None and words.length == 8
    np.testing.assert_allclose(words.attentions.sum(axis=-1), 1, rtol=1e-5)
    maps = trace.attentions
    np.testing.assert_allclose(words.attentions[:, :, 0, 0], maps[:, :, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(words.attentions[:, :, 4, 2], maps[:, :, 5, 2] + maps[:, :, 5, 3], rtol=1e-5)
    np.testing.assert_allclose(words.attentions[:, :, 2, 0], maps[:, :, 2:4, 0].mean(axis=2), rtol=1e-5)
    assert words.masks == () and words.logits is None


def test_a_trace_without_maps_has_no_words(tiny_bert):
    with pytest.raises(InputError, match="attentions=True"):
        word_trace(tiny_bert.trace("the cat", attentions=False))
