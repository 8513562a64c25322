"""The short answer to one input: what the masks hide, and whether the second text follows the first."""

from dataclasses import dataclass
from typing import Optional

from bert_tf.checkpoints.errors import require_head
from bert_tf.explain.errors import NothingToPredict
from bert_tf.explain.predictions import fill_mask
from bert_tf.explain.trace import NextSentence
from bert_tf.text import Truncation


@dataclass(frozen=True)
class Answer:
    """Predictions for one text or pair.

    Attributes:
        model: name of the model.
        tokens: what the model read, "[MASK]" where masked.
        masks: `MaskPrediction`s, ascending positions.
        nsp: `NextSentence`, or None without a second text or without an NSP head.
        truncated: `Truncation`, zeros if everything was read.
    """

    model: str
    tokens: tuple
    masks: tuple
    nsp: Optional[NextSentence]
    truncated: Truncation

    def to_json(self):
        """A dict that `json.dumps` takes.

        "nsp" is null without a second text. "truncated" is null if everything was read, otherwise how many
        tokens were cut off either text. "original" is null where the user typed "[MASK]".
        """
        return {
            "model": self.model,
            "tokens": list(self.tokens),
            "masks": [
                {
                    "position": mask.position,
                    "original": mask.original,
                    "predictions": [
                        {"token": p.token, "probability": p.probability} for p in mask.predictions
                    ],
                }
                for mask in self.masks
            ],
            "nsp": None if self.nsp is None else self.nsp._asdict(),
            "truncated": self.truncated._asdict() if any(self.truncated) else None,
        }


def answer_from(trace, tokenizer, top_k=5):
    """The answer a trace holds.

    Raises:
        NothingToPredict: no mask and no second text.
        MissingHead: what was asked needs a head that the model lacks.
        InputError: `top_k` is not a positive whole number.
    """
    check_question(trace.masks, trace.text_b, trace.heads, trace.model)
    masks = fill_mask(trace, tokenizer, top_k) if trace.masks else ()
    return Answer(trace.model, trace.tokens, masks, trace.nsp, trace.truncated)


def check_question(masks, text_b, heads, model):
    """Raise NothingToPredict or MissingHead unless the model can answer something about this input."""
    if masks:
        require_head(heads, "mlm", model)
    elif text_b is not None:
        require_head(heads, "nsp", model)
    else:
        raise NothingToPredict(
            'There is nothing to predict: type "[MASK]" in the text, name a word to mask, '
            "or give a second text."
        )
