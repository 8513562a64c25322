"""Paths in a bucket: `s3://`, `gs://`, `hdfs://`, `memory://` and what else fsspec opens.

A command works on local copies, because weights are mapped into memory, shards are appended to and folders are renamed,
which buckets cannot do. What it reads is fetched before it starts. What it writes is sent when it ends; a training also
sends each checkpoint. An object appears in a bucket only when it is whole, and the file that marks a folder as complete
is sent after the others. Needs fsspec and, for `s3://`, s3fs, for `gs://`, gcsfs.
"""

from __future__ import annotations

import argparse
import glob
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from bert_tf.errors import InputError

#: Options that name files or folders to read, and those that name what is written.
READ = (
    *("input", "text", "records", "train", "dev", "data"),
    *("model", "init", "teacher", "generator", "vocab", "source", "folder", "run_folder"),
)
WRITTEN = ("output", "trace", "corpus", "target")
#: What a command adds to the name of a file that is not complete yet, and to that of the note on how far it is.
PARTIAL = ".partial"
NOTE = f"{PARTIAL}.json"
#: Files that mark a folder as complete; they are sent after, and deleted before, the others. So is a note.
_MARKERS = ("state.json", "config.json", "manifest.json", NOTE)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://")
_GLOB = re.compile(r"[*?\[]")


def is_remote(path: Any) -> bool:
    """Whether a value is the URL of a file or a folder, not a local path."""
    return isinstance(path, str) and _URL.match(path) is not None


def filesystem(url: str) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the path in it.

    Raises: InputError if fsspec, or the package for this kind of URL, is not installed, or it knows no such kind.
    """
    try:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise InputError(f"{url} cannot be opened: {error}. For s3:// it needs `pip install fsspec s3fs`.") from error
    system.invalidate_cache()  # listings that another process may have made old
    return system, path.rstrip("/")


def find_remote(pattern: str) -> list[str]:
    """The URLs, or the local paths, of a file, a folder or a glob pattern, sorted.

    Raises: InputError if there is none.
    """
    if not is_remote(pattern):
        paths = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern))
        if not paths:
            raise InputError(f"There is no file {pattern}.")
        return paths
    system, path = filesystem(pattern)
    with _readable_errors(pattern):
        if _GLOB.search(path):
            paths = sorted(system.glob(path))
        else:
            paths = [path] if system.exists(path) else []
    if not paths:
        raise InputError(f"There is no {pattern}.")
    return [system.unstrip_protocol(name) for name in paths]


def fetch(url: str, folder: str | os.PathLike) -> Path:
    """Copy a file or a folder of a bucket below a local folder, which keeps its name. Returns: the local path."""
    system, path = filesystem(url)
    target = Path(folder) / PurePosixPath(path).name
    with _readable_errors(url):
        if not system.isdir(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            system.get_file(path, str(target))
            return target
        target.mkdir(parents=True, exist_ok=True)
        for name in system.find(path):
            local = target / name[len(path) :].lstrip("/")
            local.parent.mkdir(parents=True, exist_ok=True)
            system.get_file(name, str(local))
    return target


@contextmanager
def remote_write(url: str) -> Iterator[Path]:
    """Yield a local path, whose file is sent to a URL at the end of the block, and not after an exception."""
    with tempfile.TemporaryDirectory(prefix="bert-tf-") as folder:
        path = Path(folder) / PurePosixPath(url).name
        yield path
        system, remote = filesystem(url)
        with _readable_errors(url):
            _send(system, path, remote)


class Mirror:
    """A file or folder in a bucket that follows a local one; beside a file also what is there before it is complete.

    Args:
        url: str. The file or folder in the bucket. What is there is fetched, so that a run is resumed.
        folder: str or path. The local folder that holds the copy.
    """

    def __init__(self, url: str, folder: str | os.PathLike) -> None:
        self.url, self._sent = url, dict[str, tuple[int, int]]()
        self._system, self._path = filesystem(url)
        with _readable_errors(url):
            existing = [end for end in ("", PARTIAL, NOTE) if self._system.exists(f"{self._path}{end}")]
        self.local = Path(folder) / PurePosixPath(self._path).name
        for end in existing:
            fetch(f"{url.rstrip('/')}{end}", folder)
        self._sent = self._state() if existing else {}

    def send(self) -> None:
        """Send the files that have changed, then delete those that are no longer here."""
        now = self._state()
        order = sorted(now, key=lambda name: (PurePosixPath(name).name in _MARKERS, name.count("/"), name))
        with _readable_errors(self.url):
            for name in order:
                if self._sent.get(name) != now[name]:
                    _send(self._system, f"{self.local}{name}", self._remote(name))
            gone = self._sent.keys() - now.keys()
            for name in sorted(gone, key=lambda name: PurePosixPath(name).name not in _MARKERS):
                self._system.rm_file(self._remote(name))
        self._sent = now

    def _remote(self, name):
        return f"{self._path}{name}"

    def _state(self):
        """What follows the local path in the name of a file -> (size, time of change)."""
        if not self.local.is_dir():
            files = {end: Path(f"{self.local}{end}") for end in ("", PARTIAL, NOTE)}
            return {end: _stamp(path) for end, path in files.items() if path.is_file()}
        return {
            f"/{path.relative_to(self.local).as_posix()}": _stamp(path)
            for path in self.local.rglob("*")
            # A name with a dot in front is a file or folder that is not complete, or a lock.
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(self.local).parts)
        }


def _stamp(path):
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _send(system, local, remote):
    """Sends a file. Stores show an object when it is whole; in other file systems it is renamed when it is."""
    system.makedirs(remote.rpartition("/")[0], exist_ok=True)
    protocols = {system.protocol} if isinstance(system.protocol, str) else set(system.protocol)
    if protocols & {"hdfs", "arrow_hdfs", "sftp", "ssh", "smb", "file"}:
        part = f"{remote}.part"
        system.put_file(str(local), part)
        if system.exists(remote):
            system.rm_file(remote)
        system.mv(part, remote)
    else:
        system.put_file(str(local), remote)


@contextmanager
def _readable_errors(url):
    """Errors of a store (no such bucket, no credentials) as one sentence with the URL."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # each store has its own classes
        message = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{url} cannot be reached: {message.rstrip('.')}.") from error


