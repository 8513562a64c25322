"""Several devices, several machines and micro-batches train as one device with the same batch does."""

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import bert_tf
from bert_tf import checkpoints
from bert_tf.training import strategy
from bert_tf.training.step import check_batch_size
from bert_tf.training.strategy import (
    StrategyError,
    choose,
    make_strategy,
    use_threads,
)
from tests.conftest import make_bert
from tests.training import test_training
from tests.training.distribution_run import CLIP
from tests.training.test_training import (
    options,
    pretrain,
    records,
    weights,
)

ROOT = Path(__file__).resolve().parents[2]
ONE_AND_TWO = [
    "one-1-1",
    "one-1-4",
    "one-1-1-jit",
    "mirrored-2-1",
    "mirrored-2-4",
    "mirrored-2-2-jit",
    "mirrored-2-2-remat",
]
FOUR = ["mirrored-4-2"]
HERE = [*ONE_AND_TWO, *FOUR]
OTHERS = ["one-1-1-poison", "mirrored-2-1-poison", "mirrored-2-1-seeds"]
MACHINES = ["multiworker-2-1", "multiworker-2-4"]

start = test_training.start
#: A process that does cases: the path of its output and the cases are its arguments.
CASES = """
import sys
from bert_tf.startup import lean_tensorflow

lean_tensorflow()
from tests.training.distribution_run import main

main(*sys.argv[1:])
"""


def launch(*arguments, **environment):
    """A Python process that sees no GPU and this environment."""
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", **environment},
    )


