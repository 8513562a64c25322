"""One writer to a folder: what two commands at once would spoil is kept to the first."""

from contextlib import contextmanager, suppress
from pathlib import Path


class FolderInUse(ValueError):
    """Another process writes to a folder; the message names it."""


@contextmanager
def locked_folder(folder, command, output=None):
    """Keeps a second command of the same kind from writing to a folder, which is made if need be.

    The system lets go of the lock when the process ends, killed or not. A command that fails before it has written
    anything leaves no folder that was not there, nor one above it.

    Args: folder: to hold the lock. command: its name, for the message. output: the folder to name there; default
        `folder`.

    Raises: FolderInUse if another one writes there now.
    """
    from filelock import FileLock, Timeout

    folder = Path(folder)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f".{command}.lock"
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise FolderInUse(
            f"Another `{command}` is writing to {output or folder}; wait for its end, or give another --output."
        ) from error
    try:
        yield
    except BaseException:
        if made and list(folder.iterdir()) == [path]:
            path.unlink()
            for empty in made:
                with suppress(OSError):  # another one writes beside it by now
                    empty.rmdir()
        raise
    finally:
        lock.release()
