"""How far two models agree over many texts.

Dimension legend: as in `compare`, which says what is compared and how vocabularies are matched.
"""

from dataclasses import dataclass
from typing import Optional

import numpy as np

from bert_tf.analysis import TOP_K, Analysis
from bert_tf.errors import report
from bert_tf.explain.datasets.row_predictions import hidden_places
from bert_tf.explain.datasets.text_rows import HIDE_OPTION, hidden_words
from bert_tf.explain.models.compare import OTHER_MODEL, compare
from bert_tf.results import Result, frame


@dataclass(frozen=True)
class RowAgreement:
    """Two models on one row.

    Attributes:
        row: the `Row`. places: what was hidden, as `dataset.hidden_places` names it in A's reading.
        masks: `MaskAgreement`s. originals: the tokens that stand there, None for a typed "[MASK]".
        same_top_prediction: how many of the masks have the same first guess.
        divergence: mean Jensen-Shannon divergence of the masks in bits; None without masks.
        is_next_a, is_next_b: P(IsNext) of either, or None.
        problem: why the row could not be compared, or None.
        in_order_a, in_order_b: P(in order) of either, or None.
        replaced_difference: as in `Comparison`.
    """

    row: object
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
    def is_next_difference(self):
        """How far apart the two P(IsNext) are, or None."""
        return None if None in (self.is_next_a, self.is_next_b) else abs(self.is_next_a - self.is_next_b)

    @property
    def in_order_difference(self):
        """How far apart the two P(in order) are, or None."""
        return None if None in (self.in_order_a, self.in_order_b) else abs(self.in_order_a - self.in_order_b)


