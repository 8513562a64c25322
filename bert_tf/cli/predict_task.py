"""`predict` with a fine-tuned model: one input from the command line, or a file of any size in constant memory."""

import csv
import json
import sys
from collections import deque
from contextlib import nullcontext

from bert_tf.checkpoints import find
from bert_tf.cli.shared.files import refuse_same_file, unchanged_note, writing
from bert_tf.cli.shared.model import load_model
from bert_tf.cli.shared.reading_options import READING
from bert_tf.cli.shared.render import bar, percent, table
from bert_tf.errors import InputError
from bert_tf.finetuning.data.tables import table_format
from bert_tf.finetuning.task_settings import read_settings
from bert_tf.finetuning.tasks.registry import family

# Bad rows that are kept in memory until a good one tells the columns.
_MOST_WAITING = 10_000


def run_task(args):
    """Predicts what the model was made for. Returns: exit code."""
    if args.mask or args.target or args.trace:
        raise InputError(
            "--mask, --target and --trace go with a model that fills masks; this one is fine-tuned for a task."
        )
    if args.input is not None:
        return _predict_file(args)
    if args.output is not None:
        raise InputError("--output goes with --input; a single prediction is printed.")
    if args.text_a is None:
        raise InputError("Give a text to predict for, or --input FILE.")
    task = load_model(args).task
    record = {"text_a": args.text_a, "text_b": args.text_b}
    if task.settings.task == "answer":
        record = {"question": args.text_a, "passage": args.text_b}
    elif task.settings.task == "choose":
        choices = [part.strip() for part in (args.text_b or "").split("|") if part.strip()]
        if len(choices) < 2:
            raise InputError('This model chooses: give the choices as the second text, "one | another".')
        record = {"context": args.text_a, "choices": choices}
    elif args.text_b is None:
        record = {"text_a": args.text_a, "text": args.text_a}
    prediction = task.predict([record])[0]
    lines = (
        [json.dumps(prediction, ensure_ascii=False)]
        if args.json
        else (task.family.lines(prediction) or _lines(prediction))
    )
    print("\n".join(lines))
    return 0


def _lines(prediction):
    """A prediction for a person: shares as bars, what else is simple as a line each."""
    lines = [
        f"{name}: {value:.4f}" if isinstance(value, float) else f"{name}: {value}"
        for name, value in prediction.items()
        if isinstance(value, (str, int, float))
    ]
    for name, value in prediction.items():
        if isinstance(value, dict) and all(isinstance(share, float) for share in value.values()):
            rows = sorted(value.items(), key=lambda pair: -pair[1])
            lines += table([(f"    {label}", percent(share), bar(share)) for label, share in rows], "<><")
        elif isinstance(value, list):
            lines += [f"{name}:", *(f"    {json.dumps(one, ensure_ascii=False)}" for one in value)]
    return lines


def _predict_file(args):
    if args.text_a is not None:
        raise InputError("--input reads texts from its file: leave TEXT_A out.")
    if args.batch_size < 1:
        raise InputError(f"--batch-size must be at least 1, not {args.batch_size}.")
    refuse_same_file(args.input, args.output)
    task = family(read_settings(find(args.model)).task)
    _check_reading(task, args)
    records = task.records(args.input, args)
    first = next(records, None)  # before the seconds that loading takes
    if first is None:
        raise InputError(f"{args.input} holds no example.")
    as_csv = args.output not in (None, "-") and table_format(args.output) != "jsonl"
    task = load_model(args).task
    target = nullcontext(sys.stdout) if args.output in (None, "-") else writing(args.output)
    with target as out:
        write = _csv_writer(out, args.output) if as_csv else _json_writer(out, live=args.batch_size == 1)
        good, bad = _answer(task, _chained(first, records), write, args)
        if bad and not good:
            raise InputError(f"None of the {bad} rows of {args.input} could be answered{unchanged_note(args.output)}.")
    if bad or not args.quiet:
        print(f"{good:,} answered{f', {bad:,} bad rows' if bad else ''}.", file=sys.stderr)
    return 0


def _check_reading(task, args):
    """Raises InputError where an option is not one by which this task's files are read."""
    for option, tasks in READING.items():
        if getattr(args, option) and task.task not in tasks:
            raise InputError(
                f"--{option.replace('_', '-')} goes with a model that is fine-tuned to "
                f"{' or '.join(tasks)}; this one to {task.task}."
            )


def _chained(first, rest):
    yield first
    yield from rest


def _answer(task, records, write, args):
    from tqdm import tqdm

    waiting, good, bad = deque(), 0, 0  # the records read and not yet answered, a bounded number

    def inputs():
        for number, record in records:
            waiting.append((number, record))
            yield task.family.asked(record, args)

    with tqdm(unit="row", disable=args.quiet, file=sys.stderr, mininterval=0.5) as progress:
        for prediction in task.predict_many(inputs(), args.batch_size, errors="return"):
            number, record = waiting.popleft()
            if isinstance(prediction, Exception):
                bad += 1
                progress.write(f"line {number}: {' '.join(str(prediction).split())}", file=sys.stderr)
                write(number, record, None, str(prediction))
            else:
                good += 1
                write(number, record, prediction, None)
            progress.update()
    return good, bad


def _json_writer(out, live):
    def write(number, record, prediction, problem):
        answer = {"line": number, "error": problem} if problem else prediction
        print(json.dumps(answer, ensure_ascii=False), file=out, flush=live)

    return write


def _csv_writer(out, path):
    """Writes the columns of the input, then the prediction's; what is no single value in it as JSON.

    The first good row tells the columns; the bad rows before it wait for it.
    """
    write_row = _tsv_row(out) if table_format(path) == "tsv" else csv.writer(out, lineterminator="\n").writerow
    given_names, found_names, waiting = [], {}, []

    def write(number, record, prediction, problem):
        given = record if isinstance(record, dict) else {}
        found = {"error": problem} if problem else {**prediction, "error": ""}
        if not found_names:
            if problem:
                if len(waiting) == _MOST_WAITING:
                    raise InputError(f"The first {len(waiting):,} rows cannot be answered; the next one: {problem}")
                waiting.append((given, found))
                return
            given_names.extend(given)
            found_names.update({name: _free_name(name, given) for name in found})
            write_row([*given_names, *found_names.values()])
        for one_given, one_found in (*waiting, (given, found)):
            write_row(
                [
                    _cell(values.get(name, ""))
                    for values, names in ((one_given, given_names), (one_found, found_names))
                    for name in names
                ]
            )
        waiting.clear()

    return write


def _free_name(name, taken):
    """The name, with "predicted_" before it where the input has such a column."""
    while name in taken:
        name = f"predicted_{name}"
    return name


def _tsv_row(out):
    """As GLUE's files have it and `tables` reads it: a quote is a character, no field holds a tab or line break."""
    plain = str.maketrans("\t\n\r", "   ")
    return lambda cells: out.write("\t".join(str(cell).translate(plain) for cell in cells) + "\n")


def _cell(value):
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value
