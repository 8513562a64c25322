"""Paths in a bucket: what is written there is what is written locally, and a training goes on from there."""

import json

import fsspec
import numpy as np
import pytest

from bert_tf.cli import main
from bert_tf.errors import InputError
from bert_tf.resources import remote
from bert_tf.resources.remote import Mirror, fetch, find_remote

TEXT = "\n\n".join(f"the cat ran {number} far\nshe ran and the cat ran\nthe dog sat" for number in range(40))


@pytest.fixture
def bucket():
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    yield memory
    memory.store.clear()


def test_a_file_of_inputs_is_read_from_and_written_to_a_bucket(bucket, tiny_folder, tmp_path, capsys):
    lines = "".join(json.dumps({"text_a": f"the cat {number} [MASK]"}) + "\n" for number in range(3))
    bucket.pipe_file("/in.jsonl", lines.encode())
    (tmp_path / "in.jsonl").write_text(lines)
    bucket.put(str(tiny_folder), "/models/tiny-cased", recursive=True)
    local = [
        "--model",
        str(tiny_folder),
        "--input",
        str(tmp_path / "in.jsonl"),
        "--output",
        str(tmp_path / "out.jsonl"),
    ]
    assert main(["predict", *local, "--quiet"]) == 0
    urls = ["--model", "memory://models/tiny-cased", "--input", "memory://in.jsonl", "--output", "memory://a/out.jsonl"]
    assert main(["predict", *urls, "--quiet"]) == 0
    assert bucket.cat_file("/a/out.jsonl") == (tmp_path / "out.jsonl").read_bytes()
    assert main(["predict", *urls[:3], "memory://none.jsonl", *urls[4:]]) == 2
    assert "There is no memory://none.jsonl." in capsys.readouterr().err


@pytest.mark.slow
def test_a_training_goes_on_from_its_bucket(bucket, tiny_folder, tmp_path, monkeypatch):
    """Killed after a checkpoint, with everything on the machine gone, it ends with the weights of a whole run."""
    for part in range(2):
        bucket.pipe_file(f"/text/{part}.txt", TEXT.encode())
        (tmp_path / f"{part}.txt").write_text(TEXT)
    options = ["--vocab", str(tiny_folder), "--init", str(tiny_folder), "--length", "32", "--batch-size", "4"]
    options += ["--steps", "6", "--save-every", "2", "--log-every", "1"]
    whole = ["pretrain", "--text", str(tmp_path / "0.txt"), str(tmp_path / "1.txt"), "--output", str(tmp_path / "run")]
    assert main([*whole, *options]) == 0
    killed = ["pretrain", "--text", "memory://text/*.txt", "--output", "memory://runs/one", *options]
    send, count = Mirror.send, 0

    def send_and_die(mirror):
        nonlocal count
        count += 1
        if count > 1:
            raise SystemExit(9)  # the bucket has the first checkpoint; nothing is sent afterwards
        send(mirror)

    monkeypatch.setattr(Mirror, "send", send_and_die)
    assert main(killed) == 9
    monkeypatch.setattr(Mirror, "send", send)
    assert bucket.exists("/runs/one/checkpoints/step-2/state.json")
    assert not bucket.exists("/runs/one/checkpoints/step-4/state.json")
    assert main(killed) == 0
    there = fetch("memory://runs/one", tmp_path / "fetched")
    steps = [[json.loads(line) for line in (run / "metrics.jsonl").open()] for run in (there, tmp_path / "run")]
    assert [record["step"] for record in steps[0]] == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose(*[[record["loss"] for record in records] for records in steps], rtol=1e-5)
    names = [{path.relative_to(run) for path in run.rglob("*.safetensors")} for run in (there, tmp_path / "run")]
    assert names[0] == names[1]


def test_the_marker_of_a_folder_is_sent_last_and_deleted_first(bucket, tmp_path, monkeypatch):
    mirror = Mirror("memory://run", tmp_path)
    (mirror.local / "step-1").mkdir(parents=True)
    (mirror.local / ".step-2.part").mkdir()
    for name in ("step-1/state.json", "step-1/zeros.bin", ".step-2.part/state.json"):
        (mirror.local / name).write_text(name)
    acts = []
    monkeypatch.setattr(bucket, "put_file", lambda local, path: acts.append(path))
    monkeypatch.setattr(bucket, "rm_file", lambda path: acts.append(f"gone {path}"))
    mirror.send()
    assert acts == ["/run/step-1/zeros.bin", "/run/step-1/state.json"]
    acts.clear()
    mirror.send()
    assert acts == []  # nothing has changed
    for name in ("state.json", "zeros.bin"):
        (mirror.local / "step-1" / name).unlink()
    mirror.send()
    assert acts == ["gone /run/step-1/state.json", "gone /run/step-1/zeros.bin"]


def test_files_of_a_pattern_are_sorted_and_a_missing_package_is_named(bucket, monkeypatch):
    for name in "ba":
        bucket.pipe_file(f"/text/{name}.txt", b"")
    assert find_remote("memory://text/*.txt") == ["memory:///text/a.txt", "memory:///text/b.txt"]
    assert not remote.is_remote("C:/texts") and not remote.is_remote("the cat")
    with pytest.raises(InputError, match="nothing://x cannot be opened: .*bert-tf\\[remote\\]"):
        find_remote("nothing://x")
