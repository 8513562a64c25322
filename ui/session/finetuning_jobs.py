"""Fine-tunings started from the page: each runs `python -m bert_tf finetune` in a process, within the limits."""

import json

from bert_tf.checkpoints import find, models_dir
from bert_tf.checkpoints.delta import base_model
from bert_tf.finetuning.task_settings import read_settings
from bert_tf.training.run_folder import RunError, read_run
from ui.session import state
from ui.session.training_jobs import (
    Training,
    adopted,
    find_training,
    folders_started_here,
    fresh_name,
    may_run_elsewhere,
    one_start,
    remove_training,
    running,
)
from ui.shell.server_cache import server_cache

#: Task -> (its label on the page, the endings of its files, the contents of its files).
TASKS = {
    "classify": (
        "Classes of texts",
        ("csv", "tsv", "jsonl"),
        "A table with the columns text and label (and text2 for pairs), or JSON lines with these names.",
    ),
    "tag": (
        "Labels of words",
        ("conll", "conllu", "txt", "jsonl"),
        "CoNLL: a word and its label on each line, a blank line between sentences; CoNLL-U for parts of speech; or "
        "JSON lines with words and labels.",
    ),
    "answer": ("Answers in passages", ("json",), "A file in the format of SQuAD 1.1 or 2.0."),
    "choose": (
        "The best of several endings",
        ("csv", "tsv", "jsonl"),
        "A table in the format of SWAG: sent1, sent2, ending0, ending1 … and label, the number of the right ending "
        "from 0; or JSON lines with context, choices and label.",
    ),
}
#: The kind of answer that a text has -> the option of `finetune` for it.
ANSWER_KINDS = {"One of several": None, "Any number of several": "--multi-label", "A number": "--regression"}
_FILE = "task-input"


@server_cache
def _started():
    return {}


def started(name):
    """The ``Training`` of a fine-tuning that was started from the page, on this server or an earlier one, or None."""
    return find_training(_started(), name, models_dir(), _earlier)


def _earlier(folder):
    name = folder.name
    if training := adopted(folder, lambda: _status_in_files(name)):
        return training
    try:
        if may_run_elsewhere(folder, read_run(folder / "run")) and not _is_done(name):
            return None
    except RunError:
        pass  # the training ended before its first update
    delete_input(name)
    return Training(folder, (), 0, _status_in_files(name))


def _status_in_files(name):
    return "done" if _is_done(name) else "stopped"


def _is_done(name):
    last = records(name)[0][-1:]
    return bool(last) and last[0]["step"] == total_updates(name)


def names():
    """The names of the fine-tunings that were started from the page, the newest first."""
    return [path.name for path in folders_started_here(models_dir()) if started(path.name)]


def start(task, file_name, content, model, epochs, top_only, answers=None):
    """Start a fine-tuning on a visitor's file; a fifth of its examples are the dev set.

    Args:
        task: a key of ``TASKS``. file_name: of the upload, for its ending. content: bytes of the file.
        model: name of an installed model. epochs: number of passes over the file.
        top_only: whether only the head and the highest layers learn, see ``frozen_layers``.
        answers: a key of ``ANSWER_KINDS``, for the task "classify".

    Returns:
        the new model's name.

    Raises:
        ValueError: the file cannot be used or a limit is exceeded; the message is for the visitor.
    """
    ending = file_name.rpartition(".")[2].lower()
    check(task, ending, content, epochs)
    settings = options(task, model, epochs, top_only, answers)
    with one_start(_check_number):
        name = fresh_name(f"{task}-")
        folder = models_dir() / name
        folder.mkdir(parents=True)
        source = folder / f"{_FILE}.{ending}"
        source.write_bytes(content)
        arguments = ["finetune", task, "--train", source, "--output", folder, *settings]
        _started()[name] = Training(folder, arguments, 60 * state.limits().max_minutes)
    return name


