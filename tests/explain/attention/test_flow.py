"""Attention flow against the definition of a greatest flow, written out as a linear programme."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog

from bert_tf.errors import Cancelled, InputError
from bert_tf.explain import attention_flow


def _maps(layers, tokens, seed=0, heads=2):
    maps = np.random.default_rng(seed).random((layers, heads, tokens, tokens)) ** 3
    return (maps / maps.sum(-1, keepdims=True)).astype(np.float32)


def _trace(maps):
    return SimpleNamespace(attentions=maps)


def _greatest_flow(mixed, source, drain):
    """A variable a pipe; what runs into a token runs out again; the most that arrives at the drain."""
    layers, tokens = mixed.shape[:2]
    pipes = [(layer, i, j) for layer in range(layers) for i in range(tokens) for j in range(tokens)]
    balance = np.zeros((layers - 1, tokens, len(pipes)))
    outside, arrives = np.zeros(len(pipes)), np.zeros(len(pipes))
    for number, (layer, i, j) in enumerate(pipes):
        if layer > 0:
            balance[layer - 1, j, number] += 1  # into token j below this layer
        if layer < layers - 1:
            balance[layer, i, number] -= 1
        if layer == layers - 1 and i != source:
            outside[number] = 1  # nothing starts elsewhere
        if layer == 0 and j == drain:
            arrives[number] = -1
    equal = np.concatenate([balance.reshape(-1, len(pipes)), outside[None]])
    actual = linprog(arrives, A_eq=equal, b_eq=np.zeros(len(equal)), bounds=[(0, mixed[pipe]) for pipe in pipes])
    return -actual.fun


def test_flow_through_one_layer_is_its_mixed_map():
    maps = _maps(1, 5)
    np.testing.assert_allclose(attention_flow(_trace(maps)), 0.5 * maps[0].mean(0) + 0.5 * np.eye(5), atol=1e-5)


@pytest.mark.parametrize("residual", [0.5, 0.0])
def test_flow_is_the_greatest_that_the_pipes_let_through(residual):
    maps = _maps(3, 4, seed=2)
    mixed = (1 - residual) * maps.mean(axis=1) + residual * np.eye(4)
    actual = attention_flow(_trace(maps), residual=residual)
    for source in range(4):
        expected = [_greatest_flow(mixed, source, drain) for drain in range(4)]
        np.testing.assert_allclose(actual[source], expected, atol=1e-4)


def test_two_ways_that_share_a_narrow_pipe():
    # Token 1 looks at both alike, both look at token 0 below: each way lets a half through.
    top, below = np.array([[1, 0], [0.5, 0.5]]), np.array([[1, 0], [0.25, 0.75]])
    actual = attention_flow(_trace(np.array([[below], [top]], np.float32)), residual=0.0, positions=[1])
    np.testing.assert_allclose(actual, [[0.75, 0.5]], atol=1e-5)


def test_rows_and_a_layer_of_the_whole(tiny_bert):
    trace = tiny_bert.trace("the cat sat", "it ran")
    whole = attention_flow(trace)
    assert whole.shape == (trace.length,) * 2 and (whole >= 0).all() and (whole <= 1 + 1e-5).all()
    np.testing.assert_array_equal(attention_flow(trace, positions=(4, 2)), whole[[4, 2]])
    first = attention_flow(trace, layer=0)
    np.testing.assert_allclose(first, 0.5 * trace.attentions[0].mean(0) + 0.5 * np.eye(trace.length), atol=1e-5)


@pytest.mark.parametrize(
    "options, says",
    [
        ({"most_tokens": 3}, "at most 3 tokens, not 4"),
        ({"layer": 2}, "no layer 2: this model has 2"),
        ({"positions": [4]}, "positions must be 0 to 3"),
        ({"residual": 2}, "residual must be between 0 and 1"),
    ],
)
def test_what_cannot_be_worked_out_is_said(options, says):
    with pytest.raises(InputError, match=says):
        attention_flow(_trace(_maps(2, 4)), **options)


def test_it_can_be_stopped():
    with pytest.raises(Cancelled, match="1 of 16"):
        attention_flow(_trace(_maps(1, 4)), progress=lambda done, total: False)
    seen = []
    with pytest.raises(Cancelled, match="2 of 4"):
        attention_flow(_trace(_maps(1, 4)), positions=(1,), progress=lambda *steps: seen.append(steps) or steps[0] < 2)
    assert seen == [(1, 4), (2, 4)]
    attention_flow(_trace(_maps(1, 3)), positions=(2, 0), progress=lambda *steps: seen.append(steps))
    assert seen[2:] == [(done, 6) for done in range(1, 7)]
