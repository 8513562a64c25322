"""`predict --input` that is interrupted: its answers are kept, and `--resume` goes on with them."""

import csv
import json
import os

import pytest

from bert_tf.cli import main
from bert_tf.cli.shared import answers
from bert_tf.folder_lock import only_writer
from tests.app.random_task_models import save_tasks
from tests.conftest import small_disk

INPUTS = 40


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The folder of a model that predicts masks ("plain"), and of task models ("classes")."""
    home = tmp_path_factory.mktemp("models")
    save_tasks(home)
    return home


@pytest.fixture
def source(tmp_path):
    """A CSV file and a file of JSON lines with the same texts, of which two cannot be answered; both as (path, ...)."""
    texts = [f"the cat ran {number} [MASK]" for number in range(INPUTS)]
    texts[0] = texts[25] = ""
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text_a": text}) + "\n" for text in texts))
    (tmp_path / "in.csv").write_text("text,more\n" + "".join(f'"{text}",a\n' for text in texts))
    return tmp_path


@pytest.fixture(params=["jsonl", "csv"])
def predict(request, models, source, monkeypatch):
    """predict(*options) -> exit code of `predict --input`; and `.target`."""
    monkeypatch.setattr(answers, "_SAVE_EVERY", 0)
    kind = request.param
    model = models / ("plain" if kind == "jsonl" else "classes")

    def run(*options, target="out"):
        argv = ["--input", source / f"in.{kind}", "--output", source / f"{target}.{kind}", "--model", model]
        return main(["predict", *map(str, argv), "--quiet", "--batch-size", "4", *map(str, options)])

    run.target = source / f"out.{kind}"
    run.partial = source / f"out.{kind}.partial"
    run.kind = kind
    return run


def rows(path):
    if path.suffix == ".csv":
        return list(csv.DictReader(path.open(encoding="utf-8")))
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def interrupt_after(monkeypatch, count):
    """Ctrl-C comes while an answer after so many is written."""
    true_write, written = answers.Answers.write, []

    def write(self, *args, **named):
        if len(written) == count:
            raise KeyboardInterrupt
        written.append(1)
        true_write(self, *args, **named)

    return monkeypatch.setattr(answers.Answers, "write", write)


def same_answers(one, other):
    """Numbers may differ in their last digits, because batches begin elsewhere."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_answers(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_answers, one, other))
    try:
        return float(one) == pytest.approx(float(other), abs=1e-5)
    except (TypeError, ValueError):
        return one == other or same_answers(json.loads(one), json.loads(other))


@pytest.mark.parametrize("count", [1, 17, 30])
def test_after_ctrl_c_the_answers_are_kept_and_gone_on_with(predict, capsys, count):
    assert predict(target="straight") == 3
    straight = rows(predict.target.with_name(f"straight.{predict.kind}"))
    with pytest.MonkeyPatch.context() as patch:
        interrupt_after(patch, count + (predict.kind == "jsonl"))
        assert predict() == 130
    assert f"answers are kept in {predict.partial}; the same command with --resume goes on." in capsys.readouterr().err
    assert len(rows_of_partial(predict)) == count + 1 and not predict.target.exists()
    assert predict() == 2 and "go on with --resume, or delete it" in capsys.readouterr().err
    assert predict("--resume") == 3
    assert f"{INPUTS - 2} answered, 2 bad" in capsys.readouterr().err
    assert len(straight) == INPUTS and same_answers(rows(predict.target), straight)
    assert not list(predict.target.parent.glob("*partial*"))


def rows_of_partial(predict):
    whole = predict.partial.with_name(f"copy.{predict.kind}")
    whole.write_bytes(predict.partial.read_bytes())
    return rows(whole)


def test_a_full_disk_keeps_the_answers(predict, capsys):
    with small_disk(9000 if predict.kind == "jsonl" else 1500):
        code = predict()
    output = capsys.readouterr().err
    assert code == 2 and "answers are kept in" in output and f"{predict.target}: File too large" in output
    done = int(output[: output.index(" answers are kept")].splitlines()[-1])
    assert 0 < done < INPUTS
    assert predict("--resume") == 3 and len(rows(predict.target)) == INPUTS


def test_an_interruption_before_the_first_answer_leaves_nothing(predict, monkeypatch):
    before = set(os.listdir(predict.target.parent))
    interrupt_after(monkeypatch, 0)
    assert predict() == 130 and set(os.listdir(predict.target.parent)) == before


def test_what_was_killed_is_gone_on_with(predict, monkeypatch):
    interrupt_after(monkeypatch, 10)
    # A process that is killed keeps nothing at its end; what it wrote after its last note is not counted.
    monkeypatch.setattr(answers._PartialFile, "keep", lambda self: self._file.close())
    assert predict() == 130
    with predict.partial.open("ab") as file:
        file.write(b'{"half of a li')
    monkeypatch.undo()
    assert predict("--resume") == 3 and len(rows(predict.target)) == INPUTS


def test_other_options_another_input_and_other_weights_are_refused(predict, models, source, capsys):
    with pytest.MonkeyPatch.context() as patch:
        interrupt_after(patch, 10)
        assert predict() == 130
    assert predict("--resume", "--precision", "bfloat16") == 2 and "another --precision" in capsys.readouterr().err
    for weights in models.glob("*/model.safetensors"):
        os.utime(weights)  # as if the model had been trained again in the same folder
    assert predict("--resume") == 2 and "weights of the model have changed since" in capsys.readouterr().err
    with (source / f"in.{predict.kind}").open("a") as file:
        file.write("\n")
    assert predict("--resume") == 2 and "has changed since" in capsys.readouterr().err
    predict.partial.write_bytes(b"")
    state = predict.partial.with_name(f"{predict.partial.name}.json")
    state.write_text("{}")
    assert predict("--resume") == 2 and f"{state} cannot be read" in capsys.readouterr().err


def test_resume_without_a_partial_file_begins(predict):
    assert predict("--resume") == 3 and len(rows(predict.target)) == INPUTS


def test_two_commands_do_not_write_the_same_file(predict, capsys):
    with only_writer(predict.partial.with_name(f"{predict.partial.name}.lock"), "in use"):
        assert predict() == 2
    assert "Another `predict` is writing" in capsys.readouterr().err


def test_an_empty_name_to_write_is_told(source, models, capsys):
    """Also for a fine-tuned model, which finds the format of what it writes in the name."""
    argv = ["predict", "--model", str(models / "classes"), "--input", str(source / "in.csv"), "--output", ""]
    assert main(argv) == 2 and "The name of the file to write is empty" in capsys.readouterr().err


def test_resume_goes_with_a_file(source, models, capsys):
    argv = ["predict", "--model", str(models / "plain"), "--resume"]
    for more in (["the [MASK]"], ["--input", str(source / "in.jsonl")]):
        assert main([*argv, *more]) == 2 and "--resume goes with" in capsys.readouterr().err
