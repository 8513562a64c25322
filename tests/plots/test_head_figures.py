"""Figures of heads: measures, the plane, one head's vectors, methods."""

import numpy as np

from bert_tf.explain import HeadVectors, TokenAttention
from bert_tf.plots.attention.head_profile import head_scatter, measure_map


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
    view = vectors.neuron_view(("[CLS]", "the", "the", "<b>"), 2)
    keys, products, weights = view.figure(dark=True).data
    np.testing.assert_allclose(keys.z, vectors.keys)
    np.testing.assert_allclose(products.z, vectors.queries[2] * vectors.keys, atol=1e-6)
    np.testing.assert_allclose(weights.x, vectors.weights(2))
    assert len(set(keys.y)) == 4 and keys.y[3] == "&lt;b&gt;"


def test_methods_have_a_panel_each():
    values = [np.array(one) for one in ([0.25, 0.75], [-0.1, 0.9], [0.5, 0.5], [0.6, 0.4])]
    figure = TokenAttention(0, None, 1, ("the", "cat"), *values).figure()
    assert [list(bars.x) for bars in figure.data] == [one.tolist() for one in values]
    assert figure.data[1].marker.color[0] != figure.data[1].marker.color[1]
