"""How much the attention of each head differs between two models of one shape, such as before and after fine-tuning.

Dimension legend: L layers, N heads, T tokens.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError, NotComparable
from bert_tf.explain.attention.head_summary import attention_maps
from bert_tf.explain.models.compare import jensen_shannon
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas

    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace
    from bert_tf.tokenizers.base import Encoding


@dataclass(frozen=True, eq=False)
class AttentionDivergence(Result, figures={"heads": "bert_tf.plots.attention.attention_divergence:divergence_map"}):
    """How much each head's attention differs between two models.

    Attributes:
        before: str. Name of the first model.
        after: str. Name of the second model.
        tokens: tuple of T strings. The tokens of the input.
        divergences: float64 [L, N]. Jensen-Shannon divergences in bits: 0 where a head attends to the same tokens in
            both models, 1 where the two models attend to no token in common.
    """

    before: str
    after: str
    tokens: tuple[str, ...]
    divergences: np.ndarray

    def ranked(self) -> list[tuple[int, int]]:
        """(layer, head) of every head; the head with the largest divergence first."""
        order = np.argsort(-self.divergences, axis=None, kind="stable")
        return [divmod(int(index), self.divergences.shape[1]) for index in order]

    def to_frame(self) -> pandas.DataFrame:
        """A row for each head; the head with the largest divergence first."""
        layers, heads = zip(*self.ranked())
        return frame({"layer": layers, "head": heads, "divergence_bits": self.divergences[layers, heads]})


def attention_divergence(before: Trace, after: Trace) -> AttentionDivergence:
    """The Jensen-Shannon divergence between the attention of each head in two models, averaged over the queries.

    Args:
        before: Trace. A trace with attention maps by the first model.
        after: Trace. A trace of the same tokens by a second model with as many layers and heads.
    Returns:
        `AttentionDivergence`.
    Raises:
        NotComparable: the tokens or the numbers of layers and heads differ.
        InputError: a trace has no attention maps.
    """
    maps_before, maps_after = attention_maps(before), attention_maps(after)
    require_same_tokens(before, after)
    if maps_before.shape != maps_after.shape:
        raise NotComparable(
            f"The models have {maps_before.shape[0]} x {maps_before.shape[1]} and {maps_after.shape[0]} x "
            f"{maps_after.shape[1]} layers and heads; compare models with the same numbers of both."
        )
    # A layer at a time: in double precision all maps of 512 tokens together would take gigabytes.
    divergences = np.stack(
        [
            jensen_shannon(p.astype(np.float64), q.astype(np.float64)).mean(axis=-1)
            for p, q in zip(maps_before, maps_after)
        ]
    )
    return AttentionDivergence(before.model, after.model, after.tokens, divergences)


def require_same_tokens(before: Trace | Encoding, after: Trace | Encoding) -> None:
    """Raise NotComparable if the tokens of two models for a text differ."""
    if before.tokens != after.tokens:
        raise NotComparable("The two models cut the text into different tokens; compare models of one vocabulary.")


def base_model(bert: Bert) -> str:
    """The name or folder of the model that a model was fine-tuned from.

    Raises: InputError if its settings name none.
    """
    name = bert.task.settings.base_model if bert.task else None
    if name is None:
        raise InputError(f"{bert.name} does not name the model it was fine-tuned from: use --before M.")
    return name


def fine_tuning_divergence(
    bert: Bert, trace: Trace, before: Bert | str | os.PathLike | None = None
) -> AttentionDivergence:
    """`attention_divergence` between a fine-tuned model and the model before fine-tuning.

    Args:
        bert: Bert. The fine-tuned model that made the trace.
        trace: Trace. A trace with attention maps.
        before: Bert, str, path or None. The model before fine-tuning, or its name or folder; None for the one that
            the settings of `bert` name as its base model.
    Returns:
        `AttentionDivergence`.
    Raises:
        InputError: `before` is None and `bert` names no base model.
        NotComparable: the tokens or the numbers of layers and heads differ.
        OSError, ValueError: the model before fine-tuning cannot be read.
    """
    if before is None or isinstance(before, (str, os.PathLike)):
        from bert_tf.inference.bert import load

        before = load(before or base_model(bert), precision=bert.runtime.precision)
    # A classifier may read fewer tokens than its base model. The texts stay whole and are cut at the same length: the
    # part of a text that was read can have other tokens where it ends inside a word.
    length = trace.length if any(trace.truncated) else None
    same = before.trace(trace.text_a, trace.text_b, trace.masks, hidden_states=False, max_length=length)
    return attention_divergence(same, trace)


ANALYSIS = Analysis(
    name="attention-divergence",
    function=fine_tuning_divergence,
    summary="how much fine-tuning changed each head's attention",
    source="Lin 1991 (Jensen-Shannon divergence)",
    options=(
        Option(
            "before",
            "name or folder of the model before fine-tuning (default: its base model)",
            metavar="M",
            model=True,
            default_model=base_model,
        ),
    ),
    attentions=True,
    aliases=("changed",),
)
