"""The agreement of two models over the rows of a file.

Dimension legend: as in `compare`, which documents the comparison and the matching of vocabularies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

import numpy as np

from bert_tf.analysis import TOP_K, Analysis
from bert_tf.errors import report
from bert_tf.explain.datasets.row_predictions import hidden_places
from bert_tf.explain.datasets.text_rows import HIDE_OPTION, check_hide, hidden_words
from bert_tf.explain.models.compare import OTHER_MODEL, compare
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pandas

    from bert_tf.explain.datasets.text_rows import TextRow
    from bert_tf.inference.bert import Bert


@dataclass(frozen=True)
class RowAgreement:
    """The predictions of two models for one row.

    Attributes:
        row: `TextRow`.
        places: tuple. The hidden words, as `row_predictions.hidden_places` returns them for model A's tokens.
        masks: tuple of `MaskAgreement`.
        originals: tuple of str or None. The hidden token of each mask; None for a typed "[MASK]".
        same_top_prediction: int. The number of masks whose first prediction is the same.
        divergence: float or None. The mean Jensen-Shannon divergence of the masks in bits; None without masks.
        is_next_a, is_next_b: float or None. P(IsNext) of each model.
        problem: str or None. Why the row could not be compared.
        in_order_a, in_order_b: float or None. P(in order) of each model.
        replaced_difference: float or None. As in `Comparison`.
    """

    row: TextRow
    places: tuple = ()
    masks: tuple = ()
    originals: tuple = ()
    same_top_prediction: int = 0
    divergence: Optional[float] = None
    is_next_a: Optional[float] = None
    is_next_b: Optional[float] = None
    problem: Optional[str] = None
    in_order_a: Optional[float] = None
    in_order_b: Optional[float] = None
    replaced_difference: Optional[float] = None

    @property
    def is_next_difference(self) -> float | None:
        """The absolute difference of the two P(IsNext), or None."""
        return _absolute_difference(self.is_next_a, self.is_next_b)

    @property
    def in_order_difference(self) -> float | None:
        """The absolute difference of the two P(in order), or None."""
        return _absolute_difference(self.in_order_a, self.in_order_b)


def _absolute_difference(a, b):
    return None if a is None or b is None else abs(a - b)


@dataclass(frozen=True)
class Agreement(Result, figures={"rows": "bert_tf.plots.datasets.agreement:most_different_rows"}):
    """The agreement of two models over many rows.

    Attributes:
        model_a, model_b: str. The names of the models.
        rows: tuple of `RowAgreement`, the most different first: by divergence, then by the difference of P(IsNext), of
            P(in order) and of P(replaced); rows with a problem last.
        masks: int. The number of masks compared.
        same_top_prediction: float or None. The share of masks with the same first prediction; None without masks.
        divergence: float or None. The mean over the masks, in bits.
        pairs: int. The number of rows with a next-sentence score of both models.
        same_next: float or None. The share of these rows where both scores are on the same side of 0.5.
        orders: int. The number of rows with a sentence-order score of both models.
        same_order: float or None. The share of these rows where both scores are on the same side of 0.5.
        replaced_rows: int. The number of rows with replaced-token scores of both models.
        replaced_difference: float or None. The mean over these rows.
    """

    model_a: str
    model_b: str
    rows: tuple
    masks: int
    same_top_prediction: Optional[float]
    divergence: Optional[float]
    pairs: int
    same_next: Optional[float]
    orders: int = 0
    same_order: Optional[float] = None
    replaced_rows: int = 0
    replaced_difference: Optional[float] = None

    def to_frame(self) -> pandas.DataFrame:
        """A row for each row of the file, the most different first.

        The values of several masks stand in one cell, separated by spaces.
        """
        rows = self.rows
        return frame(
            {
                "row": [result.row.number for result in rows],
                "text_a": [result.row.text_a for result in rows],
                "text_b": [result.row.text_b for result in rows],
                "hidden": [" ".join(token or "[MASK]" for token in result.originals) for result in rows],
                "prediction_a": [" ".join(mask.predictions_a[0].token for mask in result.masks) for result in rows],
                "prediction_b": [" ".join(mask.predictions_b[0].token for mask in result.masks) for result in rows],
                "same_top_prediction": [result.same_top_prediction for result in rows],
                "divergence_bits": [result.divergence for result in rows],
                "is_next_a": [result.is_next_a for result in rows],
                "is_next_b": [result.is_next_b for result in rows],
                "in_order_a": [result.in_order_a for result in rows],
                "in_order_b": [result.in_order_b for result in rows],
                "replaced_difference": [result.replaced_difference for result in rows],
                "problem": [result.problem for result in rows],
            }
        )


def agreement(
    bert_a: Bert,
    bert_b: Bert,
    rows: Sequence[TextRow],
    hide: str = "random",
    top_k: int = 5,
    progress: Callable[[int, int], object] | None = None,
) -> Agreement:
    """Compare the predictions of two models for every row of a file.

    Args:
        bert_a, bert_b: `Bert`, or any object with `trace`, `tokenizer`, `config`, `heads`, `max_length` and `name`.
        rows: sequence of `TextRow`.
        hide, top_k: as in `score_rows`. Both models have the same words hidden, which both read; no word is hidden
            where a model has no masked language model head.
        progress: callable(done, total) in rows; returning False cancels.
    Returns:
        `Agreement`. The score of a head that one of the models lacks is left out.
    Raises:
        InputError: an unknown `hide`.
        Cancelled: by `progress`.
    """
    check_hide(hide)
    rows, row_agreements = list(rows), []
    for row in rows:
        row_agreements.append(_row(bert_a, bert_b, row, hide, top_k))
        report(progress, len(row_agreements), len(rows))
    masks = [mask for result in row_agreements for mask in result.masks]
    pairs = [(result.is_next_a, result.is_next_b) for result in row_agreements if result.is_next_difference is not None]
    orders = [
        (result.in_order_a, result.in_order_b) for result in row_agreements if result.in_order_difference is not None
    ]
    replaced = [result.replaced_difference for result in row_agreements if result.replaced_difference is not None]
    return Agreement(
        model_a=bert_a.name,
        model_b=bert_b.name,
        rows=tuple(sorted(row_agreements, key=_difference)),
        masks=len(masks),
        same_top_prediction=sum(result.same_top_prediction for result in row_agreements) / len(masks)
        if masks
        else None,
        divergence=float(np.mean([mask.divergence for mask in masks])) if masks else None,
        pairs=len(pairs),
        same_next=_share_same_side(pairs),
        orders=len(orders),
        same_order=_share_same_side(orders),
        replaced_rows=len(replaced),
        replaced_difference=float(np.mean(replaced)) if replaced else None,
    )


def _share_same_side(pairs):
    """The share of pairs of probabilities on the same side of 0.5; None without pairs."""
    return float(np.mean([(a > 0.5) == (b > 0.5) for a, b in pairs])) if pairs else None


def _row(bert_a, bert_b, row, hide, top_k):
    try:
        both_fill = "mlm" in bert_a.heads & bert_b.heads
        encodings = [bert.tokenizer.encode(row.text_a, row.text_b, bert.max_length) for bert in (bert_a, bert_b)]
        typed = (bert_a.tokenizer.mask_token, bert_b.tokenizer.mask_token)
        mask = hidden_words(row, encodings[0], hide, encodings[1], typed) if both_fill else ()
        traces = [
            bert.trace(row.text_a, row.text_b, mask=mask, level="word", attentions=False, hidden_states=False)
            for bert in (bert_a, bert_b)
        ]
    except ValueError as error:
        return RowAgreement(row, problem=str(error))
    (trace_a, trace_b), mask_id = traces, bert_a.tokenizer.mask_id
    layers_a, layers_b = bert_a.config.num_hidden_layers, bert_b.config.num_hidden_layers
    comparison = compare(trace_a, trace_b, bert_a.tokenizer, bert_b.tokenizer, layers_a, layers_b, top_k=top_k)
    ids = {position: int(trace_a.original_ids[position]) for position in trace_a.masks}
    tokens = {
        position: None if token_id == mask_id else bert_a.tokenizer.id_to_token(token_id)
        for position, token_id in ids.items()
    }
    masks = comparison.masks
    return RowAgreement(
        row=row,
        places=hidden_places(trace_a, [position for position, token in tokens.items() if token]),
        masks=masks,
        originals=tuple(tokens[mask.position_a] for mask in masks),
        same_top_prediction=sum(
            _same_first(mask, bert_a.tokenizer, bert_b.tokenizer, comparison.case_folded) for mask in masks
        ),
        divergence=float(np.mean([mask.divergence for mask in masks])) if masks else None,
        is_next_a=trace_a.nsp and trace_a.nsp.is_next,
        is_next_b=trace_b.nsp and trace_b.nsp.is_next,
        in_order_a=trace_a.sop and trace_a.sop.in_order,
        in_order_b=trace_b.sop and trace_b.sop.in_order,
        replaced_difference=comparison.replaced_difference,
    )


def _same_first(mask, tokenizer_a, tokenizer_b, case_folded):
    token_a = tokenizer_a.spelling(mask.predictions_a[0].token)
    token_b = tokenizer_b.spelling(mask.predictions_b[0].token)
    return token_a.lower() == token_b.lower() if case_folded else token_a == token_b


def _difference(row):
    """The sort key of a `RowAgreement`: the most different rows come first."""
    differences = row.divergence, row.is_next_difference, row.in_order_difference, row.replaced_difference
    return row.problem is not None, *(-(value or 0.0) for value in differences), row.row.number


def agreement_over_rows(
    bert: Bert,
    rows: Sequence[TextRow],
    other: Bert,
    hide: str = "random",
    top_k: int = 5,
    progress: Callable[[int, int], object] | None = None,
) -> Agreement:
    """The `agreement` of a model with another one, `other`; arguments and result as in `agreement`."""
    return agreement(bert, other, rows, hide, top_k, progress)


ANALYSIS = Analysis(
    name="agreement",
    function=agreement_over_rows,
    summary="two models on every row of a file, the most different first",
    source="Lin 1991, Divergence measures based on the Shannon entropy",
    options=(OTHER_MODEL, HIDE_OPTION, TOP_K),
    inputs="file",
)
