"""`predict` with a fine-tuned model: one input from the command line, or a file of any size in constant memory."""

import argparse
import csv
import io
import json
import sys
from collections import deque
from itertools import islice
from pathlib import Path
from typing import Any

from bert_tf.batch_jobs.jobs import TaskJob, answer_line
from bert_tf.checkpoints import find
from bert_tf.cli.shared.answers import answers_to, none_answered, refuse_file_options, report_counts
from bert_tf.cli.shared.files import input_name, refuse_no_file, refuse_same_file
from bert_tf.cli.shared.model import load_task_model
from bert_tf.cli.shared.render import bar, cut_note, percent, table
from bert_tf.cli.shared.runner_options import run_on_runner
from bert_tf.errors import InputError
from bert_tf.finetuning.data.tables import FORMATS, BlankLines, lines_hint, table_format
from bert_tf.finetuning.task_settings import read_settings
from bert_tf.finetuning.tasks.registry import READING, task_type
from bert_tf.finetuning.tasks.sequence_classification import window_settings
from bert_tf.resources.remote import original_path

# Largest number of bad rows that are held in memory until the first good row sets the columns of the CSV file.
_MOST_WAITING = 10_000


def run_task(args: argparse.Namespace) -> int:
    """Predicts with the head of the fine-tuned model. Returns: exit code."""
    if args.mask or args.target or args.trace or args.top_k is not None:
        raise InputError(
            "--mask, --target, --top-k and --trace go with a model that predicts masks; this one is fine-tuned for a "
            "task."
        )
    if args.runner:
        return run_on_runner(_job(args), args)
    if args.input is not None:
        return _predict_file(args)
    refuse_file_options(args)
    if args.text_a is None:
        raise InputError("Give a text to predict for, or --input FILE.")
    task = _loaded(args)
    record = {"text_a": args.text_a, "text_b": args.text_b}
    if task.settings.task == "answer":
        if not (args.text_b or "").strip():
            raise InputError("This model answers questions: give the passage as the second text.")
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
        else (task.task_type.lines(prediction) or _lines(prediction))
    )
    print("\n".join(lines))
    return 0


def _loaded(args):
    """The task's model, which reads long texts in windows if the options say so."""
    windows = window_settings(args)
    task_model = load_task_model(args)
    if windows and task_model.settings.task != "classify":
        raise InputError(
            f"--windows goes with a model that classifies; this one is fine-tuned to {task_model.settings.task}."
        )
    return task_model.with_windows(**windows) if windows else task_model


def _job(args):
    _checked_settings(args)
    reading = tuple((option, getattr(args, option)) for option in READING)
    return TaskJob(str(find(args.model)), args.precision, args.batch_size, reading)


def _lines(prediction):
    """A prediction as lines of text: a line for each number or string, bars for probabilities, JSON for lists."""
    cut = prediction.get("truncated")
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
            lines += [f"{name}:", *(f"    {json.dumps(item, ensure_ascii=False)}" for item in value)]
    return [*lines, cut_note(**cut)] if cut else lines


def _predict_file(args):
    if args.text_a is not None:
        raise InputError("--input reads texts from its file: leave TEXT_A out.")
    refuse_same_file(args.input, args.output)
    settings = _checked_settings(args)
    task = task_type(settings.task)
    blank = BlankLines()
    records = task.checked_records(args.input, args, settings, blank)
    first = next(records, None)  # an empty file is an error before the model is loaded, which takes seconds
    if first is None:
        hint = lines_hint(args.input, args.format)
        header = " after its first line, which names the columns" if hint else ""
        raise InputError(f"{input_name(args.input)} contains no example{header}.{hint}")
    as_csv = False
    if args.output not in (None, "-"):
        refuse_no_file(args.output)
        if Path(args.output).suffix.lower() not in FORMATS:
            raise InputError(
                "The predictions are written as .csv, .tsv or .jsonl: end the name of --output so, not as in "
                f"{original_path(args.output)}."
            )
        as_csv = table_format(args.output) != "jsonl"
    task_model = _loaded(args)
    with answers_to(args) as out:
        write = _csv_writer(out, args.output, task.sometimes) if as_csv else _json_writer(out)
        rows = _answer(task_model, islice(_chained(first, records), out.done, None), write, out.done, args)
        if rows and not out.good:
            raise none_answered(rows, "row", args)
    if left_out := out.columns.get("left_out"):
        print(
            f"{original_path(args.output)} has the columns of the first answered row; of later rows "
            f"{', '.join(map(repr, left_out)):.160} is not in it. Give the first row these keys too, with null for no "
            "value.",
            file=sys.stderr,
        )
    return report_counts(out, "row", args.quiet, blank.count)


