"""`python -m bert_tf prepare`: makes sharded records of masked examples from text files, for `pretrain --records`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from bert_tf.cli.shared.runner_options import add_runner_arguments
from bert_tf.pretraining.data.packing import OBJECTIVES
from bert_tf.pretraining.initialization import tokenizer_of
from bert_tf.user_errors import SEED

if TYPE_CHECKING:
    from bert_tf.pretraining.objectives.masking import MaskSettings


#: The default tokens of a sequence.
LENGTH = 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `prepare` to an `argparse` parser."""
    parser.add_argument(
        "--input",
        nargs="+",
        required=True,
        metavar="FILE",
        help="files or globs: one paragraph on each line and a blank line between documents, or .jsonl "
        "with one document on each line; also as .gz, .xz, .zst",
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="DIR",
        help="folder of the records; if it contains an interrupted run, that is resumed",
    )
    parser.add_argument(
        "--vocab",
        required=True,
        metavar="MODEL",
        help="a model or folder whose vocabulary is used",
    )
    parser.add_argument(
        "--shards", type=int, default=16, metavar="N", help="number of files for the examples (default 16)"
    )
    add_example_arguments(parser)
    parser.add_argument("--length", type=int, default=LENGTH, help=f"tokens of a sequence (default {LENGTH})")
    parser.add_argument(
        "--short",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="share of the pairs that are shortened at random (default 0.1)",
    )
    parser.add_argument(
        "--duplicates",
        type=int,
        default=1,
        metavar="N",
        help="use each document N times, with different pairs and masks",
    )
    parser.add_argument("--seed", type=SEED, default=0, help="random seed (default 0)")
    parser.add_argument(
        "--processes",
        type=int,
        metavar="N",
        help="number of processes (default: one per core, or a single one for a small text)",
    )
    add_runner_arguments(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def add_text_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options for reading text files."""
    parser.add_argument(
        "--field", default="text", metavar="NAME", help="field of the text in .jsonl files (default text)"
    )
    parser.add_argument(
        "--language",
        type=_language,
        default="en",
        metavar="CODE",
        help="language of the text, for splitting sentences (default en)",
    )


def _language(text):
    from bert_tf.pretraining.data.documents import TextError, language_code

    try:
        return language_code(text)
    except TextError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_example_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of examples that `prepare` and `pretrain` share."""
    parser.add_argument(
        "--objective",
        choices=OBJECTIVES,
        default="mlm+nsp",
        help="mlm+nsp (default): masked words and next sentence; mlm: masked words alone, in full sentences across "
        "documents; sop: masked words and sentence order; clm: every word, for a causal model",
    )
    add_text_arguments(parser)
    parser.add_argument("--mask-rate", type=float, default=0.15, help="share of the tokens to mask (default 0.15)")
    parser.add_argument("--whole-words", action="store_true", help="mask whole words")
    parser.add_argument(
        "--ngram",
        type=int,
        default=1,
        metavar="N",
        help="mask n-grams of 1 to N whole words, with probabilities proportional to 1/n",
    )
    parser.add_argument(
        "--max-predictions", type=int, metavar="N", help="mask (with clm: predict) at most N tokens of a sequence"
    )


def mask_settings(args: argparse.Namespace) -> MaskSettings:
    """The `MaskSettings` of parsed arguments."""
    from bert_tf.pretraining.objectives.masking import MaskSettings

    return MaskSettings(args.mask_rate, whole_words=args.whole_words, ngram=args.ngram, most=args.max_predictions)


def run(args: argparse.Namespace) -> int:
    """Prepares the records with the parsed options. Returns: exit code."""
    from bert_tf.pretraining.data.examples import ExampleSettings

    settings = ExampleSettings(
        args.objective, args.length, mask_settings(args), args.short, args.duplicates, args.seed, args.language
    )
    if args.runner:
        from bert_tf.pretraining.data.beam import run_pipeline

        counts = run_pipeline(
            args.input,
            args.output,
            tokenizer_of(args.vocab),
            settings,
            args.shards,
            args.field,
            args.runner,
            args.runner_options.split(),
        )
    else:
        counts = _prepare_here(args, settings)
    print(
        f"{counts.examples:,} examples of {counts.documents:,} documents, {counts.tokens:,} tokens, in "
        f"{args.shards} shards in {args.output}.",
        flush=True,
    )
    return 0


def _prepare_here(args, settings):
    from tqdm import tqdm

    from bert_tf.pretraining.data.documents import find_files
    from bert_tf.pretraining.data.prepare import prepare

    files, tokenizer = find_files(args.input), tokenizer_of(args.vocab)
    with tqdm(
        total=sum(map(os.path.getsize, files)),
        unit="B",
        unit_scale=True,
        disable=args.quiet,
        file=sys.stderr,
        mininterval=0.5,
        delay=1e-6,  # hides the bar until the first chunk: there may be none
    ) as bar:

        def show(done, counts):
            bar.set_postfix_str(f"{counts.examples:,} examples", refresh=False)
            bar.update(done - bar.n)

        return prepare(files, args.output, tokenizer, settings, args.shards, args.processes, args.field, show)
