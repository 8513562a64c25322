"""Paths in a bucket: what is written there is what is written locally, and a training goes on from there."""

import argparse
import json
import re
import shutil
from pathlib import Path

import fsspec
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_tf.cli import main
from bert_tf.cli.shared import answers
from bert_tf.errors import InputError
from bert_tf.resources import remote
from bert_tf.resources.remote import Mirror, fetch, find_remote, local_copies
from tests.app.random_task_models import save_tasks

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


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The folder of a model that predicts masks ("plain"), and of task models ("classes")."""
    home = tmp_path_factory.mktemp("models")
    save_tasks(home)
    return home


@pytest.fixture(params=["plain", "classes"])
def predict_in_a_bucket(request, bucket, models, monkeypatch):
    """predict(*options) -> exit code of `predict` with all its files in a bucket."""
    for path in (models / request.param).iterdir():
        bucket.pipe_file(f"/models/{request.param}/{path.name}", path.read_bytes())
    lines = [json.dumps({"text_a": f"the cat ran {n} [MASK]", "text": f"the cat ran {n}"}) for n in range(40)]
    bucket.pipe_file("/in.jsonl", "\n".join(lines).encode())
    monkeypatch.setattr(answers, "_SAVE_EVERY", 0)
    monkeypatch.setattr(answers, "_SEND_EVERY", 0)
    urls = ["--model", f"memory://models/{request.param}", "--input", "memory://in.jsonl"]

    def predict(*options, output="out"):
        argv = ["predict", *urls, "--output", f"memory://a/{output}.jsonl", "--quiet", "--batch-size", "4", *options]
        return main(argv)

    return predict


@pytest.mark.parametrize("how", ["interrupted", "killed"])
def test_predictions_for_a_file_go_on_in_a_bucket(bucket, predict_in_a_bucket, monkeypatch, capsys, how):
    assert predict_in_a_bucket(output="straight") == 0
    write, count = answers.Answers.write, 0

    def write_and_stop(self, *args, **named):
        nonlocal count
        count += 1
        if count > 17:
            if how == "killed":  # what a killed process would do at its end is not done
                monkeypatch.setattr(Mirror, "send", lambda self: None)
                monkeypatch.setattr(answers._PartialFile, "keep", lambda self: None)
            raise KeyboardInterrupt
        write(self, *args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(answers.Answers, "write", write_and_stop)
        send, keep = Mirror.send, answers._PartialFile.keep
        assert predict_in_a_bucket() == 130
    monkeypatch.setattr(Mirror, "send", send)
    monkeypatch.setattr(answers._PartialFile, "keep", keep)
    message = capsys.readouterr().err
    assert ("17 answers are kept in memory://a/out.jsonl.partial; the same" in message) == (how == "interrupted")
    noted = json.loads(bucket.cat_file("/a/out.jsonl.partial.json"))
    assert noted["good"] >= 16 and len(bucket.cat_file("/a/out.jsonl.partial")) >= noted["bytes"]
    assert predict_in_a_bucket() == 2
    assert "memory://a/out.jsonl.partial holds the answers of an interrupted run" in capsys.readouterr().err
    written = []
    monkeypatch.setattr(
        answers.Answers, "write", lambda self, *args, **named: (written.append(1), write(self, *args, **named))
    )
    assert predict_in_a_bucket("--resume") == 0
    assert len(written) == 40 - noted["good"]
    there, straight = (
        [json.loads(line) for line in bucket.cat_file(f"/a/{name}.jsonl").splitlines()] for name in ("out", "straight")
    )
    assert len(there) == 40 and [set(line) for line in there] == [set(line) for line in straight]
    assert sorted(bucket.find("/a")) == ["/a/out.jsonl", "/a/straight.jsonl"]


def test_an_input_that_has_changed_in_its_bucket_is_refused(bucket, predict_in_a_bucket, monkeypatch, capsys):
    write = answers.Answers.write
    calls = iter(range(18))
    with monkeypatch.context() as patch:
        patch.setattr(
            answers.Answers,
            "write",
            lambda self, *args, **named: write(self, *args, **named) if next(calls) < 9 else _interrupt(),
        )
        assert predict_in_a_bucket() == 130
    bucket.pipe_file("/in.jsonl", bucket.cat_file("/in.jsonl").replace(b"cat ran 30", b"dog ran 30"))
    assert predict_in_a_bucket("--resume") == 2
    assert "cannot be gone on with: memory:///in.jsonl has changed since." in capsys.readouterr().err


def _interrupt():
    raise KeyboardInterrupt


@pytest.mark.usefixtures("few_updates")
@pytest.mark.slow
def test_a_training_goes_on_from_its_bucket(bucket, tiny_folder, tmp_path, monkeypatch):
    """Killed after a checkpoint, with everything on the machine gone, it ends with the weights of a whole run."""
    for part in range(2):
        bucket.pipe_file(f"/text/{part}.txt", TEXT.encode())
        (tmp_path / f"{part}.txt").write_text(TEXT)
    bucket.put(str(tiny_folder), "/models/tiny", recursive=True)
    options = ["--freeze-layers", "1", "--length", "32", "--batch-size", "4"]
    options += ["--steps", "6", "--save-every", "2", "--log-every", "1"]
    whole = ["pretrain", "--text", str(tmp_path / "0.txt"), str(tmp_path / "1.txt"), "--output", str(tmp_path / "run")]
    assert main([*whole, *options, "--init", str(tiny_folder)]) == 0
    killed = ["pretrain", "--text", "memory://text/*.txt", "--output", "memory://runs/one", *options]
    killed += ["--init", "memory://models/tiny"]
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
    assert json.loads((there / "settings.json").read_text())["settings"]["init"] == "memory:///models/tiny"
    exported = tmp_path / "exported"
    assert main(["export", "memory://runs/one", str(exported)]) == 0  # its frozen layers are fetched again
    np.testing.assert_array_equal(*(_first_matrix(folder) for folder in (exported, tiny_folder)))


def _first_matrix(folder):
    weights = load_file(folder / "model.safetensors")
    return weights["bert.encoder.layer.0.attention.self.query.weight"]


def test_low_rank_updates_of_a_model_in_a_bucket_are_refused_before_the_training(bucket, tiny_folder, tmp_path, capsys):
    bucket.put(str(tiny_folder), "/models/start", recursive=True)
    (tmp_path / "train.csv").write_text("text,label\nthe cat ran,a\nthe dog sat,b\n" * 4)
    files = ["--train", str(tmp_path / "train.csv"), "--output", str(tmp_path / "new")]
    for option in (["--lora", "2"], ["--delta"]):
        assert main(["finetune", "classify", "--model", "memory://models/start", *files, *option]) == 2
        assert "memory:///models/start lies in a bucket: copy it to a local folder" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_an_evaluation_names_what_lies_in_a_bucket_as_the_user_does(bucket, models, tmp_path, capsys):
    for path in (models / "classes").iterdir():
        bucket.pipe_file(f"/models/classes/{path.name}", path.read_bytes())
    settings = json.loads((models / "classes" / "task.json").read_text())
    bucket.pipe_file("/test.csv", f"text,label\nthe cat ran,{settings['labels'][0]}\n".encode())
    urls = ["--model", "memory://models/classes", "--data", "memory://test.csv"]
    assert main(["evaluate", "classify", *urls, "--json", "--quiet"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["model"], told["data"]) == ("memory:///models/classes", "memory:///test.csv")


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


def test_files_of_one_name_in_several_folders_stay_apart(bucket):
    for name in "ab":
        bucket.pipe_file(f"/c/{name}/data.txt", f"text of {name}".encode())
    args = argparse.Namespace(text=["memory://c/*/data.txt"])
    with local_copies(args):
        assert [Path(path).read_text() for path in args.text] == ["text of a", "text of b"]


def test_what_a_bucket_does_not_take_is_kept_and_named(bucket, tmp_path, monkeypatch, capsys):
    def refuse(local, path):
        if "broken" in path:
            raise ConnectionError("503 slow down")
        return put(local, path)

    put = bucket.put_file
    monkeypatch.setattr(bucket, "put_file", refuse)
    args = argparse.Namespace(output="memory://broken/out.txt", target="memory://whole/report.txt")
    with pytest.raises(InputError, match="503 slow down. What was written is kept in .*out.txt") as error:
        with local_copies(args):
            Path(args.output).write_text("hours of work")
            Path(args.target).write_text("report")
            remote.send_mirrors(args.output)  # at a checkpoint it is no reason to end
            assert "It is sent again later" in capsys.readouterr().err
    kept = Path(str(error.value).split("kept in ")[1].rstrip("."))
    assert kept.read_text() == "hours of work" and bucket.cat_file("/whole/report.txt") == b"report"
    shutil.rmtree(kept.parents[2])


def test_an_interrupted_sending_keeps_what_was_written_and_names_it(bucket, monkeypatch, capsys):
    def interrupt(local, path):
        raise KeyboardInterrupt

    monkeypatch.setattr(bucket, "put_file", interrupt)
    args = argparse.Namespace(output="memory://interrupted/out.txt")
    with pytest.raises(KeyboardInterrupt):
        with local_copies(args):
            Path(args.output).write_text("hours of work")
    kept = Path(re.search(r"What was written is kept in (.*out\.txt)", capsys.readouterr().err)[1])
    assert kept.read_text() == "hours of work"
    shutil.rmtree(kept.parents[2])


def test_an_object_is_not_read_and_written_at_once(bucket, capsys):
    bucket.pipe_file("/same/in.jsonl", b'{"text_a": "the [MASK]"}\n')
    urls = ["--input", "memory://same/in.jsonl", "--output", "memory:///same/in.jsonl"]
    assert main(["predict", *urls, "--model", "bert-small-uncased-embedded"]) == 2
    assert "are the same file, memory:///same/in.jsonl: give another name" in capsys.readouterr().err
    assert bucket.cat_file("/same/in.jsonl") == b'{"text_a": "the [MASK]"}\n'


def test_the_checksums_of_a_folder_in_a_bucket_are_compared_and_not_written(bucket, capsys):
    bucket.pipe_file("/checked/model/config.json", b"{}")
    bucket.pipe_file("/checked/model/model.safetensors", b"")
    assert main(["check", "memory://checked/model"]) == 2
    message = capsys.readouterr().err
    assert "memory:///checked/model has no checksums.json" in message and "check FOLDER --write" in message
    assert main(["check", "memory://checked/model", "--write"]) == 2
    assert "--write is for local folders: copy memory:///checked/model here" in capsys.readouterr().err
    bucket.pipe_file("/checked/model/checksums.json", b"{}")
    assert main(["check", "memory://checked/model"]) == 0
    assert capsys.readouterr().out == "memory:///checked/model: whole.\n"


def test_a_local_file_whose_name_looks_like_a_pattern_is_meant_itself(tmp_path):
    for name in ("t[1].txt", "t1.txt"):
        (tmp_path / name).touch()
    assert find_remote(str(tmp_path / "t[1].txt")) == [str(tmp_path / "t[1].txt")]


def test_files_of_a_pattern_are_sorted_and_a_missing_package_is_named(bucket, monkeypatch):
    for name in "ba":
        bucket.pipe_file(f"/text/{name}.txt", b"")
    assert find_remote("memory://text/*.txt") == ["memory:///text/a.txt", "memory:///text/b.txt"]
    assert not remote.is_remote("C:/texts") and not remote.is_remote("the cat")
    with pytest.raises(InputError, match="nothing://x cannot be opened: .*pip install fsspec s3fs"):
        find_remote("nothing://x")
