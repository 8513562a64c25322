"""Masking: chooses the positions that a model has to predict, in NumPy (Devlin et al. 2019, section 3.1).

The positions are single tokens, whole words, or n-grams of words (Joshi et al. 2020; Lan et al. 2020, section 4.1); or,
for a causal model, all tokens.

Shapes: B batch, T tokens, P predicted positions of a sequence, V vocabulary.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.tokenizers.base import bert_words

if TYPE_CHECKING:
    from bert_tf.tokenizers.base import BaseTokenizer


@dataclass(frozen=True)
class MaskSettings:
    """The settings of masking.

    Attributes:
        rate: float. The share of the tokens without padding to predict (0.15 in the paper).
        mask_share: float. The share of the chosen tokens that become [MASK] (0.8 in the paper).
        random_share: float. The share of the chosen tokens that become a random token (0.1 in the paper); the rest
            stays unchanged.
        whole_words: bool. Whether all pieces of a word are chosen together.
        ngram: int. The longest n-gram of whole words that is chosen together; an n-gram of n words has a probability
            proportional to 1 / n (3 in ALBERT); 1 for no n-grams.
        most: int. The largest number of predicted positions of a sequence; None for no limit.

    Raises: ValueError if a share is not between 0 and 1, or a number is below 1.

    Example:
        settings = MaskSettings(rate=0.15, whole_words=True)
        positions = settings.max_predictions(128)
    """

    rate: float = 0.15
    mask_share: float = 0.8
    random_share: float = 0.1
    whole_words: bool = False
    ngram: int = 1
    most: int | None = None

    def __post_init__(self):
        if not 0 < self.rate < 1:
            raise ValueError(f"The mask rate is {self.rate}; it must lie between 0 and 1.")
        if min(self.mask_share, self.random_share) < 0 or self.mask_share + self.random_share > 1 + 1e-9:
            raise ValueError(
                f"The shares of [MASK] and random tokens are {self.mask_share} and "
                f"{self.random_share}; together they must lie between 0 and 1."
            )
        if self.ngram < 1:
            raise ValueError(f"Masked n-grams of up to {self.ngram} words are not possible; give 1 or more.")
        if self.most is not None and self.most < 1:
            raise ValueError(f"A cap of {self.most} predictions a sequence leaves nothing to learn; give 1 or more.")

    def max_predictions(self, length: int) -> int:
        """P, the number of positions to reserve for a sequence of `length` tokens."""
        positions = max(1, int(round(length * self.rate)))
        return positions if self.most is None else min(positions, self.most)


def max_targets(objective: str, length: int, settings: MaskSettings = MaskSettings()) -> int:
    """P, the number of positions that `choose_targets` reserves for a sequence of `length` tokens."""
    if objective != "clm":
        return settings.max_predictions(length)
    # All tokens except [CLS] and the last [SEP].
    return max(1, length - 2 if settings.most is None else min(settings.most, length - 2))


def choose_targets(
    objective: str,
    batch: dict[str, Any],
    tokenizer: BaseTokenizer,
    rng: np.random.Generator,
    settings: MaskSettings = MaskSettings(),
) -> dict[str, Any]:
    """Chooses the positions that an objective predicts: `all_tokens` for "clm", else `mask_batch`."""
    if objective == "clm":
        return all_tokens(batch, tokenizer, rng, settings)
    return mask_batch(batch, tokenizer, rng, settings)


def all_tokens(
    batch: dict[str, Any], tokenizer: BaseTokenizer, rng: np.random.Generator, settings: MaskSettings = MaskSettings()
) -> dict[str, Any]:
    """Chooses all tokens and masks none, for a model that does not see the token it predicts.

    Args:
        batch: as `mask_batch`.
        tokenizer: as `mask_batch`.
        rng: as `mask_batch`.
        settings: `MaskSettings`. Its `most` bounds the predicted positions of a sequence, which are chosen at random.

    Returns: as `mask_batch`, with P = `max_targets`. Special tokens and padding have weight 0.
    """
    ids = batch["token_ids"]
    count = max_targets("clm", ids.shape[1], settings)
    candidates = ordinary_tokens(tokenizer)[ids] & (batch["padding_mask"] == 1)
    keys = np.where(candidates, rng.random(ids.shape), 1.0)
    positions = np.sort(np.argsort(keys, axis=1, kind="stable")[:, :count], axis=1).astype(np.int32)
    weights = np.take_along_axis(candidates, positions, 1).astype(np.float32)
    return {
        **batch,
        "mask_positions": positions,
        "mask_labels": np.take_along_axis(ids, positions, 1),
        "mask_weights": weights,
    }


def mask_batch(
    batch: dict[str, Any], tokenizer: BaseTokenizer, rng: np.random.Generator, settings: MaskSettings = MaskSettings()
) -> dict[str, Any]:
    """Chooses the positions to predict and replaces their tokens.

    Args:
        batch: dict of arrays from `packing.pack_pairs`; it is not changed.
        tokenizer: a `Tokenizer`, for the special ids and the vocabulary.
        rng: `numpy.random.Generator`.
        settings: `MaskSettings`.

    Returns: the batch with masked token_ids, and mask_positions int32 [B, P], mask_labels int32 [B, P],
        mask_weights float32 [B, P] (1 at chosen positions, 0 at padded ones).
    """
    ids = batch["token_ids"]
    size, length = ids.shape
    predictions = settings.max_predictions(length)
    wanted = np.clip(np.rint(batch["padding_mask"].sum(1) * settings.rate), 1, predictions).astype(int)
    candidates = ordinary_tokens(tokenizer)[ids] & (batch["padding_mask"] == 1)
    chosen = _choose(ids, candidates, wanted, tokenizer, rng, settings)

    masked = ids.copy()
    rows, columns = np.nonzero(chosen)
    dice = rng.random(ids.shape)[rows, columns]
    to_mask = dice < settings.mask_share
    masked[rows[to_mask], columns[to_mask]] = tokenizer.mask_id
    swap = ~to_mask & (dice < settings.mask_share + settings.random_share)
    masked[rows[swap], columns[swap]] = rng.choice(replacement_ids(tokenizer), int(swap.sum()))

    positions, labels = np.zeros((size, predictions), np.int32), np.zeros((size, predictions), np.int32)
    weights = np.zeros((size, predictions), np.float32)
    counts = chosen.sum(1)
    # `rows` is sorted, so the slot of each chosen position is its number within its row.
    slots = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    positions[rows, slots], labels[rows, slots], weights[rows, slots] = columns, ids[rows, columns], 1
    return {**batch, "token_ids": masked, "mask_positions": positions, "mask_labels": labels, "mask_weights": weights}


def _choose(ids, candidates, wanted, tokenizer, rng, settings):
    """Bool [B, T]: `wanted[b]` chosen candidates in each row (with whole words or n-grams: as many as fit)."""
    keys = rng.random(ids.shape)
    grouped = settings.whole_words or settings.ngram > 1
    if grouped:
        # All pieces of a word (all words of an n-gram) share a key, so they are chosen together.
        starts = _word_starts(ids, candidates, tokenizer)
        if settings.ngram > 1:
            starts = _ngram_starts(starts, candidates, rng, settings.ngram)
        groups = np.cumsum(starts, axis=1) - 1
        keys = np.take_along_axis(keys, groups, 1)
    keys = np.where(candidates, keys, np.inf)
    order = np.argsort(keys, axis=1, kind="stable")
    if grouped:
        return _take_groups(order, groups, candidates, wanted)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(ids.shape[1])[None, :], 1)
    return candidates & (ranks < wanted[:, None])


def _word_starts(ids, candidates, tokenizer):
    """Bool [B, T]: where a word starts.

    A punctuation mark or CJK ideograph is a word, as in BERT, even if the vocabulary marks it, or the word after it, as
    a continuation.
    """
    spellings = tokenizer.spellings
    apart = separate_pieces(spellings, getattr(tokenizer, "tokenize_chinese_chars", True))[ids]
    after_one = np.zeros_like(apart)
    after_one[:, 1:] = apart[:, :-1]
    return ~(candidates & continuation_pieces(spellings)[ids] & ~apart & ~after_one)


def _ngram_starts(word_starts, candidates, rng, longest):
    """Bool [B, T]: where an n-gram of words starts; an n-gram of n words has a probability proportional to 1 / n."""
    sizes = np.arange(1, longest + 1)
    shares = (1 / sizes) / (1 / sizes).sum()
    lengths = rng.choice(sizes, word_starts.shape, p=shares)
    starts, left = np.zeros_like(word_starts), np.zeros(len(word_starts), int)
    for position in range(word_starts.shape[1]):
        # A special token is not part of an n-gram, so it ends the n-gram before it.
        special = ~candidates[:, position]
        starts[:, position] = special | (word_starts[:, position] & (left == 0))
        left = np.where(starts[:, position], lengths[:, position], left) - word_starts[:, position]
        left[special] = 0
    return starts


def _take_groups(order, groups, candidates, wanted):
    """Bool [B, T]: takes whole groups in the order of their keys; a group that does not fit any more is skipped."""
    size, length = groups.shape
    flat = groups + np.arange(size)[:, None] * length
    members = np.bincount(flat.ravel(), weights=candidates.ravel(), minlength=size * length).astype(int)
    chosen = np.zeros((size, length), bool)
    rows, left, last = np.arange(size), wanted.copy(), np.full(size, -1)
    taken = np.zeros(size, bool)
    for position in order.T:
        # The pieces of a group share a key, so they are consecutive here.
        group = flat[rows, position]
        is_new = (group != last) & candidates[rows, position]
        taken = np.where(is_new, members[group] <= left, taken & (group == last))
        left -= np.where(is_new & taken, members[group], 0)
        chosen[rows, position] = taken & candidates[rows, position]
        last = group
        if not left.any() and not (taken & (members[group] > 1)).any():
            break
    return chosen


@lru_cache(maxsize=8)
def continuation_pieces(spellings: tuple[str, ...]) -> np.ndarray:
    """Bool [V]: which tokens continue a word. `spellings`: tuple of str, the tokens written as in BERT (`##…`)."""
    return np.array([token.startswith("##") for token in spellings])


@lru_cache(maxsize=8)
def separate_pieces(spellings: tuple[str, ...], ideographs: bool = True) -> np.ndarray:
    """Bool [V]: which tokens consist only of characters that are words of their own in BERT.

    Args:
        spellings: tuple of str. As in `continuation_pieces`.
        ideographs: bool. Whether CJK ideographs are among these characters; punctuation marks always are.
    """
    texts = [token.removeprefix("##") for token in spellings]
    separate = {
        character
        for character in set().union(*texts)
        if len(bert_words(f"x{character}x")) == 3 and (ideographs or unicodedata.category(character)[0] in "PS")
    }
    return np.array([separate.issuperset(text) for text in texts])


@lru_cache(maxsize=8)
def _is_ordinary(vocab_size, special_ids):
    table = np.ones(vocab_size, bool)
    table[list(special_ids)] = False
    return table


def ordinary_tokens(tokenizer: BaseTokenizer) -> np.ndarray:
    """Bool [V]: which tokens are not special."""
    return _is_ordinary(tokenizer.vocab_size, tokenizer.special_ids)


def replacement_ids(tokenizer: BaseTokenizer) -> np.ndarray:
    """The ids of random replacements, int32 [ids]: all except special and unused tokens."""
    return _replacements(tokenizer.vocab, tokenizer.special_ids)


@lru_cache(maxsize=8)
def _replacements(vocab, special_ids):
    return np.array(
        [index for index, token in enumerate(vocab) if index not in special_ids and not token.startswith("[unused")],
        np.int32,
    )
