"""BERT's encoder layer in NumPy, over the weights as stored, for the values inside one layer.

A forward pass through all layers runs on an engine. This file computes one layer again from the hidden state that
enters it, and returns what the engine keeps to itself.

T tokens, H hidden size, N heads, D head size, F intermediate size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bert_tf.parameters import parameter_spec
from bert_tf.runtime.weights import RunnableModel, parameter

_FINAL_NORM = "bert.encoder.LayerNorm.weight"


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
    if _FINAL_NORM not in {parameter.name for parameter in parameter_spec(model.bert_config, ())}:
        return states
    return np.concatenate([layer_norm(model, _FINAL_NORM.removesuffix(".weight"), states[:-1]), states[-1:]])


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


def _with_bias(model, name, x):
    try:
        return x + parameter(model, f"{name}.bias").float32()
    except KeyError:  # the layers of some architectures have no bias
        return x


def encoder_layer(model: RunnableModel, layer: int, state: np.ndarray) -> dict[str, np.ndarray]:
    """All values inside one of BERT's encoder layers (Vaswani et al. 2017, section 3; post-LN).

    Args:
        model: `BertModel` or `StoredModel`. Its layers are those of `bert_tf.layers.encoder.EncoderLayer`.
        layer: int. From 0.
        state: float32 [T, H]. The hidden state that enters the layer, of a text without padding.

    Returns:
        Dict of hook point (see `bert_tf.layers.hook_points`) -> float32 array without the batch axis: "q", "k", "v"
        and "z" are [N, T, D], "scores" and "pattern" [N, T, T], "mlp_pre" and "mlp_post" [T, F], the others [T, H].
    """
    config = model.bert_config
    name, heads = f"bert.encoder.layer.{config.layer_groups[layer]}", config.num_attention_heads
    tokens, hidden = state.shape

    def split(x):
        return x.reshape(tokens, heads, hidden // heads).swapaxes(0, 1)

    query, key, value = (
        split(dense(model, f"{name}.attention.self.{part}", state)) for part in ("query", "key", "value")
    )
    scores = query @ key.swapaxes(1, 2) / np.sqrt(np.float32(hidden // heads))
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    pattern = powers / powers.sum(axis=-1, keepdims=True)
    z = pattern @ value
    attended = dense(model, f"{name}.attention.output.dense", z.swapaxes(0, 1).reshape(tokens, hidden))
    middle = layer_norm(model, f"{name}.attention.output.LayerNorm", state + attended)
    before = dense(model, f"{name}.intermediate.dense", middle)
    after = ACTIVATIONS[config.hidden_act](before)
    added = dense(model, f"{name}.output.dense", after)
    return {
        "resid_pre": state,
        "q": query,
        "k": key,
        "v": value,
        "scores": scores,
        "pattern": pattern,
        "z": z,
        "attn_out": attended,
        "resid_mid": middle,
        "mlp_pre": before,
        "mlp_post": after,
        "mlp_out": added,
        "resid_post": layer_norm(model, f"{name}.output.LayerNorm", middle + added),
    }
