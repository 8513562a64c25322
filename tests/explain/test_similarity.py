"""CKA against its formulas written out."""

import numpy as np
import pytest

from bert_tf.explain import InputError, NotComparable
from bert_tf.explain.errors import Cancelled
from bert_tf.explain.similarity import layer_similarity, linear_cka, traces_of
from bert_tf.explain.vectors import word_vectors

TEXT = "the cats sat on the mat in the park and played"


def _plain(x, y):
    """Kornblith et al. 2019, section 3: the Frobenius norms of the cross-covariances."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    return np.linalg.norm(y.T @ x) ** 2 / np.linalg.norm(x.T @ x) / np.linalg.norm(y.T @ y)


def _unbiased_hsic(k, m):
    """Song et al. 2012, equation 5, word for word."""
    n = len(k)
    k, m, one = k - np.diag(np.diag(k)), m - np.diag(np.diag(m)), np.ones(n)
    return (
        np.trace(k @ m)
        + (one @ k @ one) * (one @ m @ one) / ((n - 1) * (n - 2))
        - 2 / (n - 2) * (one @ k @ m @ one)
    ) / (n * (n - 3))


def _unbiased(x, y):
    k, m = x @ x.T, y @ y.T
    return _unbiased_hsic(k, m) / np.sqrt(_unbiased_hsic(k, k) * _unbiased_hsic(m, m))


@pytest.mark.parametrize("debiased, formula", [(False, _plain), (True, _unbiased)])
def test_every_pair_of_layers_by_the_formula(debiased, formula):
    rng = np.random.default_rng(0)
    a = rng.normal(1, 1, (3, 12, 5))
    b = np.concatenate([rng.normal(0, 2, (1, 12, 7)), np.pad(a[:1], ((0, 0), (0, 0), (0, 2))) + 0.1])
    found = linear_cka(a, b, debiased)
    expected = [[formula(x, y) for y in b] for x in a]
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("debiased", [True, False])
def test_rotation_and_scale_do_not_count(debiased):
    rng = np.random.default_rng(1)
    a = rng.normal(size=(1, 30, 6))
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    assert linear_cka(a, 3 * a @ rotation + 1, debiased)[0, 0] == pytest.approx(1)


def test_unrelated_vectors_wider_than_many_are_told_apart_only_without_bias():
    a, b = np.random.default_rng(2).normal(size=(2, 1, 20, 200))
    assert linear_cka(a, b, debiased=False)[0, 0] > 0.8 and abs(linear_cka(a, b)[0, 0]) < 0.2


def test_a_layer_that_tells_nothing_apart_has_no_similarity():
    assert np.isnan(linear_cka(np.ones((1, 5, 3)), np.random.default_rng(0).normal(size=(1, 5, 3))))[0, 0]


def test_two_models_that_cut_words_differently_are_compared_by_words(tiny_bert, other_bert):
    a, b = tiny_bert.trace(TEXT, "it ran"), other_bert.trace(TEXT, "it ran")
    found = layer_similarity(a, b)
    assert found.shape == (3, 4)
    assert found[1, 2] == pytest.approx(_unbiased(word_vectors(a)[1], word_vectors(b)[2]), abs=1e-4)
    np.testing.assert_allclose(np.diag(layer_similarity(a, a)), 1, atol=1e-6)


def test_several_texts_count_together(tiny_bert, other_bert):
    traces = [[bert.trace(text) for text in (TEXT, "a dog ran")] for bert in (tiny_bert, other_bert)]
    x, y = (np.concatenate([word_vectors(trace)[2] for trace in side]) for side in traces)
    assert layer_similarity(*traces, debiased=False)[2, 2] == pytest.approx(_plain(x, y), abs=1e-4)


def test_what_cannot_be_compared_is_refused(tiny_bert, other_bert):
    with pytest.raises(NotComparable, match="different texts"):
        layer_similarity(tiny_bert.trace("a cat"), other_bert.trace("a dog"))
    with pytest.raises(InputError, match="at least 4 words, not 2"):
        layer_similarity(tiny_bert.trace("a cat"), other_bert.trace("a cat"))
    with pytest.raises(InputError, match="same words"):
        linear_cka(np.zeros((1, 5, 2)), np.zeros((1, 6, 2)))


def test_texts_are_read_by_both_until_there_are_enough_words(tiny_bert, other_bert):
    texts, seen = [("the cat sat", None), ("a dog ran", "it ran"), ("the big park", None)], []
    readers = [tiny_bert.trace, other_bert.trace]
    for enough, count in ((3, 1), (4, 2), (8, 2), (9, 3), (600, 3)):
        ones, others = traces_of(readers, texts, enough, lambda *at: seen.append(at))
        assert [(one.text_a, one.text_b) for one in ones] == texts[:count]
        assert [one.model for one in others] == ["tiny-uncased"] * count
        assert seen[-1] == (count, 3)
    np.testing.assert_allclose(
        layer_similarity(ones, others),
        layer_similarity(*([bert.trace(*text) for text in texts] for bert in (tiny_bert, other_bert))),
    )
    with pytest.raises(Cancelled):
        traces_of(readers, texts, progress=lambda done, total: False)
