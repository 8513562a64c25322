"""The rows of a file as vectors: the nearest rows of a row, and row attributes to colour the points by.

LIT has the same projections of a data set and the same search for similar examples (Tenney et al. 2020, "The Language
Interpretability Tool"). Dimension legend: B batch, T tokens, H hidden, L layers, W readable rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.explain.attribution.target import reads_single_texts
from bert_tf.explain.datasets.row_predictions import supported_predictions
from bert_tf.explain.representations.vectors import cosine_similarities
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.predictions import check_top_k
from bert_tf.tokenizers import pad_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from bert_tf.config import BertConfig
    from bert_tf.explain.datasets.row_predictions import RowResult
    from bert_tf.explain.datasets.text_rows import TextRow
    from bert_tf.inference.bert import Bert


#: The poolings of a row's hidden states into its vector: their mean, or the first token's.
POOLINGS = ("mean", "first")

#: The message where the vectors of the first tokens are equal in all rows.
SAME_FIRST = (
    "After this layer the first token is the same in every row: choose the mean of the tokens or a later layer."
)

# Rows in one forward pass. Few, because other requests wait for the model meanwhile.
_BLOCK = 8


@dataclass(frozen=True, eq=False)
class RowVectors:
    """The vectors of a file's rows.

    Attributes:
        places: tuple of W int. The index of each vector's row, ascending; an unreadable row has no vector.
        vectors: float32 [L+1, W, H]. Index 0 is the embeddings.
    """

    places: tuple
    vectors: np.ndarray


def supported_poolings(config: BertConfig) -> tuple[str, ...]:
    """Those of `POOLINGS` whose vectors differ from row to row.

    In a model that reads from left to right the first token attends to no other token, so "first" is left out.
    """
    return ("mean",) if config.architecture.attention_direction == "left_to_right" else POOLINGS


def constant_first_token(vectors: np.ndarray, pooling: str) -> bool:
    """Whether the vectors of the rows' first tokens, float [W, H], are equal but for rounding."""
    if pooling != "first" or len(vectors) < 2:
        return False
    return bool(np.ptp(vectors, axis=0).max() <= 1e-5 * np.abs(vectors).max())


def reads_text_a_only(bert: Bert, ask: Collection[str]) -> bool:
    """Whether a row's vector is made of text A alone: `ask` has "classes" and the classifier reads single texts."""
    return "classes" in ask and reads_single_texts(bert)


def row_vectors(
    bert: Bert,
    rows: Sequence[TextRow],
    pooling: str = "mean",
    progress: Callable[[int, int], object] | None = None,
    ask: Collection[str] = (),
) -> RowVectors:
    """A vector of every row after every layer, without masks. Rows of similar length share a forward pass.

    Args:
        bert: `Bert`. The model.
        rows: sequence of `TextRow`.
        pooling: str. "mean": the mean hidden state of the row's tokens, [CLS] and [SEP] included. "first": the hidden
            state of [CLS].
        progress: callable(done, total) in rows; returning False cancels.
        ask: sequence of str. The predictions asked for, as in `score_rows`. With "classes" a row is read as the
            classifier reads it: text A alone where the classifier reads single texts.
    Returns:
        `RowVectors`. A row is truncated to the model's maximum length.
    Raises:
        InputError: an unknown pooling, a pooling with which all rows of this model are equal, or no readable row.
        Cancelled: by `progress`.
    """
    if pooling not in POOLINGS:
        raise InputError(f"The pooling is {' or '.join(POOLINGS)}, not {pooling!r:.40}.")
    if pooling not in supported_poolings(bert.config):
        raise InputError(
            f"{bert.name} reads from left to right, so the first token is the same in every row: choose the mean of "
            "the tokens."
        )
    inputs = {place: ready for place, row in enumerate(rows) if (ready := _prepared(bert, row, ask)) is not None}
    if not inputs:
        raise InputError("None of these rows can be read.")
    places, vectors = tuple(inputs), {}
    order = sorted(places, key=lambda place: len(inputs[place].token_ids))
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        batch = pad_batch([inputs[place] for place in block], pad_id=bert.tokenizer.pad_id)
        states = bert.runtime.run(batch, ("hidden_states",))["hidden_states"]  # L+1 of [B, T, H]
        for index, place in enumerate(block):
            count = len(inputs[place].token_ids) if pooling == "mean" else 1
            vectors[place] = np.stack([layer[index, :count].mean(axis=0) for layer in states])
        report(progress, min(start + _BLOCK, len(order)), len(order))
    return RowVectors(places, np.stack([vectors[place] for place in places], axis=1))


