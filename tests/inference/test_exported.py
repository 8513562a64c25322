"""Models written for ONNX Runtime, OpenVINO, TensorFlow and Keras: what runs there equals what runs here."""

import json

import numpy as np
import pytest

import bert_tf
from bert_tf.cli import main
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks.registry import task_type
from bert_tf.inference.exported import formats
from bert_tf.inference.exported.formats import FORMATS, check, write
from bert_tf.tokenizers import read_tokenizer
from tests.architectures.test_architectures import GOLDEN
from tests.conftest import make_bert, randomise, small_disk

FAMILY = ["roberta", "distilbert", "albert", "electra-discriminator", "modernbert", "deberta"]
READERS = ["reader-left-to-right", "reader-two-one-way"]
TASKS = {
    "classes": TaskSettings("classify", ("no", "yes")),
    "mean": TaskSettings("classify", ("no", "yes"), pooling="mean"),
    "max": TaskSettings("classify", regression=True, pooling="max"),
    "attention": TaskSettings("classify", ("no", "yes"), pooling="attention"),
    "tags": TaskSettings("tag", ("O", "B-X", "I-X")),
    "crf": TaskSettings("tag", ("O", "B-X", "I-X"), extra={"crf": True}),
    "answers": TaskSettings("answer", pair=True),
    "choices": TaskSettings("choose", pair=True),
    "similar": TaskSettings(
        "similarity", pooling="mean", regression=True, pair=True, extra={"normalize": True, "lower_case": False}
    ),
}


@pytest.fixture(scope="module")
def tiny():
    return make_bert(layers=2, seed=4)


def load_member(name):
    """A small model of `FAMILY` or `READERS`."""
    if name in READERS:
        return bert_tf.load(name)
    return bert_tf.load(GOLDEN.parent / name if name == "modernbert" else GOLDEN / name)


def task_model(settings, start=None):
    """A `Bert` with a task and random weights."""
    from bert_tf.finetuning.task_model import TaskModel
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.inference.bert import Bert

    bert = start or make_bert(layers=1, seed=6)
    settings = settings.on(bert.config.architecture)
    network = network_over(bert.model, task_type(settings.task), settings)
    randomise(network, 6)
    # The encoder of the network has the new weights, which the engine of `bert` has not read.
    fresh = Bert(bert.config, bert.tokenizer, network.bert)
    task = TaskModel(settings, network, bert.tokenizer, fresh.runtime)
    return Bert(bert.config, bert.tokenizer, network.bert, fresh.runtime, task=task)


@pytest.mark.parametrize("to", FORMATS)
def test_a_model_with_all_heads_of_bert(tiny, tmp_path, to):
    actual = check(tiny, write(tiny, tmp_path / "out", to), to)
    assert actual.passes and actual.difference < 1e-4, actual
    assert read_tokenizer(tmp_path / "out").vocab == tiny.tokenizer.vocab
    assert BertConfig.from_json(tmp_path / "out" / "config.json") == tiny.config


@pytest.mark.parametrize("to", FORMATS)
def test_a_model_that_finds_no_room_is_the_systems_error(tiny, tmp_path, to):
    with small_disk(8000), pytest.raises(OSError):
        write(tiny, tmp_path / "out", to)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [*FAMILY, *READERS])
@pytest.mark.parametrize("to", ["onnx", "openvino"])
def test_members_of_the_family(name, to, tmp_path):
    bert = load_member(name)
    actual = check(bert, write(bert, tmp_path / "out", to), to)
    assert actual.passes, actual


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("to", ["onnx", "openvino"])
def test_heads_of_tasks(name, to, tmp_path):
    bert = task_model(TASKS[name])
    actual = check(bert, write(bert, tmp_path / "out", to), to)
    assert actual.passes, actual
    assert json.loads((tmp_path / "out" / "config.json").read_text())["task"]["task"] == TASKS[name].task


@pytest.mark.parametrize("name", ["classes", "tags", "choices"])
def test_heads_of_modernbert_and_in_a_keras_file(name, tmp_path):
    modern = task_model(TASKS[name], bert_tf.load(GOLDEN.parent / "modernbert"))
    assert check(modern, write(modern, tmp_path / "onnx", "onnx"), "onnx").passes
    bert = task_model(TASKS[name])
    assert check(bert, write(bert, tmp_path / "keras", "keras"), "keras").passes


