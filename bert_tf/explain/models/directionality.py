"""Predictions of one hidden word by readers that see its left context, its right context or both.

A reader is a model. Every reader gets the same text with one [MASK] in the place of the word. A reader that reads in
one direction predicts the word from the hidden state beside it, and so from the text on that side alone (Devlin et al.
2019, section 5.1 and appendix A.4).

Dimension legend: T tokens, V vocabulary.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.errors import InputError, WordNotFound, require_head
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.predictions import MaskPrediction, fill_mask
from bert_tf.inference.words import words_of
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas

    from bert_tf.inference.bert import Bert


MASK = "[MASK]"


@dataclass(frozen=True)
class SpanPrediction:
    """One reader's prediction of the hidden word.

    Attributes:
        model: str. The name of the reader.
        attention_direction: str. "bidirectional", "left_to_right" or "two_one_way" (see
            `bert_tf.architectures.Architecture`).
        answer: `MaskPrediction`, with the rank and probability of the hidden word if it is one token of the vocabulary.
        visible_spans: tuple of (start, end, side). The spans of the text, in characters, that the reader predicted
            from. The side is "left" or "right" (each read by itself) or "both" (read together). The end of the text
            that was cut off is not among them.
    """

    model: str
    attention_direction: str
    answer: MaskPrediction
    visible_spans: tuple


@dataclass(frozen=True)
class Directionality(Result, figures={"predictions": "bert_tf.plots.models.directionality:reader_predictions"}):
    """The predictions of several readers for one span of a text.

    Attributes:
        text: str.
        start, end: int. The span in characters.
        readers: tuple of `SpanPrediction`, one for each reader.
    """

    text: str
    start: int
    end: int
    readers: tuple

    def to_frame(self) -> pandas.DataFrame:
        """A row for each reader and prediction.

        The rank and probability of the hidden word are filled where it is one token of the reader's vocabulary.
        """
        columns = {
            "model": lambda reader, rank, prediction: reader.model,
            "attention_direction": lambda reader, rank, prediction: reader.attention_direction,
            "rank": lambda reader, rank, prediction: rank,
            "prediction": lambda reader, rank, prediction: prediction.token,
            "probability": lambda reader, rank, prediction: prediction.probability,
            "original": lambda reader, rank, prediction: reader.answer.original,
            "original_rank": lambda reader, rank, prediction: reader.answer.original_rank,
            "original_probability": lambda reader, rank, prediction: reader.answer.original_probability,
        }
        rows = [
            (reader, rank, prediction)
            for reader in self.readers
            for rank, prediction in enumerate(reader.answer.predictions, 1)
        ]
        return frame({name: [of(*row) for row in rows] for name, of in columns.items()})


def predict_span(bert: Bert, text: str, start: int, end: int, top_k: int = 5) -> SpanPrediction:
    """A model's predictions in the place of a span of a text.

    Args:
        bert: `Bert`. A model with a masked language model head.
        text: str.
        start, end: int. The span in characters; all of it becomes one mask token, or is a "[MASK]" already.
        top_k: int. The number of predictions.
    Returns:
        `SpanPrediction`.
    Raises:
        InputError: the span is outside the text, or as in `Bert.trace`, also where the span is cut off.
        MissingHead: the model has no masked language model head.
    """
    if not 0 <= start < end <= len(text):
        raise InputError(f"The text has {len(text)} characters; {start} to {end} is no part of it.")
    require_head(bert.heads, "mlm", bert.name)
    word, masked_text = text[start:end], f"{text[:start]}{bert.tokenizer.mask_token}{text[end:]}"
    trace = bert.trace(masked_text, attentions=False, hidden_states=False)
    position = next(position for position in trace.masks if trace.offsets[position][0] == start)
    (answer,) = (mask for mask in fill_mask(trace, bert.tokenizer, top_k) if mask.position == position)
    direction = bert.config.architecture.attention_direction
    last_character = max(offsets[1] for offsets in trace.offsets if offsets) - len(masked_text) + len(text)
    space = " " if text[:start].endswith(" ") else ""  # a byte-level token includes the space before its word
    logits = cast(np.ndarray, trace.logits)[trace.masks.index(position)]
    answer = _compared(bert, answer, logits, space + word)
    return SpanPrediction(bert.name, direction, answer, _visible_spans(direction, start, end, last_character))


def directionality(text: str, models: Sequence[Bert], hide: str | None = None, top_k: int = 5) -> Directionality:
    """The predictions of a hidden word by readers that see different sides of it.

    Args:
        text: str.
        models: sequence of `Bert`. The readers.
        hide: str or None. The word to hide, its first occurrence; None for a "[MASK]" in the text.
        top_k: int. The number of predictions of each reader.
    Returns:
        `Directionality`.
    Raises:
        InputError: there is no model or no word to hide, or as in `predict_span`.
        WordNotFound: `hide` is not in the text.
    """
    if not models:
        raise InputError("Give at least one model.")
    start, end = _span(models[0], text, hide)
    return Directionality(text, start, end, tuple(predict_span(bert, text, start, end, top_k) for bert in models))


def _span(bert, text, hide):
    """(start, end) in characters of the word to hide, or of a typed [MASK]."""
    if hide is None:
        if MASK not in text:
            raise InputError(f'Nothing is hidden: name the word to hide, or type "{MASK}" in the text.')
        start = text.index(MASK)
        return start, start + len(MASK)
    words = words_of(prepare_input(bert.tokenizer, bert.max_length, text).encoding, text)
    word = next((word for word in words if word.text == hide), None)
    if word is None:
        raise WordNotFound(f"The word {hide!r:.60} is not in the text.")
    return word.start, word.end


def _compared(bert, answer, logits, word):
    """A `MaskPrediction` with the rank and probability of the word, which includes the space before it.

    The prediction is returned as it is if the word is not one token.
    """
    ids = bert.tokenizer.tokenize(word).ids
    if len(ids) != 1 or word.strip() == MASK or ids[0] in bert.tokenizer.special_ids:
        return answer
    score = logits[ids[0]]
    exponentials = np.exp(logits.astype(np.float64) - logits.max())
    return dataclasses.replace(
        answer,
        original=bert.tokenizer.id_to_token(int(ids[0])),
        original_rank=1 + int(np.count_nonzero(logits > score)),
        original_probability=float(exponentials[ids[0]] / exponentials.sum()),
    )


def _visible_spans(direction, start, end, last_character):
    left, right = (0, start), (end, max(end, last_character))
    sides = {"bidirectional": ("both", "both"), "left_to_right": ("left", None), "two_one_way": ("left", "right")}
    return tuple((*span, side) for span, side in zip((left, right), sides[direction]) if side and span[0] < span[1])


ANALYSIS = Analysis(
    name="directionality",
    function=directionality,
    summary="predictions of a word by models that see one side of it, or both",
    source="Devlin et al. 2019, section 5.1 and appendix A.4",
    options=(
        Option("hide", "the word to hide, its first occurrence", metavar="WORD"),
        Option(
            "models",
            "the models that read the text",
            several=True,
            default=("reader-left-to-right", "reader-two-one-way", "reader-both-ways"),
            metavar="M",
            model=True,
        ),
        TOP_K,
    ),
    inputs="text",
    model=False,
    aliases=("one-way",),
)
