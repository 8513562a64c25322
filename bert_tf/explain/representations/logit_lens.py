"""The logit lens: what the MLM head would predict if the model ended after each layer; what a fine-tuned
classifier would say then.

Dimension legend: L layers, T tokens, P positions, K predictions or classes, H hidden, V vocabulary. Source:
nostalgebraist 2020, "interpreting GPT: the logit lens"; Geva et al. 2022. The head was trained on the last
layer only: an early layer that says nothing through it may still know the answer in other words.
"""

from dataclasses import dataclass, fields

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.errors import InputError, MaskPositionError, NothingToPredict, require_head
from bert_tf.explain.attribution.target import class_prediction, classifier_settings
from bert_tf.inference.predictions import Prediction, check_top_k
from bert_tf.results import Result, frame

# Hidden vectors given to the head at once: over 30,000 tokens their logits are then 61 MB.
_ROWS = 512
_NO_STATES = "This trace holds no hidden states: trace again with hidden_states=True."


@dataclass(frozen=True, eq=False)
class LogitLens(
    Result,
    figures={
        "map": "bert_tf.plots.representations.logit_lens:lens_map",
        "curve": "bert_tf.plots.representations.logit_lens:answer_curve",
    },
):
    """What the MLM head says on every hidden state, 0 the embeddings and L the last.

    Attributes:
        positions: P token positions. position_tokens: the P tokens there.
        ids: int64 [P, L+1, K], the likeliest tokens, in descending order. predicted_tokens: the same as strings,
            nested tuples. probabilities: float64 [P, L+1, K].
        entropies: float64 [P, L+1], of the whole distribution, in bits.
        answers: the P `Prediction`s of the last layer, or the tokens that were asked about.
        answer_ranks: int64 [P, L+1], from 1. answer_probabilities: float64 [P, L+1].
        first_top: int64 [P], first state at which the answer is likeliest; -1 if at none.
        stable_from: int64 [P], first state from which on it stays so; -1 if it is not so at the end.
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

    def at(self, row):
        """The `LogitLens` of one of the positions alone; `row` is its index among them, from the end if negative.

        Raises: IndexError if there is none.
        """
        row = range(len(self.positions))[row]
        return LogitLens(**{field.name: getattr(self, field.name)[row : row + 1] for field in fields(self)})

    def to_frame(self):
        """A row for each position, hidden state and predicted token."""
        positions, states, count = self.ids.shape
        answers = [answer.token for answer in self.answers]

        def each(values):
            return np.repeat(values, count)

        return frame(
            {
                "position": np.repeat(self.positions, states * count),
                "token": np.repeat(self.position_tokens, states * count),
                "hidden_state": np.tile(np.repeat(np.arange(states), count), positions),
                "rank": np.tile(np.arange(1, count + 1), positions * states),
                "prediction": np.array(self.predicted_tokens).ravel(),
                "probability": self.probabilities.ravel(),
                "answer": np.repeat(answers, states * count),
                "answer_rank": each(self.answer_ranks),
                "answer_probability": each(self.answer_probabilities),
                "entropy_bits": each(self.entropies),
            }
        )


@dataclass(frozen=True, eq=False)
class ClassLogitLens(Result, figures={"curves": "bert_tf.plots.representations.logit_lens:class_curves"}):
    """What a fine-tuned classifier says on every hidden state, 0 the embeddings and L the last.

    Attributes:
        labels: K names of classes; ("value",) of a regression.
        values: float64 [L+1, K], probabilities (with several labels at once each label's own), or the value.
        regression: whether it is a value.
    """

    labels: tuple
    values: np.ndarray
    regression: bool = False

    def to_frame(self):
        """A row for each hidden state, a column for each class."""
        return frame({"hidden_state": np.arange(len(self.values)), **dict(zip(self.labels, self.values.T))})


def class_lens(bert, trace):
    """A fine-tuned classifier's head on every layer's hidden states.

    Like the MLM head's, it was trained on the last layer only.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace` with hidden states.
    Returns:
        `ClassLogitLens`.
    Raises:
        InputError: the model was not fine-tuned to classify texts; no hidden states in the trace.
    """
    settings = classifier_settings(bert)
    if settings is None:
        raise InputError(f"{bert.name} was not fine-tuned to classify texts; it has no classes to follow.")
    if trace.hidden_states is None:
        raise InputError(_NO_STATES)
    # One state at a time: a long text in a large model would be a batch of 25 times 512 tokens.
    scores = [bert.hooked().class_scores(state[None]).numpy()[0] for state in trace.hidden_states]
    answers = [class_prediction(settings, one) for one in scores]
    return ClassLogitLens(tuple(answers[0]), np.array([list(one.values()) for one in answers]), settings.regression)


def logit_lens(bert, trace, positions=None, top_k=5, answers=None):
    """The MLM head on every layer's hidden states.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace` with hidden states.
        positions: token positions, masked or not; None for the masks.
        top_k: K.
        answers: one token id for each position, to follow through the layers; None for the last layer's
            likeliest.
    Returns:
        `LogitLens`.
    Raises:
        NothingToPredict: no positions. MaskPositionError: one that is not there. MissingHead: no MLM head.
        InputError: no hidden states in the trace, a bad `top_k`, answers that do not fit.
    """
    require_head(bert.heads, "mlm", bert.name)
    check_top_k(top_k)
    positions = _positions(trace, positions)
    states = np.asarray(bert.hooked().read(trace.hidden_states))[:, list(positions)].swapaxes(0, 1)  # [P, L+1, H]
    count, depth, _ = states.shape
    asked = np.full(count, -1) if answers is None else _checked(bert, answers, count)
    ids, probabilities, entropies, ranks, shares = _read(bert.hooked(), states, asked, top_k)
    answers = ids[:, -1, 0] if answers is None else asked
    top = ranks == 1
    token = bert.tokenizer.id_to_token
    return LogitLens(
        positions=positions,
        position_tokens=tuple(trace.tokens[position] for position in positions),
        ids=ids,
        predicted_tokens=tuple(tuple(tuple(token(int(i)) for i in row) for row in rows) for rows in ids),
        probabilities=probabilities,
        entropies=entropies,
        answers=tuple(Prediction(token(int(i)), int(i), float(p)) for i, p in zip(answers, shares[:, -1])),
        answer_ranks=ranks,
        answer_probabilities=shares,
        first_top=np.where(top.any(axis=1), top.argmax(axis=1), -1),
        stable_from=np.where(top[:, -1], depth - np.logical_and.accumulate(top[:, ::-1], axis=1).sum(axis=1), -1),
    )


def _positions(trace, positions):
    if trace.hidden_states is None:
        raise InputError(_NO_STATES)
    positions = trace.masks if positions is None else tuple(int(position) for position in positions)
    if not positions:
        raise NothingToPredict("There is no position to look at: mask something, or name positions.")
    for position in positions:
        if not 0 <= position < trace.length:
            raise MaskPositionError(
                f"There is no token {position}: this input has {trace.length} tokens, 0 to {trace.length - 1}."
            )
    return positions


def _checked(bert, answers, count):
    answers = np.asarray(answers)
    in_range = answers.shape == (count,) and ((answers >= 0) & (answers < bert.config.vocab_size)).all()
    if not in_range:
        raise InputError(
            f"answers must be {count} token ids below {bert.config.vocab_size}, one for each position, "
            f"not {answers.tolist()!r:.60}."
        )
    return answers


def _read(hooked, states, answers, top_k):
    """What hidden states [P, L+1, H] say: ids and probabilities [P, L+1, K], entropies in bits [P, L+1], and the rank
    and the probability [P, L+1] of each place's answer (-1: the likeliest of its last state)."""
    top_k = min(top_k, hooked.config.vocab_size)
    step = max(1, _ROWS // states.shape[1])
    parts = [
        hooked.mlm_reading(states[start : start + step], answers[start : start + step], top_k)
        for start in range(0, len(states), step)
    ]
    ids, probabilities, entropies, ranks, shares = (np.concatenate(part) for part in zip(*parts))
    return (
        ids.astype(np.int64),
        probabilities.astype(np.float64),
        entropies.astype(np.float64) / np.log(2),
        ranks.astype(np.int64),
        shares.astype(np.float64),
    )


def lens(bert, trace, positions=None, top_k=5):
    """The lens that fits what is asked: `class_lens` for a classifier asked about no position, else `logit_lens`."""
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
