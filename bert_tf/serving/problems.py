"""Errors of a request: an HTTP status and one sentence."""


class RequestProblem(Exception):
    """A request that is not answered.

    Args:
        status: int. The HTTP status.
        message: str. What is wrong, with the value, and what to do.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
