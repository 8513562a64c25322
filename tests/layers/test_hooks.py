"""Every hook point in every kind of layer: its value equals a NumPy computation, and what replaces it goes on."""

import numpy as np
import pytest
from scipy.special import erf, softmax

from bert_tf.layers.hook_points import HOOK_POINTS, POINTS
from bert_tf.layers.hooks import recording
from tests.conftest import make_bert
from tests.layers.test_causal import APART, LEFT, make_reader

NAMES = tuple(POINTS)
TEXT = "the cat sat on the mat"
NO_MASK = np.zeros((1, 1, 1, 1), np.float32)


@pytest.fixture(scope="module", params=["bidirectional", LEFT, APART])
def bert(request):
    return make_bert(seed=3) if request.param == "bidirectional" else make_reader(request.param, seed=3)


def dense(layer, x):
    return x @ np.asarray(layer.kernel, np.float64) + np.asarray(layer.bias, np.float64)


def norm(layer, x):
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt(x.var(axis=-1, keepdims=True) + layer.epsilon)
    return scaled * np.asarray(layer.gamma, np.float64) + np.asarray(layer.beta, np.float64)


def one_stack(stack, x, seen, instead):
    """The values of one stack in NumPy; instead: dict from a hook point to what goes on there."""
    results = {}

    def at(name, value):
        results[name] = instead.get(name, value)
        return results[name]

    def heads(part):
        made = dense(part, x).reshape(len(x), stack.attention.num_heads, -1)
        return made.transpose(1, 0, 2)

    x = at("resid_pre", x)
    q, k, v = (at(name, heads(getattr(stack.attention, part))) for name, part in zip("qkv", ("query", "key", "value")))
    scores = at("scores", np.where(seen, q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1]), -6e4))
    z = at("z", at("pattern", softmax(scores, axis=-1)) @ v)
    added = at("attn_out", dense(stack.attention.output_dense, z.transpose(1, 0, 2).reshape(len(x), -1)))
    x = at("resid_mid", norm(stack.attention_norm, x + added))
    wide = at("mlp_pre", dense(stack.feed_forward.intermediate, x))
    wide = at("mlp_post", wide * (1 + erf(wide / np.sqrt(2))) / 2)
    at("resid_post", norm(stack.feed_forward_norm, x + at("mlp_out", dense(stack.feed_forward.output_dense, wide))))
    return results


def in_numpy(layer, x, instead=None):
    """Every value of a layer [..., without the batch axis], of the two stacks beside each other."""
    stacks, tokens = layer.stacks(), len(x)
    before = np.tril(np.ones((tokens, tokens), bool))
    every = np.ones((tokens, tokens), bool)
    seen = {"CausalEncoderLayer": before, "ReverseCausalEncoderLayer": before.T}
    results = []
    for side, stack in enumerate(stacks):
        own = {
            name: np.split(value, len(stacks), axis=0 if "N" in POINTS[name].shape else -1)[side]
            for name, value in (instead or {}).items()
        }
        share = np.split(x, len(stacks), axis=-1)[side]
        results.append(one_stack(stack, share, seen.get(type(stack).__name__, every), own))
    return {
        name: np.concatenate([one[name] for one in results], axis=0 if "N" in POINTS[name].shape else -1)
        for name in NAMES
    }


