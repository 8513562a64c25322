"""Targets: the log-probability that an analysis explains.

A target is a token at a position, a prediction about a pair of texts (next sentence, sentence order), a token as
replaced or original, or a class of a fine-tuned classifier.

Dimension legend: B rows, T tokens, V vocabulary, K outcomes of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import InputError, MaskPositionError, NothingToPredict, require_head
from bert_tf.inference.model_inputs import batch_of
from bert_tf.inference.predictions import vocabulary_id

if TYPE_CHECKING:
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace

#: Head -> the labels of its two outcomes, in the order of their ids.
OUTCOMES = {"nsp": ("IsNext", "NotNext"), "sop": ("in order", "swapped"), "replaced": ("original", "replaced")}


@dataclass(frozen=True)
class Target:
    """One outcome of a head, whose natural log-probability is explained, or the value of a regression.

    Attributes:
        position: int or None. Position that the MLM head predicts at, or of the token that the replaced-token head
            judges; None for the other heads.
        id: int. The id of the token; 0 for IsNext and 1 for NotNext; 0 for in order and 1 for swapped; 0 for original
            and 1 for replaced; the number of the class.
        label: str. The token, "IsNext" or "NotNext", "in order" or "swapped", "original" or "replaced", or the name of
            the class.
        is_class: bool. Whether it is a class of the model's fine-tuned head.
        is_sentence_order: bool. Whether it is an outcome of the sentence-order head (ALBERT).
        is_replaced_token: bool. Whether it is an outcome of the replaced-token head (ELECTRA).
        is_regression: bool. Whether it is the value of a regression, not a log-probability.
        is_multi_label: bool. Whether it is one of several labels that may apply at once, each with its own
            probability.

    Example:
        >>> bert = bert_tf.load()
        >>> trace = bert.trace("Shanghai is a city in [MASK].")
        >>> mask_target(bert, trace, token="China")
    """

    position: int | None
    id: int
    label: str
    is_class: bool = False
    is_sentence_order: bool = False
    is_replaced_token: bool = False
    is_regression: bool = False
    is_multi_label: bool = False

    @property
    def head(self) -> str:
        """The head that predicts it: "mlm", "nsp", "sop", "replaced" or "task"."""
        if self.is_class:
            return "task"
        if self.is_sentence_order:
            return "sop"
        if self.is_replaced_token:
            return "replaced"
        return "nsp" if self.position is None else "mlm"


def mask_target(bert: Bert, trace: Trace, position: int | None = None, token: str | None = None) -> Target:
    """The target of a token at a position of a trace.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace.
        position: int or None. The position, masked or not; None for the first mask.
        token: str or None. A token of the vocabulary, such as "China" or "##ing"; None for the likeliest token.
    Returns:
        `Target`.
    Raises:
        NothingToPredict: `position` is None and no token is masked.
        MaskPositionError: there is no such position.
        InputError: there is no such token.
        MissingHead: the model has no MLM head.
    """
    require_head(bert.heads, "mlm", bert.name)
    if position is None:
        if not trace.masks:
            raise NothingToPredict('Nothing is masked: type "[MASK]" in the text or give a position.')
        position = trace.masks[0]
    check_position(trace, position)
    if token is None:
        token_id = int(np.argmax(_logits(bert, trace, position)))
    else:
        token_id = vocabulary_id(bert.tokenizer, token)
    return Target(position, token_id, bert.tokenizer.id_to_token(token_id))


def replaced_target(bert: Bert, trace: Trace, position: int | None = None, replaced: bool = True) -> Target:
    """The target that the token at a position was replaced, or that it is original (ELECTRA).

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace.
        position: int or None. Position of the token; None for the token of the texts with the highest probability of
            being replaced.
        replaced: bool. False for the target "original".
    Returns:
        `Target`. The token itself is part of the input: methods that change the input may change it too.
    Raises:
        MaskPositionError: there is no such position.
        MissingHead: the model has no replaced-token head.
    """
    require_head(bert.heads, "replaced", bert.name)
    if position is None:
        probabilities = np.asarray(trace.replaced)
        text_positions = [index for index, source in enumerate(trace.sources) if source is not None]
        position = max(text_positions, key=lambda index: probabilities[index])
    check_position(trace, position)
    return Target(position, int(replaced), OUTCOMES["replaced"][int(replaced)], is_replaced_token=True)


def next_sentence_target(bert: Bert, trace: Trace, follows: bool = True) -> Target:
    """The target that the second text follows the first, or that it does not.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. A trace of two texts.
        follows: bool. False for the target "NotNext".
    Returns:
        `Target`.
    Raises:
        NothingToPredict: the trace has no second text.
        MissingHead: the model has no next-sentence head.
    """
    _require_pair(bert, trace, "nsp", "next-sentence")
    return Target(None, int(not follows), OUTCOMES["nsp"][not follows])


def sentence_order_target(bert: Bert, trace: Trace, in_order: bool = True) -> Target:
    """The target that the two texts are in order, or that they are swapped (ALBERT).

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. A trace of two texts.
        in_order: bool. False for the target "swapped".
    Returns:
        `Target`.
    Raises:
        NothingToPredict: the trace has no second text.
        MissingHead: the model has no sentence-order head.
    """
    _require_pair(bert, trace, "sop", "sentence-order")
    return Target(None, int(not in_order), OUTCOMES["sop"][not in_order], is_sentence_order=True)


def _require_pair(bert: Bert, trace: Trace, head: str, title: str) -> None:
    require_head(bert.heads, head, bert.name)
    if trace.text_b is None:
        raise NothingToPredict(f"The {title} head judges a pair: give a second text.")


def class_target(bert: Bert, trace: Trace | None, label: str | None = None) -> Target:
    """The target of a class of a model that was fine-tuned to classify texts.

    For a multi-label classifier it is the label with its own probability; for a regression it is the value.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace or None. Its texts; None where the class has a name and is that of no certain text.
        label: str or None. Name of the class; None for the likeliest class.
    Returns:
        `Target`.
    Raises:
        InputError: the model is not a classifier, has no such class, or does not classify texts like those of the
            trace.
    """
    settings = classifier_settings(bert)
    if settings is None:
        raise InputError(f"{bert.name} was not fine-tuned to classify texts; it has no classes to explain.")
    if trace is not None:
        require_classifiable(bert, trace)
    if settings.regression:
        return Target(None, 0, "value", True, is_regression=True)
    if label is None:
        assert trace is not None and bert.task is not None, "the likeliest class is that of a trace"
        batch = batch_of(trace.token_ids, trace.segments)
        last = bert.runtime.run(batch, ("sequence_output",))["sequence_output"]
        return _class(settings, int(bert.task.class_scores(last)[0].argmax()))
    if label not in settings.labels:
        raise InputError(f"There is no class {label!r:.60}; this model has {', '.join(settings.labels):.160}.")
    return _class(settings, settings.labels.index(label))


def target_with_id(bert: Bert, target: Target, number: int) -> Target:
    """The target of another outcome of the same head.

    Args:
        bert: Bert. The model of the target.
        target: Target. Not the value of a regression.
        number: int. The id of the other outcome.
    Returns:
        `Target`.
    """
    if target.head == "task":
        return replace(target, id=number, label=classifier_settings(bert).labels[number])
    label = bert.tokenizer.id_to_token(number) if target.head == "mlm" else OUTCOMES[target.head][number]
    return replace(target, id=number, label=label)


def is_top(target: Target, answers: np.ndarray) -> np.ndarray:
    """Whether the model predicts the target: it is the likeliest outcome, or a label with a probability above 0.5 in a
    multi-label classifier.

    Args:
        target: Target. Not the value of a regression.
        answers: float [B, K]. Log-probabilities, as from `HookedModel.answers`.
    Returns:
        bool [B].
    """
    if target.is_multi_label:
        return answers[:, target.id] > np.log(0.5)
    return answers.argmax(axis=1) == target.id


def classifier_settings(bert: Bert) -> Any:
    """The `TaskSettings` of a model that was fine-tuned to classify texts; None for any other model."""
    return bert.task.settings if bert.task and bert.task.settings.task == "classify" else None


def reads_single_texts(bert: Bert) -> bool:
    """Whether the model is a classifier of single texts, which has learnt nothing about a second one."""
    settings = classifier_settings(bert)
    return settings is not None and settings.pair is False


def leaves_out_text_b(bert: Bert) -> bool:
    """Whether nothing that the model predicts depends on a second text: it is a classifier of single texts without a
    head for pairs."""
    return reads_single_texts(bert) and not {"nsp", "sop"} & set(bert.heads)


def classifies(bert: Bert, trace: Trace) -> bool:
    """Whether the model is a classifier of texts like those of the trace: of single texts, or of pairs."""
    settings = classifier_settings(bert)
    return settings is not None and (settings.pair is None or settings.pair == (trace.text_b is not None))


def require_classifiable(bert: Bert, trace: Trace) -> None:
    """Raise InputError unless the classifier reads single texts, or pairs, as those of the trace are."""
    if not classifies(bert, trace):
        raise InputError(
            f"{bert.name} classifies single texts, and there is a second one, {trace.text_b!r:.40}: leave it out."
            if reads_single_texts(bert)
            else f"{bert.name} classifies pairs of texts: give a second text."
        )


def heads_of(bert: Bert) -> frozenset[str]:
    """The heads of a model by which analyses can ask it: those of `Bert.heads`, and "classes" for a classifier."""
    return frozenset({*bert.heads, *(["classes"] if classifier_settings(bert) else [])})


def class_prediction(settings: Any, scores: np.ndarray | Sequence[float]) -> dict[str, float]:
    """The prediction of a classifier from its scores.

    Args:
        settings: TaskSettings of the classifier.
        scores: float [K]. Log-probabilities of the classes, or [1] with the value of a regression.
    Returns:
        dict from each class to its probability; of a regression {"value": its value}.
    """
    if settings.regression:
        return {"value": float(scores[0])}
    return dict(zip(settings.labels, np.exp(scores, dtype=np.float64).tolist()))


def _class(settings: Any, number: int) -> Target:
    return Target(None, number, settings.labels[number], True, is_multi_label=settings.multi_label)


def check_position(trace: Trace, position: int) -> None:
    """Raise MaskPositionError unless the trace has a token at the position."""
    if not 0 <= position < trace.length:
        raise MaskPositionError(
            f"There is no token {position}: this input has {trace.length} tokens, 0 to {trace.length - 1}."
        )


def _logits(bert: Bert, trace: Trace, position: int) -> np.ndarray:
    if position in trace.masks and trace.logits is not None:
        return trace.logits[trace.masks.index(position)]
    return bert.mlm_logits(trace.token_ids, trace.segments, (position,))[0]
