"""Fine-tunings started from the page: `python -m bert_tf finetune` in a process of its own, bounded by the limits."""

import json

import streamlit as st

from bert_tf.checkpoints import find, models_dir
from bert_tf.checkpoints.delta import base_model
from bert_tf.finetuning.task_settings import read_settings
from bert_tf.training.run_folder import RunError, read_run
from ui.session import state
from ui.session.training_jobs import (
    Training,
    find_training,
    folders_started_here,
    fresh_name,
    remove_training,
    running,
)

#: Task -> (what it learns, the endings its files may have, what is in them).
TASKS = {
    "classify": (
        "Classes of texts",
        ("csv", "tsv", "jsonl"),
        "A table with the columns text and label (and text2 for pairs), or JSON lines with these names.",
    ),
    "tag": (
        "Words marked",
        ("conll", "conllu", "txt", "jsonl"),
        "CoNLL: a word and its label a line, a blank line between sentences; CoNLL-U for parts of speech; or JSON "
        "lines with words and labels.",
    ),
    "answer": ("Answers in passages", ("json",), "A file in SQuAD's form, 1.1 or 2.0."),
    "choose": (
        "The best of several endings",
        ("csv", "tsv", "jsonl"),
        "A table in SWAG's form: sent1, sent2, ending0, ending1 … and label, the right one's number from 0; or JSON "
        "lines with context, choices and label.",
    ),
}
#: What a text is given -> the option for it.
ANSWER_KINDS = {"One of several": None, "Any number of several": "--multi-label", "A number": "--regression"}
_FILE = "task-input"


@st.cache_resource(show_spinner=False)
def _started():
    return {}


def started(name):
    """The ``Training`` of a fine-tuning from the page, begun by this server or left by an earlier one, or None."""
    return find_training(_started(), name, models_dir(), _earlier)


def _earlier(folder):
    name = folder.name
    try:
        if read_run(folder / "run").is_running() and not _is_done(name):
            return None  # an earlier server may have left the process as well
    except RunError:
        pass  # ended before its first update
    delete_input(name)
    return Training(folder, (), 0, "done" if _is_done(name) else "stopped")


def _is_done(name):
    last = records(name)[0][-1:]
    return bool(last) and last[0]["step"] == total_updates(name)


def names():
    """The names of those begun from the page, the newest first."""
    return [path.name for path in folders_started_here(models_dir()) if started(path.name)]


def start(task, file_name, content, model, epochs, top_only, answers=None):
    """Begin a fine-tuning on a visitor's file; a fifth of it is held back for measuring.

    Args:
        task: a key of ``TASKS``. file_name: of the upload, for its ending. content: bytes.
        model: name of an installed model. epochs: over the file.
        top_only: whether only the head and the highest layers learn, see ``frozen_layers``.
        answers: a key of ``ANSWER_KINDS``, for classes of texts.

    Returns: the new model's name.

    Raises: ValueError with a sentence, if the file or the limits forbid it.
    """
    ending = file_name.rpartition(".")[2].lower()
    check(task, ending, content, epochs)
    name = fresh_name(f"{task}-")
    folder = models_dir() / name
    folder.mkdir(parents=True)
    source = folder / f"{_FILE}.{ending}"
    source.write_bytes(content)
    told = options(task, model, epochs, top_only, answers)
    arguments = ["finetune", task, "--train", source, "--output", folder, *told]
    _started()[name] = Training(folder, arguments, 60 * state.limits().max_minutes)
    return name


def options(task, model, epochs, top_only, answers=None):
    """What `python -m bert_tf finetune` is told beside the file and the folder: a list; arguments as in ``start``."""
    config, kept = _config(model), frozen_layers(model) if top_only else 0
    told = ["--model", model, "--dev-share", 0.2, "--epochs", epochs]
    told += ["--batch-size", 16, "--log-every", 2, "--save-every", 50, "--strategy", "one", "--threads", 2]
    told += ["--learning-rate", 2e-4 if kept else 5e-5, "--precision", "bfloat16_products"]
    if task == "answer":
        told += ["--length", min(256, config.max_tokens)]
    if task == "classify" and ANSWER_KINDS.get(answers):
        told.append(ANSWER_KINDS[answers])
    if task == "classify" and config.architecture.attention_direction == "left_to_right":
        told += ["--pooling", "mean"]  # its first token has read nothing
    if base_model(find(model)) is None:
        told.append("--delta")  # what was not trained is here already
    if kept:
        told += ["--freeze-layers", kept]
    return told


def can_learn(task, config):
    """Whether a model of this config can learn a task: the first token judges choices, and must have read them."""
    return task != "choose" or config.architecture.attention_direction != "left_to_right"


def frozen_layers(model):
    """How many of a model's lowest layers stay as they are where only the highest learn: all but two, or as many fewer
    as share weights with those; 0 where all of it must learn."""
    config = _config(model)
    return max((count for count in config.max_frozen_layers if count <= config.num_hidden_layers - 2), default=0)


def trainable_layers(model):
    """How many layers learn then."""
    return _config(model).num_hidden_layers - frozen_layers(model)


def check(task, ending, content, epochs):
    """Raises ValueError, a sentence for the visitor, unless a fine-tuning of this file may start now."""
    limits = state.limits()
    if not limits.train:
        raise ValueError("Training from the page is switched off here (explorer.toml, [training]).")
    if ending not in TASKS[task][1]:
        raise ValueError(
            f"The file ends in .{ending:.10}; this task reads {', '.join('.' + e for e in TASKS[task][1])}."
        )
    if not content.strip():
        raise ValueError("The file is empty; give one with examples.")
    if len(content) > limits.max_text:
        raise ValueError(f"The file has {len(content):,} bytes; at most {limits.max_text:,} are taken here.")
    if not 1 <= epochs <= limits.max_epochs:
        raise ValueError(f"{epochs} epochs were asked for; at most {limits.max_epochs} are done here.")
    if len(folders_started_here(models_dir())) >= limits.max_models:
        raise ValueError(
            f"There are {limits.max_models} models from visitors' files here, as many as are kept; choose one "
            "below and delete it first."
        )
    if running() >= limits.max_runs:
        raise ValueError("Another training is running here; stop it, or wait until it is over.")


def has_model(name):
    """Whether a training has left a model, be it stopped or done: the best of those measured."""
    try:
        return read_settings(models_dir() / name) is not None
    except (ValueError, OSError):
        return False


def delete_input(name):
    """Delete the visitor's file, which nobody needs when the training is over."""
    for path in (models_dir() / name).glob(f"{_FILE}.*"):
        path.unlink(missing_ok=True)


def remove(name):
    """End a training that was begun from the page and delete its model."""
    remove_training(_started(), name)


def total_updates(name):
    """How many updates a training has in all; None before that is known."""
    return _settings(name).get("updates")


def task_and_metric(name):
    """(task, name of the score that the model to keep is chosen by) of a training; (None, None) before that is
    known."""
    task = _settings(name).get("task", {})
    return task.get("task"), task.get("metric")


def _settings(name):
    try:
        return json.loads((models_dir() / name / "run" / "settings.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def records(name):
    """(log records, rounds measured) of a fine-tuning so far: lists of dicts."""
    folder = models_dir() / name / "run"
    return _lines(folder / "metrics.jsonl"), _rounds(folder / "rounds.json")


def _lines(path):
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue  # the line that is being written
    return found


def _rounds(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))["rounds"]
    except (OSError, ValueError, KeyError):
        return []


def _config(model):
    from ui.session.model_store import installed

    return next(info.config for info in installed() if info.name == model)
