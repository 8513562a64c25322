"""Locks that let only one process write to a folder or a file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bert_tf.errors import InputError


class FolderInUse(ValueError):
    """Another process writes to a folder or a file; the message names it."""


@contextmanager
def only_writer(lock_file: Path, in_use: str) -> Iterator[None]:
    """Hold a lock in this block, so that no second process writes the same. The file of the lock is deleted at the end.

    The system releases the lock when the process ends, also if it is killed; the file stays then and locks nothing.

    Args:
        lock_file: Path. The file of the lock, in an existing folder.
        in_use: str. The message if another process holds the lock.

    Raises:
        FolderInUse: another process holds it.
    """
    lock = _locked(lock_file, in_use)
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(lock_file)
        lock.release()


@contextmanager
def locked_folder(folder: str | os.PathLike, command: str, output: str | os.PathLike | None = None) -> Iterator[None]:
    """Lock a folder in this block, so that no second process of the same command writes to it.

    A missing folder is created. The system releases the lock when the process ends, also if it is killed. If the block
    fails before it has written a file, the folders that were created are deleted.

    Args:
        folder: str or path. The folder that holds the lock.
        command: str. The name of the command, for the lock file and the message.
        output: str or path or None. The folder to name in the message; None for `folder`.

    Raises:
        InputError: a file has the name of the folder, or of one around it.
        FolderInUse: another process writes to the folder.
    """
    refuse_file(folder)
    folder = Path(folder)
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f".{command}.lock"
    place = output or folder
    lock = _locked(path, f"Another `{command}` is writing to {place}; wait until it ends, or give another --output.")
    try:
        yield
    except BaseException:
        if created and list(folder.iterdir()) == [path]:
            with suppress(OSError):  # Windows deletes no open file: there the release does it
                path.unlink()
            lock.release()
            for empty in created:
                with suppress(OSError):  # another process has written to it
                    empty.rmdir()
        raise
    finally:
        lock.release()


def refuse_file(folder: str | os.PathLike) -> None:
    """Checks that a folder can be made; raises InputError if a file has its name, or that of a folder around it."""
    nearest = next((path for path in (Path(folder), *Path(folder).parents) if path.exists()), None)
    if nearest is not None and not nearest.is_dir():
        raise InputError(f"{nearest} is a file, where a folder is to be written: give the name of a folder.")


def _locked(lock_file, in_use):
    """The lock of a file, acquired; raises FolderInUse with this message if another process holds it."""
    from filelock import FileLock, Timeout

    lock = FileLock(lock_file)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise FolderInUse(in_use) from error
    return lock
