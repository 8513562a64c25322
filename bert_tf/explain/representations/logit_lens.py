"""The logit lens: predictions of the MLM head, or of a fine-tuned classifier, from the hidden state after each layer.

Dimension legend: L layers, T tokens, P positions, K predictions or classes, H hidden, V vocabulary. Sources:
nostalgebraist 2020, "interpreting GPT: the logit lens"; Geva et al. 2022. The head was trained on the last layer only.
An early layer may hold the answer in a form that the head cannot read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.errors import InputError, NothingToPredict, require_head
from bert_tf.explain.attribution.target import (
    check_position,
    class_prediction,
    classifier_settings,
    require_classifiable,
)
from bert_tf.inference.predictions import Prediction, check_top_k
from bert_tf.inference.trace import hidden_states_of
from bert_tf.results import Result, frame, with_named
from bert_tf.runtime.numpy_ops import read_by_heads, read_by_mlm

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace

# Hidden vectors in one call of the head: their logits over 30,000 tokens take 61 MB.
_ROWS = 512


@dataclass(frozen=True, eq=False)
class LogitLens(
    Result,
    figures={
        "map": "bert_tf.plots.representations.logit_lens:lens_map",
        "curve": "bert_tf.plots.representations.logit_lens:answer_curve",
    },
):
    """The MLM head's predictions from every hidden state, 0 the embeddings and L the last.

    Attributes:
        positions: tuple of int. P token positions.
        position_tokens: tuple of str. The P tokens there.
        ids: np.ndarray. int64 [P, L+1, K], the likeliest tokens, in descending order.
        predicted_tokens: tuple. The same as strings, nested tuples.
        probabilities: np.ndarray. float64 [P, L+1, K].
        entropies: np.ndarray. float64 [P, L+1], of the whole distribution, in bits.
        answers: tuple of Prediction. P predictions: the likeliest token of the last layer, or the token asked for.
        answer_ranks: np.ndarray. int64 [P, L+1], from 1.
        answer_probabilities: np.ndarray. float64 [P, L+1].
        first_top: np.ndarray. int64 [P], the first hidden state at which the answer is likeliest; -1 if there is none.
        stable_from: np.ndarray. int64 [P], the first hidden state from which on the answer stays likeliest up to the
            last; -1 if it is not likeliest at the last.
    """

    positions: tuple
    position_tokens: tuple
    ids: np.ndarray
    predicted_tokens: tuple
    probabilities: np.ndarray
    entropies: np.ndarray
    answers: tuple
    answer_ranks: np.ndarray
    answer_probabilities: np.ndarray
    first_top: np.ndarray
    stable_from: np.ndarray

    def at(self, row: int) -> LogitLens:
        """The `LogitLens` of a single position.

        Args:
            row: int. The index of the position in `positions`; a negative index counts from the end.
        Raises:
            IndexError: there is no such index.
        """
        row = range(len(self.positions))[row]
        return LogitLens(**{field.name: getattr(self, field.name)[row : row + 1] for field in fields(self)})

    def to_frame(self) -> pd.DataFrame:
        """A row for each position, hidden state and predicted token."""
        positions, states, count = self.ids.shape
        answers = [answer.token for answer in self.answers]

        def each(values):
            return np.repeat(values, count)

        return frame(
            {
                "position": np.repeat(self.positions, states * count),
                "token": np.repeat(np.array(self.position_tokens, object), states * count),
                "hidden_state": np.tile(np.repeat(np.arange(states), count), positions),
                "rank": np.tile(np.arange(1, count + 1), positions * states),
                "prediction": np.array(self.predicted_tokens, object).ravel(),
                "probability": self.probabilities.ravel(),
                "answer": np.repeat(np.array(answers, object), states * count),
                "answer_rank": each(self.answer_ranks),
                "answer_probability": each(self.answer_probabilities),
                "entropy_bits": each(self.entropies),
            }
        )


@dataclass(frozen=True, eq=False)
class ClassLogitLens(Result, figures={"curves": "bert_tf.plots.representations.logit_lens:class_curves"}):
    """A fine-tuned classifier's predictions from every hidden state, 0 the embeddings and L the last.

    Attributes:
        labels: tuple of str. K names of classes; ("value",) for a regression.
        values: np.ndarray. float64 [L+1, K], probabilities (with several labels at once, of each label by itself), or
            the value of a regression.
        regression: bool. Whether `values` holds the value of a regression.
    """

    labels: tuple
    values: np.ndarray
    regression: bool = False

    def to_frame(self) -> pd.DataFrame:
        """A row for each hidden state, a column for each class."""
        columns = {"hidden_state": np.arange(len(self.values))}
        return frame(with_named(columns, zip(self.labels, self.values.T), "class"))


def class_lens(bert: Bert, trace: Trace) -> ClassLogitLens:
    """A fine-tuned classifier's head on every layer's hidden states.

    Like the MLM head, it was trained on the last layer only.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. A trace with hidden states.
    Returns:
        `ClassLogitLens`.
    Raises:
        InputError: the model was not fine-tuned to classify texts like those of the trace, or the trace has no hidden
            states.
    """
    settings = classifier_settings(bert)
    if settings is None:
        raise InputError(f"{bert.name} was not fine-tuned to classify texts; it has no classes to follow.")
    require_classifiable(bert, trace)
    states = hidden_states_of(trace)
    task: Any = bert.task
    # One hidden state at a time: for a long text in a large model all together are a batch of 25 times 512 tokens.
    scores = [task.class_scores(state[None])[0] for state in read_by_heads(bert.weights, states)]
    predictions = [class_prediction(settings, layer_scores) for layer_scores in scores]
    values = np.array([list(prediction.values()) for prediction in predictions])
    return ClassLogitLens(tuple(predictions[0]), values, settings.regression)


def logit_lens(
    bert: Bert, trace: Trace, positions: Iterable[int] | None = None, top_k: int = 5, answers: Any = None
) -> LogitLens:
    """The MLM head on every layer's hidden states.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. A trace with hidden states.
        positions: sequence of int. Token positions, masked or not; None for the masks.
        top_k: int. K, the number of predictions.
        answers: sequence of int. For each position the id of the token that is followed through the layers; None for
            the likeliest token of the last layer.
    Returns:
        `LogitLens`.
    Raises:
        NothingToPredict: there are no positions.
        MaskPositionError: a position does not exist.
        MissingHead: the model has no MLM head.
        InputError: the trace has no hidden states, a bad `top_k`, or answers that do not fit.

    Example:
        >>> bert = bert_tf.load()
        >>> trace = bert.trace("Shanghai is a city in [MASK].")
        >>> logit_lens(bert, trace).predicted_tokens
    """
    require_head(bert.heads, "mlm", bert.name)
    check_top_k(top_k)
    hidden_states = hidden_states_of(trace)
    places = _positions(trace, positions)
    hidden_states = read_by_mlm(bert.weights, read_by_heads(bert.weights, hidden_states))
    states = hidden_states[:, list(places)].swapaxes(0, 1)  # [P, L+1, H]
    count, depth, _ = states.shape
    wanted = np.full(count, -1) if answers is None else _checked(bert, answers, count)
    ids, probabilities, entropies, ranks, answer_probabilities = _read(bert, states, wanted, top_k)
    answers = ids[:, -1, 0] if answers is None else wanted
    top = ranks == 1
    token = bert.tokenizer.id_to_token
    return LogitLens(
        positions=places,
        position_tokens=tuple(trace.tokens[position] for position in places),
        ids=ids,
        predicted_tokens=tuple(tuple(tuple(token(int(i)) for i in row) for row in rows) for rows in ids),
        probabilities=probabilities,
        entropies=entropies,
        answers=tuple(
            Prediction(token(int(i)), int(i), float(p)) for i, p in zip(answers, answer_probabilities[:, -1])
        ),
        answer_ranks=ranks,
        answer_probabilities=answer_probabilities,
        first_top=np.where(top.any(axis=1), top.argmax(axis=1), -1),
        stable_from=np.where(top[:, -1], depth - np.logical_and.accumulate(top[:, ::-1], axis=1).sum(axis=1), -1),
    )


def _positions(trace, positions):
    """Token positions as a tuple, the masks for None; raises the errors of `logit_lens` about them."""
    positions = trace.masks if positions is None else tuple(positions)
    if wrong := [
        position for position in positions if isinstance(position, bool) or not isinstance(position, Integral)
    ]:
        raise InputError(f"positions are the numbers of tokens, from 0 on, not {wrong[0]!r:.60}.")
    if not positions:
        raise NothingToPredict("There is no position to look at: mask something, or name positions.")
    for position in positions:
        check_position(trace, position)
    return positions


def _checked(bert, answers, count):
    """`answers` as an array; raises InputError unless they are `count` token ids."""
    answers = np.asarray(answers)
    is_whole = answers.shape == (count,) and answers.dtype.kind in "iu"
    in_range = is_whole and ((answers >= 0) & (answers < bert.config.vocab_size)).all()
    if not in_range:
        raise InputError(
            f"answers must be {count} token ids below {bert.config.vocab_size}, one for each position, "
            f"not {answers.tolist()!r:.60}."
        )
    return answers


def _read(bert, states, answers, top_k):
    """The MLM head's predictions from hidden states [P, L+1, H].

    Returns:
        (ids and probabilities [P, L+1, K], entropies in bits [P, L+1], ranks and probabilities [P, L+1] of the answer
        at each position). An answer of -1 is the likeliest token of the last state.
    """
    runtime: Any = bert.runtime
    top_k = min(top_k, bert.config.vocab_size)
    step = max(1, _ROWS // states.shape[1])
    parts = [
        runtime.read_mlm(states[start : start + step], answers[start : start + step], top_k)
        for start in range(0, len(states), step)
    ]
    ids, probabilities, entropies, ranks, answer_probabilities = (np.concatenate(part) for part in zip(*parts))
    return (
        ids.astype(np.int64),
        probabilities.astype(np.float64),
        entropies.astype(np.float64) / np.log(2),
        ranks.astype(np.int64),
        answer_probabilities.astype(np.float64),
    )


def lens(
    bert: Bert, trace: Trace, positions: Iterable[int] | None = None, top_k: int = 5
) -> LogitLens | ClassLogitLens:
    """The logit lens of a model.

    For a fine-tuned classifier without masks and without `positions` it is `class_lens`, otherwise `logit_lens`. The
    arguments are those of `logit_lens`.
    """
    if classifier_settings(bert) and not (trace.masks or positions):
        return class_lens(bert, trace)
    return logit_lens(bert, trace, positions, top_k)


ANALYSIS = Analysis(
    name="logit-lens",
    function=lens,
    summary="what the MLM head, or a classifier's head, predicts from each layer's hidden state",
    source="nostalgebraist 2020, interpreting GPT: the logit lens",
    options=(
        Option("positions", "token positions (default: the masks)", int, several=True, metavar="P"),
        TOP_K,
    ),
    needs=("mlm|classes",),
    aliases=("lens",),
)
