"""The short answer to one input: what the masks hide, whether the second text follows the first, whether the
two are in order, which tokens look replaced.
"""

from dataclasses import dataclass
from typing import Optional

from bert_tf.errors import NothingToPredict, require_head
from bert_tf.inference.predictions import fill_mask, predictions_frame, require_masks
from bert_tf.inference.trace import NextSentence, SentenceOrder
from bert_tf.results import Result, frame
from bert_tf.tokenizers import Truncation


@dataclass(frozen=True)
class Answer(Result, figures={"answer": "bert_tf.plots.predictions:answer"}):
    """Predictions for one text or pair.

    Attributes:
        model: name of the model.
        tokens: what the model read, "[MASK]" where masked.
        masks: `MaskPrediction`s, ascending positions.
        nsp: `NextSentence`, or None without a second text or without an NSP head.
        truncated: `Truncation`, zeros if everything was read.
        sop: `SentenceOrder`, or None without a second text or without such a head.
        replaced: for each token the probability that it was replaced; None if the model has no head for it.
    """

    model: str
    tokens: tuple
    masks: tuple
    nsp: Optional[NextSentence]
    truncated: Truncation
    sop: Optional[SentenceOrder] = None
    replaced: Optional[tuple] = None

    def to_dict(self):
        """A dict that `json.dumps` takes, as `predict --json` prints it.

        "nsp" is null without a second text. "truncated" is null if everything was read, otherwise how many
        tokens were cut off either text. "original" is null where the user typed "[MASK]". "sop" (a pair) and
        "replaced" (a number a token) are there only if the model has a head for them, "targets" of a mask only where
        words were asked about.
        """
        extra = {} if self.sop is None else {"sop": self.sop.to_dict()}
        if self.replaced is not None:
            extra["replaced"] = list(self.replaced)
        return {
            "model": self.model,
            "tokens": list(self.tokens),
            "masks": [
                {
                    "position": mask.position,
                    "original": mask.original,
                    "predictions": [{"token": p.token, "probability": p.probability} for p in mask.predictions],
                    **_asked(mask),
                }
                for mask in self.masks
            ],
            "nsp": None if self.nsp is None else self.nsp.to_dict(),
            "truncated": self.truncated._asdict() if any(self.truncated) else None,
            **extra,
        }

    def to_frame(self):
        """The predictions at the masks; without masks what is said of the pair, else the score of every token."""
        pair = self.nsp or self.sop
        if self.masks or (pair is None and self.replaced is None):
            return predictions_frame(self.masks)
        if pair is not None:
            return pair.to_frame()
        return frame({"position": range(len(self.tokens)), "token": self.tokens, "replaced": self.replaced})


def _asked(mask):
    found = [{"token": one.token, "rank": one.rank, "probability": one.probability} for one in mask.targets]
    return {"targets": found} if found else {}


def answer_from(trace, tokenizer, top_k=5, targets=()):
    """The answer a trace holds; `targets`: words to ask about at every mask, as `fill_mask` takes them.

    Raises:
        NothingToPredict: no mask and no second text, unless the model judges every token.
        MissingHead: what was asked needs a head that the model lacks.
        InputError: `top_k` is not a positive whole number, or a target is no word of one piece.
    """
    check_question(trace.masks, trace.text_b, trace.heads, trace.model)
    if targets:
        require_masks(trace)
    masks = fill_mask(trace, tokenizer, top_k, targets) if trace.masks else ()
    replaced = None if trace.replaced is None else tuple(map(float, trace.replaced))
    return Answer(trace.model, trace.tokens, masks, trace.nsp, trace.truncated, trace.sop, replaced)


def pair_note(text_b, heads, model):
    """A sentence where a second text was given to a model that has no head to judge the pair; else None."""
    if text_b is None or {"nsp", "sop"} & set(heads):
        return None
    return f"{model} has no next-sentence head: it says nothing of how two texts stand to each other."


def check_question(masks, text_b, heads, model):
    """Raise NothingToPredict or MissingHead unless the model can answer something about this input."""
    if masks:
        require_head(heads, "mlm", model)
    elif "replaced" in heads:
        return
    elif text_b is not None:
        require_head(heads, "sop" if "sop" in heads else "nsp", model)
    else:
        raise NothingToPredict(
            'There is nothing to predict: type "[MASK]" in the text, name a word to mask, or give a second text.'
        )
