"""What is to be explained: one log-probability, of a token at a position, of an answer about a pair of texts (the
next sentence, the order of sentences), of a token's being replaced or original, or of a fine-tuned class.

Dimension legend: T tokens, V vocabulary.
"""

from dataclasses import dataclass, replace
from typing import Optional

import numpy as np

from bert_tf.errors import InputError, MaskPositionError, NothingToPredict, require_head
from bert_tf.inference.predictions import vocabulary_id


@dataclass(frozen=True)
class Target:
    """One outcome whose natural log-probability is looked at, or the number that a regression gives.

    Attributes:
        position: token position the MLM head predicts at, or whose token is judged; None for the other heads.
        id: the token's id; 0 for IsNext and 1 for NotNext; 0 for in order and 1 for swapped; 0 for original and 1
            for replaced; the number of a class.
        label: the token, "IsNext" or "NotNext", "in order" or "swapped", "original" or "replaced", or the name of
            the class.
        is_class: whether it is a class of the model's fine-tuned head.
        is_sentence_order: whether it is about the order of two texts (ALBERT).
        is_replaced_token: whether it is about one token's having been put there in the place of another (ELECTRA).
        is_regression: whether it is the value of a regression, and no logarithm of a probability.
        is_multi_label: whether it is one of several labels that can hold at once, each with a probability of its own.
    """

    position: Optional[int]
    id: int
    label: str
    is_class: bool = False
    is_sentence_order: bool = False
    is_replaced_token: bool = False
    is_regression: bool = False
    is_multi_label: bool = False

    @property
    def head(self):
        """The head that gives it: "mlm", "nsp", "sop", "replaced" or "task"."""
        if self.is_class:
            return "task"
        if self.is_sentence_order:
            return "sop"
        if self.is_replaced_token:
            return "replaced"
        return "nsp" if self.position is None else "mlm"


def mask_target(bert, trace, position=None, token=None):
    """A token at a position of a trace.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`.
        position: where; None for the first mask. It need not be masked.
        token: a token of the vocabulary, such as "China" or "##ing"; None for the likeliest there.
    Returns:
        `Target`.
    Raises:
        NothingToPredict: no position given and nothing masked.
        MaskPositionError: no such position. InputError: no such token. MissingHead: no MLM head.
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


def replaced_target(bert, trace, position=None, replaced=True):
    """That the token at a position was put there in the place of another, or that it was not (ELECTRA).

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`.
        position: where; None for the token of the texts that is taken for replaced most.
        replaced: False for its being original.
    Returns:
        `Target`. The token asked about is one of the input like the others: methods that vary the input vary it too.
    Raises:
        MaskPositionError: no such position. MissingHead: no replaced-token head.
    """
    require_head(bert.heads, "replaced", bert.name)
    if position is None:
        own = [place for place, source in enumerate(trace.sources) if source is not None]
        position = max(own, key=lambda place: trace.replaced[place])
    check_position(trace, position)
    return Target(position, int(replaced), "replaced" if replaced else "original", is_replaced_token=True)


def next_sentence_target(bert, trace, follows=True):
    """That the second text follows the first, or that it does not.

    Raises:
        NothingToPredict: the trace has no second text. MissingHead: no next-sentence head.
    """
    _require_pair(bert, trace, "nsp", "next-sentence")
    return Target(None, 0, "IsNext") if follows else Target(None, 1, "NotNext")


def sentence_order_target(bert, trace, in_order=True):
    """That the two texts stand in their order, or that they are swapped (ALBERT).

    Raises:
        NothingToPredict: the trace has no second text. MissingHead: no sentence-order head.
    """
    _require_pair(bert, trace, "sop", "sentence-order")
    return (
        Target(None, 0, "in order", is_sentence_order=True)
        if in_order
        else Target(None, 1, "swapped", is_sentence_order=True)
    )


def _require_pair(bert, trace, head, title):
    require_head(bert.heads, head, bert.name)
    if trace.text_b is None:
        raise NothingToPredict(f"The {title} head judges a pair: give a second text.")


def class_target(bert, trace, label=None):
    """A class of a model that was fine-tuned to classify texts.

    With several labels at once it is the label's own probability, and a regression's target is its value.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`. label: None for the likeliest.
    Raises:
        InputError: the model does not classify, or has no such label.
    """
    settings = classifier_settings(bert)
    if settings is None:
        raise InputError(f"{bert.name} was not fine-tuned to classify texts; it has no classes to explain.")
    if settings.regression:
        return Target(None, 0, "value", True, is_regression=True)
    if label is None:
        states = bert.hooked().states(trace.token_ids[None], trace.segments[None])
        return _class(settings, int(bert.hooked().class_scores(states[-1]).numpy()[0].argmax()))
    if label not in settings.labels:
        raise InputError(f"There is no class {label!r:.60}; this model has {', '.join(settings.labels):.160}.")
    return _class(settings, settings.labels.index(label))


def target_with_id(bert, target, number):
    """The `Target` of another answer to the same question: `number` is its id.

    Args:
        bert: the `Bert` of the target. target: a `Target`, not the value of a regression.
    """
    if target.head == "task":
        return replace(target, id=number, label=classifier_settings(bert).labels[number])
    names = {"nsp": ("IsNext", "NotNext"), "sop": ("in order", "swapped"), "replaced": ("original", "replaced")}
    label = bert.tokenizer.id_to_token(number) if target.head == "mlm" else names[target.head][number]
    return replace(target, id=number, label=label)


def is_top(target, answers):
    """Whether a target is what the model says, bool [B]: the likeliest answer, or a label above a half where several
    can hold at once.

    Args:
        target: a `Target`, not the value of a regression. answers: log-probabilities [B, K], as of
            `HookedModel.answers`.
    """
    if target.is_multi_label:
        return answers[:, target.id] > np.log(0.5)
    return answers.argmax(axis=1) == target.id


def classifier_settings(bert):
    """The `TaskSettings` of a model that was fine-tuned to classify texts; None for any other."""
    return bert.task.settings if bert.task and bert.task.settings.task == "classify" else None


def class_prediction(settings, scores):
    """What a classifier says, from its scores [K]: dict from each class to its probability, or "value" to that of
    a regression."""
    if settings.regression:
        return {"value": float(scores[0])}
    return dict(zip(settings.labels, np.exp(scores, dtype=np.float64).tolist()))


def _class(settings, number):
    return Target(None, number, settings.labels[number], True, is_multi_label=settings.multi_label)


def check_position(trace, position):
    """Raise MaskPositionError unless a trace has the position."""
    if not 0 <= position < trace.length:
        raise MaskPositionError(
            f"There is no token {position}: this input has {trace.length} tokens, 0 to {trace.length - 1}."
        )


def _logits(bert, trace, position):
    if position in trace.masks and trace.logits is not None:
        return trace.logits[trace.masks.index(position)]
    return bert.mlm_logits(trace.token_ids, trace.segments, (position,))[0]
