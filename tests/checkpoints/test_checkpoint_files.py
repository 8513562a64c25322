"""Files and folders that appear whole or not at all, wherever they are to be written."""

import errno
import json
import math
import os
import subprocess
import sys
import threading
from contextlib import nullcontext

import numpy as np
import pytest

from bert_tf import files
from bert_tf.checkpoints import CheckpointError, read, save
from bert_tf.checkpoints.formats.safetensors_folder import write_tensors
from bert_tf.files import (
    atomic_folder,
    atomic_write,
    is_missing_or_empty,
    read_json,
    write_json,
    write_text,
)
from bert_tf.folder_lock import FolderInUse
from tests.conftest import small_disk


def test_a_file_is_replaced_when_whole_and_left_alone_otherwise(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")
    with pytest.raises(RuntimeError), atomic_write(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError("cut")
    assert path.read_text() == "before"
    write_text(path, "after")
    assert path.read_text() == "after" and os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize(
    "system, refusals, is_written", [("win32", 2, True), ("win32", 999, False), ("linux", 2, False)]
)
def test_a_file_that_windows_does_not_replace_while_it_is_read_is_replaced_later(
    tmp_path, monkeypatch, system, refusals, is_written
):
    path, replace, tries = tmp_path / "a.txt", os.replace, []
    path.write_text("before")

    def refusing(*paths):
        tries.append(paths)
        if len(tries) <= refusals:
            raise PermissionError(errno.EACCES, "Access is denied", *map(str, paths))
        replace(*paths)

    monkeypatch.setattr(files.sys, "platform", system)
    monkeypatch.setattr(files.os, "replace", refusing)
    monkeypatch.setattr(files, "_PATIENCE", 0.1)
    with nullcontext() if is_written else pytest.raises(PermissionError):
        write_text(path, "after")
    assert path.read_text() == ("after" if is_written else "before") and os.listdir(tmp_path) == ["a.txt"]
    assert len(tries) == 1 or system == "win32"


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "real.txt").write_text("before")
    for name in ("real.txt", "new.txt"):
        link = tmp_path / f"link to {name}"
        link.symlink_to(tmp_path / "far" / name)
        write_text(link, "after")
        assert link.is_symlink() and (tmp_path / "far" / name).read_text() == "after"
    assert sorted(os.listdir(tmp_path / "far")) == ["new.txt", "real.txt"]


def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()), daemon=True)
    reader.start()
    write_text(pipe, "what is sent")
    reader.join(10)
    assert got == ["what is sent"] and pipe.is_fifo() and os.listdir(tmp_path) == ["pipe"]


def test_a_place_that_cannot_be_written_is_named_as_it_was_given(tmp_path):
    for path in (tmp_path / "nowhere" / "a.txt", tmp_path / "file" / "a.txt", tmp_path):
        (tmp_path / "file").write_text("no folder")
        with pytest.raises(OSError) as error:
            write_text(path, "text")
        assert error.value.filename == str(path)


