"""What can be wrong with a request to the runtime."""


class RuntimeInputError(ValueError):
    """A batch, precision, engine or output that the runtime cannot take; the message says what to change."""
