"""Packing of texts into BERT inputs (``[CLS] A [SEP]`` or ``[CLS] A [SEP] B [SEP]``), truncation and padding.

Shapes: B batch, T tokens of the packed sequence. All ids are int32.

Source: Devlin et al. 2018, section 3 ("Input/Output Representations").
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bert_tf.errors import TextError

#: Token ids of one text.
Ids = Sequence[int] | np.ndarray


class Truncation(NamedTuple):
    """How many tokens were cut from the end of each text; both are 0 if nothing was cut."""

    tokens_a: int = 0
    tokens_b: int = 0

    def __bool__(self) -> bool:
        """Whether a token was cut."""
        return self.tokens_a > 0 or self.tokens_b > 0


class PackedPair(NamedTuple):
    """One packed sequence: token ids and segment ids, int32 [T], and the number of tokens that were cut."""

    token_ids: np.ndarray
    segment_ids: np.ndarray
    truncated: Truncation = Truncation()

    @property
    def length(self) -> int:
        """T, the number of tokens with the special tokens."""
        return len(self.token_ids)


def truncate_longest_first(length_a: int, length_b: int, room: int) -> tuple[int, int]:
    """Return how many tokens of each text to keep so that both fit into ``room``.

    The longer text is cut first. If both are longer than half the room, each gets half, and an odd token goes to
    the text that was longer (to B if they were equal). This equals ``truncation="longest_first"`` of the
    `tokenizers` library and of Transformers 5; Google's original code gives the odd token to A.

    Args:
        length_a: int. The number of tokens of A.
        length_b: int. The number of tokens of B.
        room: int. The largest number of tokens of both texts, without the special tokens.

    Returns:
        (int, int): the number of tokens to keep of A and of B.

    Raises:
        TextError: a number is negative.
    """
    if min(length_a, length_b, room) < 0:
        raise TextError(f"Lengths cannot be negative: got {length_a} and {length_b} tokens for {room} places.")
    if length_a + length_b <= room:
        return length_a, length_b
    shorter, longer = sorted((length_a, length_b))
    if shorter <= room // 2:
        longer = room - shorter
    else:
        shorter, longer = room // 2, room - room // 2
    return (longer, shorter) if length_a > length_b else (shorter, longer)


def plan_truncation(length_a: int, length_b: int | None, max_length: int, between: int = 1) -> Truncation:
    """Return how many tokens to cut from A and B so that the packed sequence has at most ``max_length`` tokens.

    Args:
        length_a: int. The number of tokens of A.
        length_b: int or None. The number of tokens of B; None for a single text.
        max_length: int. The largest T, with the special tokens.
        between: int. The number of separators between A and B.

    Raises:
        TextError: ``max_length`` is too small for the special tokens.
    """
    specials = 2 if length_b is None else 2 + between
    if max_length < specials:
        raise TextError(
            f"max_length is {max_length}, but the special tokens alone take {specials}: give at least {specials}."
        )
    room = max_length - specials
    if length_b is None:
        return Truncation(max(0, length_a - room), 0)
    kept_a, kept_b = truncate_longest_first(length_a, length_b, room)
    return Truncation(length_a - kept_a, length_b - kept_b)


def pack_pair(
    ids_a: Ids,
    ids_b: Ids | None,
    max_length: int = 512,
    *,
    cls_id: int = 101,
    sep_id: int = 102,
    between: int = 1,
    second_segment: int = 1,
) -> PackedPair:
    """Pack token ids into ``[CLS] A [SEP]`` or ``[CLS] A [SEP] B [SEP]`` with segment ids 0 and 1.

    Args:
        ids_a: sequence of int. The token ids of A, without special tokens.
        ids_b: sequence of int or None. The token ids of B; None for a single text.
        max_length: int. The largest T. A longer sequence is cut longest-first; the cut is reported.
        cls_id: int. The id of [CLS]; 101 in every vocabulary released with BERT.
        sep_id: int. The id of [SEP]; 102 in every vocabulary released with BERT.
        between: int. The number of separators between A and B; 2 in RoBERTa.
        second_segment: int. The segment id of B; 0 in models with one segment.

    Returns:
        `PackedPair`: token ids and segment ids, int32 [T], and the truncation.

    Raises:
        TextError: ``max_length`` is too small for the special tokens.
    """
    length_b = None if ids_b is None else len(ids_b)
    cut = plan_truncation(len(ids_a), length_b, max_length, between)
    kept_a = len(ids_a) - cut.tokens_a
    kept_b = 0 if length_b is None else length_b - cut.tokens_b
    length = kept_a + 2 if length_b is None else kept_a + kept_b + 2 + between
    token_ids = np.empty(length, dtype=np.int32)
    segment_ids = np.zeros(length, dtype=np.int32)
    token_ids[0] = cls_id
    token_ids[1 : kept_a + 1] = ids_a[:kept_a]
    token_ids[kept_a + 1] = sep_id
    if ids_b is not None:
        start = kept_a + 1 + between
        token_ids[kept_a + 1 : start] = sep_id
        token_ids[start:-1] = ids_b[:kept_b]
        token_ids[-1] = sep_id
        segment_ids[start:] = second_segment
    return PackedPair(token_ids, segment_ids, cut)


def pad_batch(sequences: Sequence[Any], length: int | None = None, pad_id: int = 0) -> dict[str, np.ndarray]:
    """Pad packed sequences to one length and stack them.

    Args:
        sequences: sequence of `PackedPair`, of `Encoding` or of (token_ids, segment_ids).
        length: int or None. T of the result; None for the length of the longest sequence.
        pad_id: int. The id of [PAD].

    Returns:
        Dict of int32 [B, T]: ``token_ids``, ``segment_ids`` and ``padding_mask`` (1 for tokens, 0 for padding).

    Raises:
        TextError: a sequence is longer than ``length``.
    """
    pairs = [_ids_and_segments(sequence) for sequence in sequences]
    longest = max((len(ids) for ids, _ in pairs), default=0)
    length = longest if length is None else length
    if longest > length:
        raise TextError(f"A sequence has {longest} tokens, but the batch is {length} long: truncate it first.")
    shape = (len(pairs), length)
    token_ids = np.full(shape, pad_id, dtype=np.int32)
    segment_ids = np.zeros(shape, dtype=np.int32)
    padding_mask = np.zeros(shape, dtype=np.int32)
    for row, (ids, segments) in enumerate(pairs):
        token_ids[row, : len(ids)] = ids
        segment_ids[row, : len(ids)] = segments
        padding_mask[row, : len(ids)] = 1
    return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}


def _ids_and_segments(sequence: Any) -> tuple[Sequence[int], Sequence[int]]:
    if hasattr(sequence, "token_ids"):
        return sequence.token_ids, sequence.segment_ids
    return sequence[0], sequence[1]
