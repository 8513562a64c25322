"""Sentence pairs and masks, in NumPy over token ids (Devlin et al. 2019, sections 3.1 and A.1).

The way of google-research/bert's `create_pretraining_data.py`: whole sentences are collected to a target
length, cut at random into A and B, and half of the time B is replaced by sentences of another document;
the sentences that were not used are put back.

B batch, T tokens, P predictions a sequence.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np


@dataclass(frozen=True)
class Pair:
    """Two segments and whether B really followed A.

    Attributes: a, b: int32 [tokens], no special tokens; is_random: True is NotNext (label 1).
    """

    a: np.ndarray
    b: np.ndarray
    is_random: bool


@dataclass(frozen=True)
class MaskSettings:
    """How positions are chosen and replaced.

    Attributes:
        rate: share of the real tokens to predict (0.15 in the paper).
        mask_share, random_share: of the chosen, how many become [MASK] and how many a random token
            (0.8 and 0.1 in the paper); the rest stays.
        whole_words: choose whole words, all their pieces together.
    """

    rate: float = 0.15
    mask_share: float = 0.8
    random_share: float = 0.1
    whole_words: bool = False

    def max_predictions(self, length):
        """P: positions to reserve for a sequence of `length` tokens."""
        return max(1, int(round(length * self.rate)))


def document_pairs(corpus, number, rng, length=128, short_probability=0.1):
    """The sentence pairs of one document.

    Args:
        corpus: a `TokenCorpus` (or anything with `len` and `.document(i)`).
        number: which document. rng: `numpy.random.Generator`.
        length: tokens of a packed sequence, its three special tokens counted.
        short_probability: how often a shorter target is drawn, so that short inputs are seen too.

    Yields: `Pair`s of at most `length - 3` tokens together.
    """
    document, room = corpus.document(number), length - 3
    target = _target(rng, room, short_probability)
    chunk, index = [], 0
    while index < len(document):
        chunk.append(document[index])
        if index == len(document) - 1 or sum(map(len, chunk)) >= target:
            cut = int(rng.integers(1, len(chunk))) if len(chunk) > 1 else 1
            is_random = len(chunk) == 1 or rng.random() < 0.5
            if is_random and len(corpus) > 1:
                wanted = target - sum(map(len, chunk[:cut]))
                b = _sentences_elsewhere(corpus, number, wanted, rng)
                index -= len(chunk) - cut          # the rest of the chunk is used again
            else:
                is_random, b = False, chunk[cut:]
            if b:
                a, b = _truncate(np.concatenate(chunk[:cut]), np.concatenate(b), room, rng)
                yield Pair(a, b, is_random)
            chunk, target = [], _target(rng, room, short_probability)
        index += 1


def _target(rng, room, short_probability):
    return int(rng.integers(2, room + 1)) if rng.random() < short_probability else room


def _sentences_elsewhere(corpus, number, wanted, rng):
    """Sentences from a random place of a random other document, at least `wanted` tokens if it has them."""
    other = int(rng.integers(0, len(corpus) - 1))
    document = corpus.document(other + (other >= number))
    found, total = [], 0
    for sentence in document[int(rng.integers(0, len(document))):]:
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
    return tokens[front: len(tokens) - (count - front)]


def pack_pairs(pairs, tokenizer, length):
    """Pairs as [CLS] A [SEP] B [SEP] rows.

    Returns: dict of int32 arrays: token_ids, segment_ids, padding_mask [B, T], nsp_labels [B]
        (0 IsNext, 1 NotNext).
    """
    rows = np.full((len(pairs), length), tokenizer.pad_id, np.int32)
    segments, padding = np.zeros_like(rows), np.zeros_like(rows)
    cls, sep = [tokenizer.cls_id], [tokenizer.sep_id]
    for row, pair in enumerate(pairs):
        ids = np.concatenate((cls, pair.a, sep, pair.b, sep))
        rows[row, : len(ids)] = ids
        segments[row, len(pair.a) + 2: len(ids)] = 1
        padding[row, : len(ids)] = 1
    labels = np.array([pair.is_random for pair in pairs], np.int32)
    return {"token_ids": rows, "segment_ids": segments, "padding_mask": padding, "nsp_labels": labels}


def mask_batch(batch, tokenizer, rng, settings=MaskSettings()):
    """Chooses and replaces the positions to predict.

    Args:
        batch: of `pack_pairs`; not changed. tokenizer: for the special ids and vocabulary.
        rng: `numpy.random.Generator`.

    Returns: the batch with token_ids masked, and mask_positions int32 [B, P], mask_labels int32 [B, P],
        mask_weights float32 [B, P] (1 where a position is real, 0 where it fills up).
    """
    ids = batch["token_ids"]
    size, length = ids.shape
    places = settings.max_predictions(length)
    wanted = np.clip(np.rint(batch["padding_mask"].sum(1) * settings.rate), 1, places).astype(int)
    candidates = ~np.isin(ids, list(tokenizer.special_ids)) & (batch["padding_mask"] == 1)
    chosen = _choose(ids, candidates, wanted, tokenizer, rng, settings.whole_words)

    masked = ids.copy()
    dice = rng.random(ids.shape)
    random_from = settings.mask_share
    masked[chosen & (dice < random_from)] = tokenizer.mask_id
    swap = chosen & (dice >= random_from) & (dice < random_from + settings.random_share)
    masked[swap] = rng.choice(_ordinary_ids(tokenizer.vocab, tokenizer.special_ids), int(swap.sum()))

    order = np.argsort(~chosen, axis=1, kind="stable")[:, :places]
    weights = np.take_along_axis(chosen, order, 1)
    positions = np.where(weights, order, 0).astype(np.int32)
    labels = np.where(weights, np.take_along_axis(ids, order, 1), 0).astype(np.int32)
    return {**batch, "token_ids": masked, "mask_positions": positions, "mask_labels": labels,
            "mask_weights": weights.astype(np.float32)}


def _choose(ids, candidates, wanted, tokenizer, rng, whole_words):
    """bool [B, T]: `wanted[b]` positions a row out of the candidates (whole words: as many as fit)."""
    keys = rng.random(ids.shape)
    if whole_words:
        # All pieces of a word share its first piece's key, so they are chosen or left together.
        starts = ~(candidates & continuation_pieces(tokenizer.vocab)[ids])
        words = np.cumsum(starts, axis=1) - 1
        keys = np.take_along_axis(keys, words, 1)
    keys = np.where(candidates, keys, np.inf)
    order = np.argsort(keys, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(ids.shape[1])[None, :], 1)
    chosen = candidates & (ranks < wanted[:, None])
    if whole_words:
        chosen &= ~_split_word(chosen, words, candidates)
    return chosen


def _split_word(chosen, words, candidates):
    """Positions of words of which only some pieces were chosen (the budget ended inside)."""
    rows = np.arange(len(words))[:, None] * words.shape[1]
    flat = (words + rows).ravel()
    left_out = np.bincount(flat, weights=(candidates & ~chosen).ravel(), minlength=words.size)
    return (left_out[flat] > 0).reshape(words.shape)


@lru_cache(maxsize=8)
def continuation_pieces(vocab):
    """bool [V]: which tokens of a vocabulary (a tuple) go on a word (`##…`)."""
    return np.array([token.startswith("##") for token in vocab])


@lru_cache(maxsize=8)
def _ordinary_ids(vocab, special_ids):
    """Ids a random replacement is drawn from: everything but the special and unused tokens."""
    return np.array([index for index, token in enumerate(vocab)
                     if index not in special_ids and not token.startswith("[unused")], np.int32)
