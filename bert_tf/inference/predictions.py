"""Predictions at masks: tokens and probabilities from the MLM logits.

Dimension legend: P masks, V vocabulary, K predictions at each mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bert_tf.errors import InputError, NothingToPredict, require_head
from bert_tf.results import Result, frame

if TYPE_CHECKING:  # pandas takes long to import
    import pandas as pd

    from bert_tf.inference.trace import Trace
    from bert_tf.tokenizers import BaseTokenizer


@dataclass(frozen=True)
class Prediction:
    """A predicted token at a mask, and its probability over the whole vocabulary."""

    token: str
    id: int
    probability: float


@dataclass(frozen=True)
class TargetPrediction(Prediction):
    """The probability of a target word at a mask; `rank` is its rank among all V tokens, 1 for the most probable."""

    rank: int


@dataclass(frozen=True)
class MaskPrediction(Result, figures={"predictions": "bert_tf.plots.predictions:mask_prediction"}):
    """The predictions at one mask.

    Attributes:
        position: int. The token position of the mask.
        original: str or None. The token of the text at this position; None where the user typed "[MASK]".
        original_rank: int or None. The rank of the original token among all V tokens, 1 for the most probable; None
            if `original` is None.
        original_probability: float or None. The probability of the original token; None if `original` is None.
        predictions: tuple of K `Prediction`. The most probable tokens, in descending order.
        targets: tuple of `TargetPrediction`. The target words, in descending order.
    """

    position: int
    original: str | None
    original_rank: int | None
    original_probability: float | None
    predictions: tuple[Prediction, ...]
    targets: tuple[TargetPrediction, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the predictions at this mask; see `predictions_frame`."""
        return predictions_frame([self])


def predictions_frame(masks: Iterable[MaskPrediction]) -> pd.DataFrame:
    """Return one table of several masks: a row for each predicted token, the most probable first, then the targets."""
    rows = [
        (mask.position, mask.original, mask.original_rank, rank, prediction.token, prediction.probability, asked)
        for mask in masks
        for rank, prediction, asked in [
            *((rank, prediction, False) for rank, prediction in enumerate(mask.predictions, start=1)),
            *((target.rank, target, True) for target in mask.targets),
        ]
    ]
    names = ("position", "original", "original_rank", "rank", "token", "probability", "asked")
    return frame({name: [row[column] for row in rows] for column, name in enumerate(names)})


