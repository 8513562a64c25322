"""The progress bar of an analysis, and the options for reading a file of texts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from bert_tf.errors import InputError

if TYPE_CHECKING:
    from tqdm import tqdm

_MOST_ROWS = 1000


class Progress:
    """A context manager that gives a function `progress(done, total)`, which draws a bar on standard error.

    The bar appears at the first step. There is none with `--quiet`, or if standard error is not a terminal.

    Args:
        args: argparse.Namespace. The parsed options.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self.quiet = args.quiet
        self.bar: tqdm | None = None

    def __enter__(self) -> Callable[[int, int], None]:
        return self._step

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def _step(self, done, total):
        from tqdm import tqdm

        if self.bar is None:
            self.bar = tqdm(total=total, disable=self.quiet or not sys.stderr.isatty(), file=sys.stderr, leave=False)
        self.bar.update(done - self.bar.n)


def add_file_arguments(parser: argparse.ArgumentParser, required: bool) -> None:
    """Adds --input and the options for reading it, for every analysis that reads a file of texts.

    Args:
        parser: argparse.ArgumentParser. The parser of the analysis.
        required: bool. Whether --input must be set.
    """
    parser.add_argument(
        "--input",
        required=required,
        metavar="FILE",
        help="texts: one on each line (with a tab before the second of a pair), .jsonl, .csv, .tsv, .conllu; "
        '"-" is standard input',
    )
    parser.add_argument("--first", metavar="COLUMN", help="column or key of the first text")
    parser.add_argument("--second", metavar="COLUMN", help='column or key of the second text; "" for none')
    parser.add_argument(
        "--rows",
        type=int,
        dest="most_rows",
        metavar="N",
        help=f"read at most N rows (default {_MOST_ROWS:,})",
    )


def read_file(args: argparse.Namespace) -> None:
    """Reads `--input` into `args.texts`, a tuple of `TextRow`s; reports rows that cannot be read on standard error.

    Args:
        args: argparse.Namespace. The parsed options; `texts` is set in it.

    Raises: InputError if --rows is below 1 or the file cannot be read.
    """
    from bert_tf.explain.datasets.text_rows import file_kind, read_rows, text_of_file

    most_rows = _MOST_ROWS if args.most_rows is None else args.most_rows
    if most_rows < 1:
        raise InputError(f"--rows must be at least 1, not {most_rows}.")
    text_file = read_rows(text_of_file(args.input), file_kind(args.input), args.first, args.second, most_rows)
    if text_file.problems:
        number, reason = text_file.problems[0]
        unit, verb = text_file.unit, "is" if len(text_file.problems) == 1 else "are"
        print(
            f"{len(text_file.problems)} of the file's {unit}s {verb} left out. {unit.title()} {number}: {reason}",
            file=sys.stderr,
        )
    if text_file.left_out and not (args.quiet and args.most_rows):
        more = "is" if text_file.left_out == 1 else "are"
        rest = f"The first {len(text_file.rows):,} {text_file.unit}s are read, {text_file.left_out:,} more {more} not."
        print(f"{rest} --rows N reads more.", file=sys.stderr)
    args.texts = text_file.rows
