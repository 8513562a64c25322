"""The values of a walk through a model: equal to the Keras layers' hooks, and to the trace they began with."""

from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.explain.models.walk_through import _LAYER_FIELDS, walk_through
from tests.conftest import make_bert
from tests.layers.test_causal import APART, LEFT, make_reader

GOLDEN = Path(__file__).parents[2] / "golden" / "family"
FAMILY = ("roberta", "distilbert", "albert", "electra-discriminator", "electra-generator", "deberta", "modernbert")


def made(name):
    if name in (LEFT, APART):
        return make_reader(name)
    if name == "modernbert":
        return bert_tf.load(GOLDEN.with_name(name))
    return make_bert() if name == "bert" else bert_tf.load(GOLDEN / name)


@pytest.mark.parametrize("name", ("bert", *FAMILY, LEFT, APART))
def test_the_values_inside_a_layer_are_those_of_the_hooks(name):
    bert = made(name)
    text = "w1 w2 w3 w4 w5" if "w1" in bert.tokenizer else "the cat sat on the mat"
    trace = bert.trace(text)
    walk = walk_through(bert, trace, layer=1)
    hooked = bert.hooked().values(1, trace.hidden_states[1][None], _LAYER_FIELDS)
    norm_first = bert.config.architecture.norm_first
    for point, field in _LAYER_FIELDS.items():
        if norm_first and point == "resid_mid":
            continue  # the sum before the normalization: below
        actual, wanted = getattr(walk, field), np.asarray(hooked[point])[0]
        seen = ~np.isnan(actual)
        np.testing.assert_allclose(actual[seen], wanted[seen], atol=1e-5, rtol=1e-4, err_msg=field)
    is_local = name == "modernbert" and trace.length > bert.config.local_attention // 2 + 1
    assert np.isnan(walk.scores).any() == (name in (LEFT, APART) or is_local)
    np.testing.assert_allclose(walk.weights, trace.attentions[1], atol=1e-5)
    np.testing.assert_allclose(walk.feed_forward_norm, trace.hidden_states[2], atol=1e-4)
    np.testing.assert_allclose(walk.parts.sum(axis=0), walk.embedding_sum, atol=1e-5)
    assert ("mlm" in walk.steps) == ("mlm" in bert.heads) == (walk.lens is not None)
    assert ("segment" in walk.part_names) == bool(bert.config.type_vocab_size)


def test_a_pre_norm_block_reads_a_normalized_copy_of_the_sum_and_adds_to_the_sum():
    """Against plain arithmetic on the weights (Warner et al. 2024; Shazeer 2020, GeGLU)."""
    bert = made("modernbert")
    trace = bert.trace("the cat sat on the mat")
    last = bert.config.num_hidden_layers - 1
    for layer in (0, 1, last):
        walk = walk_through(bert, trace, layer=layer)
        inner = bert.model.bert_layers[f"layer_{layer}"]

        def norm(x, gamma):
            x = x - x.mean(axis=-1, keepdims=True)
            return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + bert.config.layer_norm_eps) * np.asarray(gamma)

        middle = trace.hidden_states[layer] + walk.attention_output
        np.testing.assert_allclose(walk.attention_norm, norm(middle, inner.feed_forward_norm.gamma), atol=1e-4)
        units, gates = np.split(walk.attention_norm @ np.asarray(inner.feed_forward.intermediate.kernel), 2, axis=-1)
        np.testing.assert_allclose(walk.feed_forward_before, units, atol=1e-4)
        gelu = np.interp(units, *walk.activation)
        np.testing.assert_allclose(walk.feed_forward_after, gelu * gates, atol=1e-2)
        total = middle + walk.feed_forward_output
        wanted = norm(total, inner.final_norm.gamma) if layer == last else total
        np.testing.assert_allclose(walk.feed_forward_norm, wanted, atol=1e-4)


def test_disentangled_scores_are_more_than_the_products_of_queries_and_keys():
    bert = made("deberta")
    trace = bert.trace("the cat sat on the mat")
    walk = walk_through(bert, trace, layer=1)
    contents = walk.queries @ walk.keys.swapaxes(1, 2) / np.sqrt(3 * walk.queries.shape[-1])
    assert np.abs(walk.scores - contents).max() > 1e-3
    powers = np.exp(walk.scores - walk.scores.max(axis=-1, keepdims=True))
    np.testing.assert_allclose(powers / powers.sum(axis=-1, keepdims=True), trace.attentions[1], atol=1e-5)
