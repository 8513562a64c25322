"""`python -m bert_tf finetune TASK`: fine-tunes a model on a file of examples; a run can be resumed."""

from __future__ import annotations

import argparse
import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING

from bert_tf.cli.shared.added_words import add_tokens_argument
from bert_tf.cli.shared.training_options import add_device_arguments, add_optimizer_arguments
from bert_tf.errors import TaskError
from bert_tf.finetuning.tasks.registry import TASKS_BY_NAME, task_type
from bert_tf.folder_lock import refuse_file
from bert_tf.training.logs.trackers import TRACKERS, check_tracker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bert_tf.finetuning.fit import FitSettings
    from bert_tf.finetuning.task_settings import TaskSettings


class TooFewExamples(TaskError):
    """A file too small to hold out a part of it for evaluation."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds a sub-command for each task."""
    tasks = parser.add_subparsers(metavar="TASK", required=True, dest="task", parser_class=type(parser))
    for name, (_, help_line) in TASKS_BY_NAME.items():
        task = tasks.add_parser(name, help=help_line, description=help_line[0].upper() + help_line[1:] + ".")
        _add_files(task)
        _add_updates(task, task_type(name).length)
        add_device_arguments(task)
        _add_saving(task)
        task_type(name).add_reading_arguments(task)
        task_type(name).add_training_arguments(task)


def _add_files(parser):
    parser.add_argument("--model", required=True, metavar="M", help="name or folder of the model to start from")
    parser.add_argument("--train", required=True, metavar="FILE", help="training examples")
    parser.add_argument("--dev", metavar="FILE", help="examples that select the best epoch")
    parser.add_argument(
        "--dev-share",
        type=float,
        metavar="SHARE",
        help="instead of --dev: use this share of --train (0.1: a tenth), chosen at random with a "
        "fixed seed; equal inputs stay together; for questions, whole passages are chosen",
    )
    parser.add_argument("--max-train", type=int, metavar="N", help="use only N examples, chosen at random")
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="folder of the new model; if it exists, the run in it is resumed"
    )


def _add_updates(parser, length):
    parser.add_argument("--epochs", type=int, default=3, help="passes over the training examples (default 3)")
    add_optimizer_arguments(parser, learning_rate=3e-5, warmup=0.1)
    parser.add_argument(
        "--batch-size", type=int, default=32, help="examples of an update, over all devices together (default 32)"
    )
    parser.add_argument(
        "--length",
        type=int,
        metavar="T",
        help=f"cut each input to T tokens (default {length}, or the model's longest input)",
    )
    parser.add_argument(
        "--lengths",
        type=int,
        default=4,
        metavar="N",
        help="number of lengths that batches are padded to; the step is compiled for each (default 4)",
    )
    parser.add_argument("--dropout", type=float, help="dropout rate, instead of the model's")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default 0)")
    parser.add_argument(
        "--seeds",
        type=int,
        default=1,
        metavar="N",
        help="train N times, with the seeds from --seed on; reports mean and standard deviation, keeps the best model",
    )
    parser.add_argument("--metric", metavar="NAME", help="the metric that selects the best epoch")
    parser.add_argument("--patience", type=int, metavar="N", help="stop after N evaluations without a better score")
    parser.add_argument(
        "--evaluate-every", type=int, metavar="N", help="updates between evaluations (default: an epoch)"
    )


def _add_saving(parser):
    parser.add_argument(
        "--store", default="float32", metavar="D", help="save the model as float32 (default), float16 or int8"
    )
    parser.add_argument(
        "--delta", action="store_true", help="save only the trained weights; --model is then needed to load them"
    )
    parser.add_argument(
        "--lora",
        type=int,
        default=0,
        metavar="RANK",
        help="train low-rank updates of the encoder's matrices instead of the matrices, and save only these (usual: "
        "8, with a learning rate of about 5e-4); --model is then needed to load them, until `convert` merges them",
    )
    add_tokens_argument(parser)
    parser.add_argument(
        "--log-every", type=int, default=20, metavar="N", help="updates between lines of the log (default 20)"
    )
    parser.add_argument("--log-to", choices=TRACKERS, help="also send the log and the dev scores to this tracker")
    parser.add_argument(
        "--save-every", type=int, default=500, metavar="N", help="updates between checkpoints (default 500)"
    )