def _checked_settings(args):
    """The `TaskSettings` of the model; raises InputError if an option for reading the file is not for its task."""
    settings = read_settings(find(args.model))
    assert settings is not None, "`predict` comes here only with a fine-tuned model"
    for option, tasks in READING.items():
        if getattr(args, option) and settings.task not in tasks:
            raise InputError(
                f"--{option.replace('_', '-')} goes with a model that is fine-tuned to "
                f"{' or '.join(tasks)}; this one to {settings.task}."
            )
    return settings


def _chained(first, rest):
    yield first
    yield from rest


def _answer(task, records, write, done, args):
    """Writes the prediction for each record after the first `done`. Returns: number of rows, with those."""
    from tqdm import tqdm

    # The (number, record) pairs that are read but not yet predicted; the model reads a bounded number ahead.
    waiting: deque[tuple[int, Any]] = deque()

    def inputs():
        for number, record in records:
            waiting.append((number, record))
            yield task.task_type.asked(record, args)

    with tqdm(initial=done, unit="row", disable=args.quiet, file=sys.stderr, mininterval=0.5) as progress:
        for prediction in task.predict_many(inputs(), args.batch_size, errors="return"):
            number, record = waiting.popleft()
            if isinstance(prediction, Exception):
                progress.write(f"line {number}: {' '.join(str(prediction).split())}", file=sys.stderr)
                write(number, record, None, str(prediction))
            else:
                write(number, record, prediction, None)
            done += 1
            progress.update()
    return done


def _json_writer(out):
    """A function that writes one prediction as a JSON line."""

    def write(number, record, prediction, problem):
        line = answer_line(number, InputError(problem) if problem else prediction)
        out.write(line, good=not problem, bad=bool(problem))

    return write


def _csv_writer(out, path, sometimes):
    """A function that writes one row: the columns of the input, then those of the prediction; lists and dicts as JSON.

    The first good row sets the columns, so the bad rows before it are held until then. Those of the prediction include
    the keys that only some predictions have. Keys of JSON lines that are no columns are listed in `out.columns`.
    """
    lines = io.StringIO()
    write_row = _tsv_row(lines) if table_format(path) == "tsv" else csv.writer(lines, lineterminator="\n").writerow
    input_columns: list[str] = out.columns.setdefault("input", [])
    # key of the prediction -> name of its column
    output_columns: dict[str, str] = out.columns.setdefault("output", {})
    left_out: list[str] = out.columns.setdefault("left_out", [])
    held_rows: list[tuple[dict, dict]] = []  # (values of the input, values of the prediction)

    def write(number, record, prediction, problem):
        inputs = record if isinstance(record, dict) else {}
        found = prediction or {}
        outputs = {**found, **{name: found.get(name) for name in sometimes}, "error": problem or ""}
        if not output_columns:
            if problem:
                if len(held_rows) == _MOST_WAITING:
                    raise InputError(f"The first {len(held_rows):,} rows cannot be answered; the next one: {problem}")
                held_rows.append((inputs, outputs))
                return
            input_columns.extend(inputs)
            output_columns.update({name: _free_name(name, inputs) for name in outputs})
            write_row([*input_columns, *output_columns.values()])
        for row_inputs, row_outputs in (*held_rows, (inputs, outputs)):
            left_out.extend(name for name in row_inputs if name not in (*input_columns, *left_out))
            write_row(
                [
                    *(_cell(row_inputs.get(name, "")) for name in input_columns),
                    *(_cell(row_outputs.get(name, "")) for name in output_columns),
                ]
            )
        out.write(lines.getvalue(), good=not problem, bad=len(held_rows) + bool(problem))
        lines.seek(0)
        lines.truncate()
        held_rows.clear()

    return write


def _free_name(name, taken):
    """The name, with "predicted_" before it if the input has a column of this name."""
    while name in taken:
        name = f"predicted_{name}"
    return name


def _tsv_row(out):
    """A function that writes a TSV row as GLUE does: without quoting, tabs and line breaks in fields become spaces."""
    plain = str.maketrans("\t\n\r", "   ")
    return lambda cells: out.write("\t".join(str(cell).translate(plain) for cell in cells) + "\n")


def _cell(value):
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else value
