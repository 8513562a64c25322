"""The forward pass in steps: the whole model again, and each way to reach in against the layers themselves."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bert_tf.explain import InputError, MaskPositionError, NothingToPredict
from bert_tf.explain.attribution.target import Target, mask_target, next_sentence_target
from bert_tf.inference.hooked_model import OpenModel, blocked


@pytest.fixture(scope="module")
def trace(tiny_bert):
    return tiny_bert.trace("the cats sat on the [MASK]", "it ran")


def test_the_steps_one_after_another_are_the_model(tiny_bert, trace):
    opened = tiny_bert.opened
    states = opened.states(trace.token_ids[None], trace.segments[None])
    np.testing.assert_allclose([state[0] for state in states], trace.hidden_states, atol=2e-5)
    np.testing.assert_allclose(opened.finish(states[1], 1), states[-1], atol=1e-6)
    for index, maps in enumerate(trace.attentions):
        np.testing.assert_allclose(opened.attention_maps(index, states[index])[0], maps, atol=1e-5)
    logs = trace.logits - np.log(np.exp(trace.logits).sum(axis=1, keepdims=True))
    found = opened.mlm_log_probabilities(trace.hidden_states[-1][list(trace.masks)])
    np.testing.assert_allclose(found, logs, atol=2e-5)
    np.testing.assert_allclose(np.exp(opened.nsp_log_probabilities(states[-1])[0]), trace.nsp, atol=1e-5)


def test_any_batch_and_length_is_one_compiled_function(tiny_bert):
    opened = tiny_bert.opened
    opened.states(np.full((3, 5), 7), np.zeros((3, 5)))
    before = dict(opened._functions)
    opened.states(np.full((1, 9), 7), np.zeros((1, 9)))
    assert opened._functions == before


def test_threads_get_what_one_thread_gets(tiny_bert, trace):
    opened, target = OpenModel(tiny_bert.model), Target(6, 20, "cat")
    vectors = tiny_bert.opened.token_vectors(trace.token_ids[None]).numpy()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: opened.gradient(vectors, trace.segments[None], target), range(8)))
    score, gradient = tiny_bert.opened.gradient(vectors, trace.segments[None], target)
    for one in found:
        np.testing.assert_allclose(one[0], score, atol=1e-5)
        np.testing.assert_allclose(one[1], gradient, atol=1e-4)


def test_a_closed_head_gate_takes_its_part_out_of_the_output(tiny_bert, trace):
    layer = tiny_bert.model.bert_layers["layer_0"]
    x = trace.hidden_states[:1]
    gates = np.array([[1, 0, 1, 0]], np.float32)
    found = tiny_bert.opened.layer(0, x, head_gates=gates)
    values = x[0] @ np.asarray(layer.attention.value.kernel) + np.asarray(layer.attention.value.bias)
    heads = values.reshape(trace.length, 4, 8).transpose(1, 0, 2)
    context = (trace.attentions[0] @ heads) * gates[0][:, None, None]
    attended = layer.attention.output_dense(context.transpose(1, 0, 2).reshape(1, trace.length, 32))
    middle = layer.attention_norm(x + attended)
    expected = layer.feed_forward_norm(middle + layer.feed_forward(middle))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_closed_feed_forward_gate_leaves_residual_and_norm(tiny_bert, trace):
    layer = tiny_bert.model.bert_layers["layer_1"]
    x = trace.hidden_states[1:2]
    middle = layer.attention_norm(x + layer.attention(x, np.zeros((1, 1, 1, 1), np.float32)))
    found = tiny_bert.opened.layer(1, x, feed_forward_gates=np.zeros(1))
    np.testing.assert_allclose(found, layer.feed_forward_norm(middle), atol=1e-5)


def test_a_blocked_token_gets_no_attention_and_the_others_share_it(tiny_bert, trace):
    x = trace.hidden_states[:1]
    found = np.asarray(tiny_bert.opened.attention_maps(0, x, blocked((2,), trace.length, links=((4, 5),))))[0]
    kept = np.ones((trace.length, trace.length))
    kept[:, 2] = kept[4, 5] = 0
    expected = trace.attentions[0] * kept
    expected /= expected.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("target", [Target(6, 20, "cat"), Target(None, 0, "IsNext")])
def test_gradients_are_those_of_small_differences(tiny_bert, trace, target):
    opened = tiny_bert.opened
    vectors = opened.token_vectors(trace.token_ids[None]).numpy()
    segments = trace.segments[None]
    score, gradient = opened.gradient(vectors, segments, target)
    states = opened.states(trace.token_ids[None], segments)
    np.testing.assert_allclose(score, opened.score(states[-1], target), atol=1e-5)
    direction = np.random.default_rng(0).normal(size=vectors.shape).astype(np.float32)
    ahead, behind = (opened.gradient(vectors + step * direction, segments, target)[0] for step in (2e-3, -2e-3))
    np.testing.assert_allclose((ahead - behind) / 4e-3, (gradient * direction).sum((1, 2)), rtol=0.03, atol=0.01)


def test_targets_are_named_by_position_and_token(tiny_bert, trace):
    best = tiny_bert.fill_mask(trace)[0].predictions[0]
    assert mask_target(tiny_bert, trace) == Target(trace.masks[0], best.id, best.token)
    named = mask_target(tiny_bert, trace, 1, "dog")
    assert (named.position, named.label, tiny_bert.tokenizer.vocab[named.id]) == (1, "dog", "dog")
    assert next_sentence_target(tiny_bert, trace, follows=False) == Target(None, 1, "NotNext")


def test_targets_that_are_not_there_are_refused(tiny_bert, trace, headless_bert):
    bare = tiny_bert.trace("the cat")
    with pytest.raises(NothingToPredict):
        mask_target(tiny_bert, bare)
    with pytest.raises(NothingToPredict, match="second text"):
        next_sentence_target(tiny_bert, bare)
    with pytest.raises(MaskPositionError, match="no token 99"):
        mask_target(tiny_bert, trace, 99)
    with pytest.raises(InputError, match="'cats' is no token.*made of: cat ##s"):
        mask_target(tiny_bert, trace, token="cats")
    with pytest.raises(ValueError, match="masked language model"):
        mask_target(headless_bert, bare, 1)
