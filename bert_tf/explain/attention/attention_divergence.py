"""How far the attention of two models of one shape lies apart, head by head: before and after fine-tuning.

Dimension legend: L layers, N heads, T tokens.
"""

from dataclasses import dataclass

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError, NotComparable
from bert_tf.explain.attention.head_summary import attention_maps
from bert_tf.results import Result, frame


@dataclass(frozen=True, eq=False)
class AttentionDivergence(Result, figures={"heads": "bert_tf.plots.attention.attention_divergence:divergence_map"}):
    """How far each head's attention differs between two models.

    Attributes:
        before, after: names of the models. tokens: T strings, the input's.
        divergences: float64 [L, N], Jensen-Shannon divergences in bits: 0 where a head attends to the same tokens in
            both models, 1 where to none of them.
    """

    before: str
    after: str
    tokens: tuple
    divergences: np.ndarray

    def ranked(self):
        """(layer, head) of every head, the one that differs most first."""
        order = np.argsort(-self.divergences, axis=None, kind="stable")
        return [divmod(int(index), self.divergences.shape[1]) for index in order]

    def to_frame(self):
        """A row for each head, the one that differs most first."""
        layers, heads = zip(*self.ranked())
        return frame({"layer": layers, "head": heads, "divergence_bits": self.divergences[layers, heads]})


def attention_divergence(before, after):
    """The Jensen-Shannon divergence of each head's attention, the mean over the tokens that look.

    Args:
        before, after: `Trace`s with attention maps of the same tokens by two models of one shape.
    Returns:
        `AttentionDivergence`.
    Raises:
        NotComparable: other tokens, or models of other shapes. InputError: no attention maps.
    """
    one, two = attention_maps(before), attention_maps(after)
    if before.tokens != after.tokens:
        raise NotComparable("The two models cut the text into different tokens; compare models of one vocabulary.")
    if one.shape != two.shape:
        raise NotComparable(
            f"The models have {one.shape[0]} x {one.shape[1]} and {two.shape[0]} x {two.shape[1]} layers and heads; "
            "their heads do not stand for each other."
        )
    # A layer at a time: in double precision all maps of 512 tokens at once would be gigabytes.
    found = np.stack([_divergences(p.astype(np.float64), q.astype(np.float64)) for p, q in zip(one, two)])
    return AttentionDivergence(before.model, after.model, after.tokens, found)


def fine_tuning_divergence(bert, trace, before=None):
    """`attention_divergence` of a fine-tuned model's trace from that of the model before fine-tuning.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace` with attention maps.
        before: name or folder of the model before; None for the one that `bert` says it was fine-tuned from.
    Returns:
        `AttentionDivergence`.
    Raises:
        InputError: no model is named. NotComparable: other tokens, or a model of another shape. OSError, ValueError:
            the model cannot be read.
    """
    from bert_tf.inference.bert import load

    name = before or (bert.task and bert.task.settings.base_model)
    if name is None:
        raise InputError(f"{bert.name} does not say what it was fine-tuned from: give --before M.")
    earlier = load(name, precision=bert.runtime.precision)
    return attention_divergence(earlier.trace(trace.text_a, trace.text_b, trace.masks), trace)


def _divergences(p, q):
    middle = (p + q) / 2
    return ((_entropy(middle) - (_entropy(p) + _entropy(q)) / 2).clip(0, 1)).mean(axis=-1)


def _entropy(p):
    return -(p * np.log2(np.maximum(p, 1e-300))).sum(axis=-1)


ANALYSIS = Analysis(
    name="attention-divergence",
    function=fine_tuning_divergence,
    summary="how far fine-tuning moved each head's attention",
    source="Lin 1991 (Jensen-Shannon divergence)",
    options=(
        Option("before", "name or folder of the model before (default: the one it says it came from)", metavar="M"),
    ),
    aliases=("changed",),
)
