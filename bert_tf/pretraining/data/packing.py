"""What a model reads at once, in NumPy over token ids: pairs of segments, or sentences packed full.

Kinds, by the objective they are for:

- "mlm+nsp" (Devlin et al. 2019, section A.2; google-research/bert's `create_pretraining_data.py`): whole
  sentences are collected to a target length, cut at random into A and B, and half of the time B is replaced by
  sentences of another document; the sentences that were not used are put back.
- "sop" (Lan et al. 2020, section 3.1): A and B are two segments that follow one another, swapped half of the
  time.
- "mlm" (Liu et al. 2019, section 4.2, FULL-SENTENCES): one segment of whole sentences that follow one another,
  over the ends of documents, where a separator stands. "clm" reads the same, and nothing is masked: every token is
  predicted by a model that cannot see it (Devlin et al. 2019, section 5.1).

B batch, T tokens.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np

from bert_tf.pretraining.data.documents import TextError

#: What can be learnt: masked tokens, alone or with something beside them, or every token ("clm").
OBJECTIVES = ("mlm+nsp", "mlm", "sop", "clm")


@dataclass(frozen=True)
class SegmentPair:
    """Two segments, or one, of a sequence.

    Attributes:
        a, b: int32 [tokens], no special tokens around them; b is None for a sequence of one segment.
        not_next: whether B is not what followed A (label 1): it comes from elsewhere, or A and B are swapped.
    """

    a: np.ndarray
    b: np.ndarray | None = None
    not_next: bool = False


def check_objective(objective):
    """Raises ValueError unless `objective` is one of `OBJECTIVES`."""
    if objective not in OBJECTIVES:
        raise ValueError(f"There is no objective {objective!r}; choose from {', '.join(OBJECTIVES)}.")


def check_documents(objective, number):
    """Refuses next-sentence prediction on one document: it has no other one to take a false second segment from.

    Args: objective: out of `OBJECTIVES`. number: of documents, None where it is not known.

    Raises: TextError.
    """
    if objective == "mlm+nsp" and number == 1:
        raise TextError(
            "The text is one document, so every second segment would be the true next one. Put a blank line "
            "between documents (in .jsonl: a document a line), or give --objective mlm."
        )


def make_pairs(objective, corpus, numbers, rng, tokenizer, length=128, short_probability=0.1):
    """The instances of some documents for an objective.

    Args:
        objective: out of `OBJECTIVES`.
        corpus: a `TokenCorpus` (or anything with `len` and `.document(i)`). numbers: which documents.
        rng: `numpy.random.Generator`. tokenizer: for the separator's id, and how many stand in a pair.
        length: tokens of a packed sequence, its special tokens counted.
        short_probability: how often a pair is made shorter; sequences of one segment are always filled.

    Returns: list of `SegmentPair`.
    """
    check_objective(objective)
    if objective in ("mlm", "clm"):
        return list(full_sentences(corpus, numbers, tokenizer.sep_id, length))
    of_document = document_pairs if objective == "mlm+nsp" else sentence_order_pairs
    return [
        pair
        for number in numbers
        for pair in of_document(corpus, int(number), rng, length, short_probability, tokenizer.separators_between)
    ]


def document_pairs(corpus, number, rng, length=128, short_probability=0.1, between=1):
    """The sentence pairs of one document for next-sentence prediction.

    Args:
        corpus: a `TokenCorpus` (or anything with `len` and `.document(i)`; with `.sources`, as of a `MemoryCorpus`,
            no second segment comes from another part of what was one document).
        number: which document. rng: `numpy.random.Generator`.
        length: tokens of a packed sequence, its special tokens counted.
        short_probability: how often a shorter target is drawn, so that short inputs are seen too.
        between: separators between A and B, as `tokenizer.separators_between` has it.

    Yields: `SegmentPair`s of at most `length - 2 - between` tokens together.
    """
    document, room = corpus.document(number), length - 2 - between
    own = _parts_of_one(corpus, number)
    target = _target(rng, room, short_probability)
    chunk, total, index = [], 0, 0
    while index < len(document):
        chunk.append(document[index])
        total += len(chunk[-1])
        if total >= target or index == len(document) - 1:
            cut = int(rng.integers(1, len(chunk))) if len(chunk) > 1 else 1
            is_random = len(chunk) == 1 or rng.random() < 0.5
            if is_random and len(corpus) > len(own):
                wanted = target - sum(map(len, chunk[:cut]))
                b = _sentences_elsewhere(corpus, own, wanted, rng)
                index -= len(chunk) - cut  # the rest of the chunk is used again
            else:
                is_random, b = False, chunk[cut:]
            if b:
                yield SegmentPair(*_truncate(_joined(chunk[:cut]), _joined(b), room, rng), is_random)
            chunk, total, target = [], 0, _target(rng, room, short_probability)
        index += 1


def sentence_order_pairs(corpus, number, rng, length=128, short_probability=0.1, between=1):
    """The sentence pairs of one document for sentence-order prediction: consecutive, half of them swapped.

    Args and yields as `document_pairs`. A sentence left over at the end has no partner and is left out.
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


