"""Figures of heads: measures, the plane, one head's vectors, methods."""

from types import SimpleNamespace

import numpy as np

from bert_tf.explain import HeadVectors
from bert_tf.plots.attention.head_profile import head_scatter, measure_map
from bert_tf.plots.attention.head_vectors import head_vectors
from bert_tf.plots.attention.token_attention import method_bars


def test_a_measure_is_drawn_head_by_head():
    figure = measure_map(np.array([[0.5, 1.0, 2.0], [3.0, 0.0, 1.5]]), "entropy")
    assert figure.data[0].z.tolist() == [[0.5, 1.0, 2.0], [3.0, 0.0, 1.5]]
    assert list(figure.data[0].y) == ["1", "2"] and "entropy" in figure.layout.xaxis.title.text


def test_each_cluster_of_heads_is_a_curve_in_the_order_of_their_numbers():
    places = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], float)
    figure = head_scatter(
        places, ["a", "b", "c", "d"], np.array([1, 0, 1, 0]), ["2: x", "1: y", "2: x", "1: y"], chosen=2
    )
    assert [curve.name for curve in figure.data[:2]] == ["1: y", "2: x"]
    assert list(figure.data[0].x) == [1, 1] and list(figure.data[1].y) == [0, 1]
    assert (figure.data[2].x[0], figure.data[2].y[0]) == (0, 1)


def test_a_heads_vectors_are_drawn_with_their_products_and_weights():
    random = np.random.default_rng(0)
    vectors = HeadVectors(0, 0, *random.normal(size=(2, 4, 3)).astype(np.float32))
    trace = SimpleNamespace(tokens=("[CLS]", "the", "the", "<b>"))
    keys, products, weights = head_vectors(trace, vectors, 2, (1, 2, 3), dark=True).data
    np.testing.assert_allclose(keys.z, vectors.keys[1:])
    np.testing.assert_allclose(products.z, vectors.queries[2] * vectors.keys[1:], atol=1e-6)
    np.testing.assert_allclose(weights.x, vectors.weights(2)[1:])
    assert len(set(keys.y)) == 3 and keys.y[2] == "&lt;b&gt;"


def test_methods_have_a_panel_each():
    figure = method_bars(["the", "cat"], {"raw": [0.25, 0.75], "effective": [-0.1, 0.9]})
    assert [list(bars.x) for bars in figure.data] == [[0.25, 0.75], [-0.1, 0.9]]
    assert figure.data[1].marker.color[0] != figure.data[1].marker.color[1]
