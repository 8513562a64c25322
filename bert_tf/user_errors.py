"""The distinction between errors of the user, which are shown as one sentence, and defects of the program."""

import argparse
import opcode
from collections.abc import Callable
from pathlib import Path

PACKAGE = Path(__file__).parent


def whole_number(minimum: int, maximum: int | None = None) -> Callable[[str], int]:
    """Return a type for an `argparse` option: a whole number from `minimum` to `maximum` (None: no upper limit)."""

    def read(text: str) -> int:
        number = int(text)
        if number < minimum or maximum is not None and number > maximum:
            allowed = f"{minimum} or more" if maximum is None else f"from {minimum} to {maximum}"
            raise argparse.ArgumentTypeError(f"{number} was given; it must be {allowed}")
        return number

    read.__name__ = "whole number"  # for the message of argparse: invalid whole number value: 'x'
    return read


#: The type of an option with a seed for random numbers.
SEED = whole_number(0, 2**32 - 1)


def is_user_error(error: BaseException, *folders: Path) -> bool:
    """Return whether an error was caused by the user's input.

    An `OSError` always counts. A `ValueError` counts if a `raise` statement in a file under one of the folders raised
    it, because such a message is written for users. It does not count if a library raised it, also in C code, which
    leaves no frame.

    Args:
        error: exception. The exception that was caught.
        *folders: Path. The folders of the program's code; by default this package.
    """
    if isinstance(error, OSError):
        return True
    if not isinstance(error, ValueError) or error.__traceback__ is None:
        return False
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    code = last.tb_frame.f_code
    in_folders = any(Path(code.co_filename).is_relative_to(folder) for folder in folders or (PACKAGE,))
    return in_folders and opcode.opname[code.co_code[last.tb_lasti]] == "RAISE_VARARGS"