#: The mirrors of the command that runs in this process, and the URL of each local copy that it reads.
_mirrors: list[Mirror] = []
_urls: dict[str, str] = {}


def original_path(path: str | os.PathLike) -> str:
    """The path that the user gave: the URL of a local copy, which the next run of the command has elsewhere."""
    return _urls.get(str(path), str(path))


def is_copy(path: str | os.PathLike) -> bool:
    """Whether a path is a local copy of a file or folder in a bucket."""
    return str(path) in _urls


def is_same_object(one: str, other: str) -> bool:
    """Whether two URLs, or local copies, are the same object of a bucket."""
    one, other = original_path(one), original_path(other)
    return is_remote(one) and is_remote(other) and filesystem(one) == filesystem(other)


def send_mirrors(path: str | os.PathLike) -> None:
    """Send what has changed, if a local path is or lies in a copy of a file or folder in a bucket.

    A store that cannot be reached now is no reason to end a run: the next call sends again what it lacks.
    """
    for mirror in _mirrors:
        if Path(path).is_relative_to(mirror.local):
            try:
                mirror.send()
            except InputError as error:
                print(f"Warning: {error} It is sent again later.", file=sys.stderr, flush=True)


@contextmanager
def local_copies(args: argparse.Namespace) -> Iterator[None]:
    """Replace the URLs among the options of a command by local copies, and send what was written at the end.

    A command that was interrupted sends what it has, too. With `--runner` the URLs stay as they are, for the workers.

    Args:
        args: argparse.Namespace. The parsed options; they are changed.

    Raises: InputError if a file is missing, or the bucket cannot be reached: what could not be sent is kept locally
        then, and named.
    """
    urls = [name for name in READ if any(map(is_remote, _values(getattr(args, name, None))))]
    urls += [name for name in WRITTEN if is_remote(getattr(args, name, None))]
    if not urls or getattr(args, "runner", None):
        yield
        return
    folder = Path(tempfile.mkdtemp(prefix="bert-tf-"))
    problems: list[str] = []
    try:
        for name in urls:
            value = getattr(args, name)
            local: list[str] = []
            for number, path in enumerate(_values(value)):
                place = folder / name / str(number)
                place.mkdir(parents=True)
                if not is_remote(path):
                    local.append(path)
                elif name in WRITTEN:
                    mirror = Mirror(path, place)
                    _mirrors.append(mirror)
                    local.append(str(mirror.local))
                    _urls[local[-1]] = path
                else:
                    # A folder for each: files of several folders may have the same name.
                    for count, url in enumerate(find_remote(path)):
                        own = place / str(count)
                        own.mkdir()
                        local.append(str(fetch(url, own)))
                        _urls[local[-1]] = url
            if len(local) > 1 and not isinstance(value, list):
                raise InputError(f"{value} names {len(local)} files; give one.")
            setattr(args, name, local if isinstance(value, list) else local[0])
        try:
            yield
        finally:
            for mirror in _mirrors:
                try:
                    mirror.send()
                except InputError as error:  # the others are sent all the same
                    problems.append(f"{error} What was written is kept in {mirror.local}.")
                except BaseException:  # Ctrl-C, which may come after hours of work
                    problems.append(f"{mirror.url} may lack files. What was written is kept in {mirror.local}.")
                    print(*problems, file=sys.stderr, flush=True)
                    raise
            if problems:
                raise InputError(" ".join(problems))
    finally:
        _mirrors.clear()
        _urls.clear()
        if not problems:
            shutil.rmtree(folder, ignore_errors=True)


def _values(value):
    return value if isinstance(value, list) else [value]
