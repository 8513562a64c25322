"""Released models from the Hugging Face hub: resumed after a cut, checked, and whole or not at all."""

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bert_tf.checkpoints.library import looks_like_model, models_dir
from bert_tf.checkpoints.registry import closest_names, released
from bert_tf.errors import DownloadError, UnknownModel
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


def download(
    name: str,
    progress: Callable[[int, int], Any] | None = None,
    endpoint: str | None = None,
    folder: str | os.PathLike | None = None,
) -> Path:
    """Downloads a released model into the models folder, or goes on with a download that was cut.

    Args:
        name: of the registry: a name, alias or hub repository.
        progress: called as progress(done, total) in bytes; an exception it raises stops the download, which
            can be resumed later.
        endpoint: address of the hub; None for HF_ENDPOINT, else https://huggingface.co.
        folder: where models are kept; None for `models_dir()`.

    Returns: Path of the model's folder. Nothing is fetched when the model is already there.

    Raises:
        UnknownModel: no released model of that name.
        DownloadError: no network, no such file on the hub, no room on the disk, a file with another hash, or
            something else under the model's name in the models folder.
    """
    model = released(name)
    if model is None:
        near = closest_names(name)
        hint = f" Did you mean {' or '.join(near)}?" if near else " `python -m bert_tf models` lists them."
        raise UnknownModel(f"There is no released model called {str(name)[:200]!r}.{hint}")
    root = Path(folder) if folder else models_dir()
    target = root / model.name
    if looks_like_model(target):
        return target
    if not is_missing_or_empty(target):
        raise DownloadError(f"{target} is there and holds no weights; move it away or empty it, then try again.")
    unfinished = root / ".partial" / model.name
    try:
        unfinished.mkdir(parents=True, exist_ok=True)
        with _only_one(unfinished):
            if not looks_like_model(target):
                _fetch_all(model, unfinished, progress, endpoint)
                for outdated in unfinished.glob("*.part"):
                    outdated.unlink()
                write_text(unfinished / "README.md", _card(model))
                if target.is_dir():
                    target.rmdir()
                os.replace(unfinished, target)
    except (OSError, _transport_error()) as error:
        raise _explained(error, model, root) from error
    return target


def partial_download_bytes(name: str, folder: str | os.PathLike | None = None) -> int:
    """Bytes of a released model that a download has left unfinished here; 0 where there is none.

    Args:
        name, folder: as `download` takes them.
    """
    model = released(name)
    if model is None:
        return 0
    unfinished = (Path(folder) if folder else models_dir()) / ".partial" / model.name
    try:
        return sum(path.stat().st_size for path in unfinished.iterdir() if path.is_file())
    except OSError:
        return 0  # there is none, or it has just come to its end


def _transport_error():
    # The base class of whichever HTTP library the hub's own is built on.
    from huggingface_hub.errors import HTTPError

    return HTTPError


def _only_one(unfinished):
    from filelock import FileLock

    return FileLock(unfinished.with_suffix(".lock"), timeout=0)


def _fetch_all(model, unfinished, progress, endpoint):
    files, revision = {}, model.revision
    vocabulary = _VOCABULARIES[model.config.architecture.tokenizer]
    for name in ("config.json", *vocabulary, WEIGHTS, *_OPTIONAL):
        facts = _look_up(model, name, revision, endpoint)
        if facts is not None:
            files[name] = facts
            revision = facts.commit_hash or revision  # so that all files are of one commit
    meter = _Meter(sum(facts.size or 0 for facts in files.values()), progress)
    _check_room(unfinished, meter.total)
    for name, facts in files.items():
        _fetch(unfinished / name, facts, _expected_hash(model, name, facts), meter)


def _look_up(model, name, revision, endpoint):
    """The hub's facts about one file; None for an optional one that is not there."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError

    url = hf_hub_url(model.repo, name, revision=revision, endpoint=endpoint)
    try:
        # The models are public: no token of the user's is sent.
        return get_hf_file_metadata(url, token=False, endpoint=endpoint)
    except EntryNotFoundError as error:
        if name in _OPTIONAL:
            return None
        pickle = " Other formats there, such as pytorch_model.bin, are never read." if name == WEIGHTS else ""
        raise DownloadError(
            f"{model.repo} (revision {revision}) has no {name} on the hub, which {model.name} needs.{pickle}"
        ) from error
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise DownloadError(
            f"The hub does not have {model.repo} at revision {revision}; it may have been "
            "moved or the endpoint may be another hub."
        ) from error


def _expected_hash(model, name, facts):
    """What a file must hash to: the registry's, else what the hub declares; None where neither is a hash."""
    if name == WEIGHTS and model.sha256:
        return model.sha256
    etag, xet = facts.etag or "", facts.xet_file_data
    is_hash = _SHA256.fullmatch(etag) or _GIT_SHA1.fullmatch(etag)
    # An address in the hub's chunk store looks like a SHA-256 and is none.
    return etag if is_hash and not (xet and xet.file_hash == etag) else None


