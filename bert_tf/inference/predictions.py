"""Fill-mask: from MLM logits at the masks to words with probabilities.

Dimension legend: P masks, V vocabulary, K predictions a mask.
"""

from dataclasses import dataclass
from typing import Optional

import numpy as np

from bert_tf.errors import InputError, NothingToPredict, require_head
from bert_tf.results import Result, frame


@dataclass(frozen=True)
class Prediction:
    """One token that could stand at a mask, and its probability (of the whole vocabulary)."""

    token: str
    id: int
    probability: float


@dataclass(frozen=True)
class TargetPrediction(Prediction):
    """One token that was asked about at a mask; `rank` is its place among all V tokens, 1 for the likeliest."""

    rank: int


@dataclass(frozen=True)
class MaskPrediction(Result, figures={"predictions": "bert_tf.plots.predictions:mask_prediction"}):
    """What the model expects at one mask.

    Attributes:
        position: the mask's token position.
        original: the token that stands there in the text; None where the user typed "[MASK]".
        original_rank: the original's place among all V tokens, 1 for the likeliest; None with `original`.
        original_probability: None with `original`.
        predictions: the K likeliest, in descending order.
        targets: `TargetPrediction`s of the tokens that were asked about, in descending order.
    """

    position: int
    original: Optional[str]
    original_rank: Optional[int]
    original_probability: Optional[float]
    predictions: tuple
    targets: tuple = ()

    def to_frame(self):
        """As `predictions_frame` of this mask alone."""
        return predictions_frame([self])


def predictions_frame(masks):
    """`MaskPrediction`s as one table: a row for each token, the likeliest first, then those that were asked about."""
    rows = [
        (mask.position, mask.original, mask.original_rank, rank, one.token, one.probability, asked)
        for mask in masks
        for rank, one, asked in [
            *((rank, one, False) for rank, one in enumerate(mask.predictions, start=1)),
            *((one.rank, one, True) for one in mask.targets),
        ]
    ]
    names = ("position", "original", "original_rank", "rank", "token", "probability", "asked")
    return frame({name: [row[column] for row in rows] for column, name in enumerate(names)})


def top_probabilities(logits, top_k):
    """The likeliest entries of each row and their probabilities.

    Works row by row over one scratch vector instead of building the [P, V] softmax.

    Args:
        logits: float [P, V].
        top_k: K, at least 1.
    Returns:
        (ids int64 [P, K], probabilities float64 [P, K], log_normalizers float64 [P]), K at most V, in
        descending order, equal logits in the order of their ids.
    Raises:
        InputError: a row has a logit that is no number.
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
        # One pass for the threshold, then a sort of the few that reach it, so that ties come out the same
        # each time.
        threshold = np.partition(scores, vocabulary - top_k)[vocabulary - top_k]
        reach = np.flatnonzero(scores >= threshold)
        ids[row] = reach[np.argsort(-scores[reach], kind="stable")][:top_k]
        peak = scores[ids[row, 0]]
        np.subtract(scores, peak, out=scratch)
        np.exp(scratch, out=scratch)
        normalizers[row] = float(peak) + np.log(scratch.sum(dtype=np.float64))
    chosen = np.take_along_axis(logits, ids, axis=1).astype(np.float64)
    return ids, np.exp(chosen - normalizers[:, None]), normalizers


def target_ids(tokenizer, targets):
    """The ids of words that are asked about at masks, each once.

    Args:
        targets: words or tokens of one piece, in a sequence, or one str.
    Raises:
        InputError: one that the vocabulary has not got in one piece.
    """
    words = [targets] if isinstance(targets, str) else targets
    return tuple(dict.fromkeys(vocabulary_id(tokenizer, word) for word in words))


def mask_predictions(logits, positions, original_ids, tokenizer, top_k=5, asked=()):
    """Predictions at each mask from its logits.

    Args:
        logits: float32 [P, V].
        positions: P token positions.
        original_ids: P ids of the tokens that stand there; the mask token's own id where the user typed
            "[MASK]".
        tokenizer: gives the tokens' strings and `mask_id`.
        top_k: predictions a mask, at least 1.
        asked: ids of the tokens that are asked about.
    Returns:
        tuple of P `MaskPrediction`.
    Raises:
        InputError: `top_k` is not a positive whole number.
    """
    check_top_k(top_k)
    ids, probabilities, normalizers = top_probabilities(logits, top_k)
    answers = []
    for row, (position, original) in enumerate(zip(positions, original_ids)):
        known = original != tokenizer.mask_id

        def rank(index):
            return 1 + int(np.count_nonzero(logits[row] > logits[row, index]))

        def probability(index):
            return float(np.exp(np.float64(logits[row, index]) - normalizers[row]))

        targets = [TargetPrediction(tokenizer.id_to_token(i), i, probability(i), rank(i)) for i in asked]
        answers.append(
            MaskPrediction(
                position=int(position),
                original=tokenizer.id_to_token(int(original)) if known else None,
                original_rank=rank(original) if known else None,
                original_probability=probability(original) if known else None,
                predictions=tuple(
                    Prediction(tokenizer.id_to_token(int(i)), int(i), float(p))
                    for i, p in zip(ids[row], probabilities[row])
                ),
                targets=tuple(sorted(targets, key=lambda one: one.rank)),
            )
        )
    return tuple(answers)


def vocabulary_id(tokenizer, token):
    """The id of a token of the vocabulary, or of the one that a word is read as; InputError if there is none."""
    for index in (tokenizer.spellings, tokenizer.vocab):
        if token in index:
            return index.index(token)
    is_text = isinstance(token, str) and token.strip()
    read = tokenizer.tokenize(token) if is_text else ()
    if len(read) == 1 and read.ids[0] != tokenizer.unk_id:
        return int(read.ids[0])
    pieces = " ".join(piece.strip() for piece in read.tokens) if len(read) > 1 else ""
    hint = f" It is made of: {pieces}." if pieces else ""
    raise InputError(f"{token!r:.60} is no token of this model's vocabulary.{hint}")


def fill_mask(trace, tokenizer, top_k=5, targets=()):
    """The likeliest tokens at every mask of a trace, each mask judged with all the others still masked.

    Args:
        trace: a `Trace` with at least one mask.
        tokenizer: of the model that made the trace.
        top_k: predictions a mask.
        targets: words to ask about at every mask, as `target_ids` takes them.
    Returns:
        tuple of `MaskPrediction`, one a mask, ascending positions.
    Raises:
        NothingToPredict: no mask.
        MissingHead: the model has no MLM head.
        InputError: `top_k` is not a positive whole number, or a target is no word of one piece.
    """
    require_masks(trace)
    originals = trace.original_ids[list(trace.masks)]
    return mask_predictions(trace.logits, trace.masks, originals, tokenizer, top_k, target_ids(tokenizer, targets))


def require_masks(trace):
    """Raise NothingToPredict or MissingHead unless the trace holds logits for at least one mask."""
    if not trace.masks:
        raise NothingToPredict(
            'Nothing is masked, so there is nothing to predict: type "[MASK]" in the text or name a word to mask.'
        )
    if trace.logits is None:
        require_head(trace.heads, "mlm", trace.model)


def check_top_k(top_k):
    if isinstance(top_k, bool) or not isinstance(top_k, (int, np.integer)) or top_k < 1:
        raise InputError(f"top_k must be a whole number of at least 1, not {top_k!r}.")
