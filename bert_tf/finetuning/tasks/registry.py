"""The tasks: each is a module with one object `TASK`, imported when it is requested."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from bert_tf.errors import TaskError

if TYPE_CHECKING:
    from bert_tf.finetuning.tasks.task import Task


#: Task -> (module, one line of help).
TASKS_BY_NAME = {
    "classify": (
        "bert_tf.finetuning.tasks.sequence_classification",
        "a label, several, or a number for a sentence or a pair",
    ),
    "tag": ("bert_tf.finetuning.tasks.token_classification", "a label for every word: entities, parts of speech"),
    "answer": (
        "bert_tf.finetuning.tasks.question_answering",
        "the answer to a question as a part of a passage, or none",
    ),
    "choose": ("bert_tf.finetuning.tasks.multiple_choice", "which of several texts goes with another"),
    "similarity": (
        "bert_tf.finetuning.tasks.sentence_similarity",
        "vectors of sentences whose cosine says how similar they are",
    ),
}


_ALL = tuple(TASKS_BY_NAME)
#: Option for reading a file to predict for -> the tasks that have it.
READING = {
    "format": _ALL,
    "columns": _ALL,
    "glue": ("classify", "similarity"),
    "text_column": ("classify", "similarity"),
    "text2_column": ("classify", "similarity"),
    "windows": ("classify",),
    "stride": ("classify",),
    "words_field": ("tag",),
    "documents": ("tag",),
    "context_column": ("choose",),
    "start_column": ("choose",),
    "choice_columns": ("choose",),
}
#: The options among them that a model without a task has too, whose file holds texts.
READING_OF_TEXTS = ("format", "columns", "text_column", "text2_column")


def task_type(task: str) -> Task:
    """The `Task` with a name.

    Args:
        task: str. A key of `TASKS_BY_NAME`.

    Returns: `Task`.

    Raises: TaskError if there is no task of this name.
    """
    if task not in TASKS_BY_NAME:
        raise TaskError(f"There is no task {task!r} here; choose from {', '.join(TASKS_BY_NAME)}.")
    return import_module(TASKS_BY_NAME[task][0]).TASK
