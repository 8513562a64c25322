"""The gradient of a prediction's log-odds at the last hidden state, in NumPy, for the heads of pre-training.

Explanations that follow the layers back by hand need this one gradient. Computed here, it imports no TensorFlow.

B batch, T tokens, H hidden size, K answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bert_tf.parameters import OUTPUT_TABLE
from bert_tf.runtime.numpy_ops import ACTIVATIONS, dense, gradient_of_states, layer_norm, read_by_mlm
from bert_tf.runtime.weights import RunnableModel, parameter

#: A head that reads a pair from the pooled vector -> the canonical name of its dense layer.
_PAIR_HEADS = {"nsp": "cls.seq_relationship", "sop": "sop_classifier.classifier"}
#: The heads of which `odds_gradient` knows the gradient.
HEADS = frozenset({"mlm", *_PAIR_HEADS})


def odds_gradient(model: RunnableModel, x: np.ndarray, target: Any) -> tuple[np.ndarray, np.ndarray]:
    """A target's log-odds and their gradient at the last hidden state.

    The standard deviation of the layer normalisation in the MLM head is held constant.

    Args:
        model: `BertModel` or `StoredModel`.
        x: np.ndarray. The last hidden state, float32 [B, T, H].
        target: `bert_tf.explain.attribution.target.Target`. Its head is one of `HEADS`.

    Returns:
        (log-odds [B], gradients [B, T, H]), float32 arrays. The log-odds are the log-probability of the target minus
        that of all other answers together.
    """
    x, gradient = np.asarray(x), np.zeros(x.shape, np.float32)
    if target.head == "mlm":
        read = read_by_mlm(model, x)[:, target.position]
        odds, gradient[:, target.position] = _masked_lm(model, read, target)
        return odds, gradient_of_states(model, gradient)
    odds, gradient[:, 0] = _pair(model, x[:, 0], target)
    return odds, gradient


def positions_read(model: RunnableModel, target: Any, tokens: int) -> np.ndarray:
    """Return the positions of the last hidden states, of so many tokens, from which a target's answer is read."""
    if target.head != "mlm":
        return np.array([0])
    read = np.zeros((tokens, model.bert_config.hidden_size), np.float32)
    read[target.position] = 1
    return np.flatnonzero(gradient_of_states(model, read).any(axis=-1))


def _masked_lm(model, states, target):
    name, config = "cls.predictions", model.bert_config
    before = dense(model, f"{name}.transform.dense", states)
    after = ACTIVATIONS[config.mlm_act](before)
    gain = parameter(model, f"{name}.transform.LayerNorm.weight").float32()
    scale = np.sqrt(after.var(axis=-1, keepdims=True) + np.float32(config.layer_norm_eps))
    tied = config.tie_word_embeddings
    table, scales = _rows(parameter(model, "bert.embeddings.word_embeddings.weight" if tied else OUTPUT_TABLE))
    normalised = layer_norm(model, f"{name}.transform.LayerNorm", after)
    logits = normalised @ table.T * scales + parameter(model, f"{name}.bias").float32()
    odds, gradient = _log_odds(logits, target.id)
    gradient = (gradient * scales) @ table * gain / scale
    gradient = (gradient - gradient.mean(axis=-1, keepdims=True)) * SLOPES[config.mlm_act](before)
    return odds, gradient @ parameter(model, f"{name}.transform.dense.weight").float32()


def _rows(weight):
    """The values of a matrix as float32 [R, C], not yet multiplied by the scales [R] of its rows, and these."""
    scales = np.float32(1) if weight.scales is None else np.asarray(weight.scales, np.float32)
    return weight.values.astype(np.float32, copy=False), scales


def _pair(model, states, target):
    pooled = np.tanh(dense(model, "bert.pooler.dense", states))
    name = _PAIR_HEADS[target.head]
    odds, gradient = _log_odds(dense(model, name, pooled), target.id)
    gradient = gradient @ parameter(model, f"{name}.weight").float32() * (1 - pooled**2)
    return odds, gradient @ parameter(model, "bert.pooler.dense.weight").float32()


def _log_odds(logits, wanted):
    """Log-odds [B] of an answer from the logits [B, K] of all, and their gradient [B, K] at the logits."""
    others = np.array(logits)
    others[:, wanted] = -np.inf
    highest = others.max(axis=-1, keepdims=True)
    powers = np.exp(others - highest)
    total = powers.sum(axis=-1, keepdims=True)
    gradient = -powers / total
    gradient[:, wanted] = 1
    return logits[:, wanted] - (highest + np.log(total))[:, 0], gradient


def _exact_gelu(x):
    from scipy.special import ndtr

    return ndtr(x) + x * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def _tanh_gelu(x):
    factor = np.sqrt(2 / np.pi)
    tanh = np.tanh(factor * (x + 0.044715 * x**3))
    return (1 + tanh) / 2 + x / 2 * (1 - tanh**2) * factor * (1 + 3 * 0.044715 * x**2)


def _silu(x):
    from scipy.special import expit

    return expit(x) * (1 + x * expit(-x))


#: Name in `BertConfig.hidden_act` -> the derivative of the activation.
SLOPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "gelu": _exact_gelu,
    "gelu_new": _tanh_gelu,
    "relu": lambda x: (x > 0).astype(np.float32),
    "gelu_10": lambda x: _exact_gelu(x) * (np.abs(ACTIVATIONS["gelu_10"](x)) < 10),
    "quick_gelu": lambda x: _silu(1.702 * x),
    "silu": _silu,
}