def top_probabilities(logits: np.ndarray, top_k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the most probable entries of each row and their probabilities.

    It reuses one scratch vector for all rows instead of computing the [P, V] softmax.

    Args:
        logits: float [P, V].
        top_k: int. K, at least 1.

    Returns:
        (ids int64 [P, K], probabilities float64 [P, K], log_normalizers float64 [P]), with K at most V, in descending
        order; equal logits are in the order of their ids.

    Raises:
        InputError: a logit is not a finite number.
    """
    rows, vocabulary = logits.shape
    top_k = min(top_k, vocabulary)
    ids = np.empty((rows, top_k), np.int64)
    normalizers = np.empty(rows, np.float64)
    scratch = np.empty(vocabulary, np.float32)
    for row in range(rows):
        scores = logits[row]
        if not np.isfinite(scores.max()):
            raise InputError("The model's scores for this text are no numbers: its weights are too large or damaged.")
        # Find the threshold, then sort only the scores that reach it. The stable sort makes the order of equal
        # scores reproducible.
        threshold = np.partition(scores, vocabulary - top_k)[vocabulary - top_k]
        candidates = np.flatnonzero(scores >= threshold)
        ids[row] = candidates[np.argsort(-scores[candidates], kind="stable")][:top_k]
        peak = scores[ids[row, 0]]
        np.subtract(scores, peak, out=scratch)
        np.exp(scratch, out=scratch)
        normalizers[row] = float(peak) + np.log(scratch.sum(dtype=np.float64))
    top_logits = np.take_along_axis(logits, ids, axis=1).astype(np.float64)
    return ids, np.exp(top_logits - normalizers[:, None]), normalizers


def target_ids(tokenizer: BaseTokenizer, targets: str | Iterable[str]) -> tuple[int, ...]:
    """Return the ids of target words, each once.

    Args:
        tokenizer: tokenizer of the model.
        targets: str or iterable of str. Words or tokens that are single tokens of the vocabulary.

    Raises:
        InputError: a word is not a single token of the vocabulary.
    """
    words = [targets] if isinstance(targets, str) else targets
    return tuple(dict.fromkeys(vocabulary_id(tokenizer, word) for word in words))


def mask_predictions(
    logits: np.ndarray,
    positions: Sequence[int],
    original_ids: Sequence[int] | np.ndarray,
    tokenizer: BaseTokenizer,
    top_k: int = 5,
    asked: Sequence[int] = (),
) -> tuple[MaskPrediction, ...]:
    """Compute the predictions at each mask from its logits.

    Args:
        logits: float32 [P, V]. The logits at the masks.
        positions: sequence of P int. The token positions of the masks.
        original_ids: sequence of P int. The ids before masking; the mask token's id where the user typed "[MASK]".
        tokenizer: tokenizer of the model.
        top_k: int. The number of predictions at each mask, at least 1.
        asked: sequence of int. The ids of the target words.

    Returns:
        Tuple of P `MaskPrediction`.

    Raises:
        InputError: `top_k` is not a positive whole number.
    """
    check_top_k(top_k)
    ids, probabilities, normalizers = top_probabilities(logits, top_k)
    answers = []
    for row, (position, original) in enumerate(zip(positions, original_ids)):
        has_original = original != tokenizer.mask_id

        def rank(index):
            return 1 + int(np.count_nonzero(logits[row] > logits[row, index]))

        def probability(index):
            return float(np.exp(np.float64(logits[row, index]) - normalizers[row]))

        targets = [TargetPrediction(tokenizer.id_to_token(i), i, probability(i), rank(i)) for i in asked]
        answers.append(
            MaskPrediction(
                position=int(position),
                original=tokenizer.id_to_token(int(original)) if has_original else None,
                original_rank=rank(original) if has_original else None,
                original_probability=probability(original) if has_original else None,
                predictions=tuple(
                    Prediction(tokenizer.id_to_token(int(i)), int(i), float(p))
                    for i, p in zip(ids[row], probabilities[row])
                ),
                targets=tuple(sorted(targets, key=lambda target: target.rank)),
            )
        )
    return tuple(answers)


def vocabulary_id(tokenizer: BaseTokenizer, token: Any) -> int:
    """Return the id of a token of the vocabulary, or of a word that is tokenized to a single token.

    Raises:
        InputError: the word is not a single token of the vocabulary.
    """
    known = tokenizer.find_token(token) if isinstance(token, str) else None
    if known is not None:
        return known
    pieces = tokenizer.tokenize(token) if isinstance(token, str) and token.strip() else None
    if pieces is not None and len(pieces) == 1 and pieces.ids[0] != tokenizer.unk_id:
        return int(pieces.ids[0])
    spelled = " ".join(piece.strip() for piece in pieces.tokens) if pieces is not None and len(pieces) > 1 else ""
    hint = f" It is made of: {spelled}." if spelled else ""
    raise InputError(f"{token!r:.60} is no token of this model's vocabulary.{hint}")


def fill_mask(
    trace: Trace, tokenizer: BaseTokenizer, top_k: int = 5, targets: str | Iterable[str] = ()
) -> tuple[MaskPrediction, ...]:
    """Return the most probable tokens at every mask of a trace; all other masks stay masked.

    Args:
        trace: `Trace`. It must have at least one mask.
        tokenizer: tokenizer of the model that made the trace.
        top_k: int. The number of predictions at each mask.
        targets: str or iterable of str. Words whose probability is returned at every mask; see `target_ids`.

    Returns:
        Tuple of `MaskPrediction`, one for each mask, in ascending order of position.

    Raises:
        NothingToPredict: there is no mask.
        MissingHead: the model has no MLM head.
        InputError: `top_k` is not a positive whole number, or a target is not a single token.
    """
    require_masks(trace)
    logits = cast(np.ndarray, trace.logits)
    original_ids = trace.original_ids[list(trace.masks)]
    return mask_predictions(logits, trace.masks, original_ids, tokenizer, top_k, target_ids(tokenizer, targets))


def require_masks(trace: Trace) -> None:
    """Check that a trace has a mask and the MLM logits.

    Raises:
        NothingToPredict: there is no mask.
        MissingHead: the model has no MLM head.
    """
    if not trace.masks:
        raise NothingToPredict(
            'Nothing is masked, so there is nothing to predict: type "[MASK]" in the text or name a word to mask.'
        )
    if trace.logits is None:
        require_head(trace.heads, "mlm", trace.model)


def check_top_k(top_k: Any) -> None:
    """Check that `top_k` is a positive whole number.

    Raises:
        InputError: it is not.
    """
    if isinstance(top_k, bool) or not isinstance(top_k, (int, np.integer)) or top_k < 1:
        raise InputError(f"top_k must be a whole number of at least 1, not {top_k!r}.")
