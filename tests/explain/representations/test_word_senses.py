"""Senses of a word, and vectors laid out by their neighbours."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.explain import occurrences, principal_components, project_to_plane, sense_separation, tsne, umap


def clusters(count=10, apart=6.0):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2 * count, 32))
    noise[:count, 0] += apart
    noise[count:, 1] += apart
    return noise, ["one"] * count + ["two"] * count


def test_senses_that_lie_apart_are_told_apart_and_mixed_ones_are_not():
    vectors, senses = clusters()
    actual = sense_separation(np.stack([vectors, np.random.default_rng(1).normal(size=vectors.shape)]), senses)
    assert actual.nearest[0] == 1 and actual.nearest[1] < 0.8
    assert actual.within[0] > 0.4 > actual.between[0] and abs(actual.within[1] - actual.between[1]) < 0.1


def test_the_means_are_those_of_the_pairs():
    vectors = np.array([[1.0, 0], [3, 4], [0, 1], [0, 2]])[None]
    actual = sense_separation(vectors, ["x", "x", "y", "y"])
    assert actual.within[0] == pytest.approx((0.6 + 1) / 2)
    assert actual.between[0] == pytest.approx((0 + 0 + 0.8 + 0.8) / 4)
    assert actual.nearest[0] == 0.75


def test_equally_near_ones_share_the_credit_whatever_the_rounding():
    vectors = np.array([[1.0, 0], [1, 1e-9], [1, -1e-9], [0, 1]])[None]
    actual = sense_separation(vectors, ["x", "x", "y", "y"])
    assert actual.nearest[0] == pytest.approx((0.5 + 0.5 + 0 + 1 / 3) / 4)


def test_a_sense_that_occurs_once_cannot_be_missed():
    vectors = np.array([[1.0, 0], [3, 4], [0, 1], [0, 2], [1, 0.1]])[None]
    actual = sense_separation(vectors, ["x", "x", "y", "y", "z"])
    # The first is nearest to "z", the second to a "y"; the two "y" are equal.
    assert actual.nearest[0] == pytest.approx((0 + 0 + 1 + 1) / 4)


def test_sentences_without_a_label_are_no_sense_of_their_own():
    vectors, senses = clusters()
    unlabelled = np.concatenate([vectors, np.random.default_rng(1).normal(size=(4, 32))])
    actual, expected = sense_separation(unlabelled[None], [*senses, *[""] * 4]), sense_separation(vectors[None], senses)
    for name in ("within", "between", "nearest"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name))


@pytest.mark.parametrize(
    "senses, says",
    [
        (["x"] * 3, "two senses"),
        (["x", "y", "z"], "two senses"),
        (["x", "x", ""], "two senses"),
        ([""] * 3, "two senses"),
        (["x"], "labels"),
    ],
)
def test_without_two_senses_there_is_nothing_to_tell(senses, says):
    with pytest.raises(InputError, match=says):
        sense_separation(np.ones((1, 3, 2)), senses)


@pytest.mark.parametrize("count", [2, 3])
def test_umap_keeps_neighbours_near_and_is_the_same_each_time(count):
    from sklearn.manifold import trustworthiness

    vectors, senses = clusters()
    actual = umap(vectors, count)
    assert actual.shape == (20, count) and np.isfinite(actual).all()
    np.testing.assert_array_equal(actual, umap(vectors, count))
    assert trustworthiness(vectors, actual, n_neighbors=5, metric="cosine") > 0.7
    assert sense_separation(actual[None] - actual.mean(axis=0), senses).nearest[0] > 0.9


@pytest.fixture
def without_scranpy(monkeypatch):
    """As on a system for which scranpy has no wheels."""
    monkeypatch.setitem(sys.modules, "scranpy", None)


def test_umap_learn_takes_the_place_of_scranpy():
    """In a process of its own, where Numba does not compile: that would take half a minute."""
    script = """
