"""Downloads of models from the Hugging Face hub: released models by name, any other by OWNER/NAME[@REVISION].

An interrupted download is resumed. Every file is checked against its hash. A model folder appears only when it is
complete.
"""

import errno
import hashlib
import io
import os
import re
import shutil
import threading
import time
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bert_tf.checkpoints.hub_repository import HubFile, HubRepository, describe, folder_name, parse_name
from bert_tf.checkpoints.library import looks_like_model, models_dir
from bert_tf.checkpoints.registry import closest_names, released
from bert_tf.errors import DownloadError, UnknownModel, did_you_mean
from bert_tf.files import is_missing_or_empty, write_text

WEIGHTS = "model.safetensors"
_VOCABULARIES = {
    "wordpiece": ("vocab.txt",),
    "bytes": ("vocab.json", "merges.txt"),
    "pieces": ("spiece.model",),
}
_OPTIONAL = ("tokenizer_config.json",)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_GIT_SHA1 = re.compile(r"[0-9a-f]{40}")

# A hub that sends fewer bytes a second, on average over so many seconds, is left. Its library waits for ever while a
# byte comes every few seconds.
_LEAST_SPEED, _PATIENCE = 1024, 60.0
# Bytes that huggingface_hub collects before it counts and stores them; its own 10 MB take minutes on a slow connection.
_CHUNK = 1 << 14
_NO_RANGE = 416  # the status of a hub that does not send a file from the middle
_OTHER_SIZE = "the hub sent a file of another size than it declares"
_POLL = 0.1  # seconds between two looks at a call to the hub


def download(
    name: str,
    progress: Callable[[int, int], Any] | None = None,
    endpoint: str | None = None,
    folder: str | os.PathLike | None = None,
    note: Callable[[str], Any] | None = None,
) -> Path:
    """Download a model into the models folder, or resume an interrupted download.

    Args:
        name: str. A name, alias or hub repository of the registry; or any repository of the hub, as OWNER/NAME or
            OWNER/NAME@REVISION. Of such a repository the settings are read first (`look_up`), and nothing else is
            fetched if it cannot be used. The login of huggingface_hub is used for it, if there is one.
        progress: callable or None. It is called as progress(done, total), in bytes. An exception that it raises
            stops the download, which can be resumed later.
        endpoint: str or None. The address of the hub; None for HF_ENDPOINT or, if that is not set,
            https://huggingface.co.
        folder: str or path or None. The models folder; None for `models_dir()`.
        note: callable or None. It is called with what is known of a repository outside the registry, before its
            weights are fetched; and with a sentence that names the files which could not be checked, because
            neither the registry nor the hub has their hash. The model's card says the same.

    Returns:
        Path of the model's folder. Nothing is downloaded if the model is already installed.

    Raises:
        UnknownModel: there is no released model of this name, and it is no name of a repository.
        DownloadError: the repository cannot be used, there is no network, the hub is too slow or does not have a
            file, the disk is full, a file has another hash, or the model's folder exists and holds other files.
    """
    model = _target(name)
    root = Path(folder) if folder else models_dir()
    target = root / model.name
    if looks_like_model(target):
        return target
    if not is_missing_or_empty(target):
        raise DownloadError(f"{target} exists but holds no weights; move it away or empty it, then try again.")
    unfinished = _unfinished(root, model)
    try:
        unfinished.mkdir(parents=True, exist_ok=True)
        with _download_lock(unfinished):
            if not looks_like_model(target):
                if model.is_listed:
                    model = _with_listing(model, endpoint, note)
                unchecked = _fetch_all(model, unfinished, progress, endpoint)
                for outdated in unfinished.rglob("*.part"):
                    outdated.unlink()
                write_text(unfinished / "README.md", _card(model, unchecked))
                if target.is_dir():
                    target.rmdir()
                os.replace(unfinished, target)
                if unchecked and note is not None:
                    note(f"{model.title} is downloaded. {_unchecked_sentence(unchecked)}")
    except (OSError, _transport_error()) as error:
        raise _explained(error, model, root) from error
    return target


