"""What each part of a model puts into an answer directly: the state that the answer is read from, taken apart.

An encoder layer adds to a token's state and normalises. With its standard deviation held as it was in the pass, a
layer normalisation is linear but for its offset, so that the last state is exactly the sum of what the input, every
attention head, every feed-forward block and the biases have put there. A part's share of an answer is its product with
the slope of the answer's log-odds at that state (the deviation of a normalisation within the head held too): to first
order, as the heads that give answers are no linear functions. It is the direct path alone; what later layers make of a
part is theirs.

Dimension legend: L layers, N heads, D head size, T tokens, H hidden, K positions, S stacks side by side. Source:
Mickus, Paperno and Constant 2022, "How to dissect a Muppet", section 2; here each part is centred by itself, where they
count the means to the biases, and a head's value bias and a feed-forward block's bias are its own, as in an `Ablation`.
"""

from dataclasses import dataclass

import numpy as np

from bert_tf.analysis import Analysis
from bert_tf.errors import InputError, report
from bert_tf.explain.attention.value_attention import layer_kernels
from bert_tf.explain.attribution.target import Target, check_position, classifier_settings
from bert_tf.results import Result, frame


@dataclass(frozen=True, eq=False)
class ResidualDecomposition:
    """A token's last hidden state as a sum of vectors, each as the layer normalisations after it leave it.

    Attributes:
        position: of the token.
        input: float64 [H], of the embeddings (their own normalisation is past).
        heads: float64 [L, N, H], of every head: its values weighed and taken through its rows of the output matrix.
        feed_forward: float64 [L, H], of every feed-forward block.
        biases: float64 [H], of the output matrices' biases and the normalisations' offsets: no part's own.
    """

    position: int
    input: np.ndarray
    heads: np.ndarray
    feed_forward: np.ndarray
    biases: np.ndarray

    def total(self):
        """float64 [H], the last hidden state."""
        return self.input + self.heads.sum(axis=(0, 1)) + self.feed_forward.sum(axis=0) + self.biases


@dataclass(frozen=True, eq=False)
class Contributions(
    Result,
    figures={
        "map": "bert_tf.plots.interventions.contributions:contributions_map",
        "strongest": "bert_tf.plots.interventions.contributions:strongest_contributions",
    },
):
    """The share of each part in a target's log-odds, in nats, or in a regression's value.

    Log-odds are the difference of logits between the target and all else, of one of several labels its own logit: their
    slope does not vanish where the probability comes near 1.

    Attributes:
        tokens: T strings. target: the `Target`. score: its log-odds (natural logarithm), or the value of a regression.
        input, biases: floats. heads: float64 [L, N]. feed_forward: float64 [L]; parts as in `ResidualDecomposition`.
        total: float, the slope times the last state: what all shares add up to, but for rounding. What it lacks of the
            score is the head's own: its biases, and that it is no straight line.
    """

    tokens: tuple
    target: Target
    score: float
    input: float
    heads: np.ndarray
    feed_forward: np.ndarray
    biases: float
    total: float

    def to_frame(self):
        """A row for each part: the input, every head and feed-forward block, the biases; the strongest first."""
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

    def to_text(self):
        """The table, then the sums."""
        sums = {
            "the input": self.input,
            "all heads": self.heads.sum(),
            "all feed-forward blocks": self.feed_forward.sum(),
            "biases": self.biases,
            "together": self.total,
        }
        return "\n".join([super().to_text(), *(f"{name}: {value:+.4f}" for name, value in sums.items())])


def residual_decomposition(bert, trace, position):
    """Take a token's last hidden state apart.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`. position: of the token.
    Returns:
        `ResidualDecomposition`.
    Raises:
        MaskPositionError: no such position.
    """
    check_position(trace, position)
    entered, layers, _ = _taken_apart(bert, _embedded(bert, trace), np.array([position]))
    # A row for each part: the input, the biases, then layer by layer the heads and the feed-forward block.
    rows = np.stack([entered[0], np.zeros_like(entered[0])])
    for index, layer in enumerate(layers):
        heads = np.einsum("nd,ndh->nh", layer.mixed[0], layer_kernels(bert, index).astype(np.float64))
        rows = np.concatenate([rows, heads])
        rows[1] += layer.bias
        rows = layer.attention_norm.passed(rows)
        rows[1] += layer.attention_norm.offset
        rows = layer.feed_forward_norm.passed(np.concatenate([rows, layer.feed_forward]))
        rows[1] += layer.feed_forward_norm.offset
    grouped = rows[2:].reshape(len(layers), -1, rows.shape[-1])
    return ResidualDecomposition(position, rows[0], grouped[:, :-1], grouped[:, -1], rows[1])


