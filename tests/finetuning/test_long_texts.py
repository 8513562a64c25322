"""Classifying texts longer than the model reads: windows, their pooled logits, training and the command line."""

import json

import numpy as np
import pytest

from bert_tf.errors import TaskError
from bert_tf.finetuning.data.sentence_examples import SentenceExample
from bert_tf.finetuning.epoch_feed import EpochFeed
from bert_tf.finetuning.task_settings import TaskSettings, read_settings
from bert_tf.finetuning.tasks.sequence_classification import TASK, window_settings
from tests.conftest import make_bert, randomise
from tests.finetuning.conftest import QUICK, finetune, make_set, one_label
from tests.finetuning.small_datasets import options

SETTINGS = TaskSettings("classify", ("no", "yes"), pooling="mean", max_length=12)
LONG = "the cat sat on a mat in the park of the city and the dog ran in the river of money"


@pytest.fixture(scope="module")
def task():
    from bert_tf.finetuning.task_model import TaskModel
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.runtime import Runtime

    bert = make_bert(layers=1, seed=2)
    network = network_over(bert.model, TASK, SETTINGS)
    randomise(network, 2)
    return TaskModel(SETTINGS, network, bert.tokenizer, Runtime(network.bert))


def probabilities(logits):
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


@pytest.mark.parametrize("pool", ["mean", "max"])
@pytest.mark.parametrize("text_b", [None, LONG])
def test_the_logits_are_pooled_over_windows_that_cover_the_text(task, pool, text_b):
    tokenizer = task._tokenizer
    ids = tokenizer.tokenize(LONG).ids
    first, room, stride = (None, 10, 4) if text_b is None else (tokenizer.tokenize("the cat").ids, 7, 4)
    windows, start = [], 0
    while not windows or start + room - stride < len(ids):
        windows.append(ids[start : start + room])
        start += stride
    logits = []
    for window in windows:
        packed = tokenizer.pack_pair(*((window, None) if first is None else (first, window)), 12)
        batch = {
            "token_ids": packed.token_ids[None],
            "segment_ids": packed.segment_ids[None],
            "padding_mask": np.ones((1, packed.length), np.int32),
        }
        logits.append(np.asarray(task.network(batch)["logits"])[0])
    model = task.with_windows(pool, stride)
    record = LONG if text_b is None else ("the cat", text_b)
    settings = model.settings.replace(pair=text_b is not None)
    model = type(model)(settings, model.weights, tokenizer, task._runtime)
    short = "a dog" if text_b is None else ("a dog", "ran")
    actual, beside = model.predict([record, short])
    expected = probabilities(getattr(np, pool)(logits, axis=0).astype(np.float64))
    assert len(windows) > 3 and actual["probabilities"]["yes"] == pytest.approx(expected[1], abs=1e-5)
    plain = type(model)(settings.replace(extra={}), model.weights, tokenizer, task._runtime)
    assert beside["probabilities"] == pytest.approx(plain.predict([short])[0]["probabilities"], abs=1e-5)


def test_in_training_each_window_has_the_label_and_every_text_the_same_weight(task):
    settings = SETTINGS.replace(extra={"windows": "mean", "class_weights": {"no": 2.0}})
    examples = [SentenceExample("a dog", None, "yes"), SentenceExample(LONG, None, "no")]
    rows = TASK.encode(examples, task._tokenizer, settings, training=True)
    count = len(rows) - 1
    assert count > 1 and list(rows.owner) == [0] + [1] * count and list(rows.values["targets"]) == [1] + [0] * count
    np.testing.assert_allclose(rows.values["weights"], [1, *[2 / count] * count], rtol=1e-6)


