"""A progress bar, and the options that read a file of texts."""

import sys

from bert_tf.errors import InputError

_MOST_ROWS = 1000


class Progress:
    """A bar on standard error, made at the first step."""

    def __init__(self, args):
        self.quiet, self.bar = args.quiet, None

    def __enter__(self):
        return self._step

    def __exit__(self, *_):
        if self.bar is not None:
            self.bar.close()

    def _step(self, done, total):
        from tqdm import tqdm

        if self.bar is None:
            self.bar = tqdm(total=total, disable=self.quiet or not sys.stderr.isatty(), file=sys.stderr, leave=False)
        self.bar.update(done - self.bar.n)


def add_file_arguments(parser, required):
    """--input and what to read of it; the same for every analysis that reads a file of texts."""
    parser.add_argument(
        "--input",
        required=required,
        metavar="FILE",
        help="texts: one a line (a tab before the second of a pair), .jsonl, .csv, .tsv, .conllu; "
        '"-" is standard input',
    )
    parser.add_argument("--first", metavar="COLUMN", help="column or key of the first text")
    parser.add_argument("--second", metavar="COLUMN", help='column or key of the second text; "" for none')
    parser.add_argument(
        "--rows",
        type=int,
        default=_MOST_ROWS,
        dest="most_rows",
        metavar="N",
        help=f"rows read at most (default {_MOST_ROWS:,})",
    )


def read_file(args):
    """Read `--input` into `args.texts`, a tuple of `TextRow`s; rows that cannot be read are named on standard error."""
    from bert_tf.explain.datasets.text_rows import file_bytes, file_kind, read_rows

    if args.most_rows < 1:
        raise InputError(f"--rows must be at least 1, not {args.most_rows}.")
    found = read_rows(file_bytes(args.input), file_kind(args.input), args.first, args.second, args.most_rows)
    if found.problems and not args.quiet:
        number, why = found.problems[0]
        unit = found.unit
        print(
            f"{len(found.problems)} of the file's {unit}s are left out. {unit.title()} {number}: {why}", file=sys.stderr
        )
    args.texts = found.rows