def contributions(bert, trace, target, progress=None):
    """What each part puts into an answer directly.

    Where an answer is read from several states (a class from the mean of all, a hidden word from both its neighbours by
    two one-way readers), a part's share is the sum over them.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`. target: a `Target`.
        progress: callable(done, total) in layers; returning False cancels.
    Returns:
        `Contributions`. About one forward pass.
    Raises:
        InputError: `is_only_class`. Cancelled: by `progress`.
    """
    if is_only_class(bert, target):
        raise InputError(f"{target.label} is the only class, and always certain: nothing speaks for or against it.")
    state = _embedded(bert, trace)
    positions = _read_from(bert, state, target)
    entered, layers, state = _taken_apart(bert, state, positions, progress)
    score, slope = (part[0] for part in bert.hooked().odds_gradient(state[None], target))
    last, slope = state[positions].astype(np.float64), slope[positions].astype(np.float64)
    total, heads, feed_forward, biases = float((slope * last).sum()), [], [], 0.0
    for index, layer in reversed(list(enumerate(layers))):
        biases += float((slope @ layer.feed_forward_norm.offset).sum())
        slope = layer.feed_forward_norm.back(slope)
        feed_forward.append(float((slope * layer.feed_forward).sum()))
        biases += float((slope @ layer.attention_norm.offset).sum())
        slope = layer.attention_norm.back(slope)
        kernels = layer_kernels(bert, index).astype(np.float64)
        heads.append(np.einsum("kh,ndh,knd->n", slope, kernels, layer.mixed, optimize=True))
        biases += float((slope @ layer.bias).sum())
    own = float((slope * entered).sum())
    heads, feed_forward = np.array(heads[::-1]), np.array(feed_forward[::-1])
    return Contributions(trace.tokens, target, float(score), own, heads, feed_forward, biases, total)


def is_only_class(bert, target):
    """Whether a target is a classifier's only class: its probability is 1 whatever is read, and has no log-odds."""
    settings = classifier_settings(bert) if target.is_class and not target.is_regression else None
    return settings is not None and len(settings.labels) == 1 and not settings.multi_label


@dataclass(frozen=True, eq=False)
class _Layer:
    """What one layer adds at K positions: float64 mixed [K, N, D], which go through its `layer_kernels` (made where
    they are used: those of all layers are large), bias [H], feed_forward [K, H]; and its two `_Norm`s."""

    mixed: np.ndarray
    bias: np.ndarray
    feed_forward: np.ndarray
    attention_norm: "_Norm"
    feed_forward_norm: "_Norm"


class _Norm:
    """A layer normalisation with its standard deviation held as it is for one input.

    Args:
        stacks: the S `LayerNorm`s, each of its part of the width. x: float64 [K, H], what goes in.

    Attributes:
        offset: float64 [H], what it adds to any input.
    """

    def __init__(self, stacks, x):
        self._shape = (len(stacks), x.shape[-1] // len(stacks))
        deviations = [np.sqrt(own.var(axis=-1) + norm.epsilon) for norm, own in zip(stacks, self._split(x))]
        gains = [np.asarray(norm.gamma, np.float64) / one[:, None] for norm, one in zip(stacks, deviations)]
        self._gain = np.concatenate(gains, axis=-1)
        self.offset = np.concatenate([np.asarray(norm.beta, np.float64) for norm in stacks])

    def passed(self, parts):
        """What is left of parts [K, H] of the input, without the offset; any number of parts of one position."""
        return self._centred(parts) * self._gain

    def back(self, slopes):
        """Slopes [K, H] at the input from those at the output."""
        return self._centred(slopes * self._gain)

    def _split(self, x):
        return np.moveaxis(x.reshape(-1, *self._shape), 1, 0)

    def _centred(self, x):
        apart = x.reshape(-1, *self._shape)
        return (apart - apart.mean(axis=-1, keepdims=True)).reshape(x.shape)


def _taken_apart(bert, state, positions, progress=None):
    """From the embeddings, float32 [T, H]: (these at K positions, float64 [K, H], a `_Layer` for each layer, the last
    state, float32 [T, H])."""
    bert.hooked().check_post_norm("The residual decomposition")
    count = bert.config.num_hidden_layers
    entered, layers = state[positions].astype(np.float64), []
    names = ("resid_pre", "attn_out", "resid_mid", "mlp_out")
    for index in range(count):
        report(progress, index, count)
        stacks = bert.model.bert_layers[f"layer_{index}"].stacks()
        passed = bert.hooked().values(index, state[None], (*names, "z", "resid_post"))
        before, attended, middle, widened = (passed[name].numpy()[0, positions].astype(np.float64) for name in names)
        layers.append(
            _Layer(
                passed["z"].numpy()[0][:, positions].swapaxes(0, 1).astype(np.float64),
                np.concatenate([np.asarray(stack.attention.output_dense.bias, np.float64) for stack in stacks]),
                widened,
                _Norm([stack.attention_norm for stack in stacks], before + attended),
                _Norm([stack.feed_forward_norm for stack in stacks], middle + widened),
            )
        )
        state = passed["resid_post"].numpy()[0]
    return entered, layers, state


def _read_from(bert, state, target):
    """The positions that an answer is read from. They are the same for all states, so that the first ones, float32
    [T, H], tell them; but for the greatest value of all tokens, which any of them may have."""
    if target.is_class and bert.task.settings.pooling == "max":
        return np.arange(len(state))
    return np.flatnonzero(np.any(bert.hooked().odds_gradient(state[None], target)[1][0], axis=-1))


def _embedded(bert, trace):
    """The first hidden state, float32 [T, H]."""
    return bert.hooked().embed(trace.token_ids[None], trace.segments[None]).numpy()[0]


ANALYSIS = Analysis(
    name="contributions",
    function=contributions,
    summary="what the input, each head and each feed-forward block put into the answer directly",
    source="Mickus, Paperno and Constant 2022, How to dissect a Muppet",
    target=True,
)