def options(task, model, epochs, top_only, answers=None):
    """The options of `python -m bert_tf finetune` beside the file and the folder: a list; arguments as in ``start``."""
    config, frozen = _config(model), frozen_layers(model) if top_only else 0
    settings = ["--model", model, "--dev-share", 0.2, "--epochs", epochs]
    settings += ["--batch-size", 16, "--log-every", 2, "--save-every", 50, "--strategy", "one", "--threads", 2]
    settings += ["--learning-rate", 2e-4 if frozen else 5e-5, "--precision", "bfloat16_products"]
    if task == "answer":
        settings += ["--length", min(256, config.max_tokens)]
    if task == "classify" and ANSWER_KINDS.get(answers):
        settings.append(ANSWER_KINDS[answers])
    if task == "classify" and config.architecture.attention_direction == "left_to_right":
        settings += ["--pooling", "mean"]  # the first token does not attend to the others
    if base_model(find(model)) is None:
        settings.append("--delta")  # the weights that are not trained are those of the installed model
    if frozen:
        settings += ["--freeze-layers", frozen]
    return settings


def can_learn(task, config):
    """Whether a model with this config can learn a task.

    In the task "choose" the first token scores a choice, so it must attend to the tokens after it.
    """
    return task != "choose" or config.architecture.attention_direction != "left_to_right"


def frozen_layers(model):
    """The number of a model's lowest layers to freeze when only the highest learn.

    These are all but two, or fewer if some of them share weights with the layers that learn; 0 if no layer can be
    frozen.
    """
    config = _config(model)
    return max((count for count in config.max_frozen_layers if count <= config.num_hidden_layers - 2), default=0)


def trainable_layers(model):
    """The number of layers that learn when ``frozen_layers(model)`` are frozen."""
    return _config(model).num_hidden_layers - frozen_layers(model)


def check(task, ending, content, epochs):
    """Check that a fine-tuning on this file may start now.

    Raises:
        ValueError: it may not; the message is for the visitor.
    """
    limits = state.limits()
    if not limits.train:
        raise ValueError("Training from the page is switched off here (explorer.toml, [training]).")
    if ending not in TASKS[task][1]:
        raise ValueError(
            f"The file ends in .{ending:.10}; this task reads {', '.join('.' + known for known in TASKS[task][1])}."
        )
    if not content.strip():
        raise ValueError("The file is empty; upload one with examples.")
    if len(content) > limits.max_text:
        raise ValueError(f"The file has {len(content):,} bytes; at most {limits.max_text:,} are allowed here.")
    if not 1 <= epochs <= limits.max_epochs:
        raise ValueError(f"The number of epochs must be 1 to {limits.max_epochs} here, not {epochs}.")
    _check_number()


def _check_number():
    limits = state.limits()
    if len(folders_started_here(models_dir())) >= limits.max_models:
        raise ValueError(
            f"There are {limits.max_models} models from visitors' files here, the largest number allowed; choose one "
            "below and delete it first."
        )
    if running() >= limits.max_runs:
        raise ValueError("Another training is running here; stop it, or wait until it ends.")


def has_model(name):
    """Whether a training has saved a model, which it also does before it is stopped: the best of those evaluated."""
    try:
        return read_settings(models_dir() / name) is not None
    except (ValueError, OSError):
        return False


def delete_input(name):
    """Delete the visitor's file, which is not needed after the training."""
    for path in (models_dir() / name).glob(f"{_FILE}.*"):
        path.unlink(missing_ok=True)


def remove(name):
    """End a training that was started from the page, and delete its model."""
    remove_training(_started(), name)


def total_updates(name):
    """The number of updates of a whole training; None before it is known."""
    return _settings(name).get("updates")


def task_and_metric(name):
    """(task, metric by which the best model is chosen) of a training; (None, None) before they are known."""
    task = _settings(name).get("task", {})
    return task.get("task"), task.get("metric")


def _settings(name):
    try:
        return json.loads((models_dir() / name / "run" / "settings.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def records(name):
    """(log records, evaluation rounds) of a fine-tuning so far: lists of dicts."""
    folder = models_dir() / name / "run"
    return _lines(folder / "metrics.jsonl"), _rounds(folder / "rounds.json")


def _lines(path):
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    parsed = []
    for line in lines:
        try:
            parsed.append(json.loads(line))
        except ValueError:
            continue  # the last line, which is not complete yet
    return parsed


def _rounds(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))["rounds"]
    except (OSError, ValueError, KeyError):
        return []


def _config(model):
    from ui.session.model_store import installed

    return next(info.config for info in installed() if info.name == model)
