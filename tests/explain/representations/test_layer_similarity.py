"""CKA against its formulas written out, SVCCA and PWCCA against canonical correlations found another way."""

import dataclasses

import numpy as np
import pytest

from bert_tf.errors import Cancelled, InputError, NotComparable
from bert_tf.explain.datasets.text_rows import TextRow
from bert_tf.explain.representations.layer_similarity import (
    chance_similarity,
    compare_layers,
    compare_traces,
    layer_similarity,
    linear_cka,
    pwcca,
    svcca,
    traces_of,
)
from bert_tf.explain.representations.vectors import word_vectors

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
        np.trace(k @ m) + (one @ k @ one) * (one @ m @ one) / ((n - 1) * (n - 2)) - 2 / (n - 2) * (one @ k @ m @ one)
    ) / (n * (n - 3))


def _unbiased(x, y):
    k, m = x @ x.T, y @ y.T
    return _unbiased_hsic(k, m) / np.sqrt(_unbiased_hsic(k, k) * _unbiased_hsic(m, m))


@pytest.mark.parametrize("debiased, formula", [(False, _plain), (True, _unbiased)])
def test_every_pair_of_layers_by_the_formula(debiased, formula):
    rng = np.random.default_rng(0)
    a = rng.normal(1, 1, (3, 12, 5))
    b = np.concatenate([rng.normal(0, 2, (1, 12, 7)), np.pad(a[:1], ((0, 0), (0, 0), (0, 2))) + 0.1])
    actual = linear_cka(a, b, debiased)
    expected = [[formula(x, y) for y in b] for x in a]
    np.testing.assert_allclose(actual, expected, atol=1e-9)


@pytest.mark.parametrize("measure", [linear_cka, svcca, pwcca])
def test_equal_vectors_have_no_similarity_even_where_their_mean_is_rounded(measure):
    rng = np.random.default_rng(0)
    same, noise = np.repeat(rng.normal(size=(1, 1, 6)), 50, axis=1), rng.normal(size=(1, 50, 6))
    assert np.ptp(same - same.mean(axis=1, keepdims=True)) >= 0
    assert np.isnan(measure(same, noise)).all() and np.isnan(measure(same, same)).all()


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
    actual = layer_similarity(a, b)
    assert actual.shape == (3, 4)
    assert actual[1, 2] == pytest.approx(_unbiased(word_vectors(a)[1], word_vectors(b)[2]), abs=1e-4)
    np.testing.assert_allclose(np.diag(layer_similarity(a, a)), 1, atol=1e-6)


def test_the_words_that_are_compared_are_counted(tiny_bert):
    trace = tiny_bert.trace(TEXT)
    words = trace.words()
    shorter = dataclasses.replace(trace, word_ids=tuple(one if one in (0, 1, 2, 3) else None for one in trace.word_ids))
    assert len(words) > 4 and [word.text for word in shorter.words()] == [word.text for word in words[:4]]
    assert compare_traces([trace], [trace]).words == len(words)
    assert compare_traces([trace], [shorter]).words == compare_traces([shorter], [trace]).words == 4


def test_the_other_model_reads_the_same_words_masked(tiny_bert):
    twice = tiny_bert.trace("the cat sat and the [MASK] ran", mask=[5])
    assert twice.masks == (5, 6)
    actual = compare_layers(tiny_bert, twice, None, tiny_bert).similarity
    np.testing.assert_allclose(np.diag(actual), 1, atol=1e-6)


def test_the_other_model_gives_its_hidden_states_alone(tiny_bert, other_bert, monkeypatch):
    asked, run = [], other_bert.runtime.run
    monkeypatch.setattr(other_bert.runtime, "run", lambda batch, outputs: asked.append(outputs) or run(batch, outputs))
    compare_layers(tiny_bert, tiny_bert.trace(TEXT), None, other_bert)
    assert "hidden_states" in asked[0] and "attentions" not in asked[0] and len(asked) == 1


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


def test_a_row_that_cannot_be_read_is_named_and_passed_over(tiny_bert, other_bert):
    texts = [(1, TEXT), (2, "  "), (3, "half \ud800"), (5, "a dog ran in the park")]
    rows = [TextRow(number, text) for number, text in texts]
    actual = compare_layers(tiny_bert, None, iter(rows), other_bert)
    good = compare_layers(tiny_bert, None, [rows[0], rows[3]], other_bert)
    np.testing.assert_array_equal(actual.similarity, good.similarity)
    assert (actual.texts, actual.words, good.problems) == (2, good.words, ())
    assert [number for number, _ in actual.problems] == [2, 3] and "half a surrogate" in actual.problems[1][1]
    assert actual.to_text().splitlines()[-2].startswith("Row 2 cannot be read: text_a is empty")
    with pytest.raises(InputError, match="None of these rows can be read. Row 2: text_a is empty"):
        compare_layers(tiny_bert, None, rows[1:3], other_bert)


def _leading(x, explained, most):
    """A layer's coordinates along its leading directions, from the eigenvectors of its covariance."""
    x = x - x.mean(axis=0)
    variances, axes = np.linalg.eigh(x.T @ x)
    variances, axes = variances[::-1], axes[:, ::-1]
    count = next(k for k in range(1, len(variances) + 1) if variances[:k].sum() >= explained * variances.sum())
    return x, x @ axes[:, : min(count, most)]


