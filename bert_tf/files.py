"""The folder of the explorer, JSON files with clear errors, and atomic writing of files and folders."""

import errno
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bert_tf.errors import CheckpointError, InputError, json_kind
from bert_tf.folder_lock import only_writer

#: Errors of a full disk; the system reports them without the name of the file.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_UNFINISHED = ".unfinished"
_LOCK = ".lock"  # after the name of an unfinished folder
_POLL, _PATIENCE = 0.02, 2.0  # seconds between two tries to replace a file that is read, and of all tries


def explorer_folder() -> Path:
    """Return the folder of the explorer: `app.py`, `pages`, `ui`, `assets` and its settings.

    In a checkout it is the one beside the library; the wheel has it inside the library (`pyproject.toml`).
    """
    library = Path(__file__).resolve().parent
    installed = library / "_explorer"
    return installed if installed.is_dir() else library.parent


def sample_file(name: str) -> Path:
    """Return the path of one of the explorer's samples.

    Args:
        name: str. Its path below `assets/samples`, for example "sentences.txt".

    Raises:
        InputError: there is no such sample.
    """
    path = explorer_folder() / "assets" / "samples" / name
    if not path.is_file():
        raise InputError(f"There is no sample {name!r:.80} in {path.parent}.")
    return path


def read_json(path: str | os.PathLike) -> dict[str, Any]:
    """Read a JSON file that holds an object.

    Raises:
        CheckpointError: the file is missing, not JSON, or holds something other than an object.
    """
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} is missing.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} holds a JSON {json_kind(values)}, but must hold an object.")
    return values


def write_json(path: str | os.PathLike, values: Mapping[str, Any]) -> None:
    """Write an object as indented JSON, atomically. NaN and infinity, which JSON does not know, are written as null."""
    write_text(path, json.dumps(_with_null(values), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _with_null(value):
    if isinstance(value, Mapping):
        return {key: _with_null(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_null(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write UTF-8 text, atomically."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def missing_folder(path: str | os.PathLike) -> FileNotFoundError:
    """Return the error of a file that cannot be written because its folder does not exist."""
    return FileNotFoundError(errno.ENOENT, "The folder to write it to does not exist", os.fspath(path))


@contextmanager
def atomic_write(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary path in the same folder, which replaces `path` at the end of the block.

    After an exception the temporary file is deleted. If `path` is a link, the target of the link is replaced. If `path`
    exists and is not a file (a pipe or a device), it is yielded itself. The file gets the permissions of any new file:
    safetensors makes files that only their owner can read.

    Raises:
        OSError: the file cannot be written. The error names `path` if the disk is full or `path` is not writable.
    """
    path = Path(path)
    is_special = path.exists() and not path.is_file()
    target = path if is_special else Path(os.path.realpath(path))
    # Some writers read the suffix of the name, so the original name comes last.
    temporary = path if is_special else target.with_name(f".{os.getpid()}-{target.name}")
    try:
        if is_special:
            yield temporary
        else:
            try:
                temporary.touch()
            except FileNotFoundError:
                raise missing_folder(path) from None
            permissions = temporary.stat().st_mode
            yield temporary
            temporary.chmod(permissions)
            _replace(temporary, target)
    except OSError as error:
        if error.filename == os.fspath(temporary) or error.filename is None and error.errno in DISK_FULL:
            error.filename, error.filename2 = os.fspath(path), None
        raise
    finally:
        if not is_special:
            with suppress(OSError):
                temporary.unlink()


@contextmanager
def system_errors(path: str | os.PathLike, kind: type[Exception]) -> Iterator[None]:
    """Raise the error of a library that cannot write a file, for example because the disk is full, as OSError.

    Args:
        path: str or path. The file or folder to write, which the OSError names.
        kind: class of exception. What the library raises. If it has the number of a system's error, or its text the
            system's words for one ("No space left on device"), the OSError has that number.
    """
    try:
        yield
    except kind as error:
        text = str(error)
        named = (number for number in errno.errorcode if os.strerror(number) in text)
        number = getattr(error, "errno", None) or next(named, None)
        reason = os.strerror(number) if number else f"It cannot be written; the disk may be full ({text})"
        raise OSError(number or errno.EIO, reason, os.fspath(path)) from error


def _replace(temporary, target):
    """Gives a file the name of another one. Windows refuses while a program reads that one: it is tried for a while."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return os.replace(temporary, target)
        except PermissionError:
            if sys.platform != "win32" or time.monotonic() > end:
                raise
            time.sleep(_POLL)


def entries(folder: Path) -> list[Path]:
    """Return the paths in a folder; none if there is no such folder, or if it may not be read."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def is_missing_or_empty(folder: str | os.PathLike) -> bool:
    """Return whether a folder is missing or empty, so that it can be written."""
    folder = Path(folder)
    # A writer that was killed leaves these two.
    ours = (_UNFINISHED, _UNFINISHED + _LOCK)
    return not folder.exists() or folder.is_dir() and all(path.name in ours for path in folder.iterdir())


def foreign_model(folder: Path, settings: Path) -> str | None:
    """Return the sentence that refuses to train a model into a folder with one of another origin.

    Args:
        folder: Path. The folder of the new model.
        settings: Path. The file that a training begins its run with.

    Returns:
        None if the run is there, or the folder has neither the settings nor the weights of a model.
    """
    has_model = (folder / "config.json").exists() or any(folder.glob("*.safetensors"))
    if settings.is_file() or not has_model:
        return None
    sentence = f"{folder} holds a model and not the run that trained it, so the model would be replaced; "
    return sentence + "give another --output."


def refuse_full_folder(folder: str | os.PathLike) -> None:
    """Raise CheckpointError if a folder that is to be written is not missing or empty."""
    if not is_missing_or_empty(folder):
        raise CheckpointError(f"{folder} already exists and is not empty; give a new folder.")


@contextmanager
def atomic_folder(folder: str | os.PathLike) -> Iterator[Path]:
    """Yield an empty folder, whose content becomes `folder` at the end of the block. After an exception it is deleted.

    Only one process writes a folder at a time. What a process that was killed left of it is deleted.

    Args:
        folder: str or path. A folder that `is_missing_or_empty`. An empty folder is filled, not replaced, because it
            can be the working directory of a shell.

    Raises:
        CheckpointError: the folder is not empty: another process may have written it after the caller looked.
        FolderInUse: another process is writing it.
    """
    target = Path(folder).resolve()
    exists = target.is_dir()
    unfinished = target / _UNFINISHED if exists else target.with_name(f".{target.name}{_UNFINISHED}")
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    in_use = f"Another process is writing {folder}; wait until it ends, or give another folder."
    with only_writer(unfinished.with_name(f"{unfinished.name}{_LOCK}"), in_use):
        refuse_full_folder(folder)
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            unfinished.mkdir()
            yield unfinished
            if not exists:
                unfinished.replace(target)
            else:
                for path in list(unfinished.iterdir()):
                    path.replace(target / path.name)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
