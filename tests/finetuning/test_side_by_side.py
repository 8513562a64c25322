"""`benchmarks/finetuning.py`: both sides do the same with the same batches, and the script runs."""

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.finetuning.conftest import WORDS, make_set, one_label

ROOT = Path(__file__).resolve().parents[2]
UPDATES = 6


@pytest.fixture(params=["classify", "tag", "answer"])
def arguments(request, start_folder, tmp_path):
    """Arguments of the script for a made set of each task."""
    train, dev = FILES[request.param](tmp_path)
    return [
        "--task",
        request.param,
        "--model",
        str(start_folder),
        "--train",
        str(train),
        "--dev",
        str(dev),
        "--examples",
        "24",
        "--batch-size",
        "4",
        "--length",
        "96",
        "--dropout",
        "0",
        "--learning-rate",
        "1e-3",
    ]


def sentences(folder):
    return make_set(folder, one_label, train=24, held=12)


def words(folder):
    rng = random.Random(0)
    for name, count in (("train.conll", 24), ("dev.conll", 12)):
        lines = []
        for _ in range(count):
            for word in rng.choices(WORDS, k=rng.randint(2, 7)):
                lines.append(f"{word}\t{'B-X' if word in ('cat', 'dog') else 'O'}")
            lines.append("")
        (folder / name).write_text("\n".join(lines), encoding="utf-8")
    return folder / "train.conll", folder / "dev.conll"


def questions(folder):
    """Each with [CLS] and two [SEP] has 16 tokens, so that nothing is padded: there the two losses differ."""
    rng = random.Random(0)
    for name, count in (("train.json", 24), ("dev.json", 12)):
        paragraphs = []
        for number in range(count):
            passage = rng.choices(WORDS, k=10)
            start = rng.randrange(9)
            before = " ".join([*passage[:start], ""])
            answer = {"text": " ".join(passage[start : start + 2]), "answer_start": len(before)}
            paragraphs.append(
                {
                    "context": " ".join(passage),
                    "qas": [{"id": str(number), "question": " ".join(rng.choices(WORDS, k=3)), "answers": [answer]}],
                }
            )
        (folder / name).write_text(json.dumps({"version": "1.1", "data": [{"title": "", "paragraphs": paragraphs}]}))
    return folder / "train.json", folder / "dev.json"


FILES = {"classify": sentences, "tag": words, "answer": questions}


def test_both_sides_learn_the_same_of_the_same_batches(arguments, tmp_path):
    import transformers

    from benchmarks import finetuning
    from bert_tf import checkpoints
    from bert_tf.finetuning.task_folder import save_task
    from bert_tf.finetuning.task_settings import read_settings

    options = finetuning.parse(arguments)
    finetuning.write_start(tmp_path / "start", options)
    ours, theirs = (finetuning.Training(name, tmp_path / "start", 0, options) for name in ("ours", "transformers"))
    before = {name: value.detach().clone() for name, value in theirs.side.model.named_parameters()}
    assert ours.updates == theirs.updates == UPDATES
    for done, (batch, same) in enumerate(zip(ours.batches, theirs.batches), 1):
        assert all(np.array_equal(batch[name], same[name]) for name in batch)
        # Keras adds Adam's epsilon before the correction of the bias, PyTorch after it.
        for group in theirs.side.optimizer.param_groups:
            group["eps"] = 1e-6 / np.sqrt(1 - 0.999**done)
        assert ours.side.update(batch) == pytest.approx(theirs.side.update(same), abs=1e-5)
        if done == UPDATES:
            break
    config, tokenizer, _ = checkpoints.read(tmp_path / "start")
    save_task(tmp_path / "ours", config, tokenizer, ours.side.network, read_settings(tmp_path / "start"))
    ours_after = getattr(transformers, type(theirs.side.model).__name__).from_pretrained(tmp_path / "ours")
    moved = 0.0
    for name, value in ours_after.named_parameters():
        expected = theirs.side.model.get_parameter(name)
        assert float((value - expected).detach().abs().max()) <= 1e-5, name
        moved = max(moved, float((expected - before[name]).detach().abs().max()))
    assert moved > 1e-3
    assert ours.scores() == pytest.approx(theirs.scores(), abs=1e-3)


def test_the_script_measures_each_side(start_folder, tmp_path):
    train, dev = words(tmp_path)
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "benchmarks" / "finetuning.py",
            "--task",
            "tag",
            "--model",
            start_folder,
            "--train",
            train,
            "--dev",
            dev,
            "--batch-size",
            "4",
            "--json",
            tmp_path / "found.json",
            "--sides",
            "ours",
            "transformers, own batches",
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (actual,) = json.loads((tmp_path / "found.json").read_text())
    assert list(actual) == ["ours", "transformers, own batches"]
    for side in actual.values():
        assert side["examples_per_second"] > 0 and 0 <= side["scores"]["f1"] <= 1
    assert "(ours" in done.stdout
