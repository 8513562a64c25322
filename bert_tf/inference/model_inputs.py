"""From a user's texts and masks to what the model reads; the same way for one input and for many."""

from dataclasses import dataclass
from typing import Optional

import numpy as np

from bert_tf.errors import EmptyText, checked_pair
from bert_tf.inference.mask_positions import resolve_masks
from bert_tf.tokenizers import Encoding


@dataclass(frozen=True, eq=False)
class PreparedInput:
    """An input ready for the model.

    Attributes:
        text_a, text_b: the texts, `text_b` None if there is no pair.
        encoding: tokens as they stand in the texts.
        masks: token positions to predict, ascending.
        token_ids, segment_ids: int32 [T]; the mask token's id at the masks.
        original_ids: int32, the ids that stand at the masks.
    """

    text_a: str
    text_b: Optional[str]
    encoding: Encoding
    masks: tuple
    token_ids: np.ndarray
    segment_ids: np.ndarray
    original_ids: np.ndarray


def prepare_input(tokenizer, max_length, text_a, text_b=None, mask=(), level="token"):
    """Tokenise, pack, and mask.

    Args:
        tokenizer: a `Tokenizer`. max_length: most tokens the model reads.
        text_a, text_b, mask, level: as in `Bert.trace`.
    Returns:
        `PreparedInput`.
    Raises:
        InputError, TextError: as `Bert.trace`.
    """
    text_a, text_b = checked_pair(text_a, text_b)
    read_a, read_b = (text and tokenizer.normalize_mask_token(text) for text in (text_a, text_b))
    encoding = tokenizer.encode(read_a, read_b, max_length=max_length)
    for source, text in (("a", text_a), ("b", text_b)):
        if text is not None and source not in encoding.sources:
            raise EmptyText(f"Text {source.upper()} holds nothing that can be read: {text!r:.60}.")
    masks = resolve_masks(encoding, read_a, read_b, mask, level, tokenizer)
    ids = np.array(encoding.token_ids)
    originals = ids[list(masks)]
    ids[list(masks)] = tokenizer.mask_id
    return PreparedInput(text_a, text_b, encoding, masks, ids, encoding.segment_ids, originals)
