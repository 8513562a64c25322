"""The runtime over the tensors of a folder gives what the Keras model with these weights gives, also in eight bits."""

from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.checkpoints.reading import read_stored
from bert_tf.config import BertConfig
from bert_tf.inference.bert import Bert
from bert_tf.inference.exported.formats import check, write
from bert_tf.models import named_variables, view
from bert_tf.runtime import Runtime, RuntimeInputError, openvino_engine
from bert_tf.runtime.graphs import bert as graph_of_bert
from bert_tf.runtime.graphs import eight_bits
from bert_tf.runtime.graphs.bert import build
from bert_tf.runtime.runtime import PRECISIONS, actual_precision
from tests.conftest import make_bert, outputs_of, store_in_bfloat16

CPU_FLAGS = Path("/proc/cpuinfo")
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
    folder = checkpoints.save(tmp_path / "m", tiny_bert.config, tiny_bert.tokenizer, tiny_bert.model)
    store_in_bfloat16(folder)
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


def test_int8_does_not_round_the_last_input_of_the_encoder(wide_bert):
    graph, _ = build(wide_bert.model, "maps", eight_bits=True)
    # Such a matrix has a zero point, so that OpenVINO computes with the input as it is.
    with_zero_point = [node for node in graph.get_ops() if node.get_type_name() == "Subtract" and is_matrix(node)]
    assert [list(node.shape) for node in with_zero_point] == [[128, 256]]


def is_matrix(node):
    return node.input_value(0).get_node().get_type_name() == "Convert" and node.get_output_partial_shape(0).is_static


@pytest.mark.parametrize("has_tiles", [True, False])
def test_long_inputs_are_rounded_to_eight_bits_only_without_tiles_of_bfloat16(wide_bert, monkeypatch, has_tiles):
    monkeypatch.setattr(openvino_engine, "has_tiles", lambda: has_tiles)
    runtime = Runtime(wide_bert.model, precision="int8")
    for rows in (1, 40):
        runtime.run(batch(wide_bert.config, rows), ("mlm_logits", "attentions"))
    requests = runtime.graphs
    group_sizes = {
        kind: requests[kind].request.get_compiled_model().get_property("DYNAMIC_QUANTIZATION_GROUP_SIZE")
        for kind in requests
    }
    assert group_sizes == ({"short": 32, "maps": 0} if has_tiles else {"maps": 32})


@pytest.mark.parametrize("precision", PRECISIONS)
def test_the_actual_precision_is_float32_where_the_numbers_are_those_of_float32(precision):
    weights = bert_tf.load("bert-small-uncased-embedded").weights  # stored in eight bits
    batch_of_model, outputs = batch(weights.bert_config, rows=4, tokens=16), ("sequence_output",)
    exact, other = (Runtime(weights, one, "openvino").run(batch_of_model, outputs) for one in ("float32", precision))
    difference = largest_difference(exact["sequence_output"], other["sequence_output"])
    assert (actual_precision(precision) == "float32") == (difference < 1e-4)


@pytest.mark.skipif(not CPU_FLAGS.exists(), reason="reads the processor's flags from Linux")
def test_tiles_are_those_that_the_system_names():
    assert openvino_engine.has_tiles() == ("amx_bf16" in CPU_FLAGS.read_text())


def test_int8_computes_with_outliers_apart(monkeypatch):
    bert, channel = make_bert(seed=4, hidden=128, heads=4), 77
    for name, variable in named_variables(bert.model).items():
        values = variable.numpy()
        if name.endswith("attention.output.LayerNorm.weight"):
            values[channel] = 50
        if name.endswith("intermediate.dense.weight"):
            values[channel] *= 0.01  # as in trained models, large values have small weights
        variable.assign(values)
    inputs = batch(bert.config)

    def hidden_state(precision):
        state = Runtime(bert.model, precision=precision).run(inputs, ("hidden_states",))["hidden_states"][1]
        return np.delete(state, channel, axis=-1)

    exact, apart = hidden_state("float32"), hidden_state("int8")
    monkeypatch.setattr(graph_of_bert, "outlier_channels", lambda names, values: np.zeros(0, np.int64))
    assert np.abs(apart - exact).mean() < 0.7 * np.abs(hidden_state("int8") - exact).mean()


def test_outliers_are_the_channels_of_the_largest_scales_and_shifts():
    norms = {}
    for layer, (scale, shift) in enumerate(((3, 90), (70, 3))):
        start = f"bert.encoder.layer.{layer}.attention.output.LayerNorm"
        norms[f"{start}.weight"], norms[f"{start}.bias"] = np.linspace(1, 1.1, 96), np.zeros(96)
        norms[f"{start}.weight"][scale], norms[f"{start}.bias"][shift] = 30, -20
    channels = eight_bits.outlier_channels(norms, norms.__getitem__)
    assert len(channels) == 16 and {3, 70, 90} < set(channels) and list(channels) == sorted(channels)
    assert not len(eight_bits.outlier_channels(["bert.encoder.LayerNorm.weight"], norms.__getitem__))


@pytest.mark.parametrize("hidden, size", [(384, 32), (768, 128), (1024, 128)])
def test_wide_models_share_scales_among_more_values(hidden, size):
    config = BertConfig(vocab_size=30, hidden_size=hidden, num_attention_heads=4)
    names = ["bert.encoder.layer.0.attention.output.LayerNorm.weight"]
    assert eight_bits.group_size(config, names) == size
    assert eight_bits.group_size(config, []) == 32


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
