"""`export` of every kind of run: the newest checkpoint gives the very model that the run wrote at its end."""

import shutil
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pytest

from bert_tf import checkpoints
from bert_tf.cli import main
from bert_tf.cli import pretrain as command
from bert_tf.models import named_variables
from bert_tf.pretraining import export_run
from tests.conftest import make_bert

pytestmark = pytest.mark.usefixtures("few_updates_in_each")
GOLDEN_FOLDERS = Path(__file__).parents[1] / "golden" / "family"
FRESH = ["--size", "2x16x4", "--vocab", "{folder}/teacher", "--positions", "64"]
RUNS = {
    "electra": [*FRESH, "--generator", "0.25", "--objective", "mlm"],
    "electra, frozen": [
        "--init",
        "{folder}/electra",
        "--generator",
        "0.25",
        "--objective",
        "mlm",
        "--freeze-layers",
        "1",
    ],
    "electra out of bert": [
        "--init",
        "{folder}/teacher",
        "--model-type",
        "electra",
        "--generator",
        "{folder}/teacher",
        "--objective",
        "mlm",
        "--freeze-layers",
        "1",
    ],
    "electra, written by another": [*FRESH, "--generator", "{folder}/teacher", "--objective", "mlm"],
    "roberta": ["--init", str(GOLDEN_FOLDERS / "roberta"), "--objective", "mlm", "--freeze-layers", "1"],
    "albert": ["--init", str(GOLDEN_FOLDERS / "albert"), "--objective", "sop"],
    "sentence order": [*FRESH, "--objective", "sop"],
    "one way": [*FRESH, "--objective", "clm", "--model-type", "two-one-way"],
    "taught": [*FRESH, "--teacher", "{folder}/teacher", "--distil", "relations", "--objective", "sop"],
    "student, frozen": ["--teacher", "{folder}/teacher", "--student-layers", "2", "--freeze-layers", "1"],
    "random, frozen": [*FRESH, "--freeze-layers", "1"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A text, a teacher, and an ELECTRA to start from."""
    folder = tmp_path_factory.mktemp("exports")
    (folder / "text.txt").write_text("\n\n".join(["The cat sat on the mat.\nShe ran in the park. It was big."] * 20))
    bert = make_bert(layers=3)
    checkpoints.save(folder / "teacher", bert.config, bert.tokenizer, bert.model)
    pretrain(folder, folder / "run", *RUNS["electra"])
    shutil.move(folder / "run" / "model", folder / "electra")
    return folder


def pretrain(folder, output, *arguments):
    parser = ArgumentParser()
    command.add_arguments(parser)
    options = [str(part).format(folder=folder) for part in arguments]
    assert (
        command.run(
            parser.parse_args(
                [
                    "--text",
                    str(folder / "text.txt"),
                    "--output",
                    str(output),
                    "--batch-size",
                    "4",
                    "--length",
                    "24",
                    "--steps",
                    "2",
                    "--learning-rate",
                    "1e-2",
                    *options,
                ]
            )
        )
        == 0
    )


def test_an_export_goes_into_the_folder_one_stands_in_and_is_refused_before_the_work(
    folder, tmp_path, monkeypatch, capsys
):
    pretrain(folder, tmp_path / "run", *RUNS["one way"])
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main(["export", str(tmp_path / "run"), "."]) == 0
    assert "here · step 2 · own · heads: mlm" in capsys.readouterr().out
    assert checkpoints.read(".")
    monkeypatch.setattr(export_run, "read_checkpoint", lambda *_: pytest.fail("it was read"))
    for target, to, dtype in ((".", "own", "float32"), ("new", "onnx", "float32"), ("new", "own", "int3")):
        with pytest.raises(checkpoints.CheckpointError):
            export_run.export(tmp_path / "run", 2, target, to, dtype)


@pytest.mark.parametrize("name", RUNS)
def test_the_newest_checkpoint_is_the_finished_model(folder, tmp_path, name):
    pretrain(folder, tmp_path / "run", *RUNS[name])
    done = export_run.export(tmp_path / "run", 2, tmp_path / "out")
    _, tokenizer, model = checkpoints.read(tmp_path / "run" / "model")
    _, stored_tokenizer, actual = checkpoints.read(tmp_path / "out")
    assert done.heads == model.bert_heads and stored_tokenizer.vocab == tokenizer.vocab
    values = named_variables(actual)
    assert values.keys() == named_variables(model).keys()
    for key, variable in named_variables(model).items():
        np.testing.assert_array_equal(np.asarray(values[key]), np.asarray(variable), err_msg=key)


def test_random_frozen_layers_of_an_unfinished_run_are_told_of(folder, tmp_path):
    pretrain(folder, tmp_path / "run", *RUNS["random, frozen"])
    shutil.rmtree(tmp_path / "run" / "model")
    with pytest.raises(ValueError, match="frozen layers have random weights.*let the run end first"):
        export_run.export(tmp_path / "run", 2, tmp_path / "out")