def compared(actual, wanted, name):
    if name == "scores":  # what a causal mask hides is hidden all the same
        actual, wanted = np.maximum(actual, -1e4), np.maximum(wanted, -1e4)
    np.testing.assert_allclose(actual, wanted, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("index", [0, 1])
def test_what_is_recorded_is_what_numpy_computes(bert, index):
    layer, x = bert.model.bert_layers[f"layer_{index}"], bert.trace(TEXT).hidden_states[index]
    wanted = in_numpy(layer, x.astype(np.float64))
    y, results = layer(x[None], NO_MASK, outputs=NAMES)
    np.testing.assert_array_equal(y, results["resid_post"])
    values = dict.fromkeys(NAMES)
    layer(x[None], NO_MASK, hooks=recording(values))
    compiled = bert.hooked().values(index, x[None], NAMES)
    config = bert.config
    sizes = {"B": 1, "T": len(x), "H": config.hidden_size, "N": config.num_attention_heads, "D": config.head_size}
    sizes["F"] = config.intermediate_size
    for point in HOOK_POINTS:
        assert values[point.name].shape == tuple(sizes[axis] for axis in point.shape)
        for one in (results, values, compiled):
            compared(np.asarray(one[point.name])[0], wanted[point.name], point.name)


@pytest.mark.parametrize("name", NAMES)
def test_what_replaces_a_value_goes_on_in_its_place(bert, name):
    layer, x = bert.model.bert_layers["layer_1"], bert.trace(TEXT).hidden_states[1]
    plain = in_numpy(layer, x.astype(np.float64))
    other = np.random.default_rng(0).normal(size=plain[name].shape).astype(np.float32)
    wanted = in_numpy(layer, x.astype(np.float64), {name: other.astype(np.float64)})
    _, results = layer(x[None], NO_MASK, outputs=NAMES, hooks={name: lambda value: other[None]})
    everywhere = bert.hooked().values(1, x[None], NAMES, replace={name: (None, other[None])})
    for point in NAMES:
        compared(np.asarray(results[point])[0], wanted[point], point)
        compared(np.asarray(everywhere[point])[0], wanted[point], point)
    assert np.abs(wanted["resid_post"] - plain["resid_post"]).max() > 1e-3
    half = np.zeros((1,) * (other.ndim + 1), bool)
    np.testing.assert_allclose(
        bert.hooked().layer(1, x[None], replace={name: (half, other[None])})[0], plain["resid_post"], atol=2e-5
    )


def test_none_leaves_a_value_as_it_is(bert):
    layer, x = bert.model.bert_layers["layer_0"], bert.trace(TEXT).hidden_states[:1]
    seen = []
    y = layer(x, NO_MASK, hooks={name: lambda value: seen.append(value) for name in NAMES})
    np.testing.assert_array_equal(y, layer(x, NO_MASK))
    assert len(seen) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_value_given_back_changes_nothing_in_a_compiled_graph(bert, name):
    import tensorflow as tf

    layer, x = bert.model.bert_layers["layer_0"], bert.trace(TEXT).hidden_states[:1]
    step = tf.function(lambda x: layer(x, NO_MASK, hooks={name: lambda value: value}), autograph=False)
    np.testing.assert_allclose(step(x), layer(x, NO_MASK), atol=1e-5)


def test_a_point_that_is_not_there_is_refused(bert):
    with pytest.raises(ValueError, match="no hook point 'attention'.*resid_pre, q, k"):
        bert.model.bert_layers["layer_0"](np.zeros((1, 2, 32), np.float32), NO_MASK, hooks={"attention": print})


@pytest.mark.parametrize("hooks", [None, {}])
def test_without_hooks_the_graph_holds_nothing_more(hooks):
    """As many operations as the layer written out without any hook point."""
    import keras
    import tensorflow as tf

    layer = make_bert(seed=3).model.bert_layers["layer_0"]

    def plain(x, bias):
        attention, ops = layer.attention, keras.ops
        q, k, v = (attention.split_heads(part(x)) for part in (attention.query, attention.key, attention.value))
        scaled = ops.multiply(q, ops.cast(attention.head_size**-0.5, q.dtype))
        weights = ops.softmax(ops.matmul(scaled, ops.transpose(k, (0, 1, 3, 2))) + bias, axis=-1)
        batch, _, tokens, _ = ops.shape(z := ops.matmul(weights, v))
        z = ops.reshape(ops.transpose(z, (0, 2, 1, 3)), (batch, tokens, attention.num_heads * attention.head_size))
        x = layer.attention_norm(x + attention.output_dense(z))
        wide = layer.feed_forward.activation(layer.feed_forward.intermediate(x))
        return layer.feed_forward_norm(x + layer.feed_forward.output_dense(wide))

    def operations(function):
        specs = tf.TensorSpec((None, None, 32)), tf.TensorSpec((None, None, None, None))
        graph = tf.function(function, autograph=False).get_concrete_function(*specs).graph
        kinds = [one.type for one in graph.get_operations()]
        return len([kind for kind in kinds if kind not in ("Identity", "NoOp", "Const")])

    assert operations(lambda x, bias: layer(x, bias, hooks=hooks)) <= operations(plain)