def test_a_full_disk_is_told_with_the_files_name(tmp_path):
    with pytest.raises(OSError) as error, atomic_write(tmp_path / "a.txt"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert error.value.filename == str(tmp_path / "a.txt") and os.listdir(tmp_path) == []


def test_weights_that_find_no_room_are_told_as_the_systems_error(tiny, tmp_path):
    with small_disk(8000), pytest.raises(OSError) as error:
        save(tmp_path / "model", tiny.config, tiny.tokenizer, tiny.model)
    assert error.value.errno == errno.EFBIG and error.value.filename == str(tmp_path / "model" / "model.safetensors")
    assert os.listdir(tmp_path / "model") == []


def test_the_old_weights_stay_where_the_new_find_no_room(tmp_path):
    old, large = {"a": np.ones(10, np.float32)}, {"a": np.zeros(9000, np.float32)}
    write_tensors(tmp_path, [old], [40])
    before = (tmp_path / "model.safetensors").read_bytes()
    with small_disk(8000), pytest.raises(OSError):
        write_tensors(tmp_path, [old, large], [40, 36000], max_shard_bytes=1000)
    assert os.listdir(tmp_path) == ["model.safetensors"] and (tmp_path / "model.safetensors").read_bytes() == before


def test_the_weights_of_earlier_saves_are_removed_and_other_files_stay(tmp_path):
    kept = ["model_best.safetensors", "model.epoch1.safetensors", "model-old.safetensors", ".model.safetensors"]
    removed = ["model-00001-of-00002.safetensors", ".12-model.safetensors", ".12-model-00002-of-00002.safetensors"]
    for name in (*kept, *removed):
        (tmp_path / name).touch()
    names = write_tensors(tmp_path, [{"a": np.ones(10, np.float32)}], [40])
    assert names == ["model.safetensors"] and sorted(os.listdir(tmp_path)) == sorted([*kept, *names])


def test_weights_can_be_read_by_whom_other_files_can(tiny, tmp_path):
    """A model that one account has trained is served by another."""
    (tmp_path / "other").touch()
    save(tmp_path / "model", tiny.config, tiny.tokenizer, tiny.model)
    assert {path.stat().st_mode for path in (tmp_path / "model").iterdir()} == {(tmp_path / "other").stat().st_mode}


def test_weights_behind_a_link_are_written_where_it_leads(tiny, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").symlink_to(tmp_path / "far" / "weights")
    save(tmp_path / "model", tiny.config, tiny.tokenizer, tiny.model)
    assert (tmp_path / "model" / "model.safetensors").is_symlink() and os.listdir(tmp_path / "far") == ["weights"]
    read(tmp_path / "model")


def test_an_empty_folder_is_filled_and_stays_the_same_folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    node = os.stat(".").st_ino
    with atomic_folder(".") as folder:
        (folder / "a.txt").write_text("a")
        (folder / "inner").mkdir()
    assert os.stat(tmp_path / "here").st_ino == node and sorted(os.listdir(".")) == ["a.txt", "inner"]
    assert not is_missing_or_empty(".")


def test_a_folder_that_was_not_finished_leaves_nothing(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new"):
        with pytest.raises(RuntimeError), atomic_folder(tmp_path / name) as folder:
            (folder / "a.txt").write_text("a")
            raise RuntimeError("cut")
        assert is_missing_or_empty(tmp_path / name)
    assert os.listdir(tmp_path) == ["empty"] and os.listdir(tmp_path / "empty") == []


@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_has_one_writer_at_a_time(tmp_path, exists):
    """The second one would delete the files of the first, and both would be mixed."""
    target = tmp_path / "new"
    if exists:
        target.mkdir()
    with atomic_folder(target) as folder:
        (folder / "a.txt").write_text("first")
        with pytest.raises(FolderInUse, match="Another process is writing .*new; wait"), atomic_folder(target):
            pass
        assert (folder / "a.txt").read_text() == "first" and is_missing_or_empty(target)
    # A writer that looked before the first one had ended.
    with pytest.raises(CheckpointError, match="new already exists and is not empty"), atomic_folder(target):
        pass
    assert os.listdir(tmp_path) == ["new"] and os.listdir(target) == ["a.txt"]


@pytest.mark.parametrize("exists", [True, False])
def test_what_a_killed_writer_left_is_deleted_by_the_next(tmp_path, exists):
    target = tmp_path / "new"
    if exists:
        target.mkdir()
    killed = f"import os, sys; from bert_tf.files import atomic_folder\nwith atomic_folder({str(target)!r}) as folder: "
    subprocess.run([sys.executable, "-c", f"{killed}(folder / 'half.txt').touch(); os._exit(9)"])
    assert any(path.name == "half.txt" for path in tmp_path.rglob("*")) and is_missing_or_empty(target)
    with atomic_folder(target) as folder:
        (folder / "a.txt").touch()
    assert os.listdir(tmp_path) == ["new"] and os.listdir(target) == ["a.txt"]


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, '{"a": ' + "9" * 5000 + "}"])
def test_json_that_python_itself_refuses_is_a_sentence(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(CheckpointError, match="x.json"):
        read_json(tmp_path / "x.json")
    (tmp_path / "x.json").write_text(json.dumps({"a": 1}))
    assert read_json(tmp_path / "x.json") == {"a": 1}


def test_an_undefined_number_is_written_as_null(tmp_path):
    write_json(tmp_path / "x.json", {"a": [math.nan, 1.5], "b": {"c": -math.inf}, "d": (2, None)})
    assert read_json(tmp_path / "x.json") == {"a": [None, 1.5], "b": {"c": None}, "d": [2, None]}
