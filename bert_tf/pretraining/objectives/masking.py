"""Which positions a model has to predict, in NumPy over token ids (Devlin et al. 2019, section 3.1).

Single tokens, whole words, or runs of words (Joshi et al. 2020; Lan et al. 2020, section 4.1); or, for a model that
reads one way, all of them.

B batch, T tokens, P predictions a sequence, V vocabulary.
"""

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import numpy as np


@dataclass(frozen=True)
class MaskSettings:
    """How positions are chosen and replaced.

    Attributes:
        rate: share of the real tokens to predict (0.15 in the paper).
        mask_share, random_share: of the chosen, how many become [MASK] and how many a random token
            (0.8 and 0.1 in the paper); the rest stays.
        whole_words: choose whole words, all their pieces together.
        ngram: choose runs of 1 to so many whole words, one of n words with a chance in proportion to 1 / n
            (3 in ALBERT); 1 for none.
        most: never predict more than so many positions of a sequence; None for no such cap.
    Raises: ValueError on a share that is none, or a number below 1.
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
            raise ValueError(f"Masked runs of up to {self.ngram} words cannot be; give 1 or more.")
        if self.most is not None and self.most < 1:
            raise ValueError(f"A cap of {self.most} predictions a sequence leaves nothing to learn; give 1 or more.")

    def max_predictions(self, length):
        """P: positions to reserve for a sequence of `length` tokens."""
        places = max(1, int(round(length * self.rate)))
        return places if self.most is None else min(places, self.most)


def choose_targets(objective, batch, tokenizer, rng, settings=MaskSettings()):
    """What an objective has to predict of a batch: `all_tokens` for "clm", else `mask_batch`."""
    if objective == "clm":
        return all_tokens(batch, tokenizer, rng, settings.most)
    return mask_batch(batch, tokenizer, rng, settings)


def all_tokens(batch, tokenizer, rng, most=None):
    """Every token to be predicted and none masked, for a model that sees no token at its own place.

    Args: batch, tokenizer, rng: as `mask_batch`. most: predict at most so many of a sequence, drawn at random; None
        for all of them.

    Returns: as `mask_batch`, P = T - 2 or `most`. Special tokens and padding have weight 0.
    """
    ids = batch["token_ids"]
    count = max(1, ids.shape[1] - 2 if most is None else min(most, ids.shape[1] - 2))
    wanted = _ordinary(tokenizer)[ids] & (batch["padding_mask"] == 1)
    keys = np.where(wanted, rng.random(ids.shape), 1.0)
    places = np.sort(np.argsort(keys, axis=1, kind="stable")[:, :count], axis=1).astype(np.int32)
    weights = np.take_along_axis(wanted, places, 1).astype(np.float32)
    return {
        **batch,
        "mask_positions": places,
        "mask_labels": np.take_along_axis(ids, places, 1),
        "mask_weights": weights,
    }


def mask_batch(batch, tokenizer, rng, settings=MaskSettings()):
    """Chooses and replaces the positions to predict.

    Args:
        batch: of `instances.pack_pairs`; not changed. tokenizer: for the special ids and vocabulary.
        rng: `numpy.random.Generator`.

    Returns: the batch with token_ids masked, and mask_positions int32 [B, P], mask_labels int32 [B, P],
        mask_weights float32 [B, P] (1 where a position is real, 0 where it fills up).
    """
    ids = batch["token_ids"]
    size, length = ids.shape
    places = settings.max_predictions(length)
    wanted = np.clip(np.rint(batch["padding_mask"].sum(1) * settings.rate), 1, places).astype(int)
    candidates = _ordinary(tokenizer)[ids] & (batch["padding_mask"] == 1)
    chosen = _choose(ids, candidates, wanted, tokenizer, rng, settings)

    masked = ids.copy()
    rows, columns = np.nonzero(chosen)
    dice = rng.random(ids.shape)[rows, columns]
    to_mask = dice < settings.mask_share
    masked[rows[to_mask], columns[to_mask]] = tokenizer.mask_id
    swap = ~to_mask & (dice < settings.mask_share + settings.random_share)
    masked[rows[swap], columns[swap]] = rng.choice(
        _replacements(tokenizer.vocab, tokenizer.special_ids), int(swap.sum())
    )

    positions, labels = np.zeros((size, places), np.int32), np.zeros((size, places), np.int32)
    weights = np.zeros((size, places), np.float32)
    counts = chosen.sum(1)
    # The chosen come row by row, so the place of each is its number within its row.
    slots = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    positions[rows, slots], labels[rows, slots], weights[rows, slots] = columns, ids[rows, columns], 1
    return {**batch, "token_ids": masked, "mask_positions": positions, "mask_labels": labels, "mask_weights": weights}


def _choose(ids, candidates, wanted, tokenizer, rng, settings):
    """Bool [B, T]: `wanted[b]` positions a row out of the candidates (whole words or runs: as many as fit)."""
    keys = rng.random(ids.shape)
    together = settings.whole_words or settings.ngram > 1
    if together:
        # All pieces of a word (all words of a run) share its first piece's key: chosen or left together.
        starts = _word_starts(ids, candidates, tokenizer.spellings)
        if settings.ngram > 1:
            starts = _run_starts(starts, candidates, rng, settings.ngram)
        groups = np.cumsum(starts, axis=1) - 1
        keys = np.take_along_axis(keys, groups, 1)
    keys = np.where(candidates, keys, np.inf)
    order = np.argsort(keys, axis=1, kind="stable")
    if together:
        return _take_groups(order, groups, candidates, wanted)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(ids.shape[1])[None, :], 1)
    return candidates & (ranks < wanted[:, None])


def _word_starts(ids, candidates, spellings):
    """Bool [B, T]: where a word starts. A mark of punctuation is a word of its own, as BERT has it, also where a
    vocabulary writes it, and the word after it, without a space before them."""
    marks = punctuation_pieces(spellings)[ids]
    after_mark = np.zeros_like(marks)
    after_mark[:, 1:] = marks[:, :-1]
    return ~(candidates & continuation_pieces(spellings)[ids] & ~marks & ~after_mark)


def _run_starts(word_starts, candidates, rng, longest):
    """Bool [B, T]: where a run of words starts. A row is cut into runs, one of n words as likely as 1 / n."""
    sizes = np.arange(1, longest + 1)
    shares = (1 / sizes) / (1 / sizes).sum()
    lengths = rng.choice(sizes, word_starts.shape, p=shares)
    starts, left = np.zeros_like(word_starts), np.zeros(len(word_starts), int)
    for place in range(word_starts.shape[1]):
        # A special token stands alone, and so ends the run before it.
        alone = ~candidates[:, place]
        starts[:, place] = alone | (word_starts[:, place] & (left == 0))
        left = np.where(starts[:, place], lengths[:, place], left) - word_starts[:, place]
        left[alone] = 0
    return starts


def _take_groups(order, groups, candidates, wanted):
    """Bool [B, T]: groups in the order of their keys, each whole; one that no longer fits is passed over."""
    size, length = groups.shape
    flat = groups + np.arange(size)[:, None] * length
    members = np.bincount(flat.ravel(), weights=candidates.ravel(), minlength=size * length).astype(int)
    chosen = np.zeros((size, length), bool)
    rows, left, last = np.arange(size), wanted.copy(), np.full(size, -1)
    taken = np.zeros(size, bool)
    for place in order.T:
        # The pieces of a group share a key and so follow one another here.
        group = flat[rows, place]
        is_new = (group != last) & candidates[rows, place]
        taken = np.where(is_new, members[group] <= left, taken & (group == last))
        left -= np.where(is_new & taken, members[group], 0)
        chosen[rows, place] = taken & candidates[rows, place]
        last = group
        if not left.any() and not (taken & (members[group] > 1)).any():
            break
    return chosen


@lru_cache(maxsize=8)
def continuation_pieces(spellings):
    """Bool [V]: which tokens go on what stands before them; `spellings`: a tokenizer's, in BERT's way (`##…`)."""
    return np.array([token.startswith("##") for token in spellings])


@lru_cache(maxsize=8)
def punctuation_pieces(spellings):
    """Bool [V]: which tokens are what BERT's splitter takes for punctuation, and nothing else."""

    def is_mark(sign):
        kind = unicodedata.category(sign)[0]
        return kind == "P" or kind == "S" and sign.isascii()

    return np.array([all(map(is_mark, token.removeprefix("##"))) for token in spellings])


@lru_cache(maxsize=8)
def _is_ordinary(vocab_size, special_ids):
    table = np.ones(vocab_size, bool)
    table[list(special_ids)] = False
    return table


def _ordinary(tokenizer):
    """Bool [V]: which tokens are not special."""
    return _is_ordinary(tokenizer.vocab_size, tokenizer.special_ids)


@lru_cache(maxsize=8)
def _replacements(vocab, special_ids):
    """Ids a random replacement is drawn from: everything but the special and unused tokens."""
    return np.array(
        [index for index, token in enumerate(vocab) if index not in special_ids and not token.startswith("[unused")],
        np.int32,
    )
