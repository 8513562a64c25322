"""The runtime over the tensors of a folder gives what the Keras model with these weights gives, also in eight bits."""

from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.checkpoints.reading import read_stored
from bert_tf.inference.bert import Bert
from bert_tf.inference.exported.formats import check, write
from bert_tf.models import view
from bert_tf.runtime import Runtime, RuntimeInputError
from bert_tf.runtime.graphs.bert import build
from tests.conftest import make_bert, outputs_of

GOLDEN = Path(__file__).parents[1] / "golden" / "family"
NAMES = ("roberta", "xlm-roberta", "camembert", "distilbert", "albert", "electra-discriminator", "electra-generator")


def batch(config, rows=2, tokens=11):
    random = np.random.default_rng(0)
    mask = np.ones((rows, tokens), np.int32)
    mask[-1, -3:] = 0
    return {
        "token_ids": random.integers(5, config.vocab_size, (rows, tokens), np.int32),
        "segment_ids": random.integers(0, max(1, config.type_vocab_size), (rows, tokens), np.int32),
        "padding_mask": mask,
        "mask_positions": random.integers(0, tokens - 3, (rows, 3), np.int32),
    }


def largest_difference(ours, theirs):
    if isinstance(theirs, (list, tuple)):
        return max(map(largest_difference, ours, theirs))
    return float(np.abs(np.asarray(ours) - np.asarray(theirs)).max())


def check_every_output(folder):
    config, _, stored = read_stored(folder)
    _, _, model = checkpoints.read(folder)
    assert stored.bert_heads == model.bert_heads
    outputs, inputs = outputs_of(model.bert_heads), batch(config)
    if "mlm" not in model.bert_heads:
        del inputs["mask_positions"]
    results = Runtime(stored, engine="openvino").run(inputs, outputs)
    wanted = view(model, outputs)(inputs, training=False)
    for name in outputs:
        assert largest_difference(results[name], wanted[name]) <= 1e-5, name
    again = view(stored.model, outputs)(inputs, training=False)
    for name in outputs:
        assert largest_difference(again[name], wanted[name]) == 0, name


@pytest.mark.parametrize("name", NAMES)
def test_every_output_of_every_architecture_equals_the_keras_model(name):
    check_every_output(GOLDEN / name)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_every_output_of_every_stored_dtype_equals_the_keras_model(tiny_bert, tmp_path, dtype):
    folder = checkpoints.save(tmp_path / "m", tiny_bert.config, tiny_bert.tokenizer, tiny_bert.model, dtype=dtype)
    check_every_output(folder)


def test_weights_stored_in_bfloat16_are_read_and_computed_in_float32(tiny_bert, tmp_path):
    import ml_dtypes
    from safetensors.numpy import load_file, save_file

    folder = checkpoints.save(tmp_path / "m", tiny_bert.config, tiny_bert.tokenizer, tiny_bert.model)
    path = folder / "model.safetensors"
    save_file({name: value.astype(ml_dtypes.bfloat16) for name, value in load_file(path).items()}, path)
    (folder / "checksums.json").unlink()
    check_every_output(folder)
    bert = bert_tf.load(folder)
    assert check(bert, write(bert, tmp_path / "onnx", "onnx"), "onnx").passes


def test_eight_bit_matrices_stay_in_eight_bits_in_memory(tiny_bert, tmp_path):
    folder = checkpoints.save(tmp_path / "m", tiny_bert.config, tiny_bert.tokenizer, tiny_bert.model, dtype="int8")
    weights = read_stored(folder)[2].weights
    matrices = {name for name, weight in weights.items() if len(weight.shape) == 2}
    assert matrices and all(weights[name].values.dtype == np.int8 for name in matrices)
    assert all(weights[name].scales is None for name in weights.keys() - matrices)


@pytest.fixture(scope="module")
def wide_bert():
    return make_bert(seed=4, hidden=128, heads=4)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_int8_is_close_to_float32(wide_bert, tmp_path, dtype):
    folder = checkpoints.save(tmp_path / "m", wide_bert.config, wide_bert.tokenizer, wide_bert.model, dtype=dtype)
    config, _, stored = read_stored(folder)
    inputs, outputs = batch(config), ("mlm_logits", "sequence_output", "attentions", "nsp_logits")
    exact = Runtime(stored, engine="openvino").run(inputs, outputs)
    rough = Runtime(stored, precision="int8").run(inputs, outputs)
    for name in outputs:
        wanted, difference = np.asarray(exact[name]), np.abs(np.asarray(rough[name]) - np.asarray(exact[name]))
        assert 0 < difference.mean() <= 0.1 * wanted.std(), name


def test_int8_from_a_keras_model_equals_int8_from_its_eight_bit_file(wide_bert, tmp_path):
    folder = checkpoints.save(tmp_path / "m", wide_bert.config, wide_bert.tokenizer, wide_bert.model, dtype="int8")
    config, _, stored = read_stored(folder)
    inputs, outputs = batch(config), ("mlm_logits",)
    one = Runtime(stored, precision="int8").run(inputs, outputs)["mlm_logits"]
    other = Runtime(stored.model, precision="int8").run(inputs, outputs)["mlm_logits"]
    np.testing.assert_allclose(one, other, atol=1e-4)


def test_int8_does_not_round_the_inputs_of_the_most_sensitive_products(wide_bert):
    graph, _ = build(wide_bert.model, "maps", eight_bits=True)
    products = [node for node in graph.get_ops() if node.get_type_name() == "MatMul"]
    # The matrix of such a product has a zero point, so that OpenVINO computes with its input as it is.
    kept = [
        node
        for node in products
        if node.input_value(1).get_node().input_value(0).get_node().get_type_name() == "Subtract"
    ]
    shapes = [node.input_value(1).get_node().shape for node in kept]
    assert [list(shape) for shape in sorted(shapes, key=list)] == [[128, 256], [256, 128], [256, 128]]


def test_int8_without_openvino_is_refused(tiny_bert):
    with pytest.raises(RuntimeInputError, match="int8 needs the OpenVINO engine. Choose float32 or bfloat16"):
        Runtime(tiny_bert.model, precision="int8", engine="tensorflow")


def test_the_tensorflow_engine_takes_stored_weights(tiny_folder, tiny_bert):
    config, _, stored = read_stored(tiny_folder)
    inputs = batch(config)
    ours = Runtime(stored, engine="tensorflow").run(inputs, ("mlm_logits",))["mlm_logits"]
    np.testing.assert_allclose(ours, Runtime(tiny_bert.model).run(inputs, ("mlm_logits",))["mlm_logits"], atol=1e-5)


def test_the_keras_model_of_a_bert_is_built_once(tiny_folder):
    config, tokenizer, stored = read_stored(tiny_folder)
    bert = Bert(config, tokenizer, stored)
    assert bert.model is bert.model
    assert bert.weights is stored
    assert stored.nbytes == bert.model.nbytes
