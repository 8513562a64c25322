"""`python -m bert_tf vocab`: trains a WordPiece vocabulary on text files."""

import argparse
import collections
import sys

from bert_tf.files import atomic_folder, refuse_full_folder
from bert_tf.folder_lock import refuse_file
from bert_tf.pretraining.data.documents import LONGEST_LINE, find_files, read_parts
from bert_tf.pretraining.data.train_vocabulary import train_vocabulary
from bert_tf.tokenizers import Tokenizer
from bert_tf.tokenizers.vocabulary import UNK


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `vocab` to an `argparse` parser."""
    parser.add_argument(
        "--input",
        nargs="+",
        required=True,
        metavar="FILE",
        help="files or globs, as for `prepare`; .gz, .xz, .zst, .jsonl",
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="folder for vocab.txt and tokenizer_config.json")
    parser.add_argument(
        "--size",
        type=int,
        default=30522,
        metavar="N",
        help="largest number of tokens, including special and unused tokens (default 30522)",
    )
    parser.add_argument("--cased", action="store_true", help="keep capitals and accents")
    parser.add_argument(
        "--unused",
        type=int,
        default=99,
        metavar="N",
        help="number of unused tokens, [unused0] to [unusedN-1]; with 99 (default) the special tokens have the ids "
        "of the released models",
    )
    parser.add_argument(
        "--min-frequency",
        type=int,
        default=2,
        metavar="N",
        help="merge two pieces only if they occur together N times, and keep a character only if it occurs N times "
        "(default 2)",
    )
    parser.add_argument(
        "--alphabet",
        type=int,
        metavar="N",
        help="number of characters to keep, the most frequent ones (default: those that occur "
        "--min-frequency times and are at least one in a million, up to half of --size)",
    )
    parser.add_argument(
        "--field", default="text", metavar="NAME", help="field of the text in .jsonl files (default text)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Trains with the parsed options. Returns: exit code."""
    refuse_file(args.output)
    refuse_full_folder(args.output)
    files = find_files(args.input)

    def texts():
        return (paragraph for _, part in read_parts(files, LONGEST_LINE, args.field) for paragraph in part)

    left_out: collections.Counter[str] = collections.Counter()
    with atomic_folder(args.output) as unfinished:
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
        Tokenizer(vocabulary, not args.cased).save(unfinished)
    print(f"{len(vocabulary):,} tokens in {args.output}.")
    if left_out:
        several, most_frequent = len(left_out) > 1, left_out.most_common(1)[0][0]
        print(
            f"{len(left_out):,} {'characters are' if several else 'character is'} left out, {left_out.total():,} times "
            f"in the text{', most often' if several else ':'} {most_frequent!r}. Words with "
            f"{'them' if several else 'it'} become {UNK}; {_what_keeps_more(left_out, args)} keeps more."
        )
    return 0


def _what_keeps_more(left_out, args):
    """The options that keep characters that are left out."""
    if args.alphabet is None and max(left_out.values()) < args.min_frequency:
        return f"they occur fewer than {args.min_frequency} times, so a lower --min-frequency or --alphabet N"
    return "--alphabet N"