def full_sentences(corpus, numbers, separator, length=128):
    """Sequences of one segment, filled with whole sentences of one document after the other.

    A sentence of more than a sequence's room is cut into pieces of that size.

    Args:
        corpus, length: as `document_pairs`. numbers: which documents, in this order.
        separator: id of the token between the end of a document and the next one's beginning.

    Yields: `SegmentPair`s without b, of at most `length - 2` tokens.
    """
    room, end = length - 2, np.array([separator], np.int32)
    row, total = [], 0
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
    """The parts of a sequence as one; no separator before the one that closes it anyway."""
    return _joined(row[:-1] if row[-1] is end else row)


def _joined(parts):
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _target(rng, room, short_probability):
    return int(rng.integers(2, room + 1)) if rng.random() < short_probability else room


def _parts_of_one(corpus, number):
    """The documents that were cut from the same one as `number`: a range."""
    sources = getattr(corpus, "sources", None)
    if sources is None:
        return range(number, number + 1)
    return range(bisect_left(sources, sources[number]), bisect_right(sources, sources[number]))


def _sentences_elsewhere(corpus, own, wanted, rng):
    """Sentences from a random place of a random document outside the range `own`, at least `wanted` tokens if it has
    them."""
    other = int(rng.integers(0, len(corpus) - len(own)))
    document = corpus.document(other + (other >= own.start) * len(own))
    found, total = [], 0
    for index in range(int(rng.integers(0, len(document))), len(document)):
        sentence = document[index]
        found.append(sentence)
        total += len(sentence)
        if total >= wanted:
            break
    return found


def _truncate(a, b, room, rng):
    """Takes tokens off the longer one, front or back at random, until both fit."""
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


def pack_pairs(pairs, tokenizer, length):
    """Pairs as [CLS] A [SEP] B [SEP] rows (two [SEP] between in RoBERTa), single segments as [CLS] A [SEP].

    Returns: dict of int32 arrays: token_ids, segment_ids, padding_mask [B, T], nsp_labels [B]
        (0 IsNext, or in order; 1 NotNext, or swapped).
    """
    cls, sep = np.array([tokenizer.cls_id], np.int32), np.array([tokenizer.sep_id], np.int32)
    between = tokenizer.separators_between
    parts, first, whole = [], [], []
    for pair in pairs:
        parts += (cls, pair.a, sep) if pair.b is None else (cls, pair.a, *[sep] * between, pair.b, sep)
        first.append(len(pair.a) + (2 if pair.b is None else 1 + between))
        whole.append(first[-1] if pair.b is None else first[-1] + len(pair.b) + 1)
    places = np.arange(length)
    real = places < np.array(whole, int)[:, None]
    rows = np.full(real.shape, tokenizer.pad_id, np.int32)
    if parts:
        rows[real] = np.concatenate(parts)
    segments = real & (places >= np.array(first, int)[:, None])
    labels = np.array([pair.not_next for pair in pairs], np.int32)
    return {
        "token_ids": rows,
        "segment_ids": segments.astype(np.int32) * np.int32(tokenizer.second_segment),
        "padding_mask": real.astype(np.int32),
        "nsp_labels": labels,
    }
