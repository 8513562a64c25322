"""What can be wrong with a task's files, settings or models: one sentence each."""


class TaskError(ValueError):
    """Settings of a task, or a request to a task model, that cannot be."""


class DataError(ValueError):
    """A file of examples that cannot be used; the message names the file and, where there is one, the line."""


class RowError(DataError):
    """A row that lacks a field or a text."""
