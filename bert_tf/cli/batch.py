"""`predict --input`: reads JSON lines, tables or texts and writes JSON lines, in constant memory."""

import argparse
import os
import sys
from collections import deque
from itertools import islice

from bert_tf.batch_jobs.jobs import PredictJob, answer_line
from bert_tf.cli.shared.answers import answers_to, none_answered, report_counts
from bert_tf.cli.shared.files import input_name, is_stream, refuse_same_file
from bert_tf.cli.shared.model import load_model
from bert_tf.errors import InputError
from bert_tf.finetuning.data.tables import BlankLines
from bert_tf.resources.remote import original_path

#: Endings of files that hold no JSON lines.
_OTHER_FORMATS = (".csv", ".tsv", ".parquet", ".npy", ".xlsx", ".gz")


def predict_file(args: argparse.Namespace, job: PredictJob) -> int:
    """Writes the prediction for each line of `args.input` to `args.output`.

    A bad line is reported with its number on standard error; its line of the output has the key "error".

    Args:
        args: argparse.Namespace. The parsed options of `predict`.
        job: `PredictJob`. The job of these options, which reads the file.

    Returns: int, the exit code, `answers.BAD_INPUTS` if some lines are bad.

    Raises: InputError if an option is out of its range, both files are the same, the output is named as another
        format, the file has no line that is not blank, or all lines are bad.
    """
    refuse_same_file(args.input, args.output)
    if (args.output or "").lower().endswith(_OTHER_FORMATS):
        raise InputError(
            "The predictions for masked words are written as JSON lines: end the name of --output in .jsonl, not as in "
            f"{original_path(args.output)}."
        )
    # Counting also finds a file or a column that is missing, before the model is loaded. A pipe can be read only once.
    can_be_counted = not is_stream(args.input) or os.path.isdir(args.input)  # a folder is an error
    total = sum(1 for _ in job.rows(args.input)) if can_be_counted else None
    if total == 0:
        raise InputError(f"{input_name(args.input)} contains no text.")
    blank = BlankLines()
    source = job.rows(args.input, blank)
    with answers_to(args) as out:
        bert = load_model(args)
        _answer_lines(bert, source, total, out, args)
        if not out.done:
            raise InputError(f"{input_name(args.input)} contains no text.")
        if not out.good:
            raise none_answered(out.bad, "line", args)
    return report_counts(out, "line", args.quiet, blank.count)


def _answer_lines(bert, source, total, out, args):
    from tqdm import tqdm

    from bert_tf.inference.answer import pair_note

    paired = False
    # Numbers of the lines that are read but not yet predicted; the model reads a bounded number of lines ahead.
    numbers: deque[int] = deque()

    def rows():
        nonlocal paired
        for number, row in islice(source, out.done, None):
            numbers.append(number)
            paired = paired or not isinstance(row, Exception) and str(row[1] or "").strip() != ""
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
