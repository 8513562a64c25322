"""Attention judged by what it moves: a weight counts for little where the vector it weighs is short.

A head adds to token i the sum over j of alpha_ij f(x_j), where f(x) = (x W_V + b_V) W_O is that head's value
vector taken through its rows of the output projection.

Dimension legend: L layers, N heads, T tokens, D head size, H hidden. Pure NumPy.
"""

import numbers
from dataclasses import dataclass

import numpy as np

from bert_tf.errors import InputError
from bert_tf.explain.attention.head_summary import attention_maps
from bert_tf.explain.attention.head_vectors import check_head


@dataclass(frozen=True, eq=False)
class NormWeightedAttention:
    """Norms of the weighted vectors, in the units of the hidden state.

    Attributes:
        heads: float32 [L, N, T, T], ||alpha_ij f(x_j)|| of every head.
        layers: float32 [L, T, T], ||sum over heads of alpha_ij f(x_j)||: what token j really adds to token i,
            heads that cancel each other included.
    """

    heads: np.ndarray
    layers: np.ndarray


def norm_weighted_attention(bert, trace):
    """Norm-weighted attention of a trace (Kobayashi et al. 2020, "Attention is Not Only a Weight", section
    3).

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace` with attention maps.
    Returns:
        `NormWeightedAttention`. One forward pass, for the value vectors.
    Raises:
        InputError: no attention maps in the trace.
    """
    maps = attention_maps(trace)
    grams = value_grams(value_vectors(bert, trace), output_kernels(bert))
    return weighted_norms(maps, grams)


def weighted_norms(attentions, grams):
    """`NormWeightedAttention` from maps [L, N, T, T] and the Gram matrices of `value_grams` [L, T, N, N]."""
    lengths = np.sqrt(np.maximum(np.einsum("ltnn->lnt", grams), 0))
    # The squared norm of a sum of vectors from their inner products: the sum itself, [T, T, H] a layer, would
    # be 800 MB at 512 tokens of Base.
    layers = np.empty((len(attentions), *attentions.shape[2:]), np.float32)
    for layer, (maps, gram) in enumerate(zip(attentions, grams)):
        weights = maps.transpose(2, 1, 0)  # j, i, head
        squares = ((weights @ gram) * weights).sum(axis=-1)
        layers[layer] = np.sqrt(np.maximum(squares, 0)).T
    return NormWeightedAttention((attentions * lengths[:, :, None, :]).astype(np.float32), layers)


def effective_attention(bert, trace):
    """The part of each attention map that reaches the output (Brunner et al. 2020, "On Identifiability in
    Transformers", section 4).

    A map can be changed by anything in the left null space of the head's [T, H] matrix f(x) and the head's
    output stays the same. That part is taken out here. With at most D tokens there is usually none, and this
    is the map.

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
    # The projection on the columns of f = v W, without its [T, H] or [T, T]: with R R^T = W W^T and V l V^T the
    # eigen-decomposition of the [D, D] matrix R^T v^T v R, its basis is U = v R V / sqrt(l).
    kept = np.empty(attentions.shape, np.float32)
    for layer, (maps, value, kernel) in enumerate(zip(attentions, values, kernels)):
        maps, value, kernel = (part.astype(np.float64) for part in (maps, value, kernel))
        moved = value @ _root(kernel)  # [N, T, D]
        sizes, directions = np.linalg.eigh(moved.swapaxes(-1, -2) @ moved)
        # A singular value is the root of an eigenvalue, and float32 values are no better known than this.
        share = (max(value.shape[-2:]) * np.finfo(np.float32).eps) ** 2
        tolerance = share * sizes.max(axis=-1, keepdims=True)
        scale = np.where(sizes > tolerance, np.maximum(sizes, tolerance) ** -0.5, 0)
        basis = moved @ directions * scale[:, None, :]
        kept[layer] = (maps @ basis) @ basis.swapaxes(-1, -2)
    return kept


def _root(kernels):
    """Lower triangles R [N, D, D] with R R^T = W W^T, for kernels W [N, D, H]."""
    products = kernels @ kernels.swapaxes(-1, -2)
    size = products.shape[-1]
    # A little on the diagonal, so that a kernel without full rank has its triangle too.
    spare = 1e-14 * np.trace(products, axis1=-2, axis2=-1) / size + 1e-300
    return np.linalg.cholesky(products + spare[:, None, None] * np.eye(size))


def value_vectors(bert, trace):
    """The value vectors of a trace's input, float32 [L, N, T, D]; one forward pass."""
    batch = {
        "token_ids": trace.token_ids[None],
        "segment_ids": trace.segments[None],
        "padding_mask": np.ones((1, trace.length), np.int32),
    }
    return np.stack([layer[0] for layer in bert.runtime.run(batch, ("values",))["values"]])


