"""Fine-tunings started from the page: each runs `python -m bert_tf finetune` in a process, within the limits."""

import collections
import dataclasses
import json
import pathlib
import re
import shutil
import tempfile
import unicodedata

from bert_tf.checkpoints import find, models_dir
from bert_tf.checkpoints.delta import base_model
from bert_tf.finetuning.learning_record import read_rounds
from bert_tf.finetuning.task_settings import FILE as SETTINGS
from bert_tf.finetuning.task_settings import read_settings
from bert_tf.training.run_folder import METRICS, RunError, read_records, read_run
from ui import ownership
from ui.session import state
from ui.session.training_jobs import (
    Training,
    adopted,
    check_switched_on,
    discard_failed_trainings,
    find_training,
    folders_started_here,
    fresh_name,
    last_started_in,
    may_run_elsewhere,
    new_folder,
    one_start,
    problem_of,
    remove_training,
    running,
)
from ui.shell.server_cache import server_cache


@dataclasses.dataclass(frozen=True)
class TaskKind:
    """A task that a visitor's file can be for.

    Attributes:
        title: the field's name. caption: what the model learns, in plain words. endings: of its files.
        contents: the contents of its files.
    """

    title: str
    caption: str
    endings: tuple
    contents: str


#: Task -> ``TaskKind``.
TASKS = {
    "classify": TaskKind(
        "Text classification",
        "A label for a whole text, or for a pair of texts.",
        ("csv", "tsv", "jsonl"),
        "A table with the columns text and label (and text2 for pairs), or JSON lines with these names.",
    ),
    "tag": TaskKind(
        "Token classification",
        "A label for every word, such as its part of speech or the name that it belongs to.",
        ("conll", "conllu", "txt", "jsonl"),
        "CoNLL: a word and its label on each line, a blank line between sentences; CoNLL-U for parts of speech; or "
        "JSON lines with words and labels.",
    ),
    "answer": TaskKind(
        "Question answering",
        "The part of a passage that answers a question.",
        ("json",),
        "A file in the format of SQuAD 1.1 or 2.0.",
    ),
    "choose": TaskKind(
        "Multiple choice",
        "The best of several continuations of a text.",
        ("csv", "tsv", "jsonl"),
        "A table in the format of SWAG: sent1, sent2, ending0, ending1 … and label, the number of the right ending "
        "from 0; or JSON lines with context, choices and label.",
    ),
    "similarity": TaskKind(
        "Sentence similarity",
        "Vectors of sentences whose cosine says how similar the sentences are.",
        ("csv", "tsv", "jsonl"),
        "A table with the columns text_a and text_b, pairs that belong together, and perhaps score, a number that says "
        "how similar the two are; or JSON lines with these names.",
    ),
}
#: The kind of label of a text -> (the option of `finetune` for it, what it is in plain words).
LABEL_KINDS = {
    "Single label": (None, "Each text has one of several labels, such as good or bad."),
    "Multi-label": ("--multi-label", "Each text has any number of labels, separated by |, or none."),
    "Regression": ("--regression", "Each text has a number, such as 3.5."),
}
_ROWS_SHOWN = 5
#: Characters of the visitor's name for a model.
LONGEST_NAME = 30
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
    return Training(folder, (), 0, _status_in_files(name))


def _status_in_files(name):
    return "done" if _is_done(name) else "stopped"


def _is_done(name):
    rounds = records(name)[1]  # each is written after its evaluation and its model
    return bool(rounds) and rounds[-1].get("last", False)


def names():
    """The names of the fine-tunings that were started from the page, the newest first; no failed ones without a model.

    What only the training needed is deleted of those that have ended.
    """
    _discard_failed()
    trainings = {path.name: started(path.name) for path in folders_started_here(models_dir())}
    for name, training in trainings.items():
        if training and training.status not in ("running", "ending"):
            _delete_input(name)
            shutil.rmtree(models_dir() / name / "run" / "checkpoints", ignore_errors=True)  # nothing resumes it
    return [name for name, training in trainings.items() if training]


