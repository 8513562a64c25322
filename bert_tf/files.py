"""Small files of a model folder: JSON read with clear errors; files and folders that appear whole or not at all."""

import errno
import json
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path

from bert_tf.errors import CheckpointError

# What ends a writing half-way; the system tells it without the name of the file.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_UNFINISHED = ".unfinished"


def read_json(path):
    """The object in a JSON file.

    Raises:
        CheckpointError: the file is missing, not JSON, or holds something other than an object.
    """
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} holds a JSON {type(values).__name__}, where an object is expected.")
    return values


def write_json(path, values):
    """Writes an object as indented JSON, atomically."""
    write_text(path, json.dumps(values, indent=2, ensure_ascii=False) + "\n")


def write_text(path, text):
    """Writes UTF-8 text, atomically."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def atomic_write(path):
    """A path to write at for `path`: beside it, renamed to it when the block ends well and removed when it does not.

    A link is followed: what it leads to is replaced. What is there and is no file, a pipe or a device, is itself
    given and written into.

    Raises: OSError, with the name of `path` where the disk is full or the place cannot be written to.
    """
    path = Path(path)
    straight = path.exists() and not path.is_file()
    target = path if straight else Path(os.path.realpath(path))
    # Some writers look at the ending of a name, so the real one comes last.
    temporary = path if straight else target.with_name(f".{os.getpid()}-{target.name}")
    try:
        yield temporary
        if not straight:
            os.replace(temporary, target)
    except OSError as error:
        if error.filename == os.fspath(temporary) or error.filename is None and error.errno in _NO_ROOM:
            error.filename, error.filename2 = os.fspath(path), None
        raise
    finally:
        if not straight:
            with suppress(OSError):
                temporary.unlink()


def is_missing_or_empty(folder):
    """Whether a folder may be made: it is not there, or empty."""
    folder = Path(folder)
    return not folder.exists() or folder.is_dir() and all(path.name == _UNFINISHED for path in folder.iterdir())


@contextmanager
def atomic_folder(folder):
    """An empty folder to write in, which becomes `folder` when the block ends well and is removed when it does not.

    Args: folder: one that `is_missing_or_empty`. If it is there it stays the same folder, which a shell may stand in.
    """
    target = Path(folder).resolve()
    there = target.is_dir()
    unfinished = target / _UNFINISHED if there else target.with_name(f".{target.name}{_UNFINISHED}")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir(parents=True)
        yield unfinished
        if not there:
            unfinished.replace(target)
        else:
            for path in list(unfinished.iterdir()):
                path.replace(target / path.name)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