def head_outputs(bert, state, layer, head):
    """What heads put together at every token: their values, weighted by their attention and added up (Vaswani et al.
    2017, "Attention Is All You Need", section 3.2.1).

    Args:
        bert: a `Bert`. state: float [T, H] that goes into the layer, `Trace.hidden_states[layer]`.
        layer, head: from 0; several heads as a list of K.
    Returns:
        float32 [T, D], what comes before the output projection; of several heads [T, K D], one beside the other.
        Held meanwhile: the maps of this layer, N T T numbers (25 MB for 512 tokens of Large).
    Raises:
        InputError: there is no such layer or head, or a head is named twice.
    """
    return head_outputs_and_attention(bert, state, layer, head)[0]


def head_outputs_and_attention(bert, state, layer, head):
    """(what `head_outputs` gives for the same arguments, the mean of these heads' maps: float32 [T, T])."""
    heads = list(checked_heads(bert, layer, head))
    found = bert.hooked().values(layer, np.asarray(state, np.float32)[None], ("pattern", "z"))
    maps, mixed = (found[name].numpy()[0, heads] for name in ("pattern", "z"))
    return np.concatenate(mixed, axis=-1), maps.mean(axis=0)


def checked_heads(bert, layer, head):
    """A head, or several, as a tuple of numbers; refuses, with an `InputError`, none, one that is not there, or one
    twice."""
    heads = tuple(head) if isinstance(head, (tuple, list)) else (head,)
    if not heads:
        raise InputError("Name at least one head.")
    for one in heads:
        if not isinstance(one, numbers.Integral):
            raise InputError(f"A head is a number from 0, not {one!r:.40}.")
        check_head(bert, layer, one)
        if heads.count(one) > 1:
            raise InputError(f"Head {one} is named twice.")
    return heads


def output_kernels(bert):
    """Each head's rows of the attention's output projection, float32 [L, N, D, H]."""
    return np.stack([layer_kernels(bert, layer) for layer in range(bert.config.num_hidden_layers)])


def layer_kernels(bert, layer):
    """`output_kernels` of one layer, float32 [N, D, H]."""
    heads, width = bert.config.num_attention_heads, bert.config.hidden_size
    stacks = bert.model.bert_layers[f"layer_{layer}"].stacks()
    whole = _kernel([np.asarray(stack.attention.output_dense.kernel, np.float32) for stack in stacks])
    return whole.reshape(heads, width // heads, width)


def _kernel(blocks):
    """The matrices of stacks side by side as one, [H, H]: each stack's heads write to its own part of the width."""
    if len(blocks) == 1:
        return blocks[0]
    size, whole = len(blocks[0]), np.zeros((len(blocks) * len(blocks[0]),) * 2, np.float32)
    for index, block in enumerate(blocks):
        whole[index * size : (index + 1) * size, index * size : (index + 1) * size] = block
    return whole


def value_grams(values, kernels):
    """Inner products of the vectors f(x_j) of a layer's heads with each other, float32 [L, T, N, N].

    Args:
        values: [L, N, T, D]. kernels: [L, N, D, H].
    """
    grams = []
    for value, kernel in zip(values, kernels):
        moved = (value @ kernel).swapaxes(0, 1)  # [T, N, H]
        grams.append(moved @ moved.swapaxes(1, 2))
    return np.stack(grams)
