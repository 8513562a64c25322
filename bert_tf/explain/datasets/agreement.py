"""How far two models agree over many texts.

Dimension legend: as in `compare`, which says what is compared and how vocabularies are matched.
"""

from dataclasses import dataclass
from typing import Optional

import numpy as np

from bert_tf.errors import report
from bert_tf.explain.datasets.row_predictions import hidden_places
from bert_tf.explain.datasets.text_rows import hidden_words
from bert_tf.explain.models.compare import compare


@dataclass(frozen=True)
class RowAgreement:
    """Two models on one row.

    Attributes:
        row: the `Row`. places: what was hidden, as `dataset.hidden_places` names it in A's reading.
        masks: `MaskAgreement`s. originals: the tokens that stand there, None for a typed "[MASK]".
        same_top_prediction: how many of the masks have the same first guess.
        divergence: mean Jensen-Shannon divergence of the masks in bits; None without masks.
        next_a, next_b: P(IsNext) of either, or None.
        problem: why the row could not be compared, or None.
        order_a, order_b: P(in order) of either, or None.
        replaced_difference: as in `Comparison`.
    """

    row: object
    places: tuple = ()
    masks: tuple = ()
    originals: tuple = ()
    same_top_prediction: int = 0
    divergence: Optional[float] = None
    next_a: Optional[float] = None
    next_b: Optional[float] = None
    problem: Optional[str] = None
    order_a: Optional[float] = None
    order_b: Optional[float] = None
    replaced_difference: Optional[float] = None

    @property
    def next_difference(self):
        """How far apart the two P(IsNext) are, or None."""
        return None if None in (self.next_a, self.next_b) else abs(self.next_a - self.next_b)

    @property
    def order_difference(self):
        """How far apart the two P(in order) are, or None."""
        return None if None in (self.order_a, self.order_b) else abs(self.order_a - self.order_b)


@dataclass(frozen=True)
class Agreement:
    """Two models on many rows.

    Attributes:
        model_a, model_b: their names. rows: `RowAgreement`s, those that differ most first: by divergence,
            then by the difference of P(IsNext), of P(in order) and of P(replaced); rows with a problem last.
        masks: how many masks were compared. same_top_prediction: share with the same first guess; None without masks.
        divergence: mean over the masks in bits.
        pairs: how many rows have both next-sentence scores. same_next: share with the same verdict.
        orders: how many have both sentence-order scores. same_order: share with the same verdict.
        replaced: how many have both scores of their tokens. replaced_difference: mean over these rows.
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
    replaced: int = 0
    replaced_difference: Optional[float] = None


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
    pairs = [(one.next_a, one.next_b) for one in found if one.next_difference is not None]
    orders = [(one.order_a, one.order_b) for one in found if one.order_difference is not None]
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
        replaced=len(replaced),
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
        next_a=traces[0].nsp and traces[0].nsp.is_next,
        next_b=traces[1].nsp and traces[1].nsp.is_next,
        order_a=traces[0].sop and traces[0].sop.in_order,
        order_b=traces[1].sop and traces[1].sop.in_order,
        replaced_difference=found.replaced_difference,
    )


def _same_first(mask, tokenizer_a, tokenizer_b, case_folded):
    one = tokenizer_a.spelling(mask.predictions_a[0].token)
    other = tokenizer_b.spelling(mask.predictions_b[0].token)
    return one.lower() == other.lower() if case_folded else one == other


def _difference(one):
    """Sorts the most different first."""
    apart = one.divergence, one.next_difference, one.order_difference, one.replaced_difference
    return one.problem is not None, *(-(value or 0.0) for value in apart), one.row.number
