"""Trains a WordPiece vocabulary on text files, with the `tokenizers` library.

Source: Schuster & Nakajima 2012; the library merges by frequency, as in byte-pair encoding.
"""

from __future__ import annotations

import collections
import itertools
import re
from typing import TYPE_CHECKING

from bert_tf.pretraining.data.documents import TextError
from bert_tf.tokenizers.vocabulary import (
    CLS,
    MASK,
    PAD,
    SEP,
    UNK,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


#: A character that is rarer than one in this number is left out by default: most characters take two tokens, and in a
#: vocabulary of 30,000 tokens even the rarest whole words are more frequent.
_RARE = 1_000_000
# BERT's tokenizer replaces words of over 100 characters by [UNK], so nothing is learnt from them, and the library would
# need hours for a word of a million letters. Chinese characters (CJK ideographs) are words of their own.
_LONG_WORD = re.compile(r"[^\W\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]{101,}")
# A part of a text up to a space. The library reads 256 texts ahead and needs a multiple of their size.
_PART = re.compile(r".{1,10000}(?:\s|$)|.{1,10000}", re.DOTALL)


def train_vocabulary(
    texts: Callable[[], Iterable[str]],
    size: int = 30522,
    cased: bool = False,
    unused: int = 99,
    min_frequency: int = 2,
    show_progress: bool = False,
    alphabet: int | None = None,
    left_out: dict[str, int] | None = None,
) -> tuple[str, ...]:
    """Trains a WordPiece vocabulary. Equal texts give equal vocabularies.

    Args:
        texts: callable that returns an iterable of str; it is called twice.
        size: int. The largest number of tokens, including special and unused ones.
        cased: bool. Whether to keep capitals and accents.
        unused: int. The number of [unused…] tokens after [PAD].
        min_frequency: int. The least frequency of a pair of pieces to merge, and of a character.
        show_progress: bool. Whether the library shows its progress bars.
        alphabet: int. The number of characters to keep, the most frequent ones. None keeps those that occur
            `min_frequency` times and are at least one in a million, at most as many as fit into half of `size`.
        left_out: dict that is filled with the characters left out and their frequencies, or None.

    Returns: tuple of str, in order of the ids.

    Raises:
        TextError: there is no text.
        ValueError: an argument is out of range, or `size` is too small for the characters.
    """
    from tokenizers import Tokenizer as RustTokenizer
    from tokenizers import models, normalizers, pre_tokenizers, trainers

    if alphabet is not None and alphabet < 1:
        raise ValueError(f"--alphabet is {alphabet}; at least 1 character must be kept.")
    if unused < 0 or min_frequency < 1:
        raise ValueError(f"--unused is {unused} and --min-frequency {min_frequency}; give 0 or more, and 1 or more.")
    rust = RustTokenizer(models.WordPiece(unk_token=UNK))
    rust.normalizer = normalizers.BertNormalizer(lowercase=not cased)
    rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    counts = _counts(_readable(texts()), rust.normalizer)
    # A character that is always a whole word, as in Chinese, takes one token; another also takes one inside words.
    tokens = {
        letter: 1 + (len(rust.pre_tokenizer.pre_tokenize_str(rust.normalizer.normalize_str(f"a{letter}"))) == 1)
        for letter in counts
    }
    # Letters of equal counts are sorted by the letter, so that the limit is deterministic.
    ordered = sorted(counts, key=lambda letter: (-counts[letter], letter))
    least = max(min_frequency, counts.total() / _RARE)
    frequent = [letter for letter in ordered if counts[letter] >= least]
    kept = ordered[:alphabet] if alphabet else _fitting(frequent, tokens, size // 2)
    letters = sorted(kept)
    if left_out is not None:
        left_out.update({letter: counts[letter] for letter in ordered[len(kept) :]})
    first = [PAD, *(f"[unused{number}]" for number in range(unused)), UNK, CLS, SEP, MASK]
    # Given in order, because the library would number the inner letters at random and break ties by these numbers.
    first += [f"##{letter}" for letter in letters if tokens[letter] == 2]
    if size < len(first) + len(letters):
        needed, before = len(first) + len(letters), size
        while not alphabet and needed > before:  # more letters fit into a larger size
            before = needed
            needed = unused + 5 + sum(tokens[letter] for letter in _fitting(frequent, tokens, before // 2))
        raise ValueError(
            f"--size is {size}, but the special tokens and letters of this text alone are {needed}; "
            f"give at least that{', or a lower --alphabet' * bool(alphabet)}."
        )
    rust.train_from_iterator(
        _readable(texts()),
        trainers.WordPieceTrainer(
            vocab_size=size,
            min_frequency=min_frequency,
            special_tokens=first,
            initial_alphabet=letters,
            limit_alphabet=len(letters),
            show_progress=show_progress,
        ),
    )
    ids = rust.get_vocab()
    return tuple(sorted(ids, key=lambda token: ids[token]))


def _fitting(letters, tokens, room):
    """The first letters that fit into `room` tokens; `tokens`: dict letter -> tokens that it takes."""
    totals = itertools.accumulate(tokens[letter] for letter in letters)
    return letters[: sum(total <= room for total in totals)]


def _readable(texts):
    """Yields the texts without words that are too long, and long texts in parts."""
    for text in texts:
        if max(map(len, text.split()), default=0) > 100:
            text = _LONG_WORD.sub(" ", text)
        yield from _PART.findall(text) if len(text) > 10_000 else (text,)


def _counts(texts, normalizer):
    """The frequency of each character in normalized texts."""
    raw: collections.Counter[str] = collections.Counter()
    for text in texts:
        raw.update(text)
    if not raw:
        raise TextError("There is no text to make a vocabulary of in these files.")
    counts: collections.Counter[str] = collections.Counter()
    for character, count in raw.items():
        for letter in normalizer.normalize_str(character):
            if not letter.isspace():
                counts[letter] += count
    return counts
