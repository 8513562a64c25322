"""The files that a command writes."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from bert_tf.errors import InputError
from bert_tf.files import atomic_write, missing_folder
from bert_tf.resources.remote import is_same_object, original_path


def refuse_same_file(source: str, target: str | None, option: str = "--output") -> None:
    """Checks that the input and the output are not the same file.

    Args:
        source: str. The path to read, or "-" for standard input.
        target: str. The path to write; "-" or None for standard output.
        option: str. The option that names `target`.

    Raises: InputError if they are the same file.
    """
    if source == "-" or target is None or target == "-":
        return
    exist = os.path.exists(source) and os.path.exists(target)
    if is_same_object(source, target) or exist and os.path.samefile(source, target):
        raise InputError(
            f"--input and {option} are the same file, {original_path(target)}: give another name to write to."
        )


def is_stream(path: str) -> bool:
    """Whether a path is "-", for standard input or output, or names something else than a file, such as a pipe."""
    return path == "-" or os.path.exists(path) and not os.path.isfile(path)


def input_name(path: str) -> str:
    """The input in messages: the path that the user gave, or standard input."""
    return "standard input" if path == "-" else original_path(path)


def refuse_no_file(path: str) -> None:
    """Checks that a path to write can name a file; raises InputError if it is empty, "-" or a folder."""
    if not path:
        raise InputError("The name of the file to write is empty: give a name.")
    if path == "-":
        raise InputError("- is standard output, which does not take this: give the name of a file to write.")
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder: give the name of a file to write.")


def refuse_unwritable(path: str) -> None:
    """Checks before long work that a file can be written: as `refuse_no_file`, and its folder must be there.

    Raises:
        InputError: as `refuse_no_file`.
        OSError: there is no such folder, or it cannot be written to.
    """
    refuse_no_file(path)
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise missing_folder(path)
    if not is_stream(path) and not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def unchanged_note(output: str | None) -> str:
    """The end of an error message: the file of `--output` was not written; "" if the output is a terminal or a pipe."""
    if output is None or is_stream(output):
        return ""
    return f"; {original_path(output)} was not written"


@contextmanager
def writing(path: str, mode: str = "w") -> Iterator[IO[Any]]:
    """Opens a file that gets its name only when it is complete; see `files.atomic_write`.

    Args:
        path: str. The path of the file.
        mode: str. "w" for UTF-8 text, "wb" for bytes.

    Raises:
        InputError: `path` names no file.
        OSError: the file cannot be written; the error names `path`.
    """
    refuse_no_file(path)
    encoding, newline = (None, None) if "b" in mode else ("utf-8", "\n")
    with atomic_write(path) as temporary, open(temporary, mode, encoding=encoding, newline=newline) as file:
        yield file
