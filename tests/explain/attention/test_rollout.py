"""Rollout, norm-weighted and effective attention against their definitions, written out straightforwardly."""

from types import SimpleNamespace

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.explain.attention.rollout import attention_rollout
from bert_tf.explain.attention.value_attention import (
    effective_attention,
    norm_weighted_attention,
    output_kernels,
    project,
    value_vectors,
)


@pytest.fixture(scope="module")
def trace(tiny_bert):
    return tiny_bert.trace("the cats sat on the [MASK]", "it ran")


def test_rollout_is_the_product_of_the_mixed_maps(trace):
    expected, identity = np.eye(trace.length), np.eye(trace.length)
    for layer, rolled in zip(trace.attentions, attention_rollout(trace)):
        expected = (0.5 * layer.mean(axis=0) + 0.5 * identity) @ expected
        np.testing.assert_allclose(rolled, expected, atol=1e-6)
        np.testing.assert_allclose(rolled.sum(axis=1), 1, atol=1e-5)


def test_rollout_of_two_layers_by_hand():
    half, swap = np.full((2, 2), 0.5), np.array([[0.0, 1.0], [1.0, 0.0]])
    trace = SimpleNamespace(attentions=np.array([[half], [swap]], np.float32))
    np.testing.assert_allclose(attention_rollout(trace, residual=0.0), [half, half])
    np.testing.assert_allclose(attention_rollout(trace)[0], [[0.75, 0.25], [0.25, 0.75]])
    np.testing.assert_allclose(attention_rollout(trace, residual=1.0), [np.eye(2)] * 2)


@pytest.mark.parametrize("residual", [-0.1, 1.5])
def test_a_residual_share_out_of_range_is_refused(trace, residual):
    with pytest.raises(InputError, match=f"residual.*{residual}"):
        attention_rollout(trace, residual)


def _moved(bert, trace, layer):
    """f(x_j) of every head from the layer's own weights and input, [N, T, H]."""
    attention = bert.model.bert_layers[f"layer_{layer}"].attention
    values = trace.hidden_states[layer] @ np.asarray(attention.value.kernel) + np.asarray(attention.value.bias)
    size = attention.head_size
    kernel = np.asarray(attention.output_dense.kernel)
    return np.stack(
        [
            values[:, head * size : (head + 1) * size] @ kernel[head * size : (head + 1) * size]
            for head in range(attention.num_heads)
        ]
    )


def test_norms_are_those_of_the_weighted_vectors(tiny_bert, trace):
    actual = norm_weighted_attention(tiny_bert, trace)
    for layer, maps in enumerate(trace.attentions):
        vectors = maps[:, :, :, None] * _moved(tiny_bert, trace, layer)[:, None]  # [N, T, T, H]
        np.testing.assert_allclose(actual.heads[layer], np.linalg.norm(vectors, axis=-1), atol=1e-5)
        np.testing.assert_allclose(actual.layers[layer], np.linalg.norm(vectors.sum(axis=0), axis=-1), atol=1e-4)


def test_what_heads_move_adds_up_to_the_attention_output(tiny_bert, trace):
    attention = tiny_bert.model.bert_layers["layer_0"].attention
    output = np.asarray(attention(trace.hidden_states[:1], np.zeros((1, 1, 1, trace.length), np.float32)))[0]
    moved = np.einsum("nij,njh->ih", trace.attentions[0], _moved(tiny_bert, trace, 0))
    np.testing.assert_allclose(moved + np.asarray(attention.output_dense.bias), output, atol=1e-4)


def test_effective_attention_gives_the_same_output_with_the_smallest_map(tiny_bert):
    trace = tiny_bert.trace("the cat sat on the mat in the park and it ran to the river")
    effective = effective_attention(tiny_bert, trace)
    assert trace.length > tiny_bert.config.hidden_size // tiny_bert.config.num_attention_heads
    for layer, maps in enumerate(trace.attentions):
        moved = _moved(tiny_bert, trace, layer).astype(np.float64)
        np.testing.assert_allclose(effective[layer] @ moved, maps @ moved, atol=1e-4)
        # The least-norm matrix with that product, by the pseudo-inverse.
        least = (maps @ moved) @ np.linalg.pinv(moved, rcond=1e-5)
        np.testing.assert_allclose(effective[layer], least, atol=1e-4)
        assert not np.allclose(effective[layer], maps, atol=1e-3)


def test_with_few_tokens_all_attention_is_effective(tiny_bert):
    trace = tiny_bert.trace("the cat")
    np.testing.assert_allclose(effective_attention(tiny_bert, trace), trace.attentions, atol=1e-4)


def test_values_all_alike_leave_only_the_sum_of_a_row(trace, tiny_bert):
    values = np.ones_like(value_vectors(tiny_bert, trace))
    effective = project(trace.attentions, values, output_kernels(tiny_bert))
    np.testing.assert_allclose(effective, 1 / trace.length, atol=1e-5)


def test_a_trace_without_maps_says_so(tiny_bert):
    bare = tiny_bert.trace("the cat", attentions=False)
    for function in (norm_weighted_attention, effective_attention):
        with pytest.raises(InputError, match="attentions=True"):
            function(tiny_bert, bare)
    with pytest.raises(InputError, match="attentions=True"):
        attention_rollout(bare)
