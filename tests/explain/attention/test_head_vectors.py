"""Queries and keys: from them the trace's own attention comes about."""

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.explain import head_vectors, query_key_vectors


@pytest.fixture(scope="module")
def trace(tiny_bert):
    return tiny_bert.trace("the cats sat on the [MASK]", "it ran")


def test_the_softmax_of_the_scores_is_the_attention(tiny_bert, trace):
    vectors = query_key_vectors(tiny_bert, trace)
    for layer in range(2):
        for head in range(4):
            actual = head_vectors(tiny_bert, trace, layer, head, vectors)
            for query in range(trace.length):
                np.testing.assert_allclose(actual.weights(query), trace.attentions[layer, head, query], atol=1e-5)


def test_queries_and_keys_are_the_layers_projections(tiny_bert, trace):
    actual = head_vectors(tiny_bert, trace, 1, 2)
    attention = tiny_bert.model.bert_layers["layer_1"].attention
    for name, vectors in (("query", actual.queries), ("key", actual.keys)):
        dense = getattr(attention, name)
        whole = trace.hidden_states[1] @ np.asarray(dense.kernel) + np.asarray(dense.bias)
        np.testing.assert_allclose(vectors, whole[:, 2 * actual.size : 3 * actual.size], atol=1e-4)


def test_products_add_up_to_the_score(tiny_bert, trace):
    actual = head_vectors(tiny_bert, trace, 0, 0)
    assert actual.products(3).shape == (trace.length, 8)
    by_hand = [float(actual.queries[3] @ key) / 8**0.5 for key in actual.keys]
    np.testing.assert_allclose(actual.scores(3), by_hand, atol=1e-5)


@pytest.mark.parametrize("layer, head", [(2, 0), (0, 4), (-1, 0)])
def test_a_head_that_is_not_there_is_named(tiny_bert, trace, layer, head):
    with pytest.raises(InputError, match=f"no head {head} in layer {layer}: this model has 2 layers of 4 heads"):
        head_vectors(tiny_bert, trace, layer, head)