def _discard_failed():
    discard_failed_trainings(_started(), lambda folder: has_model(folder.name))


def problem(name):
    """The error message of a training that was started on this server and failed, else None."""
    return problem_of(_started(), name)


def last_started():
    """The name of the training that this visitor started last on this server, also in an earlier visit, else None."""
    return last_started_in(_started())


@dataclasses.dataclass(frozen=True)
class FileSummary:
    """What a visitor's file holds.

    Attributes:
        examples: number of examples. held_out: number of them that only evaluate.
        labels: dict label -> number of its examples, or of its words; empty if the answers are no labels.
        rows: some of the examples to learn from, a list of dicts from columns to texts.
    """

    examples: int
    held_out: int
    labels: dict
    rows: list


def examine(task, file_name, content, model, label_kind=None):
    """Read a visitor's file as the training would.

    Args:
        as in ``start``.

    Returns:
        ``FileSummary``.

    Raises:
        ValueError: no training can be made of the file; the message is for the visitor and names the visitor's file.
    """
    from bert_tf.cli import finetune

    ending = _check_file(task, file_name, content)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"{_FILE}.{ending}"
        path.write_bytes(content)
        arguments = [task, "--train", path, "--output", folder, *options(task, model, 1, False, label_kind)]
        try:
            train, dev, settings = finetune.checked_examples(finetune.parsed(list(map(str, arguments))))
        except finetune.TooFewExamples:
            raise ValueError(
                f"{file_name} has too few different {finetune.task_type(task).split_by}: a fifth of them is held out "
                "for evaluation."
            ) from None
        except ValueError as error:
            # An option of the command is of no use on the page.
            message = re.sub(r", or name it with --\S+?(?=\.$)", "", str(error))
            raise ValueError(message.replace(str(path), file_name)) from None
    examples = [*train, *dev]
    # The labels of text classification are those of the examples, except numbers; of the other tasks only tags.
    labels = collections.Counter(label for example in examples for label in finetune.task_type(task).labels(example))
    rows = [_ROWS[task](example) for example in train[:_ROWS_SHOWN]]
    return FileSummary(len(examples), len(dev), dict(labels.most_common()), rows)


def _text_row(example):
    texts = {"text": example.text_a} if example.text_b is None else {"text": example.text_a, "text2": example.text_b}
    target = example.target
    if target is None:
        return texts
    return {**texts, "label": " | ".join(target) if isinstance(target, tuple) else str(target)}


_ROWS = {
    "classify": _text_row,
    "similarity": _text_row,
    "tag": lambda example: {"words": " ".join(example.words), "labels": " ".join(example.labels)},
    "answer": lambda example: {
        "question": example.question,
        "answer": example.answer_texts[0] if example.answers else "",
        "passage": example.passage,
    },
    "choose": lambda example: {
        "context": example.context,
        "right": example.choices[example.label],
        "others": " | ".join(choice for place, choice in enumerate(example.choices) if place != example.label),
    },
}


def start(task, file_name, content, model, epochs, top_only, label_kind=None, name=""):
    """Start a fine-tuning on a visitor's file; a fifth of its examples are the dev set.

    Args:
        task: a key of ``TASKS``. file_name: of the upload. content: bytes of the file.
        model: name of an installed model. epochs: number of passes over the file.
        top_only: whether only the head and the highest layers learn, see ``frozen_layers``.
        label_kind: a key of ``LABEL_KINDS``, for the task "classify".
        name: the visitor's name for the model; "" for the task's.

    Returns:
        the new model's name.

    Raises:
        ValueError: the file cannot be used or a limit is exceeded; the message is for the visitor.
    """
    ending = _check_file(task, file_name, content)
    check(epochs)
    kind = _name_part(name) or task
    settings = options(task, model, epochs, top_only, label_kind)
    examine(task, file_name, content, model, label_kind)
    with one_start(_check_number):
        name = fresh_name(f"{kind}-")
        folder = models_dir() / name
        with new_folder(folder):
            source = folder / f"{_FILE}.{ending}"
            source.write_bytes(content)
            arguments = ["finetune", task, "--train", source, "--output", folder, *settings]
            names = {source.name: file_name}
            _started()[name] = Training(folder, arguments, 60 * state.limits().max_minutes, file_names=names)
    return name


