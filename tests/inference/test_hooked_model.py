"""The forward pass in steps: the whole model again, and each way to reach in against the layers themselves."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bert_tf.errors import InputError, MaskPositionError, NothingToPredict
from bert_tf.explain.attribution.backward_rules import LRPRules
from bert_tf.explain.attribution.rule_propagation import RulePropagation
from bert_tf.explain.attribution.target import Target, mask_target, next_sentence_target
from bert_tf.inference.hooked_model import HookedModel
from bert_tf.layers.hook_points import blocked
from bert_tf.training.lora import add_lora
from bert_tf.training.weights import freeze
from tests.conftest import make_bert


@pytest.fixture(scope="module")
def trace(tiny_bert):
    return tiny_bert.trace("the cats sat on the [MASK]", "it ran")


def test_the_steps_one_after_another_are_the_model(tiny_bert, trace):
    hooked = tiny_bert.hooked()
    states = hooked.states(trace.token_ids[None], trace.segments[None])
    np.testing.assert_allclose([state[0] for state in states], trace.hidden_states, atol=2e-5)
    np.testing.assert_allclose(hooked.finish(states[1], 1), states[-1], atol=1e-6)
    for index, maps in enumerate(trace.attentions):
        np.testing.assert_allclose(hooked.values(index, states[index], ("pattern",))["pattern"][0], maps, atol=1e-5)
    logs = trace.logits - np.log(np.exp(trace.logits).sum(axis=1, keepdims=True))
    actual = hooked.mlm_log_probabilities(trace.hidden_states[-1][list(trace.masks)])
    np.testing.assert_allclose(actual, logs, atol=2e-5)
    np.testing.assert_allclose(np.exp(hooked.nsp_log_probabilities(states[-1])[0]), trace.nsp, atol=1e-5)


def test_any_batch_and_length_is_one_compiled_function(tiny_bert):
    hooked = tiny_bert.hooked()
    hooked.states(np.full((3, 5), 7), np.zeros((3, 5)))
    before = dict(hooked._functions)
    hooked.states(np.full((1, 9), 7), np.zeros((1, 9)))
    assert hooked._functions == before


def test_models_of_one_configuration_share_the_steps_of_a_layer_and_nothing_else():
    models = [make_bert(seed=seed, hidden=40, heads=2) for seed in (0, 1)]
    for model in models:
        trace = model.trace("the cats sat on the [MASK]", "it ran")
        states = model.hooked().states(trace.token_ids[None], trace.segments[None])
        np.testing.assert_allclose([state[0] for state in states], trace.hidden_states, atol=2e-5)
    one, other = (model.hooked()._functions for model in models)
    assert one.keys() == other.keys() and len(one) == 2
    assert {name for name in one if one[name] is other[name]} == {name for name in one if name != "embed"}
    # The shared function keeps no weights of the model that it was compiled for.
    weights = weakref.ref(models[0].model.bert_layers["layer_0"])
    del models[0], model, one
    gc.collect()
    assert weights() is None
    again = models[0].hooked().states(trace.token_ids[None], trace.segments[None])
    np.testing.assert_allclose(again, states, atol=1e-6)


@pytest.mark.parametrize("frozen", ["all", "two", "lora"])
def test_the_weights_of_a_frozen_layer_are_its_own(frozen):
    bert = make_bert(layers=3, hidden=24, heads=2)
    trace = bert.trace(*TEXTS)
    inputs = trace.token_ids[None], trace.segments[None]
    if frozen == "all":
        bert.model.trainable = False
    elif frozen == "two":
        freeze(bert.model, 2)
    else:
        add_lora(bert.model, 2, frozen_layers=1)
    hooked = bert.hooked()
    states = hooked.states(*inputs)
    np.testing.assert_allclose([state[0] for state in states], trace.hidden_states, atol=2e-5)
    vectors, target = hooked.token_vectors(inputs[0]).numpy(), Target(trace.masks[0], 20, "cat")
    actual = _gradients(hooked, vectors, inputs[1], target)
    expected = _gradients(make_bert(layers=3, hidden=24, heads=2).hooked(), vectors, inputs[1], target)
    for mine, other in zip(actual, expected):
        np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-4)


def _gradients(hooked, *inputs):
    return [*hooked.gradient(*inputs), *RulePropagation(hooked, LRPRules()).gradients(*inputs)]


def test_threads_get_what_one_thread_gets(tiny_bert, trace):
    hooked, target = HookedModel(tiny_bert), Target(6, 20, "cat")
    vectors = tiny_bert.hooked().token_vectors(trace.token_ids[None]).numpy()
    with ThreadPoolExecutor(4) as pool:
        actual = list(pool.map(lambda _: hooked.gradient(vectors, trace.segments[None], target), range(8)))
    score, gradient = tiny_bert.hooked().gradient(vectors, trace.segments[None], target)
    for one in actual:
        np.testing.assert_allclose(one[0], score, atol=1e-5)
        np.testing.assert_allclose(one[1], gradient, atol=1e-4)


def test_a_head_whose_z_is_zero_takes_its_part_out_of_the_output(tiny_bert, trace):
    layer = tiny_bert.model.bert_layers["layer_0"]
    x = trace.hidden_states[:1]
    gates = np.array([[1, 0, 1, 0]], np.float32)
    off, nothing = (gates == 0)[..., None, None], np.zeros((1, 1, 1, 1))
    actual = tiny_bert.hooked().layer(0, x, replace={"z": (off, nothing)})
    values = x[0] @ np.asarray(layer.attention.value.kernel) + np.asarray(layer.attention.value.bias)
    heads = values.reshape(trace.length, 4, 8).transpose(1, 0, 2)
    context = (trace.attentions[0] @ heads) * gates[0][:, None, None]
    attended = layer.attention.output_dense(context.transpose(1, 0, 2).reshape(1, trace.length, 32))
    middle = layer.attention_norm(x + attended)
    expected = layer.feed_forward_norm(middle + layer.feed_forward(middle))
    np.testing.assert_allclose(actual, expected, atol=1e-4)


def test_a_feed_forward_block_that_adds_zero_leaves_residual_and_norm(tiny_bert, trace):
    layer = tiny_bert.model.bert_layers["layer_1"]
    x = trace.hidden_states[1:2]
    middle = layer.attention_norm(x + layer.attention(x, np.zeros((1, 1, 1, 1), np.float32)))
    nothing = np.ones((1, 1, 1), bool), np.zeros((1, 1, 1))
    actual = tiny_bert.hooked().layer(1, x, replace={"mlp_out": nothing})
    np.testing.assert_allclose(actual, layer.feed_forward_norm(middle), atol=1e-5)


def test_a_blocked_token_gets_no_attention_and_the_others_share_it(tiny_bert, trace):
    x = trace.hidden_states[:1]
    bias = blocked((2,), trace.length, links=((4, 5),))
    actual = np.asarray(tiny_bert.hooked().values(0, x, ("pattern",), bias)["pattern"])[0]
    kept = np.ones((trace.length, trace.length))
    kept[:, 2] = kept[4, 5] = 0
    expected = trace.attentions[0] * kept
    expected /= expected.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(actual, expected, atol=1e-5)


@pytest.mark.parametrize("target", [Target(6, 20, "cat"), Target(None, 0, "IsNext")])
def test_gradients_are_those_of_small_differences(tiny_bert, trace, target):
    hooked = tiny_bert.hooked()
    vectors = hooked.token_vectors(trace.token_ids[None]).numpy()
    segments = trace.segments[None]
    score, gradient = hooked.gradient(vectors, segments, target)
    states = hooked.states(trace.token_ids[None], segments)
    np.testing.assert_allclose(score, hooked.score(states[-1], target), atol=1e-5)
    direction = np.random.default_rng(0).normal(size=vectors.shape).astype(np.float32)
    ahead, behind = (hooked.gradient(vectors + step * direction, segments, target)[0] for step in (2e-3, -2e-3))
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


TEXTS = ("the cats sat on the [MASK]", "it ran")


def _same_trace(actual, wanted):
    assert (actual.tokens, actual.masks, actual.heads, actual.model) == (
        wanted.tokens,
        wanted.masks,
        wanted.heads,
        wanted.model,
    )
    for name in ("logits", "attentions", "hidden_states", "pooled", "replaced", "nsp", "sop"):
        mine, other = getattr(actual, name), getattr(wanted, name)
        assert (mine is None) == (other is None), name
        if mine is not None:
            np.testing.assert_allclose(mine, other, atol=5e-5, err_msg=name)


@pytest.mark.parametrize("masks", [(), (2,)])
def test_a_run_without_hooks_is_the_models_own(tiny_bert, masks):
    _same_trace(tiny_bert.hooked().run_with_hooks(*TEXTS, masks), tiny_bert.trace(*TEXTS, masks))


def test_a_model_without_heads_has_hooks_too(headless_bert):
    _same_trace(headless_bert.hooked().run_with_hooks("the cat"), headless_bert.trace("the cat"))


def test_the_cache_holds_what_was_asked_for_by_name(tiny_bert, trace):
    hooked = tiny_bert.hooked()
    assert hooked is tiny_bert.hooked()
    actual, cache = hooked.run_with_cache(*TEXTS)
    _same_trace(actual, trace)
    assert list(cache) == hooked.hook_names and len(cache) == 13 * tiny_bert.config.num_hidden_layers
    for layer in range(tiny_bert.config.num_hidden_layers):
        np.testing.assert_allclose(cache[f"layer_{layer}.resid_pre"][0], trace.hidden_states[layer], atol=2e-5)
        np.testing.assert_allclose(cache[f"layer_{layer}.resid_post"][0], trace.hidden_states[layer + 1], atol=2e-5)
        np.testing.assert_allclose(cache[f"layer_{layer}.pattern"][0], trace.attentions[layer], atol=1e-5)
    _, cache = hooked.run_with_cache(*TEXTS, names=["layer_1.z"])
    assert list(cache) == ["layer_1.z"] and cache["layer_1.z"].shape == (1, 4, trace.length, 8)


def test_hooks_at_one_point_follow_each_other_and_are_cached_as_they_leave_it(tiny_bert, trace):
    seen = []
    hooks = [
        ("layer_1.mlp_out", lambda value: value + 1),
        ("layer_1.mlp_out", lambda value: seen.append(value.copy())),
        ("layer_1.mlp_out", lambda value: 2 * value),
    ]
    _, plain = tiny_bert.hooked().run_with_cache(*TEXTS)
    actual, cache = tiny_bert.hooked().run_with_cache(*TEXTS, names=["layer_1.mlp_out"], hooks=hooks)
    np.testing.assert_allclose(seen[0], plain["layer_1.mlp_out"] + 1, atol=1e-6)
    np.testing.assert_allclose(cache["layer_1.mlp_out"], 2 * seen[0], atol=1e-6)
    assert np.abs(actual.hidden_states[-1] - trace.hidden_states[-1]).max() > 1e-3
    np.testing.assert_allclose(actual.hidden_states[1], trace.hidden_states[1], atol=2e-5)


def test_another_texts_states_give_its_answer(tiny_bert, trace):
    other = "the dogs ran in the [MASK]", "it sat"
    wanted, cache = tiny_bert.hooked().run_with_cache(*other)
    hooks = [("layer_0.resid_pre", lambda state: cache["layer_0.resid_pre"])]
    actual = tiny_bert.hooked().run_with_hooks(*TEXTS, hooks=hooks)
    np.testing.assert_allclose(actual.logits, wanted.logits, atol=1e-5)
    assert np.abs(actual.logits - trace.logits).max() > 1e-3


@pytest.mark.parametrize(
    "name, function, message",
    [
        ("layer_9.z", print, "no hook 'layer_9.z'.*from 0 to 1"),
        ("resid_post", print, "no hook 'resid_post'"),
        (
            "layer_0.z",
            lambda z: z[0],
            r"^The function at layer_0.z returns an array of shape \(4, .*be \(1, 4, .*\)\.$",
        ),
        ("layer_0.z", lambda z: "abc", "^The function at layer_0.z returns 'abc'; it must return an array or None.$"),
        ("layer_0.z", lambda z: [[1], [1, 2]], r"^The function at layer_0.z returns \[\[1\], \[1, 2\]\]"),
        ("layer_0.z", 3, r"but \('layer_0.z', 3\) is no such pair"),
    ],
)
def test_hooks_that_cannot_be_are_refused(tiny_bert, name, function, message):
    with pytest.raises(InputError, match=message):
        tiny_bert.hooked().run_with_hooks(*TEXTS, hooks=[(name, function)])


@pytest.mark.parametrize(
    "hooks, named",
    [
        (("layer_0.z", print), "'layer_0.z'"),
        ("layer_0.z", "'layer_0.z'"),
        ({"layer_0.z": print}, "{'layer_0.z'"),
        (None, "None"),
        ([("layer_0.z", print, 1)], r"\('layer_0.z'"),
    ],
)
def test_hooks_that_are_no_list_of_pairs_are_one_sentence(tiny_bert, hooks, named):
    with pytest.raises(InputError, match=f"list of pairs .hook name, function., but {named}"):
        tiny_bert.hooked().run_with_cache(*TEXTS, hooks=hooks)


def test_what_a_hook_raises_leaves_the_run_unchanged(tiny_bert):
    class Found(Exception):
        def __init__(self, layer, value):
            super().__init__(layer, value)
            self.value = value

    def stop(z):
        raise Found(0, z.shape)

    with pytest.raises(Found) as caught:
        tiny_bert.hooked().run_with_hooks(*TEXTS, hooks=[("layer_0.z", stop)])
    assert caught.value.value[:2] == (1, 4) and caught.traceback[-1].name == "stop"
    assert tiny_bert.hooked().run_with_hooks(*TEXTS).length  # the next run is as before


def test_a_value_cannot_be_changed_behind_the_runs_back(tiny_bert):
    def careless(z):
        z[:, 0] = 0

    with pytest.raises(ValueError, match="read-only"):
        tiny_bert.hooked().run_with_hooks(*TEXTS, hooks=[("layer_0.z", careless)])