@pytest.mark.parametrize(("words_b", "read_a"), [(1, 8), (2, 7), (30, 6)])
def test_the_first_text_of_a_pair_is_cut_only_where_the_second_needs_the_room(task, words_b, read_a):
    settings = SETTINGS.replace(pair=True, extra={"windows": "mean"})
    words_a = 10
    pair = SentenceExample("cat " * words_a, "dog " * words_b)
    rows = TASK.encode([pair], task._tokenizer, settings)
    cat = task._tokenizer.tokenize("cat").ids[0]
    assert {list(row).count(cat) for row in rows.sequences["token_ids"]} == {read_a}
    assert len(rows.notes) == 1 if words_b < 3 else len(rows.notes) > 3
    assert {note.tokens_a for note in rows.notes} == {words_a - read_a}
    prediction = TASK.decode([{"logits": np.zeros(2)}] * len(rows.notes), rows, [pair], settings)[0]
    assert prediction["truncated"] == {"tokens_a": words_a - read_a, "tokens_b": 0}


def test_a_stride_needs_windows():
    with pytest.raises(TaskError, match="--stride is 3; it is the step of --windows"):
        window_settings(options(stride=3))
    assert window_settings(options(windows="max")) == {"windows": "max", "stride": None}


def test_the_command_line_trains_and_predicts_with_windows(start_folder, tmp_path, capsys):
    train, held = make_set(tmp_path / "data", one_label, 32, 8)
    data = ("--model", start_folder, "--train", train, "--dev", held, "--output", tmp_path / "model")
    quick = [*QUICK, "--length", "8"]
    assert finetune("classify", *data, "--epochs", 1, "--windows", "max", "--stride", 3, *quick) == 0
    assert read_settings(tmp_path / "model").extra == {"windows": "max", "stride": 3}
    from bert_tf.cli import main

    capsys.readouterr()
    results = []
    for windows in ([], ["--windows", "mean"], ["--windows", "max"], ["--windows", "max", "--stride", "2"]):
        assert main(["predict", LONG, "--model", str(tmp_path / "model"), "--json", *windows]) == 0
        results.append(json.loads(capsys.readouterr().out)["probabilities"])
    trained, mean, longest, other_step = results
    assert longest == trained != mean and other_step != trained  # with the step of the training, unless one is named
    assert main(["evaluate", "classify", "--model", str(tmp_path / "model"), "--data", str(held), "--quiet"]) == 0


def test_a_text_of_many_windows_counts_as_much_as_a_short_one(task):
    settings = task.with_windows("mean", 4).settings
    texts = ["a dog"] * 40 + [LONG] * 8
    examples = [SentenceExample(text, target="yes") for text in texts]
    rows = TASK.encode(examples, task._tokenizer, settings, training=True)
    loss, counted = TASK.objective(settings), np.zeros(len(texts))
    feed = EpochFeed(rows, batch_size=8)
    for indices in feed.epoch(0):
        batch = rows.batch(indices, size=8)
        total = float(loss.counts(batch)["mean_weights"])
        np.add.at(counted, rows.owner[indices], batch["weights"][: len(indices)] / total)
        # Where all answers are right the accuracy is 1, however many windows the batch has; its parts add up to it.
        logits = np.tile(np.float32([-9, 9]), (8, 1))
        parts = [{name: array[part] for name, array in batch.items()} for part in (slice(3), slice(3, 8))]
        counts = {name: sum(loss.counts(part)[name] for part in parts) for name in loss.counts(batch)}
        values = [loss({"logits": logits[: len(part["weights"])]}, part, counts)["accuracy"] for part in parts]
        assert float(loss({"logits": logits}, batch)["accuracy"]) == pytest.approx(1, rel=1e-5)
        assert float(sum(values)) == pytest.approx(1, rel=1e-5)
    assert counted[40:] == pytest.approx(counted[0], rel=1e-5) and counted[:40] == pytest.approx(counted[0], rel=1e-5)
    # Without windows the divisor is the sum of the weights of the batch, as in PyTorch.
    plain = TASK.encode(examples, task._tokenizer, SETTINGS, training=True)
    assert "mean_weights" not in plain.values
