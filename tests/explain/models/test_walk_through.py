"""The values of a walk through a model: equal to the Keras layers' hooks, and to the trace they began with."""

from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.explain.models.walk_through import _LAYER_FIELDS, walk_through
from tests.conftest import make_bert
from tests.layers.test_causal import APART, LEFT, make_reader

GOLDEN = Path(__file__).parents[2] / "golden" / "family"
FAMILY = ("roberta", "distilbert", "albert", "electra-discriminator", "electra-generator")


def made(name):
    if name in (LEFT, APART):
        return make_reader(name)
    return make_bert() if name == "bert" else bert_tf.load(GOLDEN / name)


@pytest.mark.parametrize("name", ("bert", *FAMILY, LEFT, APART))
def test_the_values_inside_a_layer_are_those_of_the_hooks(name):
    bert = made(name)
    text = "w1 w2 w3 w4 w5" if "w1" in bert.tokenizer else "the cat sat on the mat"
    trace = bert.trace(text)
    walk = walk_through(bert, trace, layer=1)
    hooked = bert.hooked().values(1, trace.hidden_states[1][None], _LAYER_FIELDS)
    for point, field in _LAYER_FIELDS.items():
        found, wanted = getattr(walk, field), np.asarray(hooked[point])[0]
        seen = ~np.isnan(found)
        np.testing.assert_allclose(found[seen], wanted[seen], atol=1e-5, rtol=1e-4, err_msg=field)
    assert np.isnan(walk.scores).any() == (name in (LEFT, APART))
    np.testing.assert_allclose(walk.weights, trace.attentions[1], atol=1e-5)
    np.testing.assert_allclose(walk.feed_forward_norm, trace.hidden_states[2], atol=1e-4)
    np.testing.assert_allclose(walk.parts.sum(axis=0), walk.embedding_sum, atol=1e-5)
    assert ("mlm" in walk.steps) == ("mlm" in bert.heads) == (walk.lens is not None)
    assert ("segment" in walk.part_names) == bool(bert.config.type_vocab_size)
