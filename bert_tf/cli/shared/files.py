"""The files that a command writes."""

import os
from contextlib import contextmanager

from bert_tf.errors import InputError
from bert_tf.files import atomic_write


def refuse_same_file(source, target):
    """Raises InputError where what is read and what is to be written are one file; "-" and None are none."""
    if source == "-" or target in (None, "-") or not (os.path.exists(source) and os.path.exists(target)):
        return
    if os.path.samefile(source, target):
        raise InputError(f"--input and --output are the same file, {target}: give another name to write to.")


def unchanged_note(output):
    """What an error says of `--output`: a file is as it was before; what went to a screen or pipe has gone there."""
    gone = output in (None, "-") or os.path.exists(output) and not os.path.isfile(output)
    return "" if gone else f"; {output} was not written"


@contextmanager
def writing(path, mode="w"):
    """Open a file that takes its name only when it is whole; see `files.atomic_write`.

    Args:
        path: where the file is to be. mode: "w" for UTF-8 text, "wb" for bytes.
    Raises:
        InputError: `path` is a folder.
        OSError: it cannot be written; the error names `path`.
    """
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder: give the name of a file to write.")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    with atomic_write(path) as temporary, open(temporary, mode, **text) as file:
        yield file
