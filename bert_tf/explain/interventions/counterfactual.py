"""Counterfactuals: the predictions for changed inputs, the `variants`, beside those for the input.

Dimension legend: T tokens, P masks, V vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.errors import WordNotFound, report, require_head
from bert_tf.explain.interventions.variants import (
    Variant,
    left_context,
    replacement_of,
    right_context,
    swapped,
    with_word,
    without_word,
)
from bert_tf.explain.models.compare import jensen_shannon, softmax
from bert_tf.inference.answer import check_question
from bert_tf.inference.batching import TOKENS_PER_BATCH
from bert_tf.inference.predictions import check_top_k, fill_mask, mask_predictions
from bert_tf.inference.trace import NextSentence, SentenceOrder
from bert_tf.results import Result, frame, frame_text
from bert_tf.tokenizers import pad_batch

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.inference.bert import Bert
    from bert_tf.inference.predictions import MaskPrediction
    from bert_tf.inference.trace import Trace
    from bert_tf.inference.words import WordSpan


@dataclass(frozen=True, eq=False)
class VariantPrediction:
    """The predictions for a variant, and how they differ from the predictions for the trace.

    Attributes:
        variant: Variant. The changed input.
        masks: tuple of MaskPrediction. One for each of the variant's masks; positions are those of the variant.
        nsp: NextSentence. None without a second text or without the head.
        log_probability_changes: np.ndarray. float64, one for each mask: the change of the log-probability (natural
            logarithm) of the token that the trace predicts there.
        divergences: np.ndarray. float64, one for each mask: the Jensen-Shannon divergence from the trace's
            distribution, in bits.
        nsp_change: float. The change of P(IsNext), or None.
        sop: SentenceOrder. None without a second text or without the head.
        sop_change: float. The change of P(in order), or None.
    """

    variant: Variant
    masks: tuple
    nsp: NextSentence | None
    log_probability_changes: np.ndarray
    divergences: np.ndarray
    nsp_change: float | None
    sop: SentenceOrder | None = None
    sop_change: float | None = None


@dataclass(frozen=True, eq=False)
class Counterfactuals(
    Result,
    figures={
        "changes": "bert_tf.plots.interventions.counterfactual:counterfactual_changes",
        "predictions": "bert_tf.plots.interventions.counterfactual:counterfactual_predictions",
    },
):
    """The predictions for an input and for variants of it.

    Attributes:
        tokens: tuple of str. The T tokens of the input.
        before: tuple of MaskPrediction. One for each mask of the input.
        nsp_before, sop_before: NextSentence and SentenceOrder of the input, or None as in a trace.
        variants: tuple of VariantPrediction. One for each variant.
    """

    tokens: tuple
    before: tuple
    nsp_before: NextSentence | None
    sop_before: SentenceOrder | None
    variants: tuple

    @classmethod
    def of(cls, bert: Bert, trace: Trace, variants: Iterable[VariantPrediction], top_k: int = 5) -> Counterfactuals:
        """The counterfactuals of a trace.

        Args:
            bert: Bert. The model that made the trace.
            trace: Trace. The input.
            variants: sequence of VariantPrediction. The predictions for its variants.
            top_k: int. The number of predictions stored for each mask of the trace itself.
        """
        has_masks = trace.masks and "mlm" in bert.heads
        before = fill_mask(trace, bert.tokenizer, top_k) if has_masks else ()
        return cls(trace.tokens, before, trace.nsp, trace.sop, tuple(variants))

    def to_frame(self) -> pd.DataFrame:
        """A row for each prediction at each mask of each variant; one row for a variant without masks.

        `mask` is the number of the mask among the input's masks, `position` its position in the variant.
        """
        rows = [row for variant_prediction in self.variants for row in _rows(variant_prediction)]
        return frame({name: [row.get(name) for row in rows] for name in _COLUMNS}).astype(
            {name: "Int64" for name in ("mask", "position", "rank")}
        )

    def to_text(self) -> str:
        """A line for each variant and mask, with the likeliest token."""
        table = self.to_frame()
        table = table[table["rank"].fillna(1) == 1].drop(columns="rank")
        return frame_text(table.dropna(axis="columns", how="all"))


_COLUMNS = (
    "variant",
    "mask",
    "position",
    "rank",
    "prediction",
    "probability",
    "log_probability_change",
    "divergence_bits",
    "is_next",
    "is_next_change",
    "in_order",
    "in_order_change",
)


def _rows(result):
    """The rows of a `VariantPrediction` in the table, as dicts."""
    of_variant = {
        "variant": result.variant.label,
        "is_next": result.nsp and result.nsp.is_next,
        "is_next_change": result.nsp_change,
        "in_order": result.sop and result.sop.in_order,
        "in_order_change": result.sop_change,
    }
    if not result.masks:
        yield of_variant
    for number, mask, change, divergence in zip(
        result.variant.rows, result.masks, result.log_probability_changes, result.divergences
    ):
        for rank, prediction in enumerate(mask.predictions, 1):
            yield {
                **of_variant,
                "mask": number,
                "position": mask.position,
                "rank": rank,
                "prediction": prediction.token,
                "probability": prediction.probability,
                "log_probability_change": change,
                "divergence_bits": divergence,
            }


def predict_variants(
    bert: Bert,
    trace: Trace,
    variants: Iterable[Variant],
    top_k: int = 5,
    progress: Callable[[int, int], Any] | None = None,
) -> tuple[VariantPrediction, ...]:
    """The predictions for variants of a trace, in batches of bounded size.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. The input.
        variants: sequence of Variant. Variants of the trace.
        top_k: int. Predictions for each mask.
        progress: callable(done, total). Called with numbers of variants after each batch; it cancels by returning
            False.
    Returns:
        tuple of `VariantPrediction`, in the order of the variants.
    Raises:
        NothingToPredict, MissingHead: the trace has neither a mask nor a second text, or the model no head for it, such
            as a discriminator, whose scores of replaced tokens are not compared.
        InputError: a bad `top_k`.
        Cancelled: by `progress`.
    """
    check_top_k(top_k)
    # The scores of replaced tokens are not compared: a discriminator has nothing to predict here.
    check_question(trace.masks, trace.text_b, set(bert.heads) - {"replaced"}, bert.name)
    variants = tuple(variants)
    lengths = [len(variant.token_ids) for variant in variants]
    # A batch is padded to its longest variant, the first one in this order.
    order = sorted(range(len(variants)), key=lengths.__getitem__, reverse=True)
    predictions: dict[int, VariantPrediction] = {}
    while len(predictions) < len(variants):
        start = len(predictions)
        places = order[start : start + max(1, TOKENS_PER_BATCH // lengths[order[start]])]
        results = _run(bert, [variants[place] for place in places])
        for row, place in enumerate(places):
            predictions[place] = _prediction(bert, trace, variants[place], row, results, top_k)
        report(progress, len(predictions), len(variants))
    return tuple(predictions[place] for place in range(len(variants)))


def counterfactuals(
    bert: Bert,
    trace: Trace,
    replace: Iterable[tuple[str, str]] = (),
    top_k: int = 5,
    progress: Callable[[int, int], Any] | None = None,
) -> Counterfactuals:
    """Predictions for all changes of an input.

    The changes are: A and B swapped, each mask with one side of its context, words replaced, each word left out.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. The input.
        replace: sequence of (word, replacement). The first word with this spelling is replaced.
        top_k: int. Predictions for each mask.
        progress: callable(done, total). As in `predict_variants`.
    Returns:
        `Counterfactuals`.
    Raises:
        WordNotFound: a word is not in the text. Otherwise as `predict_variants`.

    Example:
        >>> bert = bert_tf.load()
        >>> result = counterfactuals(bert, bert.trace("The cat sat on the [MASK]."), replace=[("cat", "king")])
        >>> print(result.to_text())
    """
    variants = [swapped(bert, trace)] if trace.text_b is not None else []
    for mask in trace.masks:
        variants += [left_context(bert, trace, mask), right_context(bert, trace, mask)]
    words = trace.words()
    for old, new in replace:
        word = next((word for word in words if word.text == old), None)
        if word is None:
            raise WordNotFound(f"The word {old!r:.60} is not in the text.")
        variants.append(with_word(bert, trace, word, new))
    variants += [without_word(bert, trace, word) for word in _removable(trace)]
    return Counterfactuals.of(bert, trace, predict_variants(bert, trace, variants, top_k, progress), top_k)


def _removable(trace):
    """The words without a mask, except the only word of a text."""
    word_counts = Counter(word.source for word in trace.words())
    return [
        word for word in trace.words() if word_counts[word.source] > 1 and not set(word.positions) & set(trace.masks)
    ]


def without_each_word(
    bert: Bert, trace: Trace, top_k: int = 5, progress: Callable[[int, int], Any] | None = None
) -> tuple[tuple[WordSpan, VariantPrediction], ...]:
    """The predictions without each word, one at a time.

    Words with a mask are not left out, and neither is the only word of a text.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. The input.
        top_k: int. Predictions for each mask.
        progress: callable(done, total). Called with numbers of words; it cancels by returning False.
    Returns:
        tuple of (`WordSpan`, `VariantPrediction`), in reading order.
    Raises:
        As `predict_variants`.
    """
    words = _removable(trace)
    if not words:
        return ()
    variants = [without_word(bert, trace, word) for word in words]
    return tuple(zip(words, predict_variants(bert, trace, variants, top_k, progress)))


def _run(bert, variants):
    """The heads' outputs for the variants, as one batch: dict from names to arrays."""
    batch = pad_batch([(variant.token_ids, variant.segment_ids) for variant in variants], pad_id=bert.tokenizer.pad_id)
    outputs, max_masks = [], max(len(variant.masks) for variant in variants)
    if max_masks:
        require_head(bert.heads, "mlm", bert.name)
        batch["mask_positions"] = np.zeros((len(variants), max_masks), np.int32)
        for row, variant in enumerate(variants):
            batch["mask_positions"][row, : len(variant.masks)] = variant.masks
        outputs.append("mlm_logits")
    if any(variant.paired for variant in variants):
        outputs += [f"{head}_logits" for head in ("nsp", "sop") if head in bert.heads]
    return bert.runtime.run(batch, tuple(outputs)) if outputs else {}