def _name_part(name):
    """A visitor's name for a model as a part of a folder's name: small Latin letters, digits and "-".

    Raises:
        ValueError: nothing of the name is left.
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    part = re.sub("[^a-z0-9]+", "-", plain).strip("-")[:LONGEST_NAME].strip("-")
    if name.strip() and not part:
        raise ValueError("The name of the model needs Latin letters or digits.")
    return part


def options(task, model, epochs, top_only, label_kind=None):
    """The options of `python -m bert_tf finetune` beside the file and the folder: a list; arguments as in ``start``."""
    config, frozen = _config(model), frozen_layers(model) if top_only else 0
    settings = ["--model", model, "--dev-share", 0.2, "--epochs", epochs]
    settings += ["--batch-size", 16, "--log-every", 2, "--save-every", 50, "--strategy", "one", "--threads", 2]
    settings += ["--learning-rate", 2e-4 if frozen else 5e-5, "--precision", "bfloat16_products"]
    if task == "answer":
        settings += ["--length", min(256, config.max_tokens)]
    if task == "classify" and label_kind and LABEL_KINDS[label_kind][0]:
        settings.append(LABEL_KINDS[label_kind][0])
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


def check(epochs):
    """Check that a fine-tuning may start now.

    Raises:
        ValueError: it may not; the message is for the visitor.
    """
    check_switched_on()
    limits = state.limits()
    if not 1 <= epochs <= limits.max_epochs:
        raise ValueError(f"The number of epochs must be 1 to {limits.max_epochs} here, not {epochs}.")
    _check_number()


def _check_file(task, file_name, content):
    """The ending of a visitor's file, in small letters.

    Raises:
        ValueError: the task reads no such files, or the file is empty or too large; the message is for the visitor.
    """
    ending, endings, most = file_name.rpartition(".")[2].lower(), TASKS[task].endings, state.limits().max_text
    if ending not in endings:
        raise ValueError(
            f"{file_name} ends in .{ending:.10}; this task reads {', '.join('.' + known for known in endings)}."
        )
    if not content.strip():
        raise ValueError(f"{file_name} is empty; upload a file with examples.")
    if len(content) > most:
        raise ValueError(f"{file_name} has {len(content):,} bytes; at most {most:,} are allowed here.")
    return ending


def _check_number():
    _discard_failed()
    limits = state.limits()
    if len(folders_started_here(models_dir())) >= limits.max_models:
        raise ValueError(
            f"There are {limits.max_models} models from visitors' files here, the largest number allowed; choose one "
            f"below and delete it first.{ownership.others_stay()}"
        )
    if running() >= limits.max_runs:
        raise ValueError("Another training is running here; stop it, or wait until it ends.")


def has_model(name):
    """Whether a training has saved a model, which it also does before it is stopped: the best of those evaluated."""
    try:
        # Its file is written last: without one `read_settings` would take the settings of a cut model from its config.
        return (models_dir() / name / SETTINGS).is_file() and read_settings(models_dir() / name) is not None
    except (ValueError, OSError):
        return False


def _delete_input(name):
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
    """(log records, evaluation rounds) of a fine-tuning so far: sequences of dicts."""
    folder = models_dir() / name / "run"
    return _readable(read_records, folder / METRICS), _readable(read_rounds, folder / "rounds.json")


def _readable(read, path):
    try:
        return read(path)
    except (OSError, ValueError, KeyError):  # a file that another process writes at this moment
        return ()


def _config(model):
    from ui.session.model_store import installed

    return next(info.config for info in installed() if info.name == model)
