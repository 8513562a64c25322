"""Contributions: how much each part of a model adds directly to a prediction, by splitting a last hidden state.

An encoder layer adds to a token's hidden state and normalises it. If the standard deviation of a layer normalisation is
held at its value in the pass, the normalisation is linear except for its offset. The last hidden state is then exactly
the sum of what the input, every attention head, every feed-forward block and the biases add. The contribution of a part
is the dot product of its vector with the gradient of the prediction's log-odds at that hidden state (the standard
deviation of a normalisation within the head is held too). It is a first-order approximation, because the prediction
heads are not linear. It covers the direct path alone: what later layers compute from a part counts as their
contribution.

Dimension legend: L layers, N heads, D head size, T tokens, H hidden, K positions, S stacks side by side. Source:
Mickus, Paperno and Constant 2022, "How to dissect a Muppet", section 2. Two differences: here each part is centred
separately, whereas they count the means among the biases; and a head's value bias and a feed-forward block's bias
belong to the head and the block, as in an `Ablation`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.analysis import ANY_ANSWER, Analysis
from bert_tf.errors import InputError, report
from bert_tf.explain.attention.value_attention import layer_kernels
from bert_tf.explain.attribution.target import Target, check_position, classifier_settings
from bert_tf.results import Result, frame
from bert_tf.runtime.head_gradients import HEADS, positions_read
from bert_tf.runtime.weights import parameter

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace


@dataclass(frozen=True, eq=False)
class ResidualDecomposition:
    """A token's last hidden state as a sum of vectors, each after all layer normalisations that follow its part.

    Attributes:
        position: int. The position of the token.
        input: np.ndarray. float64 [H], from the embeddings (after their normalisation).
        heads: np.ndarray. float64 [L, N, H], from every head: its values weighted by its attention and multiplied by
            its rows of the output matrix.
        feed_forward: np.ndarray. float64 [L, H], from every feed-forward block.
        biases: np.ndarray. float64 [H], from the biases of the output matrices and the offsets of the normalisations,
            which belong to no part.
    """

    position: int
    input: np.ndarray
    heads: np.ndarray
    feed_forward: np.ndarray
    biases: np.ndarray

    def total(self) -> np.ndarray:
        """The sum of all parts, float64 [H]: the last hidden state."""
        return self.input + self.heads.sum(axis=(0, 1)) + self.feed_forward.sum(axis=0) + self.biases


@dataclass(frozen=True, eq=False)
class Contributions(
    Result,
    figures={
        "map": "bert_tf.plots.interventions.contributions:contributions_map",
        "strongest": "bert_tf.plots.interventions.contributions:strongest_contributions",
    },
):
    """The contribution of each part to a target's log-odds, in nats, or to a regression's value.

    The log-odds are the difference of logits between the target and all other answers; for one of several labels they
    are its logit. Their gradient does not vanish where the probability comes near 1.

    Attributes:
        tokens: tuple of str. The T tokens.
        target: Target. The prediction.
        score: float. The log-odds of the target (natural logarithm), or the value of a regression.
        input, biases: float. Parts as in `ResidualDecomposition`.
        heads: np.ndarray. float64 [L, N].
        feed_forward: np.ndarray. float64 [L].
        total: float. The gradient times the last hidden state: the sum of all contributions, up to rounding. The
            difference to the score comes from the prediction head: from its biases, and because it is not linear.
    """

    tokens: tuple
    target: Target
    score: float
    input: float
    heads: np.ndarray
    feed_forward: np.ndarray
    biases: float
    total: float

    def to_frame(self) -> pd.DataFrame:
        """A row for each part (the input, every head and feed-forward block, the biases), the strongest first."""
        layers, heads = self.heads.shape
        table = frame(
            {
                "component": ["input", *["head"] * self.heads.size, *["feed_forward"] * layers, "biases"],
                "layer": [None, *np.repeat(range(layers), heads), *range(layers), None],
                "head": [None, *np.tile(range(heads), layers), *[None] * layers, None],
                "contribution": [self.input, *self.heads.ravel(), *self.feed_forward, self.biases],
            }
        ).astype({"layer": "Int64", "head": "Int64"})
        return table.sort_values("contribution", key=np.abs, ascending=False, kind="stable", ignore_index=True)

    def to_text(self) -> str:
        """The table, then the sums over the kinds of parts."""
        sums = {
            "the input": self.input,
            "all heads": self.heads.sum(),
            "all feed-forward blocks": self.feed_forward.sum(),
            "biases": self.biases,
            "together": self.total,
        }
        return "\n".join([super().to_text(), *(f"{name}: {value:+.4f}" for name, value in sums.items())])


def residual_decomposition(bert: Bert, trace: Trace, position: int) -> ResidualDecomposition:
    """Split a token's last hidden state into the vectors that the parts of the model add.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. The input.
        position: int. The position of the token.
    Returns:
        `ResidualDecomposition`.
    Raises:
        MaskPositionError: the position does not exist.
    """
    check_position(trace, position)
    embedded, layers, _ = _layer_parts(bert, _embedded(bert, trace), np.array([position]))
    # A row for each part: the input, the biases, then layer by layer the heads and the feed-forward block.
    rows = np.stack([embedded[0], np.zeros_like(embedded[0])])
    for index, layer in enumerate(layers):
        heads = np.einsum("nd,ndh->nh", layer.mixed[0], layer_kernels(bert, index).astype(np.float64))
        rows = np.concatenate([rows, heads])
        rows[1] += layer.bias
        rows = layer.attention_norm.scaled(rows)
        rows[1] += layer.attention_norm.offset
        rows = layer.feed_forward_norm.scaled(np.concatenate([rows, layer.feed_forward]))
        rows[1] += layer.feed_forward_norm.offset
    grouped = rows[2:].reshape(len(layers), -1, rows.shape[-1])
    return ResidualDecomposition(position, rows[0], grouped[:, :-1], grouped[:, -1], rows[1])


def contributions(
    bert: Bert, trace: Trace, target: Target, progress: Callable[[int, int], Any] | None = None
) -> Contributions:
    """How much each part adds directly to a prediction.

    Some predictions are read from several hidden states: a class from the mean of all, a masked word from both
    neighbours in a model of two one-way readers. A part's contribution is then the sum over these states.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. The input.
        target: Target. The prediction.
        progress: callable(done, total). Called with numbers of layers; it cancels by returning False.
    Returns:
        `Contributions`. It takes about one forward pass.
    Raises:
        InputError: the target is a classifier's only class (`is_only_class`).
        Cancelled: by `progress`.
    """
    check_has_odds(bert, target)
    state = _embedded(bert, trace)
    positions = _read_from(bert, state, target)
    embedded, layers, state = _layer_parts(bert, state, positions, progress)
    score, gradient = (part[0] for part in _odds_gradient(bert, state, target))
    last, gradient = state[positions].astype(np.float64), gradient[positions].astype(np.float64)
    total, biases = float((gradient * last).sum()), 0.0
    heads: list[np.ndarray] = []
    feed_forward: list[float] = []
    for index, layer in reversed(list(enumerate(layers))):
        biases += float((gradient @ layer.feed_forward_norm.offset).sum())
        gradient = layer.feed_forward_norm.back(gradient)
        feed_forward.append(float((gradient * layer.feed_forward).sum()))
        biases += float((gradient @ layer.attention_norm.offset).sum())
        gradient = layer.attention_norm.back(gradient)
        kernels = layer_kernels(bert, index).astype(np.float64)
        heads.append(np.einsum("kh,ndh,knd->n", gradient, kernels, layer.mixed, optimize=True))
        biases += float((gradient @ layer.bias).sum())
    from_input = float((gradient * embedded).sum())
    return Contributions(
        trace.tokens,
        target,
        float(score),
        from_input,
        np.array(heads[::-1]),
        np.array(feed_forward[::-1]),
        biases,
        total,
    )


def is_only_class(bert: Bert, target: Target) -> bool:
    """Whether a target is a classifier's only class. Its probability is 1 for every input, so it has no log-odds."""
    settings = classifier_settings(bert) if target.is_class and not target.is_regression else None
    return settings is not None and len(settings.labels) == 1 and not settings.multi_label


