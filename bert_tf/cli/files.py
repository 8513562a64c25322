"""Files that appear under their name only when they are whole."""

import os
from contextlib import contextmanager

from bert_tf.explain.errors import InputError


def refuse_same_file(source, target):
    """Raises InputError where what is read and what is to be written are one file; "-" and None are none."""
    if source == "-" or target in (None, "-") or not (os.path.exists(source) and os.path.exists(target)):
        return
    if os.path.samefile(source, target):
        raise InputError(f"--input and --output are the same file, {target}: give another name to write to.")


@contextmanager
def replacing(path, mode="w"):
    """Open `path` with ".part" added for writing; take its true name at the end, or vanish if anything goes
    wrong.

    Args:
        path: where the file is to be. mode: "w" for UTF-8 text, "wb" for bytes.
    Raises:
        InputError: `path` is a folder.
    """
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder: give the name of a file to write.")
    part = f"{path}.part"
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with open(part, mode, **text) as file:
            yield file
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise
