"""Each task by its command, from a file to a model: its set is learnt to the last example, also after a kill."""

import json
import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.checkpoints.model_checksums import write_model_checksums
from bert_tf.finetuning.tasks.registry import task_type
from bert_tf.models import named_variables
from tests.finetuning.conftest import QUICK, finetune
from tests.finetuning.test_answering import colours
from tests.finetuning.test_choosing import money_choices
from tests.finetuning.test_commands import run
from tests.finetuning.test_tagging import places

HOW = [*QUICK, "--length", "48", "--epochs", "60", "--save-every", "7"]


def tag_file(path, examples):
    return write(
        path.with_suffix(".conll"),
        "\n\n".join("\n".join(f"{word} {label}" for word, label in zip(one.words, one.labels)) for one in examples)
        + "\n",
    )


def answer_file(path, examples):
    paragraphs = [
        {
            "context": one.passage,
            "qas": [
                {
                    "id": one.key,
                    "question": one.question,
                    "is_impossible": not one.answers,
                    "answers": [{"text": text, "answer_start": start} for start, text in one.answers],
                }
            ],
        }
        for one in examples
    ]
    return write(path.with_suffix(".json"), json.dumps({"data": [{"paragraphs": paragraphs}]}))


def choice_file(path, examples):
    return write(
        path.with_suffix(".jsonl"),
        "\n".join(json.dumps({"context": one.context, "choices": one.choices, "label": one.label}) for one in examples),
    )


def write(path, text):
    path.write_text(text)
    return path


#: family: what makes its examples, what writes them, the score, what a guess reaches, options of its own
CASES = {
    "tag": (places, tag_file, "f1", 0.3, ("--crf",)),
    "answer": (colours, answer_file, "exact_match", 60, ("--question-length", "8", "--stride", "16")),
    "choose": (money_choices, choice_file, "accuracy", 0.5, ()),
}


@pytest.mark.parametrize("task", CASES)
def test_each_learns_its_set(task, start_folder, tmp_path, capsys):
    make, file, metric, guess, _ = CASES[task]
    train, held = file(tmp_path / "train", make(0, 64)), file(tmp_path / "held", make(1, 40))
    assert finetune(*learning(task, start_folder, train), "--output", tmp_path / "model") == 0
    scores = []
    for data in (train, held):
        code, out, _ = run(capsys, "evaluate", task, "--model", tmp_path / "model", "--data", data, "--json", "--quiet")
        assert code == 0
        scores.append(json.loads(out)[metric])
    assert scores[0] == (100 if task == "answer" else 1) and scores[1] > guess


def learning(task, start, train):
    """The arguments of a training that learns its set."""
    more = [] if task == "answer" else ["--evaluate-every", "10"]  # it answers all questions after some epochs only
    return [task, "--model", start, "--train", train, "--dev", train, *CASES[task][-1], *HOW, *more]


