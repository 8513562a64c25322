"""Downloads, driven through the real code against a hub on this machine."""

import contextlib
import dataclasses
import errno
import hashlib
import re
import socket
import threading
import time

import pytest

from bert_tf.checkpoints import DownloadError, UnknownModel, download, partial_download_bytes, read
from bert_tf.checkpoints import download as download_function
from bert_tf.checkpoints.registry import released
from bert_tf.checksums import CHECKSUMS

NAME = "bert-tiny"
MODEL = released(NAME)
PARTIAL = ".partial"


@pytest.fixture(autouse=True)
def small_scale(monkeypatch):
    """The hub's library writes 10 MB at a time and waits before it tries again; here 4 KiB, and at once."""
    from huggingface_hub import constants, file_download

    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 4096)
    monkeypatch.setattr(file_download.time, "sleep", lambda seconds: None)


@pytest.fixture
def served(hub, tiny_folder):
    """The hub with the weights of a small model under the name of a released one."""
    hub.add_model(MODEL.repo, tiny_folder)
    return hub


def module():
    """The module `bert_tf.checkpoints.hub`, whose name in the package is the function's."""
    import sys

    return sys.modules[download_function.__module__]


def test_a_model_is_downloaded_whole_and_can_be_read(served, tmp_path, tiny_folder):
    seen = []
    folder = download(NAME, lambda *counts: seen.append(counts), endpoint=served.endpoint, folder=tmp_path)
    assert folder == tmp_path / MODEL.name
    for name in ("config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"):
        assert (folder / name).read_bytes() == (tiny_folder / name).read_bytes()
    total = sum(
        len(served.files[MODEL.repo, name])
        for name in ("config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors")
    )
    assert seen[-1] == (total, total) and [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert MODEL.licence in (folder / "README.md").read_text()
    read(folder)


def test_nothing_is_fetched_twice(served, tmp_path):
    download(NAME, endpoint=served.endpoint, folder=tmp_path)
    served.requests.clear()
    assert download(NAME, endpoint=served.endpoint, folder=tmp_path) == tmp_path / MODEL.name
    assert served.requests == []


def test_only_the_needed_files_are_fetched(served, tmp_path):
    served.files[MODEL.repo, "pytorch_model.bin"] = b"never"
    folder = download(NAME, endpoint=served.endpoint, folder=tmp_path)
    assert not (folder / "pytorch_model.bin").exists()
    assert "pytorch_model.bin" not in {name for _, name, _ in served.requests}


def test_all_files_are_taken_from_one_commit(served, tmp_path, monkeypatch):
    import huggingface_hub

    revisions, real = [], huggingface_hub.hf_hub_url
    monkeypatch.setattr(
        huggingface_hub,
        "hf_hub_url",
        lambda *args, **named: (revisions.append(named["revision"]), real(*args, **named))[1],
    )
    download(NAME, endpoint=served.endpoint, folder=tmp_path)
    assert revisions[0] == "main" and len(set(revisions[1:])) == 1 and len(revisions[1]) == 40


def test_the_tokenizer_settings_may_be_absent(served, tmp_path):
    del served.files[MODEL.repo, "tokenizer_config.json"]
    folder = download(NAME, endpoint=served.endpoint, folder=tmp_path)
    assert not (folder / "tokenizer_config.json").exists()


def test_weights_kept_at_another_address_are_fetched_from_there(served, tmp_path, tiny_folder):
    served.redirect, served.cut_after = True, [20_000]
    folder = download(NAME, endpoint=served.endpoint, folder=tmp_path)
    assert (folder / "model.safetensors").read_bytes() == (tiny_folder / "model.safetensors").read_bytes()
    served.hashes["model.safetensors"] = "e" * 64
    with pytest.raises(DownloadError, match="another hash than eeee"):
        download(NAME, endpoint=served.endpoint, folder=tmp_path / "again")


def test_one_cut_is_mended_within_the_download(served, tmp_path, tiny_folder):
    served.cut_after = [20_000]
    folder = download(NAME, endpoint=served.endpoint, folder=tmp_path)
    assert (folder / "model.safetensors").read_bytes() == (tiny_folder / "model.safetensors").read_bytes()
    assert ("GET", "model.safetensors", "bytes=16384-") in served.requests


def test_a_download_given_up_is_resumed_by_the_next(served, tmp_path, tiny_folder):
    _cut_in_the_middle(served, tmp_path)
    assert not (tmp_path / MODEL.name).exists()
    small = sum(len(served.files[MODEL.repo, name]) for name in ("config.json", "vocab.txt"))
    assert (
        partial_download_bytes(NAME, folder=tmp_path) == small + 16384
        and partial_download_bytes("bert-mini", folder=tmp_path) == 0
    )
    served.requests.clear()
    seen = []
    folder = download(NAME, lambda done, total: seen.append(done), endpoint=served.endpoint, folder=tmp_path)
    ranges = [asked for kind, name, asked in served.requests if (kind, name) == ("GET", "model.safetensors")]
    assert ranges == ["bytes=16384-"]
    assert (folder / "model.safetensors").read_bytes() == (tiny_folder / "model.safetensors").read_bytes()
    not_downloaded = ("README.md", CHECKSUMS)
    assert seen[-1] == sum(len(data) for (_, name), data in served.files.items() if name not in not_downloaded)
    assert (
        partial_download_bytes(NAME, folder=tmp_path) == 0 == partial_download_bytes("no such model", folder=tmp_path)
    )


def _answer_weights(hub, monkeypatch, status, data):
    """Lets a hub answer each request for the weights with these bytes."""
    proper = hub.answer

    def answer(handler, body):
        if not (body and handler.path.endswith("/model.safetensors")):
            return proper(handler, body)
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        return handler.wfile.write(data)

    monkeypatch.setattr(hub, "answer", answer)


def _cut_in_the_middle(served, folder):
    """A download that stores a part of the weights."""
    served.cut_after = [20_000] + [0] * 5
    with pytest.raises(DownloadError, match="the next try resumes it"):
        download(NAME, endpoint=served.endpoint, folder=folder)


def test_a_login_page_in_place_of_the_weights_spoils_no_part(served, tmp_path, tiny_folder, monkeypatch):
    _cut_in_the_middle(served, tmp_path)
    with monkeypatch.context() as patch:
        _answer_weights(served, patch, 200, b"<html>Log in to the hotel's network</html>")
        with pytest.raises(DownloadError, match="another size than it declares. The downloaded part is kept"):
            download(NAME, endpoint=served.endpoint, folder=tmp_path)
    served.requests.clear()
    folder = download(NAME, endpoint=served.endpoint, folder=tmp_path)
    assert ("GET", "model.safetensors", "bytes=16384-") in served.requests
    assert (folder / "model.safetensors").read_bytes() == (tiny_folder / "model.safetensors").read_bytes()


def test_a_hub_that_sends_the_whole_file_again_is_counted_once(served, tmp_path, tiny_folder, monkeypatch):
    _cut_in_the_middle(served, tmp_path)
    _answer_weights(served, monkeypatch, 200, served.files[MODEL.repo, "model.safetensors"])
    seen = []
    folder = download(NAME, lambda *counts: seen.append(counts), endpoint=served.endpoint, folder=tmp_path)
    assert (folder / "model.safetensors").read_bytes() == (tiny_folder / "model.safetensors").read_bytes()
    assert seen[-1][0] == seen[-1][1]


def test_a_part_that_the_hub_does_not_continue_is_given_up(served, tmp_path, monkeypatch):
    _cut_in_the_middle(served, tmp_path)
    with monkeypatch.context() as patch:
        _answer_weights(served, patch, 416, b"")
        with pytest.raises(DownloadError, match="the hub answered 416. Try again later"):
            download(NAME, endpoint=served.endpoint, folder=tmp_path)
    served.requests.clear()
    download(NAME, endpoint=served.endpoint, folder=tmp_path)
    assert ("GET", "model.safetensors", None) in served.requests


def test_a_file_changed_between_cut_and_resume_is_fetched_anew(served, tmp_path):
    served.cut_after = [20_000] + [0] * 5
    with pytest.raises(DownloadError):
        download(NAME, endpoint=served.endpoint, folder=tmp_path)
    changed = served.files[MODEL.repo, "model.safetensors"][::-1]
    served.files[MODEL.repo, "model.safetensors"] = changed
    folder = download(NAME, endpoint=served.endpoint, folder=tmp_path)
    assert (folder / "model.safetensors").read_bytes() == changed


def test_progress_can_stop_a_download_which_is_then_resumed(served, tmp_path):
    class Stopped(Exception):
        pass

    def stop(done, total):
        if done > 5000:
            raise Stopped

    with pytest.raises(Stopped):
        download(NAME, stop, endpoint=served.endpoint, folder=tmp_path)
    assert not (tmp_path / MODEL.name).exists()
    assert download(NAME, endpoint=served.endpoint, folder=tmp_path).is_dir()


def test_a_download_can_be_stopped_while_the_hub_is_silent():
    class Stopped(Exception):
        pass

    def stop(done, total):
        raise Stopped

    silent, since = threading.Event(), time.monotonic()
    try:
        with pytest.raises(Stopped):
            module()._watched(lambda: silent.wait(60), module()._Meter(100, stop))
        assert time.monotonic() - since < 30
    finally:
        silent.set()


@pytest.mark.parametrize("declared", ["f" * 64, "f" * 40])
def test_a_file_of_another_hash_than_declared_is_refused_and_removed(served, tmp_path, declared):
    served.hashes["model.safetensors"] = declared
    with pytest.raises(DownloadError, match="model.safetensors arrived with another hash"):
        download(NAME, endpoint=served.endpoint, folder=tmp_path)
    assert not (tmp_path / MODEL.name).exists()
    assert not list((tmp_path / PARTIAL).rglob("model.safetensors*"))


def test_a_git_hash_of_a_small_file_is_checked_and_right(served, tmp_path):
    data = served.files[MODEL.repo, "config.json"]
    served.hashes["config.json"] = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    assert download(NAME, endpoint=served.endpoint, folder=tmp_path).is_dir()


def test_a_known_hash_is_stronger_than_the_hubs(served, tmp_path, monkeypatch):
    known = dataclasses.replace(MODEL, sha256="a" * 64)
    monkeypatch.setattr(module(), "released", lambda name: known)
    with pytest.raises(DownloadError, match="another hash than aaaa"):
        download(NAME, endpoint=served.endpoint, folder=tmp_path)


@pytest.mark.parametrize("declared", ["just-a-version", ""])
def test_what_was_not_checked_is_said(served, tmp_path, declared):
    served.hashes["model.safetensors"] = declared
    notes = []
    folder = download(NAME, endpoint=served.endpoint, folder=tmp_path, note=notes.append)
    sentence = "Not checked, as the hub declares no hash: model.safetensors; only the size was compared."
    assert len(notes) == 1 and sentence in notes[0]
    card = (folder / "README.md").read_text()
    assert sentence in card and "checked against the hash" not in card


def test_nothing_is_said_where_all_was_checked(served, tmp_path):
    notes = []
    folder = download(NAME, endpoint=served.endpoint, folder=tmp_path, note=notes.append)
    assert notes == [] and "checked against the hash the hub declares" in (folder / "README.md").read_text()


@pytest.fixture
def raw_hub():
    """raw_hub(*parts, every=0): the address of a hub that answers every request with these bytes, with pauses."""
    sockets = []

    def start(*parts, every=0.0):
        pause, listener = threading.Event(), socket.create_server(("127.0.0.1", 0))
        sockets.append(listener)

        def serve():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    connection.recv(65536)
                    for part in parts:
                        connection.sendall(part)
                        pause.wait(every)

        threading.Thread(target=serve, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in sockets:
        listener.close()


def test_a_hub_that_drips_its_headers_is_left(raw_hub, tmp_path, monkeypatch):
    monkeypatch.setattr(module(), "_PATIENCE", 0.5)
    drops = (bytes([letter]) for letter in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"a" * 1000)
    endpoint, since = raw_hub(*drops, every=0.05), time.monotonic()
    with pytest.raises(DownloadError, match="the hub sent 0 bytes in 0 seconds"):
        download(NAME, endpoint=endpoint, folder=tmp_path)
    assert time.monotonic() - since < 30  # all of it takes longer


def test_a_hub_that_drips_the_weights_is_left_and_the_part_is_kept(served, tmp_path, tiny_folder, monkeypatch):
    monkeypatch.setattr(module(), "_PATIENCE", 0.5)
    served.drip = 0.05
    since, waiting = time.monotonic(), threading.active_count()
    with pytest.raises(DownloadError, match="the hub sent .* bytes in .* seconds.*the next try resumes it"):
        download(NAME, endpoint=served.endpoint, folder=tmp_path)
    assert time.monotonic() - since < 30 and not (tmp_path / MODEL.name).exists()
    served.drip = 0
    folder = download(NAME, endpoint=served.endpoint, folder=tmp_path)
    assert (folder / "model.safetensors").read_bytes() == (tiny_folder / "model.safetensors").read_bytes()
    assert threading.active_count() <= waiting + 4  # of the hub and of the call that was left


# raw_hub closes each connection after its answer. Without this header the next request can be sent on one that closes.
_CLOSED = b"Connection: close\r\n"
_HEAD = b'HTTP/1.1 200 OK\r\nETag: "x"\r\n' + _CLOSED + b"X-Repo-Commit: " + b"0" * 40 + b"\r\n"
_SENT_ON = b'HTTP/1.1 302 Found\r\nETag: "x"\r\n' + _CLOSED + b"Content-Length: 0\r\nLocation: "


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"\x16\x03\x01garbage\r\n\r\n", "its answer is not HTTP"),
        (_HEAD + b"Transfer-Encoding: chunked\r\n\r\nzzzz\r\n", "its answer is not HTTP"),
        (_HEAD + b"Content-Length: many\r\n\r\n", "its answer is not HTTP"),
        (_HEAD + b"Content-Length: 3\r\nX-Linked-Size: -7\r\n\r\nabc", "of another size than it declares"),
        (_HEAD + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", "cannot be unpacked"),
        (_SENT_ON + b"http://[bad\r\n\r\n", "the hub's answer cannot be read"),
        (_SENT_ON + b"ftp://host/file\r\n\r\n", "not on the web"),
        (b"", "the hub broke off"),
        (b"HTTP/1.1 400 Bad\r\nX-Error-Message: \x1b[31m<script>\r\nContent-Length: 0\r\n\r\n", "answered 400"),
    ],
)
def test_a_lying_hub_is_one_clean_sentence(raw_hub, tmp_path, answer, reason):
    with pytest.raises(DownloadError, match=f"{MODEL.name} was not downloaded: .*{reason}") as caught:
        download(NAME, endpoint=raw_hub(answer), folder=tmp_path)
    output = str(caught.value)
    assert "bytearray" not in output and "garbage" not in output and "script" not in output and output.isprintable()
    assert not (tmp_path / MODEL.name).exists()


