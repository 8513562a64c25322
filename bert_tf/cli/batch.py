"""`predict --input`: reads JSON lines and writes JSON lines, any number of them in constant memory."""

import argparse
import sys
from collections import deque
from contextlib import contextmanager
from itertools import islice

from bert_tf.batch_jobs.jobs import BadLine, answer_line, rows_of_lines
from bert_tf.cli.shared.answers import answers_to, report_counts
from bert_tf.cli.shared.files import refuse_same_file, unchanged_note
from bert_tf.cli.shared.model import load_model
from bert_tf.errors import InputError
from bert_tf.resources.remote import original_path


def predict_file(args: argparse.Namespace) -> int:
    """Writes the prediction for each line of `args.input` to `args.output`.

    A bad line is reported with its number on standard error; its line of the output has the key "error".

    Args:
        args: argparse.Namespace. The parsed options of `predict`.

    Returns: int, the exit code, `answers.BAD_INPUTS` if some lines are bad.

    Raises: InputError if an option is out of its range, both files are the same, or all lines are bad.
    """
    from bert_tf.inference.predictions import check_top_k

    check_top_k(args.top_k)
    refuse_same_file(args.input, args.output)
    with _source(args.input) as (lines, total), answers_to(args) as out:
        bert = load_model(args)
        _answer_lines(bert, lines, total, out, args)
        if out.bad and not out.good:
            raise InputError(
                f"None of the {out.bad} lines of {original_path(args.input)} could be answered"
                f"{unchanged_note(args.output)}."
            )
    return report_counts(out, "lines", args.quiet)


def _answer_lines(bert, lines, total, out, args):
    from tqdm import tqdm

    from bert_tf.inference.answer import pair_note

    paired = False
    # Numbers of the lines that are read but not yet predicted; the model reads a bounded number of lines ahead.
    numbers: deque[int] = deque()

    def rows():
        nonlocal paired
        for number, row in islice(rows_of_lines(lines), out.done, None):
            numbers.append(number)
            paired = paired or not isinstance(row, BadLine) and str(row[1] or "").strip() != ""
            yield row

    with tqdm(
        total=total, initial=out.done, unit="line", disable=args.quiet, file=sys.stderr, mininterval=0.5
    ) as progress:
        answers = bert.predict_many(rows(), args.batch_size, args.top_k, errors="return", targets=args.target)
        for answer in answers:
            number = numbers.popleft()
            is_bad = isinstance(answer, Exception)
            if is_bad:
                progress.write(f"line {number}: {' '.join(str(answer).split())}", file=sys.stderr)
            out.write(answer_line(number, answer if is_bad else answer.to_dict()), good=not is_bad, bad=is_bad)
            progress.update()
    if out.good and (note := pair_note(paired, bert.heads, bert.name)):
        print(note, file=sys.stderr)


@contextmanager
def _source(path):
    """Opens the input. Yields (iterable of lines as bytes, their number or None if it cannot be counted)."""
    if path == "-":
        yield sys.stdin.buffer, None
        return
    with open(path, "rb") as file:
        total = None
        if file.seekable():  # a pipe can be read only once
            total = sum(1 for line in file if line.strip())
            file.seek(0)
        yield file, total