def test_a_killed_training_goes_on_to_the_very_same_model(start_folder, tmp_path, monkeypatch):
    """The CRF of a tagger has parameters of its own, which a checkpoint must hold too."""
    from bert_tf.training.logs.run_log import RunningMeans

    make, file, *_ = CASES["tag"]
    arguments = learning("tag", start_folder, file(tmp_path / "train", make(0, 64)))
    arguments += ["--epochs", "12"]
    add = RunningMeans.add

    def ends(self, *values):
        add(self, *values)
        ends.calls += 1
        if ends.calls == 24:
            raise RuntimeError("no more power")

    ends.calls = 0
    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="no more power"):
        patch.setattr(RunningMeans, "add", ends)
        finetune(*arguments, "--output", tmp_path / "killed")
    assert not (tmp_path / "killed" / "report").exists()
    assert finetune(*arguments, "--output", tmp_path / "killed") == 0
    assert finetune(*arguments, "--output", tmp_path / "straight") == 0
    killed = weights(tmp_path / "killed")
    for name, value in weights(tmp_path / "straight").items():
        np.testing.assert_allclose(killed[name], value, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("task", ["tag", "answer"])
def test_each_learns_compiled_in_half_precision_and_micro_batches(task, start_folder, tmp_path, capsys):
    make, file, metric, guess, options = CASES[task]
    train = file(tmp_path / "train", make(0, 64))
    assert (
        finetune(
            task,
            "--model",
            start_folder,
            "--train",
            train,
            "--dev",
            train,
            *options,
            *HOW,
            "--epochs",
            "20",
            "--precision",
            "mixed_float16",
            "--jit",
            "--accumulate",
            "2",
            "--output",
            tmp_path / "model",
        )
        == 0
    )
    code, out, _ = run(capsys, "evaluate", task, "--model", tmp_path / "model", "--data", train, "--json", "--quiet")
    assert code == 0 and json.loads(out)[metric] > guess


def weights(folder):
    return {name: np.asarray(value) for name, value in named_variables(checkpoints.read(folder)[2]).items()}


@pytest.mark.parametrize("task", CASES)
@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\r\n\r\n"], ids=["nothing", "a mark", "blank lines"])
def test_an_empty_file_is_told_in_one_line(task, content, start_folder, tmp_path, capsys):
    path = CASES[task][1](tmp_path / "train", [])
    path.write_bytes(content)
    code, _, err = run(capsys, "finetune", task, "--model", start_folder, "--train", path, "--output", tmp_path / "o")
    assert code == 2 and str(path) in err and len(err.strip().splitlines()) == 1
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("task", CASES)
def test_a_mark_and_carriage_returns_change_nothing(task, tmp_path):
    make, file, *_ = CASES[task]
    path = file(tmp_path / "train", make(0, 5))
    reader = task_type(task)
    options = _options(reader)
    wanted = list(reader.read(path, options))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert list(reader.read(path, options)) == wanted and len(wanted) == 5


def _options(reader):
    from argparse import ArgumentParser

    parser = ArgumentParser()
    reader.add_reading_arguments(parser)
    return parser.parse_args([])


@pytest.mark.usefixtures("few_updates")
@pytest.mark.parametrize("to, activation", [("hf", "gelu"), ("google", "gelu"), ("keras-nlp", "gelu_new")])
def test_a_training_starts_from_any_format_alike(to, activation, start_folder, tmp_path):
    own = shutil.copytree(start_folder, tmp_path / "own")
    config = json.loads((own / "config.json").read_text())
    (own / "config.json").write_text(json.dumps({**config, "hidden_act": activation}))  # the one KerasNLP has
    write_model_checksums(own)
    checkpoints.convert(own, tmp_path / to, to=to)
    train = choice_file(tmp_path / "train", money_choices(0, 16))
    made = {}
    for folder in (own, tmp_path / to):
        output = tmp_path / f"made of {folder.name}"
        assert finetune("choose", "--model", folder, "--train", train, "--output", output, *HOW, "--epochs", "1") == 0
        made[folder] = weights(output)
    ours, theirs = made.values()
    assert ours.keys() == theirs.keys()
    for key, value in ours.items():
        np.testing.assert_array_equal(theirs[key], value, err_msg=key)


#: The others learn in tests/finetuning/test_round_trips_family.py, where their heads are compared with Transformers'.
@pytest.mark.parametrize("name", ["albert", "xlm-roberta", "deberta"])
def test_members_learn_a_set(name, tmp_path, capsys):
    from tests.finetuning.test_round_trips_family import FOLDERS

    train = tmp_path / "train.csv"
    train.write_text("text,label\n" + "w1 the of,left\nthe w2 of,right\nof the w1,left\nw2 of,right\n" * 8)
    assert (
        finetune(
            "classify",
            "--model",
            FOLDERS / name,
            "--train",
            train,
            "--dev",
            train,
            "--output",
            tmp_path / "model",
            *HOW,
            "--epochs",
            "24",
            "--length",
            "16",
            "--learning-rate",
            "1e-2",
        )
        == 0
    )
    assert json.loads((tmp_path / "model" / "report" / "metrics.json").read_text())["dev"]["accuracy"] == 1
    of_type = {"albert": "An ALBERT", "xlm-roberta": "An XLM-RoBERTa", "deberta": "A DeBERTa-v3"}[name]
    assert f"\n{of_type} model of " in (tmp_path / "model" / "README.md").read_text()
    (actual,) = bert_tf.load(tmp_path / "model").task.predict(["the w2 of"])
    assert actual["label"] == "right"
