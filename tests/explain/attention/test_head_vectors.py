"""Queries and keys: from them the trace's own attention comes about."""

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.explain import head_vectors, neuron_view, query_key_vectors
from bert_tf.explain.attention.head_vectors import allowed_links
from bert_tf.layers.hook_points import forbidden
from tests.explain.models.test_walk_through import made
from tests.layers.test_causal import APART, LEFT


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


@pytest.mark.parametrize("name", (LEFT, APART, "modernbert"))
def test_a_mask_of_the_layer_leaves_no_weight_to_what_it_forbids(name):
    bert = made(name)
    trace = bert.trace("the cat sat on the mat")
    vectors, unread = query_key_vectors(bert, trace), 0
    for layer, maps in enumerate(trace.attentions):
        for head, weights in enumerate(maps):
            actual = head_vectors(bert, trace, layer, head, vectors)
            for query in range(trace.length):
                np.testing.assert_allclose(actual.weights(query), weights[query], atol=1e-5)
                np.testing.assert_array_equal(np.isnan(actual.scores(query)), weights[query] == 0)
                unread += np.isnan(actual.scores(query)).sum()
    assert unread


@pytest.mark.parametrize("name", ("bert", LEFT, APART, "modernbert"))
def test_the_allowed_links_are_those_that_the_layer_computes(name):
    bert = made(name)
    tokens = 3 + 2 * (bert.config.local_attention or 1)
    state = np.random.default_rng(0).normal(size=(1, tokens, bert.config.hidden_size)).astype(np.float32)
    for layer in range(bert.config.num_hidden_layers):
        scores = np.asarray(bert.steps().values(layer, state, ("scores",))["scores"])[0]
        allowed = allowed_links(bert.config, tokens, layer)
        np.testing.assert_array_equal(allowed, ~forbidden(scores))
        assert allowed.all() == (name == "bert" or name == "modernbert" and layer % 3 == 0)


def test_a_score_of_a_token_that_is_not_read_is_null_in_json():
    bert = made(LEFT)
    view = neuron_view(bert, bert.trace("the cat sat"), (0, 1), 2)
    assert [score is None for score in view.to_dict()["scores"]] == [False, False, False, True, True]
    assert view.to_dict()["weights"][3:] == [0, 0] and len(view.figure().data) == 3


@pytest.mark.parametrize("layer, head", [(2, 0), (0, 4), (-1, 0)])
def test_a_head_that_is_not_there_is_named(tiny_bert, trace, layer, head):
    with pytest.raises(InputError, match=f"no head {head} in layer {layer}: this model has 2 layers of 4 heads"):
        head_vectors(tiny_bert, trace, layer, head)
