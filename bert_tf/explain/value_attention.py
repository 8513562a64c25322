"""Attention judged by what it moves: a weight counts for little where the vector it weighs is short.

A head adds to token i the sum over j of alpha_ij f(x_j), where f(x) = (x W_V + b_V) W_O is that head's value
vector taken through its rows of the output projection.

Dimension legend: L layers, N heads, T tokens, D head size, H hidden. Pure NumPy.
"""

from dataclasses import dataclass

import numpy as np

from bert_tf.explain.attention import attention_maps


@dataclass(frozen=True, eq=False)
class NormWeighted:
    """Norms of the weighted vectors, in the units of the hidden state.

    Attributes:
        heads: float32 [L, N, T, T], ||alpha_ij f(x_j)|| of every head.
        layers: float32 [L, T, T], ||sum over heads of alpha_ij f(x_j)||: what token j really adds to token i,
            heads that cancel each other included.
    """

    heads: np.ndarray
    layers: np.ndarray


def norm_weighted_attention(bert, trace):
    """Norm-weighted attention of a trace (Kobayashi et al. 2020, "Attention is Not Only a Weight", section 3).

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace` with attention maps.
    Returns:
        `NormWeighted`. One forward pass, for the value vectors.
    Raises:
        InputError: no attention maps in the trace.
    """
    maps = attention_maps(trace)
    grams = moved_grams(value_vectors(bert, trace), output_kernels(bert))
    return weigh(maps, grams)


def weigh(attentions, grams):
    """`NormWeighted` from maps [L, N, T, T] and the Gram matrices of `moved_grams` [L, T, N, N]."""
    lengths = np.sqrt(np.maximum(np.einsum("ltnn->lnt", grams), 0))
    # The squared norm of a sum of vectors from their inner products: the sum itself, [T, T, H] a layer, would
    # be 800 MB at 512 tokens of Base.
    layers = np.empty((len(attentions), *attentions.shape[2:]), np.float32)
    for layer, (maps, gram) in enumerate(zip(attentions, grams)):
        weights = maps.transpose(2, 1, 0)                                                # j, i, head
        squares = ((weights @ gram) * weights).sum(axis=-1)
        layers[layer] = np.sqrt(np.maximum(squares, 0)).T
    return NormWeighted((attentions * lengths[:, :, None, :]).astype(np.float32), layers)


def effective_attention(bert, trace):
    """The part of each attention map that reaches the output (Brunner et al. 2020, "On Identifiability in
    Transformers", section 4).

    A map can be changed by anything in the left null space of the head's [T, H] matrix f(x) and the head's output
    stays the same. That part is taken out here. With at most D tokens there is usually none, and this is the map.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace` with attention maps.
    Returns:
        float32 [L, N, T, T]; rows need not add up to 1 and entries may be negative.
    Raises:
        InputError: no attention maps in the trace.
    """
    return project(attention_maps(trace), value_vectors(bert, trace), output_kernels(bert))


def project(attentions, values, kernels):
    """`effective_attention` from maps [L, N, T, T], values [L, N, T, D] and kernels [L, N, D, H]."""
    # f = v W has the left singular vectors of v R^T, where W^T = Q R: a [T, D] matrix instead of [T, H].
    triangles = np.linalg.qr(kernels.swapaxes(-1, -2).astype(np.float64), mode="r")      # [L, N, D, D]
    left, sizes, _ = np.linalg.svd(values @ triangles.swapaxes(-1, -2), full_matrices=False)
    tolerance = sizes.max(axis=-1, keepdims=True) * max(values.shape[-2:]) * np.finfo(np.float32).eps
    basis = left * (sizes > tolerance)[..., None, :]
    return ((attentions @ basis) @ basis.swapaxes(-1, -2)).astype(np.float32)


def value_vectors(bert, trace):
    """The value vectors of a trace's input, float32 [L, N, T, D]; one forward pass."""
    batch = {
        "token_ids": trace.token_ids[None],
        "segment_ids": trace.segments[None],
        "padding_mask": np.ones((1, trace.length), np.int32),
    }
    return np.stack([layer[0] for layer in bert.runtime.run(batch, ("values",))["values"]])


def output_kernels(bert):
    """Each head's rows of the attention's output projection, float32 [L, N, D, H]."""
    from bert_tf.models import named_variables

    variables, config = named_variables(bert.model), bert.config
    heads, width = config.num_attention_heads, config.hidden_size
    kernels = [
        np.asarray(variables[f"bert.encoder.layer.{layer}.attention.output.dense.weight"])
        for layer in range(config.num_hidden_layers)
    ]
    return np.stack(kernels).astype(np.float32, copy=False).reshape(-1, heads, width // heads, width)


def moved_grams(values, kernels):
    """Inner products of the vectors f(x_j) of a layer's heads with each other, float32 [L, T, N, N].

    Args:
        values: [L, N, T, D]. kernels: [L, N, D, H].
    """
    grams = []
    for value, kernel in zip(values, kernels):
        moved = (value @ kernel).swapaxes(0, 1)                                          # [T, N, H]
        grams.append(moved @ moved.swapaxes(1, 2))
    return np.stack(grams)
