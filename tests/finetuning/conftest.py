"""A small model to start from, sets that a small model can learn, and one fine-tuned model for all tests."""

import csv
import random
import threading

import pytest

from bert_tf.cli import main
from tests.conftest import make_bert

WORDS = "the a cat dog sat on mat ran in park river".split()
QUICK = [
    "--learning-rate",
    "3e-3",
    "--batch-size",
    "16",
    "--dropout",
    "0",
    "--lengths",
    "1",
    "--length",
    "16",
    "--strategy",
    "one",
]


def sentence(rng, *extra):
    """Random words with some more at random places."""
    words = [rng.choice(WORDS) for _ in range(rng.randint(2, 7))]
    for word in extra:
        words.insert(rng.randrange(len(words) + 1), word)
    return " ".join(words)


def one_label(rng):
    """big or small decides."""
    label = rng.choice(["large", "little"])
    return {"text": sentence(rng, "big" if label == "large" else "small"), "label": label}


def write_csv(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def make_set(folder, make, train=160, held=40, seed=0):
    """(train.csv, held.csv) of rows that `make(rng)` gives."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    return (
        write_csv(folder / "train.csv", [make(rng) for _ in range(train)]),
        write_csv(folder / "held.csv", [make(rng) for _ in range(held)]),
    )


def finetune(task, *arguments):
    """The command line's exit code. In the main thread only: training listens for signals."""
    assert threading.current_thread() is threading.main_thread()
    return main(["finetune", task, *(str(argument) for argument in arguments)])


@pytest.fixture(scope="session")
def start_folder(tmp_path_factory):
    """A model of one layer to start from, in this project's own format."""
    from bert_tf import checkpoints

    bert = make_bert(seed=3, layers=1, name="start")
    folder = tmp_path_factory.mktemp("start") / "start"
    return checkpoints.save(folder, bert.config, bert.tokenizer, bert.model)


@pytest.fixture(scope="session")
def trained(start_folder, tmp_path_factory):
    """(folder of a classifier with the pooler, its train.csv, its held.csv)."""
    folder = tmp_path_factory.mktemp("trained")
    train, held = make_set(folder / "data", one_label)
    assert (
        finetune(
            "classify",
            "--model",
            start_folder,
            "--train",
            train,
            "--dev",
            held,
            "--output",
            folder / "model",
            "--epochs",
            6,
            *QUICK,
        )
        == 0
    )
    return folder / "model", train, held
