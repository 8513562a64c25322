"""Attention with its value vectors: norm-weighted and effective attention, and the outputs of heads.

A head adds to token i the sum over j of alpha_ij f(x_j), where f(x) = (x W_V + b_V) W_O is that head's value vector
after its rows of the output projection. A large weight alpha_ij adds little where f(x_j) is short.

Dimension legend: L layers, N heads, T tokens, D head size, H hidden. Pure NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.errors import InputError
from bert_tf.explain.attention.head_summary import attention_maps
from bert_tf.explain.attention.head_vectors import check_head
from bert_tf.inference.model_inputs import batch_of
from bert_tf.runtime.weights import parameter

if TYPE_CHECKING:
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace


@dataclass(frozen=True, eq=False)
class NormWeightedAttention:
    """Norms of the value vectors weighted by attention, in the units of the hidden states.

    Attributes:
        heads: float32 [L, N, T, T]. ||alpha_ij f(x_j)|| of every head.
        layers: float32 [L, T, T]. ||sum over heads of alpha_ij f(x_j)||: the vector that token j adds to token i
            through all heads together, which may cancel each other.

    Example:
        >>> bert = bert_tf.load()
        >>> attention = norm_weighted_attention(bert, bert.trace("It is a [MASK]."))
        >>> attention.layers.shape
    """

    heads: np.ndarray
    layers: np.ndarray


def norm_weighted_attention(bert: Bert, trace: Trace) -> NormWeightedAttention:
    """Norm-weighted attention of a trace (Kobayashi et al. 2020, "Attention is Not Only a Weight", section
    3).

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. A trace with attention maps.
    Returns:
        `NormWeightedAttention`. Takes one forward pass, for the value vectors.
    Raises:
        InputError: the trace has no attention maps.
    """
    maps = attention_maps(trace)
    grams = value_grams(value_vectors(bert, trace), output_kernels(bert))
    return weighted_norms(maps, grams)


def weighted_norms(attentions: np.ndarray, grams: np.ndarray) -> NormWeightedAttention:
    """`NormWeightedAttention` from attention maps and Gram matrices.

    Args:
        attentions: float [L, N, Q, T]. Attention maps, or only the rows of Q queries.
        grams: float [L, T, N, N]. The result of `value_grams`.
    """
    lengths = np.sqrt(np.maximum(np.einsum("ltnn->lnt", grams), 0))
    # The squared norm of a sum of vectors is computed from their inner products: the sum itself, [T, T, H] a layer,
    # would take 800 MB at 512 tokens of BERT-Base.
    layers = np.empty((len(attentions), *attentions.shape[2:]), np.float32)
    for layer, (maps, gram) in enumerate(zip(attentions, grams)):
        weights = maps.transpose(2, 1, 0)  # j, i, head
        squares = ((weights @ gram) * weights).sum(axis=-1)
        layers[layer] = np.sqrt(np.maximum(squares, 0)).T
    return NormWeightedAttention((attentions * lengths[:, :, None, :]).astype(np.float32), layers)


def effective_attention(bert: Bert, trace: Trace) -> np.ndarray:
    """The part of each attention map that changes the head's output (Brunner et al. 2020, "On Identifiability in
    Transformers", section 4).

    A row of a map may have a component in the left null space of the head's [T, H] matrix f(x). That component does
    not change the output; it is removed here. With at most D tokens the null space is usually empty, and the result
    equals the map.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. A trace with attention maps.
    Returns:
        float32 [L, N, T, T]; rows need not add up to 1 and entries may be negative.
    Raises:
        InputError: the trace has no attention maps.
    """
    return project(attention_maps(trace), value_vectors(bert, trace), output_kernels(bert))


def project(attentions: np.ndarray, values: np.ndarray, kernels: np.ndarray) -> np.ndarray:
    """`effective_attention` from attention maps, value vectors and output kernels.

    Args:
        attentions: float [L, N, Q, T]. Attention maps, or only the rows of Q queries.
        values: float [L, N, T, D]. The result of `value_vectors`.
        kernels: float [L, N, D, H]. The result of `output_kernels`.
    Returns:
        float32 [L, N, Q, T].
    """
    # The projection on the columns of f = v W, without its [T, H] or [T, T]: with R R^T = W W^T and V l V^T the
    # eigen-decomposition of the [D, D] matrix R^T v^T v R, its basis is U = v R V / sqrt(l).
    effective = np.empty(attentions.shape, np.float32)
    for layer, (maps, value, kernel) in enumerate(zip(attentions, values, kernels)):
        maps, value, kernel = (part.astype(np.float64) for part in (maps, value, kernel))
        transformed = value @ _root(kernel)  # [N, T, D]
        eigenvalues, directions = np.linalg.eigh(transformed.swapaxes(-1, -2) @ transformed)
        # A singular value is the square root of an eigenvalue; below this share it is rounding error of float32.
        share = (max(value.shape[-2:]) * np.finfo(np.float32).eps) ** 2
        tolerance = share * eigenvalues.max(axis=-1, keepdims=True)
        scale = np.where(eigenvalues > tolerance, np.maximum(eigenvalues, tolerance) ** -0.5, 0)
        basis = transformed @ directions * scale[:, None, :]
        effective[layer] = (maps @ basis) @ basis.swapaxes(-1, -2)
    return effective


def _root(kernels: np.ndarray) -> np.ndarray:
    """Lower triangles R [N, D, D] with R R^T = W W^T, for kernels W [N, D, H]."""
    products = kernels @ kernels.swapaxes(-1, -2)
    size = products.shape[-1]
    # A small number on the diagonal, so that the decomposition also exists for a kernel without full rank.
    spare = 1e-14 * np.trace(products, axis1=-2, axis2=-1) / size + 1e-300
    return np.linalg.cholesky(products + spare[:, None, None] * np.eye(size))


def value_vectors(bert: Bert, trace: Trace) -> np.ndarray:
    """The value vectors of a trace's input, float32 [L, N, T, D]; takes one forward pass."""
    batch = batch_of(trace.token_ids, trace.segments)
    return np.stack([layer[0] for layer in bert.runtime.run(batch, ("values",))["values"]])