def _fetch(path, facts, expected, meter):
    if path.is_file() and path.stat().st_size == facts.size and _matches(path, expected):
        meter.add(facts.size)
        return
    # The name holds the version: a file changed on the hub since the cut must not be joined to the old part.
    version = hashlib.sha256((facts.etag or "").encode()).hexdigest()[:16]
    part = path.with_name(f"{path.name}.{version}.part")
    _stream(facts, part, meter)
    if not _matches(part, expected):
        part.unlink()
        raise DownloadError(
            f"{path.name} arrived with another hash than {expected}: it was damaged on the "
            "way or replaced; it has been deleted, so try again."
        )
    os.replace(part, path)


def _stream(facts, part, meter):
    from huggingface_hub.file_download import http_get

    part.touch()
    with part.open("r+b") as file:
        held = file.seek(0, os.SEEK_END)
        if facts.size is not None and held > facts.size:
            held = file.seek(0)
            file.truncate()
        meter.add(held)
        http_get(
            facts.location,
            file,
            resume_size=held,
            headers={"Accept-Encoding": "identity"},
            expected_size=facts.size,
            displayed_filename=part.name,
            tqdm_class=partial(_Bar, meter),  # type: ignore[arg-type]  # it is only called
        )


def _matches(path, expected):
    if expected is None:
        return True
    digest = hashlib.sha256() if len(expected) == 64 else hashlib.sha1(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest() == expected


class _Meter:
    """Bytes of all files together, told to the caller as they come."""

    def __init__(self, total, progress):
        self.done, self.total, self.progress = 0, total, progress

    def add(self, count):
        self.done += count
        if self.progress is not None:
            self.progress(self.done, self.total)


class _Bar:
    """What the hub's library takes for a progress bar; draws nothing."""

    def __init__(self, meter, **_):
        self.meter = meter

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def update(self, count):
        self.meter.add(count)


def _check_room(unfinished, total):
    held = sum(path.stat().st_size for path in unfinished.iterdir() if path.is_file())
    free = shutil.disk_usage(unfinished).free
    if free < total - held:
        raise OSError(errno.ENOSPC, f"{(total - held) / 1e6:.0f} MB needed, {free / 1e6:.0f} MB free")


def _explained(error, model, root):
    """One sentence for whatever ended a download."""
    from filelock import Timeout
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    held = any(part.stat().st_size for part in (root / ".partial" / model.name).glob("*.part"))
    again = "What has arrived is kept: the next try goes on from there." if held else "Try again later."
    if isinstance(error, DownloadError):
        return error
    if isinstance(error, Timeout):
        return DownloadError(f"{model.name} is being downloaded already; wait until that has ended.")
    if isinstance(error, OfflineModeIsEnabled):
        return DownloadError(f"{model.name} was not downloaded: HF_HUB_OFFLINE is set; unset it to download.")
    if isinstance(error, HfHubHTTPError):
        return DownloadError(f"{model.name} was not downloaded: the hub answered {error.response.status_code}. {again}")
    if getattr(error, "errno", None) == errno.ENOSPC:
        return DownloadError(
            f"{model.name} was not downloaded: the disk of {root} is full "
            f"({error.strerror}); make room and try again. {again}"
        )
    if getattr(error, "errno", None) and not isinstance(error, ConnectionError):
        return DownloadError(f"{model.name} was not downloaded: {root} cannot be written ({error.strerror}).")
    return DownloadError(f"{model.name} was not downloaded: the connection to the hub failed ({error}). {again}")


def _card(model):
    known = f"SHA-256 {model.sha256}" if model.sha256 else "checked against the hash the hub declares"
    return (
        f"---\nlicense: {model.licence}\nbase_model: {model.repo}\n---\n\n# {model.name}\n\n"
        f"Downloaded from the Hugging Face hub, {model.repo}, revision {model.revision} ({known}).\n"
        f"Source: {model.source}. Licence: {model.licence}.\n"
    )
