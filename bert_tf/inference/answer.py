"""The predictions for one input: the tokens at the masks, the next-sentence and sentence-order probabilities of a
pair, and the probability that a token was replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bert_tf.errors import NothingToPredict, require_head
from bert_tf.inference.predictions import MaskPrediction, fill_mask, predictions_frame, require_masks
from bert_tf.inference.trace import NextSentence, SentenceOrder, Trace
from bert_tf.inference.word_scores import WordScore, score_words, split_targets
from bert_tf.results import Result, frame
from bert_tf.tokenizers import BaseTokenizer, Truncation

if TYPE_CHECKING:  # it takes long to import
    import pandas as pd

    from bert_tf.inference.bert import Bert


@dataclass(frozen=True)
class Answer(Result, figures={"answer": "bert_tf.plots.predictions:answer"}):
    """Predictions for one text or pair.

    Attributes:
        model: str. The name of the model.
        tokens: tuple of str. The tokens that the model read, "[MASK]" at the masks.
        masks: tuple of `MaskPrediction`. In ascending order of position.
        nsp: `NextSentence` or None. None without a second text or without an NSP head.
        truncated: `Truncation`. Zeros if nothing was cut.
        sop: `SentenceOrder` or None. None without a second text or without a sentence-order head.
        replaced: tuple of float or None. The probability that each token was replaced; None if the model has no
            head for it.
        word_scores: tuple of `WordScore`. The target words of several pieces.
    """

    model: str
    tokens: tuple[str, ...]
    masks: tuple[MaskPrediction, ...]
    nsp: NextSentence | None
    truncated: Truncation
    sop: SentenceOrder | None = None
    replaced: tuple[float, ...] | None = None
    word_scores: tuple[WordScore, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of plain values for JSON, as `predict --json` prints it.

        "nsp" is null without a second text. "truncated" is null if nothing was cut, otherwise the number of tokens cut
        from each text. "original" is null where the user typed "[MASK]". "sop" (for a pair) and "replaced" (a number
        for each token) exist only if the model has these heads, "targets" of a mask and "word_scores" only if there are
        target words, of one token and of several.
        """
        extra: dict[str, Any] = {} if self.sop is None else {"sop": self.sop.to_dict()}
        if self.replaced is not None:
            extra["replaced"] = list(self.replaced)
        if self.word_scores:
            extra["word_scores"] = [score.to_dict() for score in self.word_scores]
        return {
            "model": self.model,
            "tokens": list(self.tokens),
            "masks": [
                {
                    "position": mask.position,
                    "original": mask.original,
                    "predictions": [{"token": p.token, "probability": p.probability} for p in mask.predictions],
                    **_targets(mask),
                }
                for mask in self.masks
            ],
            "nsp": None if self.nsp is None else self.nsp.to_dict(),
            "truncated": self.truncated._asdict() if any(self.truncated) else None,
            **extra,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the predictions at the masks; without masks, of the pair, else of the replaced tokens."""
        pair = self.nsp or self.sop
        if self.masks or (pair is None and self.replaced is None):
            return predictions_frame(self.masks)
        if pair is not None:
            return pair.to_frame()
        return frame({"position": range(len(self.tokens)), "token": self.tokens, "replaced": self.replaced})


def _targets(mask):
    targets = [
        {"token": target.token, "rank": target.rank, "probability": target.probability} for target in mask.targets
    ]
    return {"targets": targets} if targets else {}


def answer_from(trace: Trace, tokenizer: BaseTokenizer, top_k: int = 5, targets: str | Sequence[str] = ()) -> Answer:
    """Return the predictions in a trace.

    Args:
        trace: `Trace`. The forward pass.
        tokenizer: tokenizer of the model.
        top_k: int. The number of predictions at each mask.
        targets: sequence of str. Words whose probability is returned at every mask, as in `fill_mask`.

    Returns:
        `Answer`.

    Raises:
        NothingToPredict: there is no mask and no second text, and the model has no replaced-token head.
        MissingHead: the model does not have the head that the input needs.
        InputError: `top_k` is not a positive whole number, or a target is not a single token.
    """
    check_question(trace.masks, trace.text_b, trace.heads, trace.model)
    if targets:
        require_masks(trace)
    masks = fill_mask(trace, tokenizer, top_k, targets) if trace.masks else ()
    replaced = None if trace.replaced is None else tuple(map(float, trace.replaced))
    return Answer(trace.model, trace.tokens, masks, trace.nsp, trace.truncated, trace.sop, replaced)


def answer_with_targets(bert: Bert, trace: Trace, top_k: int = 5, targets: str | Sequence[str] = ()) -> Answer:
    """Return the predictions in a trace, with target words of any number of pieces; see `answer_from`.

    Words of several pieces are scored by `score_words`: each piece takes a forward pass.
    """
    single, several = split_targets(bert.tokenizer, targets)
    answer = answer_from(trace, bert.tokenizer, top_k, single)
    return replace(answer, word_scores=score_words(bert, trace, several)) if several else answer


def pair_note(paired: bool, heads: Collection[str], model: str) -> str | None:
    """Return a sentence if there is a second text but the model has no head for pairs, else None."""
    if not paired or {"nsp", "sop"} & set(heads):
        return None
    return f"{model} has no next-sentence head: it predicts nothing about the relation of the two texts."


def check_question(masks: Collection[int], text_b: str | None, heads: Collection[str], model: str) -> None:
    """Check that the model can predict something for this input.

    Raises:
        NothingToPredict: there is no mask and no second text, and the model has no replaced-token head.
        MissingHead: the model does not have the head that the input needs.
    """
    if masks:
        require_head(heads, "mlm", model)
    elif "replaced" in heads:
        return
    elif text_b is not None:
        require_head(heads, "sop" if "sop" in heads else "nsp", model)
    else:
        require_head(heads, "mlm|nsp|sop", model)
        raise NothingToPredict(
            'There is nothing to predict: type "[MASK]" in the text, name a word to mask, or give a second text.'
        )