@pytest.mark.parametrize("to", FORMATS)
def test_matrices_in_eight_bits_make_a_small_file_with_near_outputs(tmp_path, to):
    wide = make_bert(layers=2, seed=4, hidden=128)
    whole, small = (write(wide, tmp_path / dtype, to, dtype) for dtype in ("float32", "int8"))
    pattern = {"onnx": "model.onnx", "openvino": "model.bin", "saved-model": "variables/*", "keras": "model.keras"}[to]
    sizes = [sum(path.stat().st_size for path in folder.glob(pattern)) for folder in (whole, small)]
    actual = check(wide, small, to, "int8")
    assert actual.passes and actual.difference > 1e-6 and sizes[1] < 0.5 * sizes[0]


@pytest.mark.parametrize("name", ["classes", "tags", "choices"])
def test_tasks_in_eight_bits_for_keras_keep_their_model(name, tmp_path):
    bert = task_model(TASKS[name])
    before = [np.array(weight) for weight in bert.task.network.get_weights()]
    assert check(bert, write(bert, tmp_path / "out", "keras", "int8"), "keras", "int8").passes
    for value, weight in zip(before, bert.task.network.get_weights(), strict=True):
        np.testing.assert_array_equal(weight, value)


@pytest.mark.parametrize("name", FAMILY)
def test_members_of_the_family_in_eight_bits_for_keras(name, tmp_path):
    bert = load_member(name)
    assert check(bert, write(bert, tmp_path / "out", "keras", "int8"), "keras", "int8").passes


@pytest.mark.parametrize("to", ["saved-model", "keras"])
def test_a_model_stored_in_eight_bits_keeps_its_numbers_there(to, tmp_path):
    from bert_tf.checkpoints import save

    wide = make_bert(layers=2, seed=4, hidden=128)
    stored = bert_tf.load(save(tmp_path / "stored", wide.config, wide.tokenizer, wide.model, dtype="int8"))
    actual = check(stored, write(stored, tmp_path / "out", to, "int8"), to, "int8")
    assert actual.difference < 1e-4, actual


@pytest.mark.parametrize("to", ["onnx", "openvino"])
def test_a_model_stored_in_eight_bits_is_computed_in_float_unless_asked_otherwise(to, tmp_path):
    from bert_tf.checkpoints import save

    wide = make_bert(layers=2, seed=4, hidden=128)
    stored = bert_tf.load(save(tmp_path / "stored", wide.config, wide.tokenizer, wide.model, dtype="int8"))
    actual = check(stored, write(stored, tmp_path / "out", to), to)
    assert actual.passes and actual.difference < 1e-4, actual


def test_the_sizes_of_the_batch_are_free(tiny, tmp_path):
    import onnxruntime

    folder = write(tiny, tmp_path / "out", "onnx")
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    for shape in ((1, 3), (3, 11)):
        ids = np.full(shape, 7, np.int32)
        batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
        expected = tiny.runtime.run(batch, ("sequence_output",))["sequence_output"]
        (actual,) = session.run(["sequence_output"], batch)
        np.testing.assert_allclose(actual, expected, atol=1e-4)


def test_the_command_line_writes_and_checks(tiny, tmp_path, capsys):
    from bert_tf.checkpoints import save

    source = save(tmp_path / "source", tiny.config, tiny.tokenizer, tiny.model)
    for to, dtype in (("onnx", "float32"), ("huggingface", "float32"), ("huggingface", "int8")):
        folder = str(tmp_path / f"{to}-{dtype}")
        assert main(["convert", str(source), folder, "--to", to, "--dtype", dtype, "--check"]) == 0
        assert "Checked: largest difference" in capsys.readouterr().out
    assert main(["convert", str(source), str(tmp_path / "x"), "--to", "keras", "--dtype", "float16"]) == 2
    assert "'keras' is written as float32 or int8, not float16" in capsys.readouterr().err


def test_a_file_that_computes_something_else_fails_the_check(tiny, tmp_path):
    other = make_bert(layers=2, seed=5)
    assert not check(tiny, write(other, tmp_path / "out", "openvino"), "openvino").passes
    with pytest.raises(CheckpointError, match="already exists"):
        write(tiny, tmp_path / "out", "onnx")
    with pytest.raises(CheckpointError, match="no format 'tflite'"):
        write(tiny, tmp_path / "new", "tflite")


@pytest.mark.parametrize("value, dtype", [(np.nan, "float32"), (np.nan, "int8"), (0, "int8")])
def test_outputs_that_say_nothing_fail_the_check(tiny, tmp_path, monkeypatch, value, dtype):
    run = formats._RUNNERS["openvino"]

    def broken(folder, batch):
        outputs = run(folder, batch)
        return {**outputs, "pooled_output": np.full_like(outputs["pooled_output"], value)}

    monkeypatch.setitem(formats._RUNNERS, "openvino", broken)
    assert not check(tiny, write(tiny, tmp_path / "out", "openvino"), "openvino", dtype).passes
