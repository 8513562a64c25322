"""Filling several masks jointly: the mask with the most probable prediction first, then the others again.

Independent predictions for two masks can be inconsistent ("[MASK] [MASK]": "San" for one, "York" for the other).
Filling one mask at a time lets each prediction depend on those before it (the easy-first order of Ghazvininejad et al.
2019, "Mask-Predict", with one token per step).

Dimension legend: T tokens, P masks, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from bert_tf.inference.predictions import (
    MaskPrediction,
    check_top_k,
    mask_predictions,
    predictions_frame,
    require_masks,
    target_ids,
)
from bert_tf.inference.text_filling import fill_text
from bert_tf.results import Result

if TYPE_CHECKING:  # bert imports this module; pandas takes long to import
    import pandas as pd

    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace


@dataclass(frozen=True)
class JointFilling(Result, figures={"predictions": "bert_tf.plots.predictions:joint_filling"}):
    """All masks of a text, filled one per step.

    Attributes:
        steps: tuple of `MaskPrediction`. In the order in which the masks were filled. The first prediction of a step
            was filled in; its probability depends on the words of the steps before it.
        tokens: tuple of T str. The tokens with all masks filled.
        log_probability: float. The natural logarithm of the product of the steps' first probabilities.
        text_a: str. The user's text with all masks filled.
        text_b: str or None. The user's second text with all masks filled.
    """

    steps: tuple[MaskPrediction, ...]
    tokens: tuple[str, ...]
    log_probability: float
    text_a: str
    text_b: str | None

    @property
    def order(self) -> tuple[int, ...]:
        """The token positions in the order in which they were filled."""
        return tuple(step.position for step in self.steps)

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the predictions of every step, in the order of filling; steps are numbered from 0."""
        table = predictions_frame(self.steps)
        table.insert(0, "step", table["position"].map({step.position: n for n, step in enumerate(self.steps)}))
        return table


def fill_jointly(bert: Bert, trace: Trace, top_k: int = 5, targets: str | Sequence[str] = ()) -> JointFilling:
    """Fill all masks of a trace, the most probable prediction first; each step sees the tokens filled before.

    The trace holds the first forward pass; every further mask needs another one.

    Args:
        bert: `Bert`. The model of the trace.
        trace: `Trace`. It must have at least one mask.
        top_k: int. The number of predictions in each step.
        targets: sequence of str. Words whose probability is returned in every step, as in `fill_mask`.

    Returns:
        `JointFilling`.

    Raises:
        NothingToPredict, MissingHead, InputError: as in `fill_mask`.
    """
    require_masks(trace)
    check_top_k(top_k)
    asked = target_ids(bert.tokenizer, targets)
    ids = np.array(trace.token_ids)
    unfilled = list(trace.masks)
    logits = cast(np.ndarray, trace.logits)
    steps = []
    while unfilled:
        answers = mask_predictions(logits, unfilled, trace.original_ids[unfilled], bert.tokenizer, top_k, asked)
        most_probable = max(answers, key=lambda answer: answer.predictions[0].probability)
        steps.append(most_probable)
        ids[most_probable.position] = most_probable.predictions[0].id
        unfilled.remove(most_probable.position)
        if unfilled:
            logits = bert.mlm_logits(ids, trace.segments, unfilled)
    filled = {step.position: step.predictions[0].token for step in steps}
    spelled = {position: bert.tokenizer.spelling(token) for position, token in filled.items()}
    text_a, text_b = fill_text(trace, spelled, bert.tokenizer)
    return JointFilling(
        steps=tuple(steps),
        tokens=tuple(filled.get(position, token) for position, token in enumerate(trace.tokens)),
        log_probability=float(sum(np.log(max(step.predictions[0].probability, 1e-300)) for step in steps)),
        text_a=text_a,
        text_b=text_b,
    )