@dataclass(frozen=True)
class Agreement(Result, figures={"rows": "bert_tf.plots.datasets.agreement:most_different_rows"}):
    """Two models on many rows.

    Attributes:
        model_a, model_b: their names. rows: `RowAgreement`s, those that differ most first: by divergence,
            then by the difference of P(IsNext), of P(in order) and of P(replaced); rows with a problem last.
        masks: how many masks were compared. same_top_prediction: share with the same first guess; None without masks.
        divergence: mean over the masks in bits.
        pairs: how many rows have both next-sentence scores. same_next: share with the same verdict.
        orders: how many have both sentence-order scores. same_order: share with the same verdict.
        replaced_rows: how many have both scores of their tokens. replaced_difference: mean over these rows.
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

    def to_frame(self):
        """A row for each row of the file, the most different first; several masks of a row with spaces between."""
        rows = self.rows
        return frame(
            {
                "row": [one.row.number for one in rows],
                "text_a": [one.row.text_a for one in rows],
                "text_b": [one.row.text_b for one in rows],
                "hidden": [" ".join(token or "[MASK]" for token in one.originals) for one in rows],
                "prediction_a": [" ".join(mask.predictions_a[0].token for mask in one.masks) for one in rows],
                "prediction_b": [" ".join(mask.predictions_b[0].token for mask in one.masks) for one in rows],
                "same_top_prediction": [one.same_top_prediction for one in rows],
                "divergence_bits": [one.divergence for one in rows],
                "is_next_a": [one.is_next_a for one in rows],
                "is_next_b": [one.is_next_b for one in rows],
                "in_order_a": [one.in_order_a for one in rows],
                "in_order_b": [one.in_order_b for one in rows],
                "replaced_difference": [one.replaced_difference for one in rows],
                "problem": [one.problem for one in rows],
            }
        )


def agreement(bert_a, bert_b, rows, hide="random", top_k=5, progress=None):
    """Ask two models about every row of a file and see where they differ.

    Args:
        bert_a, bert_b: two `Bert`s, or what has their `trace`, `tokenizer`, `config`, `heads` and `name`.
        rows: `Row`s. hide, top_k: as in `score_rows`; both models have the same words hidden, and none where a
            model has no head for them.
        progress: callable(done, total) in rows; returning False cancels.
    Returns:
        `Agreement`. Heads that a model lacks leave their part out.
    Raises:
        Cancelled: by `progress`.
    """
    rows, found = list(rows), []
    for row in rows:
        found.append(_row(bert_a, bert_b, row, hide, top_k))
        report(progress, len(found), len(rows))
    masks = [mask for one in found for mask in one.masks]
    pairs = [(one.is_next_a, one.is_next_b) for one in found if one.is_next_difference is not None]
    orders = [(one.in_order_a, one.in_order_b) for one in found if one.in_order_difference is not None]
    replaced = [one.replaced_difference for one in found if one.replaced_difference is not None]
    return Agreement(
        model_a=bert_a.name,
        model_b=bert_b.name,
        rows=tuple(sorted(found, key=_difference)),
        masks=len(masks),
        same_top_prediction=sum(one.same_top_prediction for one in found) / len(masks) if masks else None,
        divergence=float(np.mean([mask.divergence for mask in masks])) if masks else None,
        pairs=len(pairs),
        same_next=_same_verdicts(pairs),
        orders=len(orders),
        same_order=_same_verdicts(orders),
        replaced_rows=len(replaced),
        replaced_difference=float(np.mean(replaced)) if replaced else None,
    )


def _same_verdicts(pairs):
    """Share of pairs of probabilities on the same side of one half; None without any."""
    return float(np.mean([(one > 0.5) == (other > 0.5) for one, other in pairs])) if pairs else None


def _row(bert_a, bert_b, row, hide, top_k):
    try:
        both_fill = "mlm" in bert_a.heads & bert_b.heads
        mask = hidden_words(row, bert_a.tokenizer.encode(row.text_a, row.text_b), hide) if both_fill else ()
        traces = [
            bert.trace(row.text_a, row.text_b, mask=mask, level="word", attentions=False, hidden_states=False)
            for bert in (bert_a, bert_b)
        ]
    except ValueError as error:
        return RowAgreement(row, problem=str(error))
    layers = (bert.config.num_hidden_layers for bert in (bert_a, bert_b))
    found = compare(*traces, bert_a.tokenizer, bert_b.tokenizer, *layers, top_k=top_k)
    read, mask_id = traces[0], bert_a.tokenizer.mask_id
    ids = {position: int(read.original_ids[position]) for position in read.masks}
    tokens = {at: None if one == mask_id else bert_a.tokenizer.id_to_token(one) for at, one in ids.items()}
    return RowAgreement(
        row=row,
        places=hidden_places(read, [at for at, token in tokens.items() if token]),
        masks=found.masks,
        originals=tuple(tokens[one.position_a] for one in found.masks),
        same_top_prediction=sum(
            _same_first(mask, bert_a.tokenizer, bert_b.tokenizer, found.case_folded) for mask in found.masks
        ),
        divergence=float(np.mean([mask.divergence for mask in found.masks])) if found.masks else None,
        is_next_a=traces[0].nsp and traces[0].nsp.is_next,
        is_next_b=traces[1].nsp and traces[1].nsp.is_next,
        in_order_a=traces[0].sop and traces[0].sop.in_order,
        in_order_b=traces[1].sop and traces[1].sop.in_order,
        replaced_difference=found.replaced_difference,
    )


def _same_first(mask, tokenizer_a, tokenizer_b, case_folded):
    one = tokenizer_a.spelling(mask.predictions_a[0].token)
    other = tokenizer_b.spelling(mask.predictions_b[0].token)
    return one.lower() == other.lower() if case_folded else one == other


def _difference(one):
    """Sorts the most different first."""
    apart = one.divergence, one.is_next_difference, one.in_order_difference, one.replaced_difference
    return one.problem is not None, *(-(value or 0.0) for value in apart), one.row.number


def agreement_over_rows(bert, rows, other, hide="random", top_k=5, progress=None):
    """`agreement` of a model with the `Bert` other; args and returns as there."""
    return agreement(bert, other, rows, hide, top_k, progress)


ANALYSIS = Analysis(
    name="agreement",
    function=agreement_over_rows,
    summary="two models on every row of a file, the most different first",
    source="Lin 1991, Divergence measures based on the Shannon entropy",
    options=(OTHER_MODEL, HIDE_OPTION, TOP_K),
    inputs="file",
)
