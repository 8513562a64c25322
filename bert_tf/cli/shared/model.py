"""The options that name the model of a command, and the loading of that model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from bert_tf.startup import quiet_tensorflow

if TYPE_CHECKING:
    from bert_tf.finetuning.task_model import TaskModel
    from bert_tf.inference.bert import Bert


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds --model and --precision, for every command that loads a model."""
    parser.add_argument("--model", metavar="M", help="name or folder of a model (default: the embedded Base)")
    add_precision_argument(parser)


def add_precision_argument(parser: argparse.ArgumentParser) -> None:
    """Adds --precision alone, for an analysis with other options for its models."""
    parser.add_argument(
        "--precision",
        default="float32",
        metavar="P",
        help="precision of the computation: float32 (default), bfloat16 or int8",
    )


def load_model(args: argparse.Namespace) -> Bert:
    """Loads the model of --model with --precision. Returns: `Bert`."""
    from bert_tf.checkpoints import find
    from bert_tf.inference.bert import DEFAULT_MODEL, load

    folder = find(args.model or DEFAULT_MODEL)
    quiet_tensorflow()
    return load(folder, precision=args.precision)


def load_task_model(args: argparse.Namespace) -> TaskModel:
    """Loads the model of --model, whose settings name a task. Returns: its `TaskModel`."""
    task_model = load_model(args).task
    assert task_model is not None, "the command has read the settings of the task from the model's folder"
    return task_model
