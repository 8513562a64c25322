"""The task families: each a module with one object `FAMILY`, imported when it is asked for."""

from importlib import import_module

from bert_tf.finetune.errors import TaskError

#: Task -> (module, one line of help).
FAMILIES = {
    "classify": ("bert_tf.finetune.sequence", "a label, several, or a number for a sentence or a pair"),
    "tag": ("bert_tf.finetune.tokens", "a label for every word: entities, parts of speech"),
    "answer": ("bert_tf.finetune.answers", "the answer to a question as a part of a passage, or none"),
    "choose": ("bert_tf.finetune.choice", "which of several texts goes with another"),
}


def family(task):
    """The `Family` of a task.

    Raises: TaskError if there is none of this name.
    """
    if task not in FAMILIES:
        raise TaskError(f"There is no task {task!r} here; choose from {', '.join(FAMILIES)}.")
    return import_module(FAMILIES[task][0]).FAMILY
