"""Two models, or two inputs, side by side: what each says by itself, and where they differ.

Dimension legend: T tokens, L layers, K classes.
"""

from dataclasses import dataclass, replace
from typing import Optional

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.errors import InputError, checked_pair
from bert_tf.explain.attention.head_summary import summarise_heads
from bert_tf.explain.attribution.target import classifier_settings
from bert_tf.explain.models.compare import Comparison, compare
from bert_tf.explain.representations.logit_lens import class_lens, logit_lens
from bert_tf.inference.predictions import fill_mask
from bert_tf.inference.words import Word
from bert_tf.results import Result, frame


@dataclass(frozen=True, eq=False)
class ComparedSide:
    """What one model says of one input.

    Attributes:
        model: its name. text_a, text_b: the texts. tokens: T strings.
        masks: `MaskPrediction`s; empty without masks or without a head for them.
        is_next: P(IsNext), or None. in_order: P(in order), or None.
        classes: of a fine-tuned classifier class -> probability (of a regression the value), else None.
        classes_by_layer: float64 [L+1, K], the same of every hidden state (`class_lens`), or None.
        replaced: float32 [T], the probability that each token was put there, or None.
        entropy: float64 [L], mean entropy of a row of the layer's attention maps, in bits; None without maps.
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
    """One attention map less another of as many tokens.

    Attributes:
        layer_a, layer_b: of either side, at the same relative depth. head: of both; None for the mean of all.
        difference: float32 [T, T].
    """

    layer_a: int
    layer_b: int
    head: Optional[int]
    difference: np.ndarray


_PLOTS = "bert_tf.plots.models.side_by_side"


@dataclass(frozen=True, eq=False)
class ComparedAnswers(Result, figures={"answers": f"{_PLOTS}:answers"}):
    """What two models say of one text, or one model or two of two texts.

    Attributes:
        a, b: the two `ComparedSide`s. comparison: their `Comparison`.
    """

    a: ComparedSide
    b: ComparedSide
    comparison: Comparison

    @property
    def names(self):
        """A name for either side, different ones."""
        names = self.a.model, self.b.model
        return tuple(f"{name}, text {one}" for name, one in zip(names, "ab")) if names[0] == names[1] else names

    def answers(self):
        """What both answer: list of (question, position in a or None, position in b or None, answers of a, of b), each
        answer a pair (token, probability)."""
        found = [
            (
                "mask",
                mask.position_a,
                mask.position_b,
                *([(one.token, one.probability) for one in side] for side in (mask.predictions_a, mask.predictions_b)),
            )
            for mask in self.comparison.masks
        ]
        for name in ("is_next", "in_order"):
            shares = [getattr(side, name) for side in (self.a, self.b)]
            if None not in shares:
                found.append((name, None, None, *([(name, share)] for share in shares)))
        if None not in (self.a.classes, self.b.classes):
            found.append(("class", None, None, list(self.a.classes.items()), list(self.b.classes.items())))
        # Only equal tokens stand in one place.
        if self.a.replaced is not None and self.b.replaced is not None and self.a.tokens == self.b.tokens:
            for position, token in enumerate(self.a.tokens):
                scores = ([(token, float(side.replaced[position]))] for side in (self.a, self.b))
                found.append(("replaced", position, position, *scores))
        return found

    def to_frame(self):
        """A row for each answer of both sides: predictions at a mask by rank, the pair, classes, replaced tokens."""
        divergences = iter(self.comparison.masks)
        rows = []
        for question, position_a, position_b, *both in self.answers():
            mask = next(divergences) if question == "mask" else None
            numbers = (mask.overlap, mask.divergence) if mask else (None, None)
            for rank in range(max(map(len, both))):
                answers = (side[rank] if rank < len(side) else (None, None) for side in both)
                rows.append((question, position_a, position_b, rank + 1, *next(answers), *next(answers), *numbers))
        names = ("question", "position_a", "position_b", "rank", "answer_a", "probability_a", "answer_b")
        names += ("probability_b", "overlap", "divergence_bits")
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
    """`ComparedAnswers` with what the layers of both do.

    Attributes:
        lenses: for each of `comparison.masks` a pair of `LogitLens`, of a and of b.
        attention: `AttentionDifference`; None of inputs of different lengths.
    """

    lenses: tuple
    attention: Optional[AttentionDifference]


def side_by_side(bert, trace, other=None, other_text=(), other_mask=(), layer=None, head=None, top_k=5):
    """Two models on one text, one model on two texts, or both.

    Args:
        bert: a `Bert`. trace: its `Trace` with attention maps and hidden states.
        other: the second `Bert`; None for the same.
        other_text: text A, or texts A and B, that the second side reads; empty for those of the trace.
        other_mask: words to mask in it. layer: of the first model, whose attention is subtracted; None for the last.
        head: of that layer; None for the mean of all. top_k: predictions a mask.
    Returns:
        `SideBySide`.
    Raises:
        InputError: neither another model nor another text; no such layer or head.
    """
    _check({"other": other, "other_text": other_text, "other_mask": other_mask})
    second = other or bert
    if other_text:
        read = second.trace(*(*other_text, None)[:2], other_mask)
    else:
        read = second.trace(trace.text_a, trace.text_b, _masked_words(bert, trace))
    sides = (bert, trace), (second, read)
    layers = [one.config.num_hidden_layers for one, _ in sides]
    comparison = compare(trace, read, bert.tokenizer, second.tokenizer, *layers, top_k=top_k, across=bool(other_text))
    lenses = tuple(
        tuple(logit_lens(*one, (at,), 1) for one, at in zip(sides, (mask.position_a, mask.position_b)))
        for mask in comparison.masks
    )
    attention = _attention_difference(trace, read, comparison.layers, layer, head)
    return SideBySide(*(_with_classes(*one, top_k) for one in sides), comparison, lenses, attention)


def compared_side(trace, tokenizer, top_k=5):
    """What a trace says by itself: a `ComparedSide` without classes; args as of `fill_mask`."""
    return ComparedSide(
        model=trace.model,
        text_a=trace.text_a,
        text_b=trace.text_b,
        tokens=trace.tokens,
        masks=fill_mask(trace, tokenizer, top_k) if trace.masks and trace.logits is not None else (),
        is_next=trace.nsp and trace.nsp.is_next,
        in_order=trace.sop and trace.sop.in_order,
        replaced=trace.replaced,
        entropy=None if trace.attentions is None else summarise_heads(trace).entropy.mean(axis=1),
    )


def _with_classes(bert, trace, top_k):
    side = compared_side(trace, bert.tokenizer, top_k)
    if classifier_settings(bert) is None:
        return side
    lens = class_lens(bert, trace)
    classes = dict(zip(lens.labels, map(float, lens.values[-1])))
    return replace(side, classes=classes, classes_by_layer=lens.values)


def _masked_words(bert, trace):
    """The words that a trace hides, those that the user typed as [MASK] left out."""
    hidden = (position for position in trace.masks if trace.original_ids[position] != bert.tokenizer.mask_id)
    return tuple(dict.fromkeys(Word(trace.sources[position], trace.word_ids[position]) for position in hidden))


def _attention_difference(trace_a, trace_b, layers, layer, head):
    """One attention map less the other at the same relative depth; None of inputs of other lengths."""
    layer_a, layer_b = next((pair for pair in layers if pair[0] == layer), layers[-1])
    if layer is not None and layer_a != layer:
        raise InputError(f"There is no layer {layer}: the first model's are numbered 0 to {layers[-1][0]}.")
    heads = min(trace.attentions.shape[1] for trace in (trace_a, trace_b))
    if head is not None and not 0 <= head < heads:
        raise InputError(f"There is no head {head}: both models have the heads 0 to {heads - 1}.")
    if trace_a.length != trace_b.length:
        return None
    chosen = slice(None) if head is None else slice(head, head + 1)
    one, other = (trace.attentions[at, chosen].mean(axis=0) for trace, at in ((trace_a, layer_a), (trace_b, layer_b)))
    return AttentionDifference(layer_a, layer_b, head, one - other)


def _check(options):
    if not (options["other"] or options["other_text"]):
        raise InputError("Give --other M, another model, or --other-text TEXT, another text.")
    if options["other_text"]:
        if len(options["other_text"]) > 2:
            raise InputError(f"--other-text takes one text or two, not {len(options['other_text'])}.")
        checked_pair(*(*options["other_text"], None)[:2])
    elif options["other_mask"]:
        raise InputError("--other-mask hides words of --other-text, and there is none.")


ANALYSIS = Analysis(
    name="compare",
    function=side_by_side,
    summary="two models on one text, or two texts: where they differ",
    source="Lin 1991, Divergence measures based on the Shannon entropy",
    options=(
        Option("other", "name or folder of another model", model=True, metavar="M"),
        Option("other_text", "another text, or a pair, instead of the first", several=True, default=(), metavar="TEXT"),
        Option("other_mask", "words to mask in it", several=True, default=(), metavar="WORD"),
        Option("layer", "whose attention is subtracted, of the first model (default: the last)", int, metavar="L"),
        Option("head", "of that layer (default: the mean of all)", int, metavar="H"),
        TOP_K,
    ),
    check=_check,
)
