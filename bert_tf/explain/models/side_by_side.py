"""Two models, or two inputs, side by side: the predictions of each, and their differences.

Dimension legend: T tokens, L layers, K classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Optional

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.errors import InputError, checked_pair, refuse_one_alone
from bert_tf.explain.attention.head_summary import attention_maps, head_entropies
from bert_tf.explain.attribution.target import classifies
from bert_tf.explain.models.compare import Comparison, compare, nearest_layer
from bert_tf.explain.representations.logit_lens import class_lens, logit_lens
from bert_tf.inference.predictions import fill_mask
from bert_tf.inference.words import masked_words
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas

    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace
    from bert_tf.tokenizers.base import BaseTokenizer


@dataclass(frozen=True, eq=False)
class ComparedSide:
    """One model's predictions for one input.

    Attributes:
        model: str. The name of the model.
        text_a: str. text_b: str or None.
        tokens: tuple of T str.
        masks: tuple of `MaskPrediction`; empty without masks or without a masked language model head.
        is_next: float or None. P(IsNext).
        in_order: float or None. P(in order).
        classes: dict str -> float or None. The probability of each class of a fine-tuned classifier (in a regression
            the value).
        classes_by_layer: float64 [L+1, K] or None. The same from every hidden state (`class_lens`).
        replaced: float32 [T] or None. The probability that each token was replaced.
        entropy: float64 [L] or None. The mean entropy of a row of the layer's attention maps, in bits; None without
            maps.
    """

    model: str
    text_a: str
    text_b: Optional[str]
    tokens: tuple
    masks: tuple
    is_next: Optional[float]
    in_order: Optional[float]
    classes: Optional[dict] = None
    classes_by_layer: Optional[np.ndarray] = None
    replaced: Optional[np.ndarray] = None
    entropy: Optional[np.ndarray] = None


@dataclass(frozen=True, eq=False)
class AttentionDifference:
    """The difference of two attention maps over the same number of tokens.

    Attributes:
        layer_a, layer_b: int. The layer of each side, at the same relative depth.
        head: int or None. The head of both sides; None for the mean of all heads.
        difference: float32 [T, T]. The map of a minus that of b.
    """

    layer_a: int
    layer_b: int
    head: Optional[int]
    difference: np.ndarray


_PLOTS = "bert_tf.plots.models.side_by_side"


@dataclass(frozen=True, eq=False)
class ComparedAnswers(Result, figures={"answers": f"{_PLOTS}:answers"}):
    """The predictions of two models for one text, or of one or two models for two texts.

    Attributes:
        a, b: `ComparedSide`. The two sides.
        comparison: `Comparison` of the two sides.
    """

    a: ComparedSide
    b: ComparedSide
    comparison: Comparison

    @property
    def names(self) -> tuple[str, str]:
        """A name for each side: the model's, with the letter of the text where both sides have the same model."""
        if self.a.model == self.b.model:
            return f"{self.a.model}, text a", f"{self.b.model}, text b"
        return self.a.model, self.b.model

    def answers(self) -> list[tuple]:
        """The predictions that both sides have.

        Returns:
            list of (question, position in a or None, position in b or None, answers of a, answers of b). The question
            is "mask", "is_next", "in_order", "class" or "replaced"; answers are a list of pairs (token, probability).
        """
        rows = []
        for mask in self.comparison.masks:
            predictions = (
                [(prediction.token, prediction.probability) for prediction in side]
                for side in (mask.predictions_a, mask.predictions_b)
            )
            rows.append(("mask", mask.position_a, mask.position_b, *predictions))
        for name in ("is_next", "in_order"):
            probabilities = [getattr(side, name) for side in (self.a, self.b)]
            if None not in probabilities:
                rows.append((name, None, None, *([(name, probability)] for probability in probabilities)))
        if self.a.classes is not None and self.b.classes is not None:
            rows.append(("class", None, None, list(self.a.classes.items()), list(self.b.classes.items())))
        # Scores are compared by position only where both sides have the same tokens.
        if self.a.replaced is not None and self.b.replaced is not None and self.a.tokens == self.b.tokens:
            for position, token in enumerate(self.a.tokens):
                scores = ([(token, float(replaced[position]))] for replaced in (self.a.replaced, self.b.replaced))
                rows.append(("replaced", position, position, *scores))
        return rows

    def to_frame(self) -> pandas.DataFrame:
        """A row for each answer of both sides: predictions at a mask by rank, the pair, classes, replaced tokens."""
        masks = iter(self.comparison.masks)
        rows = []
        for question, position_a, position_b, *both in self.answers():
            mask = next(masks) if question == "mask" else None
            agreement = (mask.overlap, mask.divergence) if mask else (None, None)
            for rank in range(max(map(len, both))):
                answers = (side[rank] if rank < len(side) else (None, None) for side in both)
                rows.append((question, position_a, position_b, rank + 1, *next(answers), *next(answers), *agreement))
        names = (
            "question",
            "position_a",
            "position_b",
            "rank",
            "answer_a",
            "probability_a",
            "answer_b",
            "probability_b",
            "overlap",
            "divergence_bits",
        )
        return frame({name: [row[column] for row in rows] for column, name in enumerate(names)})


@dataclass(frozen=True, eq=False)
class SideBySide(
    ComparedAnswers,
    figures={
        "answers": f"{_PLOTS}:answers",
        "lens": f"{_PLOTS}:answers_by_layer",
        "entropy": f"{_PLOTS}:entropies",
        "difference": f"{_PLOTS}:attention_difference",
    },
):
    """`ComparedAnswers` with the logit lens and the attention of both sides.

    Attributes:
        lenses: tuple with a pair of `LogitLens`, of a and of b, for each of `comparison.masks`.
        attention: `AttentionDifference`; None if the inputs differ in length.
    """

    lenses: tuple
    attention: Optional[AttentionDifference]