def test_a_repository_without_safetensors_says_what_is_missing(served, tmp_path):
    del served.files[MODEL.repo, "model.safetensors"]
    served.files[MODEL.repo, "pytorch_model.bin"] = b"never read"
    with pytest.raises(DownloadError, match="has no model.safetensors.*pytorch_model.bin, are never read"):
        download(NAME, endpoint=served.endpoint, folder=tmp_path)


def test_an_unknown_repository_is_a_sentence(hub, tmp_path):
    with pytest.raises(DownloadError, match=re.escape(MODEL.repo)):
        download(NAME, endpoint=hub.endpoint, folder=tmp_path)


def test_a_server_error_names_its_number(served, tmp_path):
    served.status = 503
    with pytest.raises(DownloadError, match="503"):
        download(NAME, endpoint=served.endpoint, folder=tmp_path)


def test_no_network_is_a_sentence(tmp_path):
    with pytest.raises(DownloadError, match="bert_uncased_L-2_H-128_A-2 was not downloaded"):
        download(NAME, endpoint="http://127.0.0.1:9", folder=tmp_path)


def test_a_full_disk_is_noticed_before(served, tmp_path, monkeypatch):
    usage = module().shutil.disk_usage(tmp_path)
    monkeypatch.setattr(module().shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(DownloadError, match="disk of .* is full"):
        download(NAME, endpoint=served.endpoint, folder=tmp_path)
    assert not any(method == "GET" for method, _, _ in served.requests)


def test_a_models_folder_that_cannot_be_written_is_a_sentence(served, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DownloadError, match="cannot be written"):
        download(NAME, endpoint=served.endpoint, folder=tmp_path / "file")


def test_a_disk_that_fills_up_on_the_way_is_a_sentence(served, tmp_path, monkeypatch):
    from huggingface_hub import file_download

    def full(url, file, **_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(file_download, "http_get", full)
    with pytest.raises(DownloadError, match="disk of .* is full"):
        download(NAME, endpoint=served.endpoint, folder=tmp_path)
    assert not (tmp_path / MODEL.name).exists()


def test_an_unknown_name_is_answered_with_the_nearest(tmp_path):
    with pytest.raises(UnknownModel, match="bert-base-cased"):
        download("bert-base-case", folder=tmp_path)
    with pytest.raises(UnknownModel):
        download("../../etc", folder=tmp_path)


def test_the_same_model_is_not_downloaded_by_two_at_once(served, tmp_path):
    inside, go_on = threading.Event(), threading.Event()

    def wait(done, total):
        inside.set()
        go_on.wait(60)

    first = threading.Thread(target=download, args=(NAME, wait, served.endpoint, tmp_path))
    first.start()
    assert inside.wait(60)
    with pytest.raises(DownloadError, match="being downloaded already"):
        download(NAME, endpoint=served.endpoint, folder=tmp_path)
    go_on.set()
    first.join(60)
    assert (tmp_path / MODEL.name).is_dir()


def test_the_endpoint_of_the_environment_is_used(served, tmp_path, monkeypatch):
    from huggingface_hub import constants

    # The hub's library reads HF_ENDPOINT when it is imported.
    monkeypatch.setattr(constants, "ENDPOINT", served.endpoint)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", served.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    )
    assert download(NAME, folder=tmp_path).is_dir()


def test_an_empty_folder_of_the_models_name_is_filled(served, tmp_path):
    (tmp_path / MODEL.name).mkdir()
    read(download(NAME, endpoint=served.endpoint, folder=tmp_path))


def test_a_folder_without_weights_is_not_taken_for_the_model_nor_written_over(served, tmp_path):
    (tmp_path / MODEL.name).mkdir()
    (tmp_path / MODEL.name / "config.json").write_text("mine")
    with pytest.raises(DownloadError, match=f"{MODEL.name} exists but holds no weights"):
        download(NAME, endpoint=served.endpoint, folder=tmp_path)
    assert (tmp_path / MODEL.name / "config.json").read_text() == "mine" and served.requests == []
