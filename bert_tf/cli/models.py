"""`python -m bert_tf models`: lists the installed models and those that can be downloaded."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from bert_tf.cli.shared.render import size, table

if TYPE_CHECKING:
    from bert_tf.checkpoints.library import ModelInfo


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `models` to an `argparse` parser."""
    parser.add_argument("--json", action="store_true", help="print a JSON list")


def run(args: argparse.Namespace) -> int:
    """Prints the list. Returns: exit code."""
    from bert_tf.checkpoints import list_models, models_dir

    models = list_models()
    if args.json:
        print(json.dumps([as_json(model) for model in models], ensure_ascii=False, indent=1))
        return 0
    rows = [("NAME", "WHERE", "SIZE", "PARAMETERS", "HEADS", "LICENCE")]
    rows += [
        (
            model.name,
            where(model),
            size(model.size_bytes),
            f"{model.parameters:,}" if model.parameters else "?",
            heads(model),
            model.licence or "not stated",
        )
        for model in models
    ]
    print("\n".join(table(rows, "<<>><<")))
    print(f"\nModels directory: {models_dir()}")
    for model in models:
        if model.problem:
            print(f"{model.name}: {model.problem}")
    return 0


def where(model: ModelInfo) -> str:
    """Where a model is: "embedded", "installed", "to download", or "cannot be read" if its folder has a problem."""
    if model.problem:
        return "cannot be read"
    return {"embedded": "embedded", "folder": "installed"}.get(model.kind, "to download")


def heads(model: ModelInfo) -> str:
    """The names of a model's heads and its task, separated by spaces; "none", or "?" if they are unknown."""
    if model.heads is None:
        return "?"
    task = task_of(model)
    return " ".join([*sorted(model.heads), *([task] if task else [])]) or "none"


def task_of(model: ModelInfo) -> str | None:
    """The task of a fine-tuned model that is installed, or None."""
    from bert_tf.finetuning.task_settings import read_settings

    if model.path is None or model.problem:
        return None
    try:
        settings = read_settings(model.path)
    except (OSError, ValueError):  # the list shows all models, also those whose task cannot be read
        return None
    return None if settings is None else settings.task


def path_of(model: ModelInfo) -> str | None:
    """The folder of a model as printable text; None if it is not installed."""
    return None if model.path is None else str(model.path).encode(errors="replace").decode()


def as_json(model: ModelInfo) -> dict[str, Any]:
    """A `ModelInfo` as a dict of JSON values; "models_dir" is the folder of installed models."""
    from bert_tf.checkpoints import models_dir

    return {
        "name": model.name,
        "path": path_of(model),
        "installed": model.installed,
        "kind": model.kind,
        "size_bytes": model.size_bytes,
        "parameters": model.parameters,
        "heads": None if model.heads is None else sorted(model.heads),
        "task": task_of(model),
        "licence": model.licence,
        "source": model.source,
        "aliases": list(model.aliases),
        "problem": model.problem,
        "models_dir": str(models_dir()),
    }