def download_folder(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the folder that `download` makes of a model, and the files that this folder needs.

    Args:
        name: str. As in `download`.
    Returns:
        Name of the folder in the models folder, and names of files; no names if the hub's list of files decides.
    Raises:
        UnknownModel: there is no released model of that name.
    """
    model = _target(name)
    return model.name, tuple(file for file in model.names if file not in _OPTIONAL)


def partial_download_bytes(name: str, folder: str | os.PathLike | None = None) -> int:
    """Return the bytes of a released model that an interrupted download has stored; 0 if there is none.

    Args:
        name: str. As in `download`.
        folder: str or path or None. As in `download`.
    """
    try:
        model = _target(name)
    except UnknownModel:
        return 0
    try:
        return _stored_bytes(_unfinished(Path(folder) if folder else models_dir(), model))
    except OSError:
        return 0  # there is no unfinished download, or it has just ended


@dataclass(frozen=True)
class _Target:
    """What to download, and where to.

    Attributes:
        name: str. The name of the folder.
        repo, revision, licence, source: str. As in `ReleasedModel`.
        sha256: str or None. The known hash of model.safetensors.
        title: str. What messages call the model: its name in the registry, or OWNER/NAME of any other repository.
        names: tuple of str. The files that a released model has; () if the hub's list of files decides.
        files: tuple of `HubFile`. The files of that list.
    """

    name: str
    repo: str
    revision: str
    licence: str
    source: str
    title: str
    sha256: str | None = None
    names: tuple[str, ...] = ()
    files: tuple[HubFile, ...] = ()

    @property
    def is_listed(self) -> bool:
        """Whether the hub's list of files decides what is fetched."""
        return not self.names


def _target(name):
    model = released(name)
    if model is not None:
        vocabulary = _VOCABULARIES[model.config.architecture.tokenizer]
        names = () if model.is_listed else ("config.json", *vocabulary, WEIGHTS, *_OPTIONAL)
        known = (model.repo, model.revision, model.licence, model.source)
        return _Target(model.name, *known, title=model.name, sha256=model.sha256, names=names)
    repository = parse_name(name)
    if repository is not None:
        repo, revision = repository
        return _Target(folder_name(repo, revision), repo, revision or "main", "", f"the hub's repository {repo}", repo)
    hint = did_you_mean(closest_names(name)) or " `python -m bert_tf models` lists them."
    raise UnknownModel(
        f"There is no released model called {str(name)[:200]!r}.{hint} Any other model of the hub is named OWNER/NAME."
    )


def _with_listing(model, endpoint, note):
    """The target with the files that the hub lists."""
    repository = look_up(model.repo if model.revision == "main" else f"{model.repo}@{model.revision}", endpoint)
    if repository.problem:
        raise DownloadError(repository.problem)
    if note is not None:
        note(" · ".join(repository.facts()))
    return replace(
        model, files=repository.files, licence=model.licence or repository.licence, revision=repository.revision
    )


def look_up(name: str, endpoint: str | None = None) -> HubRepository:
    """Ask the hub what a repository holds, before its weights are fetched.

    Args:
        name: str. OWNER/NAME or OWNER/NAME@REVISION.
        endpoint: str or None. The address of the hub; None as in `download`.

    Returns:
        `HubRepository`: settings, heads, licence, size, and a `problem` if the model cannot be read.

    Raises:
        UnknownModel: this is no name of a repository.
        DownloadError: there is no network, or the hub does not have the repository or does not give it.
    """
    repository = parse_name(name)
    if repository is None:
        raise UnknownModel(
            f"{str(name)[:200]!r} is not the name of a repository: write OWNER/NAME or OWNER/NAME@REVISION."
        )
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    repo, revision = repository
    try:
        return _watched(partial(describe, repo, revision, endpoint))
    except GatedRepoError as error:
        raise DownloadError(_gated_sentence(repo)) from error
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise DownloadError(_missing_sentence(repo, revision or "main")) from error
    except DownloadError:
        raise
    except (OSError, _transport_error()) as error:
        raise DownloadError(f"{repo} was not looked up: {_reason(error)}. Try again later.") from error


def _gated_sentence(repo):
    return (
        f"The hub gives {repo} only to accounts that have accepted its terms: accept them on the page of the model, "
        "log in on this machine with `hf auth login`, and try again."
    )


def _missing_sentence(repo, revision):
    return (
        f"The hub does not have {repo} at revision {revision}; it may have been moved or be private, or the endpoint "
        "may be another hub."
    )


def _transport_error():
    # The base class of the errors of the HTTP library that huggingface_hub uses.
    from huggingface_hub.errors import HTTPError

    return HTTPError


def _download_lock(unfinished):
    from filelock import FileLock

    return FileLock(unfinished.with_name(unfinished.name + ".lock"), timeout=0)


def _fetch_all(model, unfinished, progress, endpoint):
    """Fetches all files of a model. Returns: names of the files whose hash neither the registry nor the hub has."""
    files, revision = {}, model.revision
    for name in model.names:
        metadata = _file_metadata(model, name, revision, endpoint)
        if metadata is not None:
            files[name] = metadata
            revision = metadata.commit_hash or revision  # so that all files are of one commit
    for file in model.files:
        files[file.name] = _file_metadata(model, file.name, file.revision, endpoint)
    meter = _Meter(sum(metadata.size or 0 for metadata in files.values()), progress)
    _check_free_space(unfinished, meter.total)
    hashes = {name: _expected_hash(model, name, metadata) for name, metadata in files.items()}
    for name, metadata in files.items():
        (unfinished / name).parent.mkdir(exist_ok=True)
        _fetch(
            unfinished / name, metadata, hashes[name], meter, _headers(metadata, endpoint) if model.is_listed else {}
        )
    return [name for name, expected in hashes.items() if expected is None]


def _file_metadata(model, name, revision, endpoint):
    """The hub's metadata of one file; None for an optional file that the hub does not have."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    url = hf_hub_url(model.repo, name, revision=revision, endpoint=endpoint)
    try:
        # The released models are public, so the user's token is not sent for them.
        token = None if model.is_listed else False
        return _watched(partial(get_hf_file_metadata, url, token=token, endpoint=endpoint))
    except EntryNotFoundError as error:
        if name in _OPTIONAL:
            return None
        pickle = " Other formats there, such as pytorch_model.bin, are never read." if name == WEIGHTS else ""
        raise DownloadError(
            f"{model.repo} (revision {revision}) has no {name} on the hub, which {model.name} needs.{pickle}"
        ) from error
    except GatedRepoError as error:
        raise DownloadError(_gated_sentence(model.repo)) from error
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise DownloadError(_missing_sentence(model.repo, revision)) from error


def _headers(metadata, endpoint):
    """The headers with the user's login, only for the hub itself and not for the stores that it refers to."""
    from urllib.parse import urlparse

    from huggingface_hub import constants
    from huggingface_hub.utils import build_hf_headers

    own = urlparse(endpoint or constants.ENDPOINT).netloc == urlparse(metadata.location).netloc
    authorization = build_hf_headers().get("authorization") if own else None
    return {"authorization": authorization} if authorization else {}


def _expected_hash(model, name, metadata):
    """The hash of a file in the registry, else the one that the hub declares; None if the hub declares none."""
    if name == WEIGHTS and model.sha256:
        return model.sha256
    listed = next((file.sha256 for file in model.files if file.name == name), None)
    if listed and _SHA256.fullmatch(listed):
        return listed
    etag, xet = metadata.etag or "", metadata.xet_file_data
    is_hash = _SHA256.fullmatch(etag) or _GIT_SHA1.fullmatch(etag)
    # An address in the hub's chunk store looks like a SHA-256 but is not the hash of the file.
    return etag if is_hash and not (xet and xet.file_hash == etag) else None


def _fetch(path, metadata, expected, meter, headers):
    if path.is_file() and path.stat().st_size == metadata.size and _matches(path, expected):
        meter.add(metadata.size)
        meter.report()
        return
    # The name holds the version: after a change on the hub, the old part must not be resumed.
    version = hashlib.sha256((metadata.etag or "").encode()).hexdigest()[:16]
    part = path.with_name(f"{path.name}.{version}.part")
    _stream(metadata, part, meter, headers)
    if not _matches(part, expected):
        part.unlink()
        raise DownloadError(
            f"{path.name} arrived with another hash than {expected}: it was damaged during the "
            "download or replaced on the hub; it has been deleted, so try again."
        )
    os.replace(part, path)


def _stream(metadata, part, meter, headers):
    from huggingface_hub import constants

    # Not the public `hf_hub_download`: it writes to a file with a new name in each call and deletes it when the call
    # fails (huggingface_hub 2.4), so an interrupted download would begin anew. It also compares no hash, and with
    # hf_xet it reads over connections of its own. `http_get` appends to a file that is kept.
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.file_download import http_get

    # Nothing else uses the constant, and two downloads at the same time set the same.
    constants.DOWNLOAD_CHUNK_SIZE = min(constants.DOWNLOAD_CHUNK_SIZE, _CHUNK)
    part.touch()
    if metadata.size is not None and part.stat().st_size > metadata.size:
        os.truncate(part, 0)
    with _Part(io.FileIO(part, "r+")) as file:
        stored_bytes = file.seek(0, os.SEEK_END)
        meter.add(stored_bytes)
        fetch = partial(
            http_get,
            metadata.location,
            file,
            resume_size=stored_bytes,
            headers={"Accept-Encoding": "identity", **headers},
            expected_size=metadata.size,
            displayed_filename=part.name,
            tqdm_class=partial(_ProgressBar, meter, stored_bytes, metadata.size),  # type: ignore[arg-type]  # only called
        )
        try:
            # If the call is left, the file is closed, so the next write of the thread fails and ends it.
            _watched(fetch, meter)
        except HfHubHTTPError as error:
            if error.response.status_code == _NO_RANGE:
                os.truncate(part, 0)  # the next try would be refused as well
            raise


class _Part(io.BufferedRandom):
    """The file of a part. `http_get` empties it before a hub that ignores the range sends the whole file again.

    Its bytes are kept: those of the file are the same, and those of another answer are refused by `_ProgressBar`.
    """

    def truncate(self, size: int | None = None) -> int:
        """Keep all bytes."""
        return self.tell()


def _watched(call, meter=None):
    """The result of a call to the hub, which runs in a thread of its own so that a hub that is too slow can be left.

    Args:
        call: callable without arguments.
        meter: `_Meter` or None. It counts the bytes of the call, and its callback is called in this thread.

    Raises:
        DownloadError: the hub sent less than the least speed, or its answer is against HTTP.
        Exception: what the call raises, or the callback of the meter.
    """
    outcome: futures.Future = futures.Future()

    def run():
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    since, counted = time.monotonic(), meter.done if meter else 0
    while not futures.wait([outcome], _POLL).done:
        if meter:
            meter.report()
        if time.monotonic() - since > _PATIENCE:
            now = meter.done if meter else 0
            if now - counted < _LEAST_SPEED * _PATIENCE:
                raise _TooSlow(f"the hub sent {max(now - counted, 0):,} bytes in {_PATIENCE:.0f} seconds")
            since, counted = time.monotonic(), now
    try:
        result = outcome.result()
    except ValueError as error:  # an address or a number in the headers that cannot be read
        if isinstance(error, _transport_error()):
            raise
        raise _BadAnswer("the hub's answer cannot be read") from error
    if meter:
        meter.report()
    return result


class _TooSlow(OSError):
    """The hub sends less than the least speed."""


class _BadAnswer(OSError):
    """The hub's answer is against the protocol."""


def _matches(path, expected):
    if expected is None:
        return True
    digest = hashlib.sha256() if len(expected) == 64 else hashlib.sha1(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest() == expected


class _Meter:
    """Counts the bytes of all files; `report` passes them to the progress callback."""

    def __init__(self, total, progress):
        self.done, self.total, self.progress = 0, total, progress

    def add(self, count):
        self.done += count

    def report(self):
        """Call the callback, also if no byte has come: it can stop the download of a hub that is silent."""
        if self.progress is not None:
            self.progress(self.done, self.total)


class _ProgressBar:
    """The progress bar that huggingface_hub updates; it only passes the counts to a `_Meter`.

    It is made before the first byte is written, so it refuses an answer of another size, such as the page with which
    a hotel's network asks for a login: as the beginning of the file it would spoil the next try.
    """

    def __init__(self, meter, stored_bytes, size, total=None, initial=0, **_):
        if size is not None and total is not None and total != size:
            raise _BadAnswer(_OTHER_SIZE)
        self.meter = meter
        meter.add(initial - stored_bytes)  # below 0 if the hub sends the whole file again

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def update(self, count):
        self.meter.add(count)


def _unfinished(root, model):
    """The folder of an interrupted download."""
    return root / ".partial" / model.name


def _stored_bytes(unfinished):
    return sum(path.stat().st_size for path in unfinished.rglob("*") if path.is_file())


def _check_free_space(unfinished, total):
    stored_bytes, free = _stored_bytes(unfinished), shutil.disk_usage(unfinished).free
    if free < total - stored_bytes:
        raise OSError(errno.ENOSPC, f"{(total - stored_bytes) / 1e6:.0f} MB needed, {free / 1e6:.0f} MB free")


def _explained(error, model, root):
    """A `DownloadError` with one sentence about the error that ended a download."""
    from filelock import Timeout

    can_resume = any(part.stat().st_size for part in _unfinished(root, model).rglob("*.part"))
    kept = "The downloaded part is kept: the next try resumes it." if can_resume else ""
    if isinstance(error, DownloadError):
        return error
    if isinstance(error, Timeout):
        return DownloadError(f"{model.title} is being downloaded already; wait until that download has ended.")
    if getattr(error, "errno", None) == errno.ENOSPC:
        return DownloadError(
            f"{model.title} was not downloaded: the disk of {root} is full "
            f"({error.strerror}); free space and try again. {kept}".rstrip()
        )
    if getattr(error, "errno", None) and not isinstance(error, ConnectionError):
        return DownloadError(f"{model.title} was not downloaded: {root} cannot be written ({error.strerror}).")
    return DownloadError(f"{model.title} was not downloaded: {_reason(error)}. {kept or 'Try again later.'}")


def _reason(error):
    """What kept the hub from answering, in a few words."""
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    if isinstance(error, OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE is set; unset it to use the hub"
    if isinstance(error, HfHubHTTPError):
        return f"the hub answered {error.response.status_code}"
    return _transport_reason(error)


def _transport_reason(error):
    """What went wrong on the way, in words of this project: the hub's own bytes can be in the library's message."""
    if isinstance(error, (_TooSlow, _BadAnswer)):
        return str(error)
    # The classes are named, as the HTTP library's package is another one in each version of huggingface_hub.
    reasons = {
        "TimeoutException": "the hub did not answer in time",
        "ConnectError": "there is no connection to the hub",
        "NetworkError": "the connection to the hub broke off",
        "ProtocolError": "the hub broke off, or its answer is not HTTP",
        "UnsupportedProtocol": "the hub refers to an address that is not on the web",
        "TooManyRedirects": "the hub refers from one address to the next without end",
        "DecodingError": "the hub's answer cannot be unpacked",
    }
    # huggingface_hub's error of a file that is shorter or longer than declared
    if isinstance(error, OSError) and not isinstance(error, ConnectionError):
        return _OTHER_SIZE
    names = (kind.__name__ for kind in type(error).__mro__)
    return next((reasons[name] for name in names if name in reasons), "the connection to the hub failed")


def _unchecked_sentence(names):
    return f"Not checked, as the hub declares no hash: {', '.join(names)}; only the size was compared."


def _card(model, unchecked):
    if model.sha256:
        checked = f" (SHA-256 {model.sha256})"
    else:
        weights = {WEIGHTS, *(file.name for file in model.files)}
        checked = "" if weights & set(unchecked) else " (checked against the hash the hub declares)"
    licence = model.licence or "unknown"
    exceptions = f"{_unchecked_sentence(unchecked)}\n" if unchecked else ""
    return (
        f"---\nlicense: {licence}\nbase_model: {model.repo}\n---\n\n# {model.name}\n\n"
        f"Downloaded from the Hugging Face hub, {model.repo}, revision {model.revision}{checked}.\n"
        f"{exceptions}Source: {model.source}. Licence: {licence}.\n"
    )