def head_outputs(bert: Bert, state: np.ndarray, layer: int, head: int | Sequence[int]) -> np.ndarray:
    """The output of one or several heads at every token: the sum of their value vectors, weighted by their attention
    (Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1).

    Args:
        bert: Bert.
        state: float [T, H]. The hidden states that enter the layer, `Trace.hidden_states[layer]`.
        layer: int. From 0.
        head: int or list of K ints. The head or heads, from 0.
    Returns:
        float32 [T, D], the output before the output projection; of several heads [T, K D], side by side. Needs the
        attention maps of this layer in memory, N T T numbers (25 MB for 512 tokens of BERT-Large).
    Raises:
        InputError: there is no such layer or head, or a head is named twice.
    """
    return head_outputs_and_attention(bert, state, layer, head)[0]


def head_outputs_and_attention(
    bert: Bert, state: np.ndarray, layer: int, head: int | Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """(`head_outputs` for the same arguments, the mean of the attention maps of these heads float32 [T, T])."""
    heads = list(checked_heads(bert, layer, head))
    values = bert.steps().values(layer, np.asarray(state, np.float32)[None], ("pattern", "z"))
    maps, outputs = (np.asarray(values[name])[0, heads] for name in ("pattern", "z"))
    return np.concatenate(outputs, axis=-1), maps.mean(axis=0)


def checked_heads(bert: Bert, layer: int, head: int | Sequence[int]) -> tuple[int, ...]:
    """One head or several as a tuple of numbers; raises InputError if there is no head, a head that the model does not
    have, or the same head twice."""
    heads = tuple(head) if isinstance(head, (tuple, list)) else (head,)
    if not heads:
        raise InputError("Name at least one head.")
    for number in heads:
        if not isinstance(number, (int, np.integer)):
            raise InputError(f"A head is a number from 0, not {number!r:.40}.")
        check_head(bert, layer, int(number))
        if heads.count(number) > 1:
            raise InputError(f"Head {number} is named twice.")
    return heads


def output_kernels(bert: Bert) -> np.ndarray:
    """Each head's rows of the attention's output projection, float32 [L, N, D, H]."""
    return np.stack([layer_kernels(bert, layer) for layer in range(bert.config.num_hidden_layers)])


def layer_kernels(bert: Bert, layer: int) -> np.ndarray:
    """`output_kernels` of one layer, float32 [N, D, H]."""
    heads, width = bert.config.num_attention_heads, bert.config.hidden_size
    group = bert.config.layer_groups[layer]
    names = [f"bert.encoder.layer.{group}{stack}.attention.output.dense.weight" for stack in bert.config.stack_names]
    kernel = _block_diagonal([parameter(bert.weights, name).float32().T for name in names])
    return kernel.reshape(heads, width // heads, width)


def _block_diagonal(blocks: list[np.ndarray]) -> np.ndarray:
    """The kernels of several stacks as one block-diagonal matrix [H, H]: each stack writes to its part of the width."""
    if len(blocks) == 1:
        return blocks[0]
    size, matrix = len(blocks[0]), np.zeros((len(blocks) * len(blocks[0]),) * 2, np.float32)
    for index, block in enumerate(blocks):
        matrix[index * size : (index + 1) * size, index * size : (index + 1) * size] = block
    return matrix


def value_grams(values: Iterable[np.ndarray], kernels: Iterable[np.ndarray]) -> np.ndarray:
    """Inner products of the vectors f(x_j) of all heads of a layer with each other, float32 [L, T, N, N].

    Args:
        values: float32 [L, N, T, D]. The result of `value_vectors`.
        kernels: float32 [L, N, D, H]. The result of `output_kernels`.
    """
    grams = []
    for value, kernel in zip(values, kernels):
        transformed = (value @ kernel).swapaxes(0, 1)  # [T, N, H]
        grams.append(transformed @ transformed.swapaxes(1, 2))
    return np.stack(grams)
