"""`python -m bert_tf vocab`: a WordPiece vocabulary of one's own text, trained by the `tokenizers` library.

Source: Schuster & Nakajima 2012; the library merges by frequency, as in byte-pair encoding.
"""

import collections
import itertools
import sys

from bert_tf.pretraining.data.documents import TextError, find_files, read_documents
from bert_tf.tokenizers import Tokenizer
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


def add_arguments(parser):
    """Adds the options of `vocab` to an `argparse` parser."""
    parser.add_argument(
        "--input",
        nargs="+",
        required=True,
        metavar="FILE",
        help="files or globs, as those of `prepare`; .gz, .xz, .zst, .jsonl",
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="folder for vocab.txt and tokenizer_config.json")
    parser.add_argument("--size", type=int, default=30522, metavar="N", help="tokens at most, all counted")
    parser.add_argument("--cased", action="store_true", help="keep capitals and accents")
    parser.add_argument(
        "--unused",
        type=int,
        default=99,
        metavar="N",
        help="[unused0] to [unusedN-1] for one's own use; 99 gives the special tokens the ids "
        "they have in the released models",
    )
    parser.add_argument(
        "--min-frequency",
        type=int,
        default=2,
        metavar="N",
        help="join two pieces only if they stand together so often, and keep a character "
        "only if it stands there so often",
    )
    parser.add_argument(
        "--alphabet",
        type=int,
        metavar="N",
        help="characters to keep, the most frequent (default: those that stand there "
        "--min-frequency times and are at least one of a million, in up to half of --size)",
    )
    parser.add_argument("--field", default="text", metavar="NAME", help="the text's field in .jsonl files")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args):
    """Trains as the parsed options say. Returns: exit code."""
    files = find_files(args.input)

    def texts():
        return (paragraph for document in read_documents(files, args.field) for paragraph in document)

    left_out = collections.Counter()
    vocabulary = train_vocabulary(
        texts,
        args.size,
        args.cased,
        args.unused,
        args.min_frequency,
        show_progress=not args.quiet and sys.stderr.isatty(),
        alphabet=args.alphabet,
        left_out=left_out,
    )
    Tokenizer(vocabulary, not args.cased).save(args.output)
    print(f"{len(vocabulary):,} tokens in {args.output}.")
    if left_out:
        many, often = len(left_out) > 1, left_out.most_common(1)[0][0]
        print(
            f"{len(left_out):,} {'characters are' if many else 'character is'} left out, {left_out.total():,} times in the "
            f"text{', most often' if many else ':'} {often!r}. Words with {'them' if many else 'it'} become {UNK}; "
            "--alphabet N keeps more."
        )
    return 0


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