def _prediction(bert, trace, variant, row, results, top_k):
    """The `VariantPrediction` of one row of a batch's results."""
    masks: tuple[MaskPrediction, ...] = ()
    changes, divergences, nsp, sop = [], [], None, None
    if variant.masks:
        logits = results["mlm_logits"][row, : len(variant.masks)]
        originals = trace.original_ids[[trace.masks[r] for r in variant.rows]]
        masks = mask_predictions(logits, variant.masks, originals, bert.tokenizer, top_k)
        for scores, before in zip(logits, trace.logits[list(variant.rows)]):
            p, q = softmax(before), softmax(scores)
            best = before.argmax()
            changes.append(np.log(q[best] / p[best]))
            divergences.append(jensen_shannon(p, q))
    if variant.paired and "nsp" in bert.heads:
        nsp = NextSentence.from_logits(results["nsp_logits"][row])
    if variant.paired and "sop" in bert.heads:
        sop = SentenceOrder.from_logits(results["sop_logits"][row])
    nsp_change = nsp.is_next - trace.nsp.is_next if nsp and trace.nsp else None
    sop_change = sop.in_order - trace.sop.in_order if sop and trace.sop else None
    return VariantPrediction(variant, masks, nsp, np.array(changes), np.array(divergences), nsp_change, sop, sop_change)


ANALYSIS = Analysis(
    name="counterfactual",
    function=counterfactuals,
    summary="predictions for the input with swapped texts, words left out or words replaced",
    needs=("mlm|nsp|sop",),
    options=(
        Option("replace", "words to replace", several=True, default=(), metavar="OLD=NEW", parse=replacement_of),
        TOP_K,
    ),
)