def check_has_odds(bert: Bert, target: Target) -> None:
    """Raise InputError if a target is a classifier's only class (`is_only_class`)."""
    if is_only_class(bert, target):
        raise InputError(f"{target.label} is the only class, and always certain: nothing supports or opposes it.")


@dataclass(frozen=True, eq=False)
class _Layer:
    """What one layer adds at K positions.

    Attributes:
        mixed: float64 [K, N, D], the heads' outputs before the output matrix. They are multiplied by `layer_kernels`
            where they are used: the kernels of all layers at once are large.
        bias: float64 [H], of the output matrices.
        feed_forward: float64 [K, H].
        attention_norm, feed_forward_norm: the two `_Norm`s.
    """

    mixed: np.ndarray
    bias: np.ndarray
    feed_forward: np.ndarray
    attention_norm: "_Norm"
    feed_forward_norm: "_Norm"


class _Norm:
    """A layer normalisation with its standard deviation held at its value for one input.

    Args:
        model: `BertModel` or `StoredModel`.
        names: the canonical names of the S normalisations side by side, each of its part of the width.
        x: float64 [K, H], the input.

    Attributes:
        offset: float64 [H], the vector that it adds to every input.
    """

    def __init__(self, model, names, x):
        self._shape = (len(names), x.shape[-1] // len(names))
        epsilon = model.bert_config.layer_norm_eps
        deviations = [np.sqrt(part.var(axis=-1) + epsilon) for part in self._split(x)]
        gains = [_vector(model, f"{name}.weight") / std[:, None] for name, std in zip(names, deviations)]
        self._gain = np.concatenate(gains, axis=-1)
        self.offset = np.concatenate([_vector(model, f"{name}.bias") for name in names])

    def scaled(self, parts):
        """Parts [K, H] of the input after the normalisation, without the offset; any number of parts of a position."""
        return self._centred(parts) * self._gain

    def back(self, gradients):
        """Gradients [K, H] at the input from the gradients at the output."""
        return self._centred(gradients * self._gain)

    def _split(self, x):
        return np.moveaxis(x.reshape(-1, *self._shape), 1, 0)

    def _centred(self, x):
        split = x.reshape(-1, *self._shape)
        return (split - split.mean(axis=-1, keepdims=True)).reshape(x.shape)


def _layer_parts(bert, state, positions, progress=None):
    """What every layer adds at K positions, from the embeddings float32 [T, H].

    Returns:
        (the embeddings at the positions, float64 [K, H]; a list of `_Layer`s; the last hidden state, float32 [T, H]).
    """
    steps, config = bert.steps(), bert.config
    steps.check_post_norm("The residual decomposition")
    embedded, layers = state[positions].astype(np.float64), []
    points = ("resid_pre", "attn_out", "resid_mid", "mlp_out")
    for index in range(config.num_hidden_layers):
        report(progress, index, config.num_hidden_layers)
        stacks = [f"bert.encoder.layer.{config.layer_groups[index]}{stack}" for stack in config.stack_names]
        norms = [[f"{stack}.{part}.LayerNorm" for stack in stacks] for part in ("attention.output", "output")]
        values = {
            name: np.asarray(value)[0]
            for name, value in steps.values(index, state[None], (*points, "z", "resid_post")).items()
        }
        before, attended, middle, added = (values[name][positions].astype(np.float64) for name in points)
        layers.append(
            _Layer(
                values["z"][:, positions].swapaxes(0, 1).astype(np.float64),
                np.concatenate([_vector(bert.weights, f"{stack}.attention.output.dense.bias") for stack in stacks]),
                added,
                _Norm(bert.weights, norms[0], before + attended),
                _Norm(bert.weights, norms[1], middle + added),
            )
        )
        state = values["resid_post"]
    return embedded, layers, state


def _vector(model, name):
    """A weight of one axis, as float64."""
    return parameter(model, name).float32().astype(np.float64)


def _odds_gradient(bert, state, target):
    """A target's log-odds [1] and their gradient [1, T, H] at the last hidden state float32 [T, H]."""
    reader = bert.steps() if target.head in HEADS else bert.hooked()
    return reader.odds_gradient(state[None], target)


def _read_from(bert, state, target):
    """The positions that a prediction is read from.

    Those of a class are the same for all hidden states, so the first one, float32 [T, H], is enough to find them. Max
    pooling is the exception: there any token may have the greatest value.
    """
    if target.head in HEADS:
        return positions_read(bert.weights, target, len(state))
    if target.is_class and bert.task.settings.pooling == "max":
        return np.arange(len(state))
    return np.flatnonzero(np.any(_odds_gradient(bert, state, target)[1][0], axis=-1))


def _embedded(bert, trace):
    """The first hidden state, float32 [T, H]."""
    return np.asarray(bert.steps().embed(trace.token_ids[None], trace.segments[None]))[0]


ANALYSIS = Analysis(
    name="contributions",
    function=contributions,
    summary="what the input, each head and each feed-forward block put into the answer directly",
    source="Mickus, Paperno and Constant 2022, How to dissect a Muppet",
    target=True,
    needs=ANY_ANSWER,
)