def _prepared(bert, row, ask):
    text_b = None if reads_text_a_only(bert, ask) else row.text_b
    try:
        return prepare_input(bert.tokenizer, bert.max_length, row.text_a, text_b)
    except ValueError:
        return None


def nearest_rows(vectors: np.ndarray, place: int, top_k: int = 5) -> tuple[tuple[int, float], ...]:
    """The vectors nearest to one of the vectors, by cosine similarity.

    Args:
        vectors: float [W, H].
        place: int. The index of the vector whose neighbours are wanted.
        top_k: int. The number of neighbours.
    Returns:
        tuple of pairs (index, cosine), the nearest first, without `place` itself.
    Raises:
        InputError: `top_k` is not a positive number, or there is no such vector.
    """
    check_top_k(top_k)
    if not 0 <= place < len(vectors):
        raise InputError(f"There is no vector {place}: they are numbered 0 to {len(vectors) - 1}.")
    others = [index for index in range(len(vectors)) if index != place]
    cosines = cosine_similarities(vectors[[place]], vectors[others])[0] if others else np.zeros(0)
    return tuple((others[rank], float(cosines[rank])) for rank in np.argsort(-cosines, kind="stable")[:top_k])


#: Earlier name of a row attribute -> the present one.
ATTRIBUTE_ALIASES = {"first_guess": "first_prediction"}


def available_row_attributes(bert: Bert, rows: Sequence[TextRow], ask: Collection[str]) -> tuple[str, ...]:
    """The names that `row_attributes` can have for these `TextRow`s with these predictions, before they are scored."""
    labelled, pairs = any(row.label for row in rows), any(row.text_b for row in rows)
    able = set(ask) & set(supported_predictions(bert))
    needs = {
        "label": labelled,
        "predicted": "classes" in able,
        "right": "classes" in able and labelled,
        "predicted_probability": "classes" in able,
        "first_prediction": "masks" in able,
        "hidden_probability": "masks" in able,
        "is_next": "next" in able and pairs,
        "in_order": "order" in able and pairs,
        "suspected": "replaced" in able,
        "perplexity": "perplexity" in able,
        "tokens": True,
    }
    return tuple(name for name, available in needs.items() if available)


def row_attributes(results: Sequence[RowResult]) -> dict[str, list]:
    """The attributes of the rows of a file, for the colours of their points.

    Args:
        results: sequence of `RowResult`.
    Returns:
        dict str -> list with a value for each row: a str for a category, a float for a number, None where it is
        unknown. The names: "label" and "predicted" (numbers in a regression), "right", "predicted_probability",
        "first_prediction" (whether all hidden words are the first prediction), "hidden_probability" (the minimum over
        the hidden words), "is_next", "in_order", "suspected" (number of tokens that look replaced), "perplexity",
        "tokens".
        Every attribute but "tokens" is left out if no row has a value.
    """
    is_regression = any(isinstance(result.predicted, float) for result in results)
    attributes = {
        "label": [_number(result.label) if is_regression else result.label for result in results],
        "predicted": [result.predicted for result in results],
        "right": [_verdict(result.is_correct) for result in results],
        "predicted_probability": [result.predicted_probability for result in results],
        "first_prediction": [_verdict(_all_first(result)) for result in results],
        "hidden_probability": [
            min((mask.original_probability for mask in _known_masks(result)), default=None) for result in results
        ],
        "is_next": [result.is_next for result in results],
        "in_order": [result.in_order for result in results],
        "suspected": [result.suspected for result in results],
        "perplexity": [result.perplexity for result in results],
        "tokens": [result.tokens or None for result in results],
    }
    attributes = {name: [_plain(value) for value in column] for name, column in attributes.items()}
    return {
        name: column
        for name, column in attributes.items()
        if name == "tokens" or any(value is not None for value in column)
    }


def _known_masks(result):
    """The `MaskPrediction`s of a row whose original token is known."""
    return [mask for mask in result.masks if mask.original is not None]


def _all_first(result):
    """Whether every hidden word of a row is the first prediction; None without hidden words."""
    masks = _known_masks(result)
    return all(mask.original_rank == 1 for mask in masks) if masks else None


def _verdict(is_correct):
    return None if is_correct is None else "right" if is_correct else "wrong"


def _number(label):
    try:
        value = float(label)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def _plain(value):
    if value is None or isinstance(value, str):
        return "none" if value == "" else value
    return float(value)
