"""Filling several masks together: the surest first, then the rest again with that one in place.

Independent answers to two masks need not fit each other ("[MASK] [MASK]": "San" at one, "York" at the other).
Filling one at a time lets each choice see those before it (the easy-first order of Ghazvininejad et al. 2019,
"Mask-Predict", with one token a step).

Dimension legend: T tokens, P masks, V vocabulary.
"""

from dataclasses import dataclass

import numpy as np

from bert_tf.inference.predictions import (
    check_top_k,
    mask_predictions,
    predictions_frame,
    require_masks,
    target_ids,
)
from bert_tf.inference.text_filling import fill_text
from bert_tf.results import Result


@dataclass(frozen=True)
class JointFilling(Result, figures={"predictions": "bert_tf.plots.predictions:joint_filling"}):
    """All masks filled, one a step.

    Attributes:
        steps: `MaskPrediction`s in the order they were filled; each step's first prediction is what was put
            in, and its probabilities are given the words of all steps before it.
        tokens: the T tokens with every mask filled.
        log_probability: natural logarithm of the product of the steps' first probabilities.
        text_a, text_b: the user's texts with every mask filled.
    """

    steps: tuple
    tokens: tuple
    log_probability: float
    text_a: str
    text_b: str

    @property
    def order(self):
        """Token positions in the order they were filled."""
        return tuple(step.position for step in self.steps)

    def to_frame(self):
        """The predictions of every step, in the order in which the masks were filled, numbered from 0."""
        table = predictions_frame(self.steps)
        table.insert(0, "step", table["position"].map({step.position: n for n, step in enumerate(self.steps)}))
        return table


def fill_jointly(bert, trace, top_k=5, targets=()):
    """Fill all masks of a trace, the surest first, each next one knowing what was filled before.

    Args:
        bert: gives `.tokenizer` and `.mlm_logits(token_ids [T], segment_ids [T], positions) -> [P, V]`.
        trace: a `Trace` of that model with at least one mask.
        top_k: predictions kept a step.
        targets: words to ask about at every step, as `fill_mask` takes them.
    Returns:
        `JointFilling`; as many forward passes as masks, less one (the trace holds the first).
    Raises:
        NothingToPredict, MissingHead, InputError: as `fill_mask`.
    """
    require_masks(trace)
    check_top_k(top_k)
    asked = target_ids(bert.tokenizer, targets)
    ids = np.array(trace.token_ids)
    left = list(trace.masks)
    logits = trace.logits
    steps = []
    while left:
        answers = mask_predictions(logits, left, trace.original_ids[left], bert.tokenizer, top_k, asked)
        surest = max(answers, key=lambda answer: answer.predictions[0].probability)
        steps.append(surest)
        ids[surest.position] = surest.predictions[0].id
        left.remove(surest.position)
        if left:
            logits = bert.mlm_logits(ids, trace.segments, left)
    chosen = {step.position: step.predictions[0].token for step in steps}
    spelled = {position: bert.tokenizer.spelling(token) for position, token in chosen.items()}
    text_a, text_b = fill_text(trace, spelled)
    return JointFilling(
        steps=tuple(steps),
        tokens=tuple(chosen.get(position, token) for position, token in enumerate(trace.tokens)),
        log_probability=float(sum(np.log(max(s.predictions[0].probability, 1e-300)) for s in steps)),
        text_a=text_a,
        text_b=text_b,
    )
