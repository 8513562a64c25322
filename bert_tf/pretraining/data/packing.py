"""Packs sentences into input sequences, in NumPy over token ids: pairs of segments, or one full segment.

The objectives have different kinds of sequences:

- "mlm+nsp" (Devlin et al. 2019, section A.2; google-research/bert's `create_pretraining_data.py`): whole sentences are
  collected up to a target length and cut at random into A and B. Half of the time B is replaced by sentences of another
  document; the unused sentences go into the next pair.
- "sop" (Lan et al. 2020, section 3.1): A and B are consecutive segments, swapped half of the time.
- "mlm" (Liu et al. 2019, section 4.2, FULL-SENTENCES): one segment of consecutive whole sentences, also across the ends
  of documents, which a separator marks. "clm" has the same sequences without masks: a model that cannot see a token
  predicts it (Devlin et al. 2019, section 5.1).

Shapes: B batch, T tokens.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.pretraining.data.documents import TextError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bert_tf.pretraining.data.corpus import MemoryCorpus, TokenCorpus
    from bert_tf.tokenizers.base import BaseTokenizer


#: The objectives: masked tokens, with next-sentence or sentence-order prediction or alone, or every token ("clm").
OBJECTIVES = ("mlm+nsp", "mlm", "sop", "clm")


@dataclass(frozen=True)
class SegmentPair:
    """One or two segments of a sequence.

    Attributes:
        a: int32 [tokens]. The first segment, without special tokens around it.
        b: int32 [tokens]. The second segment, without special tokens around it; None in a sequence of one segment.
        not_next: bool. Whether B does not follow A in the text (label 1): it comes from another document, or A and B
            are swapped.
    """

    a: np.ndarray
    b: np.ndarray | None = None
    not_next: bool = False


def check_objective(objective: str) -> None:
    """Checks the name of an objective.

    Args:
        objective: str.

    Raises: ValueError unless it is one of `OBJECTIVES`.
    """
    if objective not in OBJECTIVES:
        raise ValueError(f"There is no objective {objective!r}; choose from {', '.join(OBJECTIVES)}.")


def check_documents(objective: str, number: int | None) -> None:
    """Checks that there are two documents for next-sentence prediction: a random second segment needs another one.

    Args:
        objective: str. One of `OBJECTIVES`.
        number: int. The number of documents; None if it is unknown.

    Raises: TextError if there is only one document.
    """
    if objective == "mlm+nsp" and number == 1:
        raise TextError(
            "The text is one document, so every second segment would be the true next one. Put a blank line "
            "between documents (in .jsonl: a document a line), or give --objective mlm."
        )


def make_pairs(
    objective: str,
    corpus: TokenCorpus | MemoryCorpus,
    numbers: Iterable[int],
    rng: np.random.Generator,
    tokenizer: BaseTokenizer,
    length: int = 128,
    short_probability: float = 0.1,
) -> list[SegmentPair]:
    """Makes the segments of documents for an objective.

    Args:
        objective: str. One of `OBJECTIVES`.
        corpus: a `TokenCorpus`, or another object with `len` and `.document(i)`.
        numbers: iterable of int. The numbers of the documents.
        rng: `numpy.random.Generator`.
        tokenizer: a `Tokenizer`, for the id and the number of the separators.
        length: int. Tokens of a packed sequence with its special tokens.
        short_probability: float. The probability that a pair is made shorter; one-segment sequences are always full.

    Returns: list of `SegmentPair`.

    Raises: ValueError on another objective.
    """
    check_objective(objective)
    if objective in ("mlm", "clm"):
        return list(full_sentences(corpus, numbers, tokenizer.sep_id, length))
    pairs_of_document = document_pairs if objective == "mlm+nsp" else sentence_order_pairs
    return [
        pair
        for number in numbers
        for pair in pairs_of_document(corpus, int(number), rng, length, short_probability, tokenizer.separators_between)
    ]


def document_pairs(
    corpus: TokenCorpus | MemoryCorpus,
    number: int,
    rng: np.random.Generator,
    length: int = 128,
    short_probability: float = 0.1,
    between: int = 1,
) -> Iterator[SegmentPair]:
    """The sentence pairs of one document for next-sentence prediction.

    Args:
        corpus: a `TokenCorpus`, or another object with `len` and `.document(i)`. If it has `.sources`, like a
            `MemoryCorpus`, a random second segment never comes from another part of the same document.
        number: int. The number of the document.
        rng: `numpy.random.Generator`.
        length: int. Tokens of a packed sequence with its special tokens.
        short_probability: float. The probability of a shorter target, so that the model is trained on short inputs too.
        between: int. The number of separators between A and B, as in `tokenizer.separators_between`.

    Yields: `SegmentPair`s of at most `length - 2 - between` tokens in both segments together.
    """
    document, room = corpus.document(number), length - 2 - between
    own_parts = _parts_of_document(corpus, number)
    target = _target(rng, room, short_probability)
    chunk, total, index = [], 0, 0
    while index < len(document):
        chunk.append(document[index])
        total += len(chunk[-1])
        if total >= target or index == len(document) - 1:
            cut = int(rng.integers(1, len(chunk))) if len(chunk) > 1 else 1
            is_random = len(chunk) == 1 or rng.random() < 0.5
            if is_random and len(corpus) > len(own_parts):
                wanted = target - sum(map(len, chunk[:cut]))
                b = _random_sentences(corpus, own_parts, wanted, rng)
                index -= len(chunk) - cut  # the rest of the chunk is used again
            else:
                is_random, b = False, chunk[cut:]
            if b:
                segment_a, segment_b = _truncate(_joined(chunk[:cut]), _joined(b), room, rng)
                yield SegmentPair(segment_a, segment_b, is_random)
            chunk, total, target = [], 0, _target(rng, room, short_probability)
        index += 1


def sentence_order_pairs(
    corpus: TokenCorpus | MemoryCorpus,
    number: int,
    rng: np.random.Generator,
    length: int = 128,
    short_probability: float = 0.1,
    between: int = 1,
) -> Iterator[SegmentPair]:
    """The pairs of one document for sentence-order prediction: consecutive segments, half of them swapped.

    A single sentence at the end is left out.

    Args: as `document_pairs`.

    Yields: as `document_pairs`.
    """
    document, room = corpus.document(number), length - 2 - between
    target = _target(rng, room, short_probability)
    chunk, total = [], 0
    for index, sentence in enumerate(document):
        chunk.append(sentence)
        total += len(sentence)
        if len(chunk) > 1 and (total >= target or index == len(document) - 1):
            cut = int(rng.integers(1, len(chunk)))
            a, b = _truncate(_joined(chunk[:cut]), _joined(chunk[cut:]), room, rng)
            yield SegmentPair(b, a, True) if rng.random() < 0.5 else SegmentPair(a, b, False)
            chunk, total, target = [], 0, _target(rng, room, short_probability)


def full_sentences(
    corpus: TokenCorpus | MemoryCorpus, numbers: Iterable[int], separator: int, length: int = 128
) -> Iterator[SegmentPair]:
    """Sequences of one segment, filled with whole sentences of consecutive documents.

    A sentence that is longer than a sequence is cut into pieces.

    Args:
        corpus: as `document_pairs`.
        numbers: iterable of int. The numbers of the documents, in the order of use.
        separator: int. The id of the token between two documents.
        length: int. Tokens of a packed sequence with its special tokens.

    Yields: `SegmentPair`s without b, of at most `length - 2` tokens.
    """
    room, end = length - 2, np.array([separator], np.int32)
    row: list[np.ndarray] = []
    total = 0
    for number in numbers:
        for sentence in corpus.document(int(number)):
            for piece in (sentence[first : first + room] for first in range(0, len(sentence), room)):
                if row and total + len(piece) > room:
                    yield SegmentPair(_without_last(row, end))
                    row, total = [], 0
                row.append(piece)
                total += len(piece)
        if row and row[-1] is not end:
            row.append(end)
            total += 1
    if row:
        yield SegmentPair(_without_last(row, end))


def _without_last(row, end):
    """Joins the parts of a sequence; a separator at its end is dropped, as packing adds one."""
    return _joined(row[:-1] if row[-1] is end else row)


def _joined(parts):
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _target(rng, room, short_probability):
    return int(rng.integers(2, room + 1)) if rng.random() < short_probability else room


def _parts_of_document(corpus, number):
    """The range of the parts of the same document as part `number`."""
    sources = getattr(corpus, "sources", None)
    if sources is None:
        return range(number, number + 1)
    return range(bisect_left(sources, sources[number]), bisect_right(sources, sources[number]))


def _random_sentences(corpus, own_parts, wanted, rng):
    """Sentences from a random position of a random document outside the range `own_parts`.

    They have at least `wanted` tokens if the document has so many from there on.
    """
    other = int(rng.integers(0, len(corpus) - len(own_parts)))
    document = corpus.document(other + (other >= own_parts.start) * len(own_parts))
    sentences, total = [], 0
    for index in range(int(rng.integers(0, len(document))), len(document)):
        sentence = document[index]
        sentences.append(sentence)
        total += len(sentence)
        if total >= wanted:
            break
    return sentences


def _truncate(a, b, room, rng):
    """Removes tokens from the longer segment, at random from the front or the back, until both fit."""
    while len(a) + len(b) > room:
        excess = len(a) + len(b) - room
        if len(a) > len(b):
            a = _cut(a, min(excess, len(a) - len(b)), rng)
        else:
            b = _cut(b, min(excess, max(1, len(b) - len(a))), rng)
    return a, b


def _cut(tokens, count, rng):
    front = int(rng.binomial(count, 0.5))
    return tokens[front : len(tokens) - (count - front)]


def pack_pairs(pairs: Sequence[SegmentPair], tokenizer: BaseTokenizer, length: int) -> dict[str, np.ndarray]:
    """Packs pairs into rows [CLS] A [SEP] B [SEP] (RoBERTa: two [SEP] between), single segments into [CLS] A [SEP].

    Args:
        pairs: list of `SegmentPair`.
        tokenizer: a `Tokenizer`, for the ids of the special tokens.
        length: int. T.

    Returns: dict of int32 arrays: token_ids, segment_ids, padding_mask [B, T], nsp_labels [B]
        (0: next, or in order; 1: not next, or swapped).
    """
    cls, sep = np.array([tokenizer.cls_id], np.int32), np.array([tokenizer.sep_id], np.int32)
    between = tokenizer.separators_between
    parts: list[np.ndarray] = []
    first_lengths, lengths = [], []
    for pair in pairs:
        parts += (cls, pair.a, sep) if pair.b is None else (cls, pair.a, *[sep] * between, pair.b, sep)
        first_lengths.append(len(pair.a) + (2 if pair.b is None else 1 + between))
        lengths.append(first_lengths[-1] if pair.b is None else first_lengths[-1] + len(pair.b) + 1)
    positions = np.arange(length)
    real = positions < np.array(lengths, int)[:, None]
    rows = np.full(real.shape, tokenizer.pad_id, np.int32)
    if parts:
        rows[real] = np.concatenate(parts)
    segments = real & (positions >= np.array(first_lengths, int)[:, None])
    labels = np.array([pair.not_next for pair in pairs], np.int32)
    return {
        "token_ids": rows,
        "segment_ids": segments.astype(np.int32) * np.int32(tokenizer.second_segment),
        "padding_mask": real.astype(np.int32),
        "nsp_labels": labels,
    }
