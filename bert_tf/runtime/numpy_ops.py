"""A model's dense layers, normalizations and activations in NumPy, over the weights as stored, and what its heads read.

The encoder layers run on an engine. These operations are for a head, its gradient, and what depends on weights alone.

L layers, T tokens, H hidden size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bert_tf.parameters import parameter_spec
from bert_tf.runtime.weights import RunnableModel, parameter

_FINAL_NORM = "bert.encoder.LayerNorm"


def exact_gelu(x: np.ndarray) -> np.ndarray:
    """The exact GELU, computed with erf, as float32."""
    from scipy.special import erf

    return (0.5 * x * (1 + erf(x / np.sqrt(np.float32(2))))).astype(np.float32)


def tanh_gelu(x: np.ndarray) -> np.ndarray:
    """The tanh approximation of GELU."""
    return 0.5 * x * (1 + np.tanh(np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x**3)))


def relu(x: np.ndarray) -> np.ndarray:
    """The positive part of each value."""
    return np.maximum(x, 0)


def clipped_gelu(x: np.ndarray) -> np.ndarray:
    """The exact GELU, clipped to -10 and 10."""
    return exact_gelu(x).clip(-10, 10)


def quick_gelu(x: np.ndarray) -> np.ndarray:
    """X sigmoid(1.702 x)."""
    return silu(x * np.float32(1.702)) / np.float32(1.702)


def silu(x: np.ndarray) -> np.ndarray:
    """X sigmoid(x)."""
    from scipy.special import expit

    return x * expit(x)


#: Name in `BertConfig.hidden_act`, or "tanh" -> the function.
ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gelu": exact_gelu,
    "gelu_new": tanh_gelu,
    "relu": relu,
    "tanh": np.tanh,
    "gelu_10": clipped_gelu,
    "quick_gelu": quick_gelu,
    "silu": silu,
}


def dense(model: RunnableModel, name: str, x: np.ndarray) -> np.ndarray:
    """The output [..., out] of a model's dense layer for x [..., in]; ``name`` is its canonical name."""
    return _with_bias(model, name, x @ parameter(model, f"{name}.weight").float32().T)


def layer_norm(model: RunnableModel, name: str, x: np.ndarray) -> np.ndarray:
    """The layer normalization of x [..., H] with a model's gamma and beta; ``name`` is its canonical name."""
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(model.bert_config.layer_norm_eps))
    return _with_bias(model, name, centred / scale * parameter(model, f"{name}.weight").float32())


def read_by_heads(model: RunnableModel, states: np.ndarray) -> np.ndarray:
    """All hidden states [L+1, T, H] as a head would read them.

    A model whose layers do not normalize their output normalizes it once, after the last layer; its earlier hidden
    states get the same normalization here.
    """
    if not _has_final_norm(model):
        return states
    return np.concatenate([layer_norm(model, _FINAL_NORM, states[:-1]), states[-1:]])


def finish_layer(model: RunnableModel, layer: int, x: np.ndarray) -> np.ndarray:
    """The output of a layer, from 0, whose residual sum is x [..., H] if its blocks do not normalize it."""
    is_last = layer == model.bert_config.num_hidden_layers - 1
    return layer_norm(model, _FINAL_NORM, x) if is_last and _has_final_norm(model) else x


def read_by_feed_forward(model: RunnableModel, layer: int, x: np.ndarray) -> np.ndarray:
    """What the feed-forward block of a layer, from 0, reads of x [..., H], the value at the hook point "resid_mid".

    This is x itself; with `Architecture.norm_first` it is a normalized copy.
    """
    config = model.bert_config
    if not config.architecture.norm_first:
        return x
    return layer_norm(model, f"bert.encoder.layer.{config.layer_groups[layer]}.intermediate.LayerNorm", x)


def _has_final_norm(model):
    return f"{_FINAL_NORM}.weight" in {parameter.name for parameter in parameter_spec(model.bert_config, ())}


def read_by_mlm(model: RunnableModel, states: np.ndarray) -> np.ndarray:
    """The vectors [..., T, H] from which the MLM head predicts each position, from hidden states [..., T, H].

    These are the hidden states themselves or, in a causal model, those of the neighbours (see
    `bert_tf.layers.causal`); a neighbour outside the text is zero.
    """
    architecture = model.bert_config.architecture
    if architecture.attention_direction == "bidirectional":
        return states
    read = np.zeros_like(states)
    left = states.shape[-1] // architecture.stacks  # the width of the left-to-right stack
    read[..., 1:, :left] = states[..., :-1, :left]
    read[..., :-1, left:] = states[..., 1:, left:]
    return read


def gradient_of_states(model: RunnableModel, gradient: np.ndarray) -> np.ndarray:
    """The gradient at the hidden states [..., T, H], from that at the vectors that `read_by_mlm` returns for them."""
    # A causal model reads shifted states. Gradients shift the other way: as the states of the reversed text.
    return read_by_mlm(model, gradient[..., ::-1, :])[..., ::-1, :]


def _with_bias(model, name, x):
    try:
        return x + parameter(model, f"{name}.bias").float32()
    except KeyError:  # the layers of some architectures have no bias
        return x
