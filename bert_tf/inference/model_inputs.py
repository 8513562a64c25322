"""Preparation of the model's input from the user's texts and masks, for one input and for batches."""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from bert_tf.errors import EmptyText, InputError, checked_pair
from bert_tf.inference.mask_positions import resolve_masks
from bert_tf.tokenizers import BaseTokenizer, Encoding


@dataclass(frozen=True, eq=False)
class PreparedInput:
    """A tokenized and masked input.

    Attributes:
        text_a: str. The first text.
        text_b: str or None. The second text.
        encoding: `Encoding`. The tokens of the texts, before masking.
        masks: tuple of int. The token positions to predict, in ascending order.
        token_ids: int32 [T]. The token ids, with the mask token's id at the masks.
        segment_ids: int32 [T]. The segment ids.
        original_ids: int32 [P]. The ids at the masks before masking.
    """

    text_a: str
    text_b: str | None
    encoding: Encoding
    masks: tuple[int, ...]
    token_ids: np.ndarray
    segment_ids: np.ndarray
    original_ids: np.ndarray


def batch_of(token_ids: npt.ArrayLike, segment_ids: npt.ArrayLike) -> dict[str, np.ndarray]:
    """The arrays [1, T] of `Runtime.run` for one sequence without padding; the ids are int32 [T]."""
    ids, segments = (np.asarray(values, np.int32)[None] for values in (token_ids, segment_ids))
    return {"token_ids": ids, "segment_ids": segments, "padding_mask": np.ones_like(ids)}


def check_length(tokenizer: BaseTokenizer, length: Any, texts: int) -> None:
    """Raise InputError unless `length` is a number of tokens that one text, or two, can be cut to."""
    added = tokenizer.pack_pair((), None if texts == 1 else ()).length
    if isinstance(length, bool) or not isinstance(length, Integral) or length < added + texts:
        what = "a text" if texts == 1 else "a pair"
        raise InputError(
            f"The length is {length!r:.40}; {what} needs at least {added + texts} tokens, {added} of them special."
        )


def prepare_input(
    tokenizer: BaseTokenizer,
    max_length: int,
    text_a: str,
    text_b: str | None = None,
    mask: Any = (),
    level: str = "token",
) -> PreparedInput:
    """Tokenize, pack and mask an input.

    Args:
        tokenizer: tokenizer of the model.
        max_length: int. The largest number of tokens.
        text_a, text_b, mask, level: As in `Bert.trace`.

    Returns:
        `PreparedInput`.

    Raises:
        InputError, TextError: as in `Bert.trace`.
    """
    text_a, text_b = checked_pair(text_a, text_b)
    normalized_a = tokenizer.normalize_mask_token(text_a)
    normalized_b = text_b and tokenizer.normalize_mask_token(text_b)
    encoding = tokenizer.encode(normalized_a, normalized_b, max_length=max_length)
    for source, text in (("a", text_a), ("b", text_b)):
        if text is not None and source not in encoding.sources:
            raise without_tokens(source, text)
    masks = resolve_masks(encoding, normalized_a, normalized_b, mask, level, tokenizer)
    ids = np.array(encoding.token_ids)
    original_ids = ids[list(masks)]
    ids[list(masks)] = tokenizer.mask_id
    return PreparedInput(text_a, text_b, encoding, masks, ids, encoding.segment_ids, original_ids)


def without_tokens(source: str, text: str) -> EmptyText:
    """The error of a text, "a" or "b", that has characters but no tokens, such as a zero-width space."""
    return EmptyText(f"Text {source.upper()} contains no token that can be read: {text!r:.60}.")