def side_by_side(
    bert: Bert,
    trace: Trace,
    other: Bert | None = None,
    other_text: Sequence[str] = (),
    other_mask: Sequence = (),
    layer: int | None = None,
    head: int | None = None,
    top_k: int = 5,
) -> SideBySide:
    """Two models on one text, one model on two texts, or both.

    Args:
        bert: `Bert`. The model of the first side.
        trace: `Trace` of `bert` with attention maps and hidden states.
        other: `Bert` or None. The model of the second side; None for `bert`.
        other_text: sequence of str. Text A, or texts A and B, of the second side; empty for the texts of the trace.
        other_mask: sequence of words to mask in `other_text`.
        layer: int or None. The layer of the first model whose attention maps are subtracted; None for the last.
        head: int or None. The head; None for the mean of all heads.
        top_k: int. The number of predictions per mask.
    Returns:
        `SideBySide`.
    Raises:
        InputError: neither another model nor another text, an unknown layer or head, or the trace has no attention
            maps or hidden states.
    """
    _check({"other": other, "other_text": other_text, "other_mask": other_mask})
    second = other or bert
    if other_text:
        text_b = other_text[1] if len(other_text) > 1 else None
        second_trace = second.trace(other_text[0], text_b, other_mask)
    else:
        second_trace = second.trace(trace.text_a, trace.text_b, masked_words(trace, bert.tokenizer.mask_id))
    comparison = compare(
        trace,
        second_trace,
        bert.tokenizer,
        second.tokenizer,
        bert.config.num_hidden_layers,
        second.config.num_hidden_layers,
        top_k=top_k,
        across=bool(other_text),
    )
    lenses = tuple(
        (logit_lens(bert, trace, (mask.position_a,), 1), logit_lens(second, second_trace, (mask.position_b,), 1))
        for mask in comparison.masks
    )
    attention = _attention_difference(trace, second_trace, comparison.layers, layer, head)
    a, b = _with_classes(bert, trace, top_k), _with_classes(second, second_trace, top_k)
    return SideBySide(a, b, comparison, lenses, attention)


def compared_side(trace: Trace, tokenizer: BaseTokenizer, top_k: int = 5) -> ComparedSide:
    """The `ComparedSide` of a trace, without classes.

    Args:
        trace, tokenizer, top_k: as in `fill_mask`.
    """
    return ComparedSide(
        model=trace.model,
        text_a=trace.text_a,
        text_b=trace.text_b,
        tokens=trace.tokens,
        masks=fill_mask(trace, tokenizer, top_k) if trace.masks and trace.logits is not None else (),
        is_next=trace.nsp and trace.nsp.is_next,
        in_order=trace.sop and trace.sop.in_order,
        replaced=trace.replaced,
        entropy=None if trace.attentions is None else head_entropies(trace).mean(axis=1),
    )


def _with_classes(bert, trace, top_k):
    side = compared_side(trace, bert.tokenizer, top_k)
    if not classifies(bert, trace):
        return side
    lens = class_lens(bert, trace)
    classes = dict(zip(lens.labels, map(float, lens.values[-1])))
    return replace(side, classes=classes, classes_by_layer=lens.values)


def _attention_difference(trace_a, trace_b, layers, layer, head):
    """The difference of the attention maps at the same relative depth; None if the inputs differ in length."""
    last_a, last_b = layers[-1]
    layer_a = last_a if layer is None else layer
    if not 0 <= layer_a <= last_a:
        raise InputError(f"There is no layer {layer}: the first model has the layers 0 to {last_a}.")
    layer_b = nearest_layer(layer_a, last_a + 1, last_b + 1)
    maps_a, maps_b = attention_maps(trace_a), attention_maps(trace_b)
    heads = min(maps_a.shape[1], maps_b.shape[1])
    if head is not None and not 0 <= head < heads:
        raise InputError(f"There is no head {head}: both models have the heads 0 to {heads - 1}.")
    if trace_a.length != trace_b.length:
        return None
    chosen = slice(None) if head is None else slice(head, head + 1)
    map_a = maps_a[layer_a, chosen].mean(axis=0)
    map_b = maps_b[layer_b, chosen].mean(axis=0)
    return AttentionDifference(layer_a, layer_b, head, map_a - map_b)


def _check(options):
    if not (options["other"] or options["other_text"]):
        raise InputError("Give --other M, another model, or --other-text TEXT, another text.")
    if options["other_text"]:
        refuse_one_alone(options["other_text"], "texts")
        if len(options["other_text"]) > 2:
            raise InputError(f"--other-text takes one text or two, not {len(options['other_text'])}.")
        checked_pair(*(*options["other_text"], None)[:2])
    elif options["other_mask"]:
        raise InputError("--other-mask hides words of --other-text: give --other-text as well.")


ANALYSIS = Analysis(
    name="compare",
    function=side_by_side,
    summary="two models on one text, or two texts: where they differ",
    source="Lin 1991, Divergence measures based on the Shannon entropy",
    options=(
        Option("other", "name or folder of another model", model=True, metavar="M"),
        Option("other_text", "another text, or a pair, instead of the first", several=True, default=(), metavar="TEXT"),
        Option("other_mask", "words to mask in the other text", several=True, default=(), metavar="WORD"),
        Option("layer", "layer of the first model whose attention is compared (default: the last)", int, metavar="L"),
        Option("head", "head of that layer (default: the mean of all)", int, metavar="H"),
        TOP_K,
    ),
    check=_check,
    attentions=True,
)
