"""The rows of a file as vectors: which lie near each other, and what is known of each to colour them by.

As the projections of a data set and its search for similar examples in LIT (Tenney et al. 2020, "The Language
Interpretability Tool"). Dimension legend: B batch, T tokens, H hidden, L layers, W rows that can be read.
"""

import math
from dataclasses import dataclass

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.explain.attribution.target import classifier_settings
from bert_tf.explain.datasets.row_predictions import supported_predictions
from bert_tf.explain.representations.vectors import cosine_similarities
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.predictions import check_top_k
from bert_tf.tokenizers import pad_batch

#: What of a row's states its vector is made of.
POOLINGS = ("mean", "first")

#: What there is to say of first tokens that tell no row from another.
SAME_FIRST = (
    "After this layer the first token is the same in every row: choose the mean of the tokens or a later layer."
)

# Rows in one forward pass: few, for others wait for the model meanwhile.
_BLOCK = 8


@dataclass(frozen=True, eq=False)
class RowVectors:
    """The vectors of a file's rows.

    Attributes:
        places: which of the rows each vector is of, ascending; a row that cannot be read has none.
        vectors: float32 [L+1, W, H], state 0 what goes in.
    """

    places: tuple
    vectors: np.ndarray


def supported_poolings(config):
    """Those of `POOLINGS` that tell a model's rows apart: read from left to right, the first token sees no other."""
    return ("mean",) if config.architecture.attention_direction == "left_to_right" else POOLINGS


def constant_first_token(vectors, pooling):
    """Whether rows' vectors, float [W, H], are those of a first token that does not differ but by rounding."""
    if pooling != "first" or len(vectors) < 2:
        return False
    return bool(np.ptp(vectors, axis=0).max() <= 1e-5 * np.abs(vectors).max())


def reads_text_a_only(bert, ask):
    """Whether a row's vector is that of text A alone: classes are asked of a model that judges single texts."""
    return "classes" in ask and classifier_settings(bert) is not None and classifier_settings(bert).pair is False


def row_vectors(bert, rows, pooling="mean", progress=None, ask=()):
    """One vector of every row at every state, with nothing hidden; rows of like length are read together.

    Args:
        bert: a `Bert`. rows: `Row`s.
        pooling: "mean" of the states of the row's tokens ([CLS] and [SEP] are among them), or "first", the state
            of [CLS].
        progress: callable(done, total) in rows; returning False cancels.
        ask: what the rows are asked for, as `score_rows` takes it: with "classes" a row is read as its classifier
            reads it, of a pair text A alone where that judges single texts.
    Returns:
        `RowVectors`. A row is cut to what the model reads.
    Raises:
        InputError: an unknown pooling, one that tells no rows of this model apart, or no row that can be read.
        Cancelled: by `progress`.
    """
    if pooling not in POOLINGS:
        raise InputError(f"The vector of a row is made by {' or '.join(POOLINGS)}, not by {pooling!r:.40}.")
    if pooling not in supported_poolings(bert.config):
        raise InputError(
            f"{bert.name} reads from left to right, so the first token is the same in every row: choose the mean of "
            "the tokens."
        )
    read = {place: ready for place, row in enumerate(rows) if (ready := _prepared(bert, row, ask)) is not None}
    if not read:
        raise InputError("There is nothing to read in these rows.")
    places, found = tuple(read), {}
    order = sorted(places, key=lambda place: len(read[place].token_ids))
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        batch = pad_batch([read[place] for place in block], pad_id=bert.tokenizer.pad_id)
        states = bert.runtime.run(batch, ("hidden_states",))["hidden_states"]  # L+1 of [B, T, H]
        for index, place in enumerate(block):
            count = len(read[place].token_ids) if pooling == "mean" else 1
            found[place] = np.stack([layer[index, :count].mean(axis=0) for layer in states])
        report(progress, min(start + _BLOCK, len(order)), len(order))
    return RowVectors(places, np.stack([found[place] for place in places], axis=1))


def _prepared(bert, row, ask):
    judge = classifier_settings(bert) if "classes" in ask else None
    most = bert.max_length if judge is None else min(bert.max_length, judge.max_length)
    try:
        return prepare_input(bert.tokenizer, most, row.text_a, None if reads_text_a_only(bert, ask) else row.text_b)
    except ValueError:
        return None


def nearest_rows(vectors, place, top_k=5):
    """The vectors nearest to one of them.

    Args:
        vectors: float [W, H]. place: which of them is asked about. top_k: how many are wanted.
    Returns:
        pairs (index, cosine), the nearest first, without the one asked about.
    Raises:
        InputError: a bad `top_k`.
    """
    check_top_k(top_k)
    others = [one for one in range(len(vectors)) if one != place]
    cosines = cosine_similarities(vectors[[place]], vectors[others])[0] if others else np.zeros(0)
    return tuple((others[at], float(cosines[at])) for at in np.argsort(-cosines, kind="stable")[:top_k])


def available_row_attributes(bert, rows, ask):
    """The names of `row_attributes` that there can be for these `Row`s, before they are asked for some of `ASK`."""
    labelled, pairs = any(row.label is not None for row in rows), any(row.text_b for row in rows)
    able = set(ask) & set(supported_predictions(bert))
    needs = {
        "label": labelled,
        "predicted": "classes" in able,
        "right": "classes" in able and labelled,
        "predicted_probability": "classes" in able,
        "first_guess": "masks" in able,
        "hidden_probability": "masks" in able,
        "is_next": "next" in able and pairs,
        "in_order": "order" in able and pairs,
        "suspected": "replaced" in able,
        "perplexity": "perplexity" in able,
        "tokens": True,
    }
    return tuple(name for name, there in needs.items() if there)


def row_attributes(results):
    """What is known of the rows of a file that was asked about.

    Args:
        results: `RowResult`s.
    Returns:
        dict from name to a value for each row: str of one that is named, float of a number, None where it is not
        known. "label" and "predicted" (numbers of a regression), "right", "predicted_probability", "first_guess" (are
        all hidden words the first guess), "hidden_probability" (of several words the least), "is_next", "in_order",
        "suspected" (tokens that look replaced), "perplexity", "tokens"; what else is known of no row is left out.
    """
    values = any(isinstance(one.predicted, float) for one in results)
    found = {
        "label": [_number(one.row.label) if values else one.row.label for one in results],
        "predicted": [one.predicted for one in results],
        "right": [_verdict(one.is_correct) for one in results],
        "predicted_probability": [one.predicted_probability for one in results],
        "first_guess": [_verdict(_guessed(one)) for one in results],
        "hidden_probability": [min((m.original_probability for m in _asked(one)), default=None) for one in results],
        "is_next": [one.is_next for one in results],
        "in_order": [one.in_order for one in results],
        "suspected": [one.suspected for one in results],
        "perplexity": [one.perplexity for one in results],
        "tokens": [one.tokens or None for one in results],
    }
    found = {name: [_plain(one) for one in line] for name, line in found.items()}
    return {name: line for name, line in found.items() if name == "tokens" or any(one is not None for one in line)}


def _asked(one):
    """The hidden words of a row whose original is known."""
    return [mask for mask in one.masks if mask.original is not None]


def _guessed(one):
    return all(mask.original_rank == 1 for mask in _asked(one)) if _asked(one) else None


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