import sys
sys.modules["scranpy"] = None
import numpy as np
from bert_tf.explain import sense_separation, umap
from tests.explain.representations.test_word_senses import clusters
vectors, senses = clusters(6)
found = umap(vectors)
assert found.shape == (12, 2) and np.isfinite(found).all()
np.testing.assert_allclose(found, umap(3 * vectors), atol=1e-6)
assert sense_separation(found[None] - found.mean(axis=0), senses).nearest[0] > 0.9
assert umap(vectors[:5], 3).shape == (5, 3)
"""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "ignore", "-c", script]
    subprocess.run(command, check=True, timeout=300, env=environment, cwd=Path(__file__).parents[3])


def test_without_a_library_umap_names_those_that_are_missing(without_scranpy, monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(InputError, match="umap-learn: install one"):
        umap(clusters()[0])


def test_umap_looks_at_directions_and_not_at_lengths():
    vectors, _ = clusters()
    np.testing.assert_allclose(umap(vectors), umap(vectors * np.linspace(1, 9, 20)[:, None]), atol=1e-6)


def test_umap_of_few_points_or_of_equal_ones():
    with pytest.raises(InputError, match="at least 5"):
        umap(np.ones((4, 3)))
    assert np.isfinite(umap(np.ones((6, 3)))).all()


@pytest.mark.parametrize("count, perplexity, used", [(2, 30, 19 / 3), (3, 4, 4)])
def test_tsne_is_scikit_learns_of_the_directions(count, perplexity, used):
    from sklearn.manifold import TSNE, trustworthiness

    vectors, _ = clusters()
    actual = tsne(vectors, count, perplexity)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    wanted = TSNE(count, perplexity=used, random_state=0).fit_transform(unit)
    np.testing.assert_allclose(actual, wanted, atol=1e-3 * np.abs(wanted).max())
    np.testing.assert_array_equal(actual, tsne(vectors, count, perplexity))
    assert trustworthiness(vectors, actual, n_neighbors=5, metric="cosine") > 0.7


def test_tsne_of_few_points_or_of_equal_ones():
    with pytest.raises(InputError, match="t-SNE needs at least 5 points, not 4: PCA takes fewer.$"):
        tsne(np.ones((4, 3)))
    assert not tsne(np.ones((6, 3)), 3).any()


def test_vectors_are_laid_out_in_each_way():
    vectors, _ = clusters()
    places, shares = project_to_plane(vectors, "pca", 3)
    wanted, of_variance = principal_components(vectors, 3)
    np.testing.assert_array_equal(places, wanted)
    np.testing.assert_array_equal(shares, of_variance)
    for way, function in (("umap", umap), ("tsne", tsne)):
        places, shares = project_to_plane(vectors, way)
        np.testing.assert_array_equal(places, function(vectors))
        assert shares is None
    with pytest.raises(InputError, match="no projection 'mds'; choose from pca, umap, tsne"):
        project_to_plane(vectors, "mds")
    with pytest.raises(InputError, match="to 2 or 3 dimensions, not 4"):
        project_to_plane(vectors, "tsne", 4)
    with pytest.raises(InputError, match=r"shape \[W, H\], not \[5\]"):
        project_to_plane(np.ones(5))


def test_vectors_of_which_some_are_equal_differ_along_no_more_components_than_they_have():
    one, other = np.random.default_rng(0).normal(size=(2, 384)).astype(np.float32)
    for vectors in ([one, other], [one, one, one, other], [one] * 3):
        coordinates, shares = principal_components(np.array(vectors), 2)
        assert not coordinates[:, 1].any() and not shares[1]
        assert coordinates[:, 0].any() == (vectors[-1] is other)


def test_a_word_is_found_however_its_accents_are_composed(tiny_bert):
    for word in ("Caf\u00e9", "cafe\u0301"):
        assert occurrences(tiny_bert, ["a caf\u00e9", "a cafe\u0301"], word).texts == (0, 1)
