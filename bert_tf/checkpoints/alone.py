"""One writer to a folder: what two commands at once would spoil is kept to the first."""

from contextlib import contextmanager
from pathlib import Path


class FolderInUse(ValueError):
    """Another process writes to a folder; the message names it."""


@contextmanager
def alone(folder, command, output=None):
    """Keeps a second command of the same kind from writing to a folder, which is made if need be.

    The system lets go of the lock when the process ends, killed or not.

    Args: folder: to hold the lock. command: its name, for the message. output: the folder to name there; default
        `folder`.

    Raises: FolderInUse if another one writes there now.
    """
    from filelock import FileLock, Timeout

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / f".{command}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise FolderInUse(f"Another `{command}` is writing to {output or folder}; wait for its end, or give another "
                          "--output.") from error
    try:
        yield
    finally:
        lock.release()
