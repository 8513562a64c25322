"""`python -m bert_tf vocab`: a WordPiece vocabulary of one's own text, trained by the `tokenizers` library.

Source: Schuster & Nakajima 2012; the library merges by frequency, as in byte-pair encoding.
"""

import collections
import sys

from bert_tf.pretrain.documents import TextError, find_files, read_documents
from bert_tf.text import Tokenizer
from bert_tf.text.vocabulary import CLS, MASK, PAD, SEP, UNK

_ALPHABET = 1000


def add_arguments(parser):
    """Adds the options of `vocab` to an `argparse` parser."""
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE",
                        help="files or globs, as those of `prepare`; .gz, .xz, .zst, .jsonl")
    parser.add_argument("--output", required=True, metavar="DIR",
                        help="folder for vocab.txt and tokenizer_config.json")
    parser.add_argument("--size", type=int, default=30522, metavar="N", help="tokens at most, all counted")
    parser.add_argument("--cased", action="store_true", help="keep capitals and accents")
    parser.add_argument("--unused", type=int, default=99, metavar="N",
                        help="[unused0] to [unusedN-1] for one's own use; 99 gives the special tokens the ids "
                             "they have in the released models")
    parser.add_argument("--min-frequency", type=int, default=2, metavar="N",
                        help="join two pieces only if they stand together so often")
    parser.add_argument("--field", default="text", metavar="NAME", help="the text's field in .jsonl files")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args):
    """Trains as the parsed options say. Returns: exit code."""
    files = find_files(args.input)

    def texts():
        return (paragraph for document in read_documents(files, args.field) for paragraph in document)

    vocabulary = train_vocabulary(texts, args.size, args.cased, args.unused, args.min_frequency,
                                  show_progress=not args.quiet and sys.stderr.isatty())
    Tokenizer(vocabulary, not args.cased).save(args.output)
    print(f"{len(vocabulary):,} tokens in {args.output}.")
    return 0


def train_vocabulary(texts, size=30522, cased=False, unused=99, min_frequency=2, show_progress=False):
    """A WordPiece vocabulary. The same texts give the same one.

    Args:
        texts: callable that gives an iterable of str; called twice.
        size: tokens at most, the special and unused ones counted.
        cased: keep capitals and accents. unused: number of [unused…] tokens after [PAD].
        min_frequency: of a pair of pieces to be joined. show_progress: the library's bars.

    Returns: tuple of str, in order of the ids.

    Raises: TextError if there is no text. ValueError if `size` has no room for the letters.
    """
    from tokenizers import Tokenizer as RustTokenizer
    from tokenizers import models, normalizers, pre_tokenizers, trainers

    if unused < 0 or min_frequency < 1:
        raise ValueError(f"--unused is {unused} and --min-frequency {min_frequency}; give 0 or more, and 1 or more.")
    rust = RustTokenizer(models.WordPiece(unk_token=UNK))
    rust.normalizer = normalizers.BertNormalizer(lowercase=not cased)
    rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    letters = _alphabet(texts(), rust.normalizer)
    first = [PAD, *(f"[unused{number}]" for number in range(unused)), UNK, CLS, SEP, MASK]
    # The library would number the inner letters in random order, and settle ties by those numbers.
    first += [f"##{letter}" for letter in letters if len(rust.pre_tokenizer.pre_tokenize_str(f"a{letter}")) == 1]
    if size < len(first) + len(letters):
        raise ValueError(f"--size is {size}, but the special tokens and letters of this text alone are "
                         f"{len(first) + len(letters)}; give more.")
    rust.train_from_iterator(texts(), trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=min_frequency, special_tokens=first, initial_alphabet=letters,
        limit_alphabet=len(letters), show_progress=show_progress))
    ids = rust.get_vocab()
    return tuple(sorted(ids, key=ids.get))


def _alphabet(texts, normalizer):
    """The most frequent characters of normalized texts, sorted."""
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
    # By the letter where the counts are alike, so that the limit does not depend on chance.
    return sorted(sorted(counts, key=lambda letter: (-counts[letter], letter))[:_ALPHABET])
