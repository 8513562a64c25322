"""One hidden word asked of readers that see different sides of it: what bidirectionality buys.

Every reader gets the same text with one [MASK] in the word's place. One that reads one way predicts the place from
the state beside it, and so from the text on that side alone (Devlin et al. 2019, section 5.1 and appendix A.4).

Dimension legend: T tokens, V vocabulary.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np

from bert_tf.errors import InputError, require_head
from bert_tf.inference.predictions import MaskPrediction, fill_mask

MASK = "[MASK]"


@dataclass(frozen=True)
class SpanPrediction:
    """What one reader says of the place.

    Attributes:
        model: its name. attention_direction: "bidirectional", "left_to_right" or "two_one_way" (see
            `bert_tf.architectures.Architecture`).
        answer: `MaskPrediction`, compared with the word that stood there if that is one token of its vocabulary.
        visible_spans: the parts of the text it predicted from: (start, end, side) in characters, side "left" or "right" (each
            read by itself) or "both" (read together). Without what was cut off at the end.
    """

    model: str
    attention_direction: str
    answer: MaskPrediction
    visible_spans: tuple


def predict_span(bert, text, start, end, top_k=5):
    """What a model expects in the place of a part of a text.

    Args:
        bert: a `Bert` with a masked-LM head. text: the text.
        start, end: the part in characters; all of it becomes one [MASK], or already is one. top_k: of the answer.
    Returns:
        `SpanPrediction`.
    Raises:
        InputError: no such part, or as `Bert.trace`, also where the part is cut off. MissingHead: no masked-LM head.
    """
    if not 0 <= start < end <= len(text):
        raise InputError(f"The text has {len(text)} characters; {start} to {end} is no part of it.")
    require_head(bert.heads, "mlm", bert.name)
    word, hidden = text[start:end], f"{text[:start]}{MASK}{text[end:]}"
    trace = bert.trace(hidden, attentions=False, hidden_states=False)
    place = next(position for position in trace.masks if trace.offsets[position][0] == start)
    (answer,) = (one for one in fill_mask(trace, bert.tokenizer, top_k) if one.position == place)
    direction, reached = bert.config.architecture.attention_direction, max(one[1] for one in trace.offsets if one)
    space = " " if text[:start].endswith(" ") else ""  # a byte-level piece has the space before its word
    answer = _compared(bert, answer, trace.logits[trace.masks.index(place)], space + word)
    return SpanPrediction(bert.name, direction, answer, _seen(direction, start, end, reached - len(hidden) + len(text)))


def _compared(bert, answer, logits, word):
    """The answer with the rank and the probability of the word, the space before it included, where it is one token."""
    ids = bert.tokenizer.tokenize(word).ids
    if len(ids) != 1 or word.strip() == MASK or ids[0] in bert.tokenizer.special_ids:
        return answer
    score = logits[ids[0]]
    shares = np.exp(logits.astype(np.float64) - logits.max())
    return dataclasses.replace(
        answer,
        original=bert.tokenizer.id_to_token(int(ids[0])),
        original_rank=1 + int(np.count_nonzero(logits > score)),
        original_probability=float(shares[ids[0]] / shares.sum()),
    )


def _seen(direction, start, end, reached):
    left, right = (0, start), (end, max(end, reached))
    sides = {"bidirectional": ("both", "both"), "left_to_right": ("left", None), "two_one_way": ("left", "right")}
    return tuple((*part, side) for part, side in zip((left, right), sides[direction]) if side and part[0] < part[1])
