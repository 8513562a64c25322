"""Which errors are what somebody gave, told to them in a sentence, and which are defects of the program."""

import argparse
import opcode
from pathlib import Path

PACKAGE = Path(__file__).parent


def whole_number(least, most=None):
    """What an option of `argparse` takes: a whole number from ``least`` to ``most`` (None: any above)."""

    def read(text):
        number = int(text)
        if number < least or most is not None and number > most:
            wanted = f"{least} or more" if most is None else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"{number} was given; it must be {wanted}")
        return number

    read.__name__ = "whole number"  # argparse says so of "x": invalid whole number value: 'x'
    return read


#: What generators of random numbers can be begun with.
SEED = whole_number(0, 2**32 - 1)


def is_user_error(error, *folders):
    """Whether an error is about what the user gave.

    The operating system's are. A ValueError is where a `raise` in a file under one of the folders made it, with a
    sentence of ours; not where a library did below, be it in C, which leaves no frame of its own.

    Args:
        error: an exception that was caught. folders: Paths of code; none for this package alone.
    """
    if isinstance(error, OSError):
        return True
    if not isinstance(error, ValueError) or error.__traceback__ is None:
        return False
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    code = last.tb_frame.f_code
    ours = any(Path(code.co_filename).is_relative_to(folder) for folder in folders or (PACKAGE,))
    return ours and opcode.opname[code.co_code[last.tb_lasti]] == "RAISE_VARARGS"
