"""Errors a user of fine-tuning can meet: one sentence each, shown as it is."""


class DataError(ValueError):
    """Data that cannot be used; the message names the file and, where there is one, the line."""
