"""`python -m bert_tf evaluate TASK` for fine-tuned models: metrics on a file of examples, and an optional report."""

from __future__ import annotations

import argparse
import json
import sys
from itertools import islice
from math import isnan
from typing import TYPE_CHECKING, Any

from bert_tf.cli.shared.model import add_model_arguments, load_task_model
from bert_tf.cli.shared.render import table
from bert_tf.errors import DataError, TaskError
from bert_tf.finetuning.task_settings import score_text, undefined_note
from bert_tf.finetuning.tasks.registry import TASKS_BY_NAME, task_type
from bert_tf.finetuning.tasks.sequence_classification import window_settings
from bert_tf.folder_lock import refuse_file
from bert_tf.resources.remote import original_path

if TYPE_CHECKING:
    from bert_tf.finetuning.task_settings import TaskSettings


def add_tasks(tasks: Any) -> None:
    """Adds a parser for each task to the sub-parsers of `evaluate`, an `argparse` object."""
    for name, (_, help_line) in TASKS_BY_NAME.items():
        parser = tasks.add_parser(name, help=help_line, description=help_line[0].upper() + help_line[1:] + ".")
        add_model_arguments(parser)
        parser.add_argument("--data", required=True, metavar="FILE", help="labelled examples")
        parser.add_argument("--limit", type=int, metavar="N", help="only the first N examples")
        parser.add_argument("--report", metavar="DIR", help="also write a report: figures, tables and the worst errors")
        parser.add_argument("--batch-size", type=int, default=32, metavar="N", help="examples in one pass (default 32)")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--quiet", action="store_true", help="no progress bar")
        task_type(name).add_reading_arguments(parser)


def task_settings(args: argparse.Namespace) -> TaskSettings:
    """Reads the settings of the model of --model without loading the model, which takes seconds.

    Args:
        args: argparse.Namespace. The parsed options.

    Returns: `TaskSettings`.

    Raises: TaskError if the model has no task, or another one than `args.task`.
    """
    from bert_tf.checkpoints import find
    from bert_tf.finetuning.task_settings import read_settings
    from bert_tf.inference.bert import DEFAULT_MODEL

    name = args.model or DEFAULT_MODEL
    settings = read_settings(find(name))
    if settings is None:
        raise TaskError(f"{name} is not fine-tuned for any task; make a model with `python -m bert_tf finetune`.")
    if settings.task != args.task:
        raise TaskError(f"{name} was fine-tuned for {settings.task!r}, not {args.task!r}.")
    return settings


def run_task(args: argparse.Namespace) -> int:
    """Evaluates the model and prints the scores. Returns: exit code."""
    settings, task = task_settings(args), task_type(args.task)
    if args.batch_size < 1 or args.limit is not None and args.limit < 1:
        raise DataError("--batch-size and --limit must be 1 or more.")
    if args.report:
        refuse_file(args.report)
    examples = list(islice(task.read(args.data, args, settings), args.limit))
    task.check(examples, settings)
    windows = window_settings(args)
    model = load_task_model(args)
    if windows and task.task == "classify":
        model = model.with_windows(**windows)
    predictions = _predictions(model, examples, args)
    scores = task.score(examples, predictions, model.settings)
    if args.report:
        from bert_tf.finetuning.report import write_findings

        metrics = {
            "task": settings.task,
            "metric": settings.metric,
            "dev_examples": len(examples),
            "dev": scores,
        }
        write_findings(args.report, metrics, task.findings(examples, predictions, model.settings))
    if args.json:
        known = {name: None if isinstance(value, float) and isnan(value) else value for name, value in scores.items()}
        read = {"model": original_path(args.model), "data": original_path(args.data)}
        print(json.dumps({**read, "examples": len(examples), **known}))
    else:
        rows = [
            ("examples", f"{len(examples):,}"),
            *((name, score_text(value)) for name, value in scores.items()),
        ]
        print("\n".join([original_path(args.model), *table(rows, "<>")]))
    if note := undefined_note(scores):
        print(note, file=sys.stderr)
    return 0


def _predictions(model, examples, args):
    """The model's predictions for all examples, with a progress bar."""
    from tqdm import tqdm

    with tqdm(total=len(examples), unit="example", disable=args.quiet, file=sys.stderr, mininterval=0.5) as bar:
        return list(model.predict_many(examples, args.batch_size, progress=lambda done: bar.update(done - bar.n)))