def _canonical(x, y):
    """(correlations, canonical variables of x) from the eigenvectors of Hotelling's product of covariances."""
    sxx, syy, sxy = x.T @ x, y.T @ y, x.T @ y
    squares, vectors = np.linalg.eig(np.linalg.solve(sxx, sxy) @ np.linalg.solve(syy, sxy.T))
    order = np.argsort(-squares.real)[: min(x.shape[1], y.shape[1])]
    return np.sqrt(squares.real[order]), x @ vectors.real[:, order]


def _weighed(whole, part, other):
    """PWCCA word for word (Morcos et al. 2018, section 2.3; the canonical variables brought to length 1)."""
    actual, variables = _canonical(part, other)
    variables = variables / np.linalg.norm(variables, axis=0)
    weights = [sum(abs(h @ unit) for unit in whole.T) for h in variables.T]
    return np.average(actual, weights=weights)


def test_canonical_correlations_of_every_pair_of_layers_found_another_way():
    rng = np.random.default_rng(0)
    spread = np.array([9, 7, 5, 3, 2, 1, 0.1, 0.01])
    a = rng.normal(1, 1, (3, 40, 8)) * spread
    b = np.concatenate([rng.normal(size=(1, 40, 6)), a[:1, :, :6] + rng.normal(size=(1, 40, 6))])
    for explained in (0.5, 0.9, 0.99):
        for row, x in enumerate(a):
            for column, y in enumerate(b):
                (x_whole, x_part), (y_whole, y_part) = _leading(x, explained, 13), _leading(y, explained, 13)
                wanted = _canonical(x_part, y_part)[0].mean()
                assert svcca(a, b, explained)[row, column] == pytest.approx(wanted, abs=1e-8)
                sides = (x_whole, x_part, y_part), (y_whole, y_part, x_part)
                wanted = _weighed(*sides[y_part.shape[1] < x_part.shape[1]])
                assert pwcca(a, b, explained)[row, column] == pytest.approx(wanted, abs=1e-8)


def test_the_first_canonical_correlation_is_scikit_learn_s():
    from sklearn.cross_decomposition import CCA

    rng = np.random.default_rng(5)
    x = rng.normal(size=(30, 1))
    y = np.hstack([x + rng.normal(size=(30, 1)), rng.normal(size=(30, 2))])
    one, other = CCA(1, max_iter=10_000, tol=1e-12).fit_transform(x, y)
    wanted = abs(np.corrcoef(one.ravel(), other.ravel())[0, 1])
    for measure in (svcca, pwcca):  # of a single direction against three there is one correlation
        assert measure(x[None], y[None], 1)[0, 0] == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("measure", [svcca, pwcca])
def test_no_invertible_linear_map_counts(measure):
    rng = np.random.default_rng(1)
    a = rng.normal(size=(1, 30, 6))
    mixed = a @ rng.normal(size=(6, 6)) + rng.normal(size=6)
    assert measure(a, mixed, 1)[0, 0] == pytest.approx(1) and linear_cka(a, mixed)[0, 0] < 0.95
    wider = np.concatenate([a, rng.normal(size=(1, 30, 2))], axis=2)  # what is there besides does not count
    assert measure(a, wider, 1)[0, 0] == pytest.approx(1) == measure(wider, a, 1)[0, 0]


@pytest.mark.parametrize("measure", [svcca, pwcca])
def test_directions_are_no_more_than_a_third_of_the_words(measure):
    a, b = np.random.default_rng(2).normal(size=(2, 1, 20, 200))
    # With as many as words both span everything, and anything is the same.
    assert 0.3 < measure(a, b, 1)[0, 0] < 0.8
    ones, others = (_leading(side[0], 1, 6)[1] for side in (a, b))
    assert svcca(a, b, 1)[0, 0] == pytest.approx(_canonical(ones, others)[0].mean(), abs=1e-8)
    assert np.isnan(measure(np.ones((1, 9, 3)), a[:, :9]))[0, 0]
    with pytest.raises(InputError, match="CCA needs at least 6 words, not 5"):
        measure(a[:, :5], b[:, :5])
    with pytest.raises(InputError, match="above 0"):
        measure(a, b, 0)


def test_layers_of_two_models_by_every_measure(tiny_bert, other_bert):
    a, b = tiny_bert.trace(TEXT, "it ran"), other_bert.trace(TEXT, "it ran")
    for name, measure in (("svcca", svcca), ("pwcca", pwcca)):
        np.testing.assert_allclose(layer_similarity(a, b, measure=name), measure(word_vectors(a), word_vectors(b)))
        np.testing.assert_allclose(np.diag(layer_similarity(a, a, measure=name)), 1, atol=1e-6)
    with pytest.raises(InputError, match="no measure 'cca'"):
        layer_similarity(a, b, measure="cca")


def test_what_chance_gives_is_that_of_shuffled_words(tiny_bert, other_bert):
    a, b = tiny_bert.trace(TEXT, "it ran"), other_bert.trace(TEXT, "it ran")
    one, other = (word_vectors(trace)[-1:] for trace in (a, b))
    rng = np.random.default_rng(7)
    drawn = [svcca(one, other[:, rng.permutation(one.shape[1])])[0, 0] for _ in range(300)]
    actual = chance_similarity(a, b, "svcca", draws=300)
    assert actual == pytest.approx(np.mean(drawn), abs=0.03) and actual == chance_similarity(a, b, "svcca", 300)
    assert chance_similarity(a, b, "svcca") > 0.2 > abs(chance_similarity(a, b, "cka", 300))
