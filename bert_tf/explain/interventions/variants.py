"""Changed inputs: the texts swapped, a word left out or replaced, half of the context.

A variant is made of the trace's tokens, so that every mask is followed to its new position. Where a change of the text
could change the tokens of its neighbours, the tokenizer reads that part again.

Dimension legend: T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.errors import InputError

if TYPE_CHECKING:
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace
    from bert_tf.inference.words import WordSpan


@dataclass(frozen=True, eq=False)
class Variant:
    """A changed input of a trace.

    Attributes:
        label: str. The change.
        tokens: tuple of str. The T tokens.
        token_ids, segment_ids: np.ndarray. int32 [T].
        masks: tuple of int. The positions of the remaining masks in the variant, ascending.
        rows: tuple of int. For each of these masks its number among the trace's masks, from 0.
        paired: bool. Whether there are two texts.
    """

    label: str
    tokens: tuple
    token_ids: np.ndarray
    segment_ids: np.ndarray
    masks: tuple
    rows: tuple
    paired: bool


def swapped(bert: Bert, trace: Trace) -> Variant:
    """The `Variant` with the two texts in the other order.

    Raises:
        InputError: there is only one text.
    """
    if trace.text_b is None:
        raise InputError("There is only one text; swapping needs two.")
    texts = _texts(trace)
    return _variant(bert, trace, "A and B swapped", texts["b"], texts["a"])


def without_word(bert: Bert, trace: Trace, word: WordSpan) -> Variant:
    """The `Variant` without a word.

    Two words that would become one ("well-known" without its hyphen) are kept apart by a space.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. The input.
        word: WordSpan. A word of the trace.
    Raises:
        InputError: the word is the whole text.
    """
    texts = _edited(bert, trace, word, "")
    if not texts[word.source]:
        raise InputError(f"Nothing would be left of text_{word.source} without {word.text!r:.40}.")
    return _variant(bert, trace, f'without "{word.text}"', texts["a"], texts["b"])


def with_word(bert: Bert, trace: Trace, word: WordSpan, replacement: str) -> Variant:
    """The `Variant` with one word replaced by another one, or by several.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. The input.
        word: WordSpan. A word of the trace.
        replacement: str. The new text. A "[MASK]" in it is masked, but the predictions there are not compared.
    Raises:
        InputError: the replacement is empty, or the input gets too long.
    """
    replacement = replacement.strip() if isinstance(replacement, str) else ""
    if not len(bert.tokenizer.tokenize(replacement)):
        raise InputError(f"The replacement for {word.text!r:.40} is empty: give a word.")
    texts = _edited(bert, trace, word, bert.tokenizer.normalize_mask_token(replacement))
    label = f'"{replacement}" for "{word.text}"'
    return _variant(bert, trace, label, texts["a"], texts["b"])


def left_context(bert: Bert, trace: Trace, mask: int) -> Variant:
    """The `Variant` that ends at a mask: the context that a left-to-right reader has there.

    A left-to-right model is trained on such context. This model is not: it reads the variant as a complete text.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. The input.
        mask: int. The position of one of the trace's masks.
    Raises:
        InputError: there is no mask at the position.
    """
    masked, texts = _masked_word(trace, mask), _texts(trace)
    source = trace.sources[mask]
    texts[source] = [entry for entry in texts[source] if entry[1] <= max(masked)]
    if source == "a":
        texts["b"] = []
    return _variant(bert, trace, "only what stands before", texts["a"], texts["b"])


def right_context(bert: Bert, trace: Trace, mask: int) -> Variant:
    """The `Variant` that begins at a mask; otherwise as `left_context`.

    If the mask is in the second text, the first text is left out.
    """
    masked, texts = _masked_word(trace, mask), _texts(trace)
    source = trace.sources[mask]
    texts[source] = [entry for entry in texts[source] if entry[1] >= min(masked)]
    if source == "b":
        texts = {"a": texts["b"], "b": []}
    return _variant(bert, trace, "only what stands after", texts["a"], texts["b"])


def _texts(trace):
    """Both texts as lists of (token id, position in the trace)."""
    return {
        source: [(int(trace.token_ids[p]), p) for p in range(trace.length) if trace.sources[p] == source]
        for source in ("a", "b")
    }


def _edited(bert, trace, word, replacement):
    """The texts as `_texts` gives them, with a word replaced or left out, as if the user had typed the changed text.

    All characters that touch the word without a space are tokenized again with it. If the first word is left out, the
    next word is tokenized again too: a byte-level token shows whether a space stands before it. Masked tokens do not
    change.
    """
    text_positions = [p for p in range(trace.length) if trace.sources[p] == word.source]
    text = bert.tokenizer.normalize_mask_token(trace.text_a if word.source == "a" else trace.text_b)
    text = text[: max(trace.offsets[p][1] for p in text_positions)]  # without the part that was truncated
    start, end = _with_neighbours(text, word.start, word.end)
    before, after = text[start : word.start], text[word.end : end]
    separator = " " if not replacement and before[-1:].isalnum() and after[:1].isalnum() else ""
    new_text = f"{before}{replacement}{separator}{after}"
    if not new_text and not text[:start].strip():
        following = len(text) - len(text[end:].lstrip())
        _, end = _with_neighbours(text, following, following)
        new_text = text[following:end]
    places = [p for p in text_positions if start <= trace.offsets[p][0] < end]
    if set(places) & set(trace.masks) - set(word.positions):
        places, new_text, start = word.positions, replacement, word.start
    space = " " if text[:start].endswith(" ") else ""
    pieces = bert.tokenizer.tokenize(space + new_text).ids if new_text else ()
    texts = _texts(trace)
    texts[word.source] = (
        [entry for entry in texts[word.source] if entry[1] < places[0]]
        + [(int(piece), None) for piece in pieces]
        + [entry for entry in texts[word.source] if entry[1] > places[-1]]
    )
    return texts


def _with_neighbours(text, start, end):
    """The start and end of a part of a text, extended by all characters that touch it without a space between."""
    while start and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return start, end


def _masked_word(trace, mask):
    """The masked positions of the word that a mask belongs to."""
    if mask not in trace.masks:
        raise InputError(f"Token {mask} is not masked; the masks are at {', '.join(map(str, trace.masks)) or 'none'}.")
    return [
        p for p in trace.masks if (trace.sources[p], trace.word_ids[p]) == (trace.sources[mask], trace.word_ids[mask])
    ]


def _variant(bert, trace, label, first, second):
    """The `Variant` of two texts, given as lists of (token id, position in the trace or None)."""
    tokenizer = bert.tokenizer
    ids = [[token for token, _ in entries] for entries in (first, second)]
    packed = tokenizer.pack_pair(ids[0], ids[1] or None, bert.max_length)
    if packed.truncated:
        raise InputError(
            f"The input would have {packed.length + sum(packed.truncated)} tokens; this model reads {bert.max_length}."
        )
    added = (None,)
    between = added * tokenizer.separators_between if second else ()
    origins = [*added, *(origin for _, origin in first), *between, *(origin for _, origin in second), *added]
    masks = [(place, trace.masks.index(origin)) for place, origin in enumerate(origins) if origin in trace.masks]
    return Variant(
        label,
        tuple(tokenizer.id_to_token(int(i)) for i in packed.token_ids),
        packed.token_ids,
        packed.segment_ids,
        tuple(place for place, _ in masks),
        tuple(row for _, row in masks),
        bool(second),
    )


def replacement_of(text: str) -> tuple[str, str]:
    """The pair (old, new) of "old=new".

    Raises:
        InputError: any other text.
    """
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise InputError(f"A replacement is OLD=NEW, such as cat=dog; not {text!r:.40}.")
    return old, new
