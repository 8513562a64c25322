"""A WordPiece vocabulary of one's own text, trained by the `tokenizers` library.

Source: Schuster & Nakajima 2012; the library merges by frequency, as in byte-pair encoding.
"""

import collections
import itertools

from bert_tf.pretraining.data.documents import TextError
from bert_tf.tokenizers.vocabulary import (
    CLS,
    MASK,
    PAD,
    SEP,
    UNK,
)

#: By default a character that is rarer than one in so many is left out: most cost two tokens, and of 30,000 tokens even
#: the rarest whole words are more frequent.
_RARE = 1_000_000


def train_vocabulary(
    texts, size=30522, cased=False, unused=99, min_frequency=2, show_progress=False, alphabet=None, left_out=None
):
    """A WordPiece vocabulary. The same texts give the same one.

    Args:
        texts: callable that gives an iterable of str; called twice.
        size: tokens at most, the special and unused ones counted.
        cased: keep capitals and accents. unused: number of [unused…] tokens after [PAD].
        min_frequency: of a pair of pieces to be joined, and of a character. show_progress: the library's bars.
        alphabet: characters to keep, the most frequent; None for those that stand there `min_frequency` times and are
            at least one of a million, as many as have room in half of `size`.
        left_out: a dict that gets the characters left out and how often each stands there, or None.

    Returns: tuple of str, in order of the ids.

    Raises: TextError if there is no text. ValueError if `size` has no room for the letters.
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
    counts = _counts(texts(), rust.normalizer)
    # A character that is a word of its own, as Chinese ones are, stands within none and has one token; others have two.
    tokens = {
        letter: 1 + (len(rust.pre_tokenizer.pre_tokenize_str(rust.normalizer.normalize_str(f"a{letter}"))) == 1)
        for letter in counts
    }
    # By the letter where the counts are alike, so that the limit does not depend on chance.
    ordered = sorted(counts, key=lambda letter: (-counts[letter], letter))
    least = max(min_frequency, counts.total() / _RARE)
    kept = (
        ordered[:alphabet]
        if alphabet
        else _fitting([one for one in ordered if counts[one] >= least], tokens, size // 2)
    )
    letters = sorted(kept)
    if left_out is not None:
        left_out.update({letter: counts[letter] for letter in ordered[len(kept) :]})
    first = [PAD, *(f"[unused{number}]" for number in range(unused)), UNK, CLS, SEP, MASK]
    # The library would number the inner letters in random order, and settle ties by those numbers.
    first += [f"##{letter}" for letter in letters if tokens[letter] == 2]
    if size < len(first) + len(letters):
        raise ValueError(
            f"--size is {size}, but the special tokens and letters of this text alone are "
            f"{len(first) + len(letters)}; give more{', or a lower --alphabet' * bool(alphabet)}."
        )
    rust.train_from_iterator(
        texts(),
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
    return tuple(sorted(ids, key=ids.get))


def _fitting(letters, tokens, room):
    """As many of the first letters as there is room for; `tokens`: how many each takes."""
    taken = itertools.accumulate(tokens[letter] for letter in letters)
    return letters[: sum(total <= room for total in taken)]


def _counts(texts, normalizer):
    """How often each character stands in normalized texts."""
    raw = collections.Counter()
    for text in texts:
        raw.update(text)
    if not raw:
        raise TextError("There is no text to make a vocabulary of in these files.")
    counts = collections.Counter()
    for character, count in raw.items():
        for letter in normalizer.normalize_str(character):
            if not letter.isspace():
                counts[letter] += count
    return counts