def run(args: argparse.Namespace) -> int:
    """Trains with the parsed options. Returns: exit code, `training.loop.STOPPED` if a signal came before the end."""
    from bert_tf.finetuning.repeated_seeds import fit_seeds
    from bert_tf.startup import import_tensorflow

    task = task_type(args.task)
    refuse_file(args.output)
    check_tracker(args.log_to)
    train, dev, settings = checked_examples(args)
    how = fit_settings(args)
    print(f"{len(train):,} training examples, {len(dev):,} dev examples.", flush=True)
    if settings.labels:
        print(f"{len(settings.labels):,} labels: {', '.join(settings.labels):.200}", flush=True)
    import_tensorflow()
    from bert_tf.training.strategy import choose, use_threads

    use_threads(args.threads, one_device=choose(args.strategy) == "one")
    finished = fit_seeds(
        task,
        args.model,
        train,
        dev,
        settings,
        how,
        Path(args.output),
        args.seeds,
        say=lambda line: print(line, flush=True),
    )
    if not finished:
        print(
            f"Stopped; give the same command to resume. The best model so far, if any, is in {args.output}.",
            flush=True,
        )
        from bert_tf.training.loop import STOPPED

        return STOPPED
    print(f"The model is in {args.output}{'' if dev else '; no dev examples measured it'}.", flush=True)
    return 0


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command line, without the words `python -m bert_tf finetune`."""
    parser = argparse.ArgumentParser(prog="finetune", exit_on_error=False)
    add_arguments(parser)
    return parser.parse_args(arguments)


def checked_examples(args: argparse.Namespace) -> tuple[list, list, TaskSettings]:
    """Reads and checks the files of a training, before a model is built.

    Args:
        args: the parsed options.

    Returns: the training examples, the dev examples, and the settings of the task that they give.

    Raises: DataError, TaskError (`TooFewExamples` among them) or OSError if no training can be made of the files.
    """
    import random

    from bert_tf.checkpoints import find
    from bert_tf.checkpoints.library import read_config

    task = task_type(args.task)
    folder = find(args.model)
    if args.length is None:
        args.length = min(task.length, read_config(folder).max_tokens)
    if args.max_train is not None and args.max_train < 1 or args.seeds < 1:
        raise TaskError("--max-train and --seeds must be 1 or more.")
    train, dev = _examples(task, args)
    settings = task.settings(args, train)  # of the whole file: a sample may lack labels that the dev examples have
    if args.max_train and args.max_train < len(train):
        train = random.Random(0).sample(train, args.max_train)
    settings = task.training_settings(args, train, settings)
    task.check(train, settings)
    task.check(dev, settings)
    metrics = task.metrics(settings, dev or train)
    if args.metric is None and settings.metric not in metrics:
        settings = settings.replace(metric=metrics[0])
    task.check_metric(settings, dev or train)
    useless = [name for name in ("metric", "patience") if getattr(args, name) is not None]
    if useless and not dev:
        raise TaskError(f"--{useless[0]} selects by the dev examples, and there are none; give --dev or --dev-share.")
    return train, dev, settings


def _examples(task, args):
    """(training examples, dev examples)."""
    train = list(task.read(args.train, args))
    if args.dev_share is None:
        return train, list(task.read(args.dev, args)) if args.dev else []
    if args.dev:
        raise TaskError("--dev and --dev-share both set the dev examples; give only one of them.")
    if not 0 < args.dev_share < 1:
        raise TaskError(f"--dev-share is {args.dev_share}; it must lie between 0 and 1.")
    train, dev = task.split(train, args.dev_share)
    if not train or not dev:
        if args.task == "classify" and not args.regression and _are_numbers(one.target for one in (*train, *dev)):
            raise TaskError(
                f"The labels of {args.train} are numbers, each a class of its own: --regression learns them."
            )
        raise TooFewExamples(
            f"{args.train} has too few different {task.split_by} for a --dev-share of {args.dev_share}; "
            "give a --dev file."
        )
    return train, dev


def _are_numbers(labels):
    try:
        return all(math.isfinite(float(label)) for label in labels)
    except (TypeError, ValueError):
        return False


def fit_settings(args: argparse.Namespace) -> FitSettings:
    """The settings of the training among the parsed options."""
    from bert_tf.finetuning.fit import FitSettings

    options = {field.name: getattr(args, field.name) for field in dataclasses.fields(FitSettings)}
    return FitSettings(**{**options, "add_tokens": tuple(args.add_tokens or ())})