def finish(*processes):
    """Waits for all; each must end well."""
    try:
        output = [process.communicate(timeout=900)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, text in zip(processes, output):
        assert process.returncode == 0, text[-3000:]
    return output


def free_ports(count):
    """Ports that no connection of another process gets: those that the system gives away by itself are higher."""
    found = []
    for port in random.SystemRandom().sample(range(20_000, 32_768), 1000):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise RuntimeError("No free ports.")


def two_machines():
    """TF_CONFIG of two workers on this machine."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    return [
        json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}) for index in (0, 1)
    ]


def cases(path):
    """case -> dict of arrays"""
    results = {}
    with np.load(path) as file:
        for key in file.files:
            case, name = key.split("/", 1)
            results.setdefault(case, {})[name] = file[key]
    return results


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("here")
    finish(
        *(
            launch("-c", CASES, folder / f"{number}.npz", *names)
            for number, names in enumerate([ONE_AND_TWO + OTHERS, FOUR])
        )
    )
    return {**cases(folder / "0.npz"), **cases(folder / "1.npz")}


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    outputs = [tmp_path_factory.mktemp("machines") / f"found-{number}.npz" for number in (0, 1)]
    finish(
        *(launch("-c", CASES, output, *MACHINES, TF_CONFIG=config) for output, config in zip(outputs, two_machines()))
    )
    return [cases(output) for output in outputs]


def assert_same(actual, expected):
    assert actual.keys() == expected.keys()
    for name in expected:
        np.testing.assert_allclose(actual[name], expected[name], atol=1e-5, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("case", HERE[1:])
def test_devices_micro_batches_and_xla_change_nothing(here, case):
    assert_same(here[case], here["one-1-1"])


@pytest.mark.parametrize("case", MACHINES)
def test_two_machines_train_as_one_does(here, machines, case):
    for machine in machines:
        assert_same(machine[case], here["one-1-1"])


def test_the_comparison_clips_trains_and_freezes(here):
    """Or it would not see a clip by replica, an update that is not made, or one of a frozen layer."""
    for case in (here[name] for name in HERE):
        assert (case["norms"] > 1.5 * CLIP).all()
        moved = {
            name.split("/")[1]
            for name in case
            if name.startswith("before/") and not np.array_equal(case[name], case[name.split("/")[1]])
        }
        assert "cls.predictions.bias" in moved and "bert.embeddings.word_embeddings.weight" in moved
        assert not any("self.query" in name for name in moved)


def test_an_inf_on_one_replica_leaves_the_step_out_on_all(here):
    one, two = here["one-1-1-poison"], here["mirrored-2-1-poison"]
    assert two["weight"].shape[:2] == (3, 2)
    np.testing.assert_array_equal(two["weight"][:, 0], two["weight"][:, 1])
    np.testing.assert_array_equal(two["weight"][0], two["weight"][1])
    assert np.abs(two["weight"][2] - two["weight"][1]).max() > 1e-4
    assert two["done"].tolist() == one["done"].tolist() == [1, 1, 2]
    assert two["scales"].tolist() == one["scales"].tolist() == [8, 4, 4]
    np.testing.assert_allclose(two["weight"][:, 0], one["weight"][:, 0], atol=1e-5)


def test_replicas_drop_different_units(here):
    seeds = here["mirrored-2-1-seeds"]["seeds"]
    assert len(seeds) and (seeds[:, 0] != seeds[:, 1]).all()


def test_two_machines_by_the_command_line(start, tmp_path):
    """The same command on both; the chief alone writes, and the model is that of one machine."""
    settings = ["--steps", 4, "--accumulate", 2, "--save-every", 2, "--log-every", 2]
    arguments = options(start, tmp_path / "two", *settings)
    output = finish(*(launch("-m", "bert_tf", "pretrain", *arguments, TF_CONFIG=config) for config in two_machines()))
    assert "Step 4: model written" in output[0] and "Step" not in output[1]
    assert [record["step"] for record in records(tmp_path / "two")] == [2, 4]
    assert (tmp_path / "two" / "checkpoints" / "step-4").is_dir()
    pretrain(start, tmp_path / "one", "--steps", 4)
    one, two = weights(tmp_path / "one" / "model"), weights(tmp_path / "two" / "model")
    for name in one:
        np.testing.assert_allclose(two[name], one[name], atol=1e-5, err_msg=name)


def test_two_machines_fine_tune_by_the_command_line(tmp_path):
    """The chief alone reports, over both seeds, and the folder is whole when both machines have ended."""
    bert = make_bert(layers=1, name="start")
    checkpoints.save(tmp_path / "start", bert.config, bert.tokenizer, bert.model)
    (tmp_path / "train.csv").write_text("text,label\n" + "the big cat,large\nthe small cat,little\n" * 8)
    arguments = [
        "--model",
        tmp_path / "start",
        "--train",
        tmp_path / "train.csv",
        "--dev",
        tmp_path / "train.csv",
        "--output",
        tmp_path / "two",
        "--epochs",
        1,
        "--seeds",
        2,
        "--batch-size",
        16,
        "--lengths",
        1,
        "--length",
        16,
        "--threads",
        1,
    ]
    output = finish(
        *(launch("-m", "bert_tf", "finetune", "classify", *arguments, TF_CONFIG=config) for config in two_machines())
    )
    assert "after epoch 1" in output[0] and "f1_macro" in output[0] and "f1_macro" not in output[1]
    metrics = json.loads((tmp_path / "two" / "report" / "metrics.json").read_text())
    assert metrics["dev_examples"] == 16 and len(metrics["seeds"]["accuracy"]["values"]) == 2
    assert bert_tf.load(tmp_path / "two").task.settings.labels == ("large", "little")


def test_only_one_device_does_one_operation_at_a_time(monkeypatch):
    for one_device, expected in ((True, [2, 1]), (False, [2])):
        results = []
        for kind in ("intra", "inter"):
            monkeypatch.setattr(tf.config.threading, f"set_{kind}_op_parallelism_threads", results.append)
        use_threads(2, one_device)
        use_threads(None, one_device)
        assert results == expected


@pytest.mark.parametrize("name", ["parameter_server", "ParameterServer", "ps"])
def test_parameter_servers_are_refused(name):
    with pytest.raises(StrategyError, match="Parameter servers are not supported.*multiworker"):
        choose(name)


@pytest.mark.parametrize(
    "config, message",
    [
        ("{cluster", "not JSON"),
        ("[]", 'no "cluster"'),
        ({"cluster": {}}, "empty"),
        ({"cluster": {"ps": ["a:1"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}}, "Parameter servers"),
        ({"cluster": {"evaluator": ["a:1"]}, "task": {"type": "evaluator", "index": 0}}, "'evaluator'"),
        ({"cluster": {"worker": ["a", "b:1"]}, "task": {"type": "worker", "index": 0}}, "host:port"),
        ({"cluster": {"worker": ["a:1", "b:1"]}}, "task is None"),
        ({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}}, "one of worker"),
        ({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 2}}, "index is 2.*0 to 1"),
    ],
)
@pytest.mark.parametrize("name", ["auto", "multiworker"])
def test_a_wrong_tf_config_is_explained(monkeypatch, config, message, name):
    monkeypatch.setenv("TF_CONFIG", config if isinstance(config, str) else json.dumps(config))
    with pytest.raises(StrategyError, match=message):
        make_strategy(name)


def test_auto_goes_by_tf_config_and_tpu_name(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.delenv("TPU_NAME", raising=False)
    assert choose("auto") == "one" and make_strategy("one") is None
    monkeypatch.setenv("TPU_NAME", "node-1")
    assert choose("auto") == "tpu"
    monkeypatch.setenv("TF_CONFIG", two_machines()[1])
    assert choose("auto") == "multiworker" and choose("one") == "one"


def test_machines_are_connected_once_a_process(monkeypatch):
    """A training of several seeds asks for them once a seed."""
    made = []
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", lambda: made.append(object()) or made[-1])
    monkeypatch.setenv("TF_CONFIG", two_machines()[0])
    strategy._machines.cache_clear()
    try:
        assert make_strategy("multiworker") is make_strategy("auto") is made[0] and len(made) == 1
    finally:
        strategy._machines.cache_clear()


def test_what_is_not_there_is_said(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(StrategyError, match="needs the environment variable TF_CONFIG"):
        make_strategy("multiworker")
    with pytest.raises(StrategyError, match="'horovod'; choose from auto, one"):
        make_strategy("horovod")
    monkeypatch.delenv("TPU_NAME", raising=False)
    with pytest.raises(StrategyError, match="No TPU was found at 'local'"):
        make_strategy("tpu")


def test_a_batch_that_does_not_divide_is_refused():
    check_batch_size(12, None, 4)
    with pytest.raises(ValueError, match="batch of 10 .* 1 devices x 4 .* multiple of 4"):
        check_batch_size(10, None, 4)
    with pytest.raises(ValueError, match="--accumulate is 0"):
        check_batch_size(10, None, 0)
