"""Eight bits as Transformers reads them by compressed-tensors: written, read there, and read back here."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import bert_tf
from bert_tf.checkpoints import CheckpointError, convert
from bert_tf.checkpoints.formats import compressed_tensors
from bert_tf.checkpoints.quantize import dequantize_rows, quantize_rows
from bert_tf.inference.exported.formats import compare_loaded
from tests.app.family_models import GOLDEN_FOLDERS

GOLDEN = GOLDEN_FOLDERS.parent
MEMBERS = ["bert_tiny_random", "modernbert", *(f"family/{name}" for name in ("roberta", "distilbert", "albert"))]
MEMBERS += ["family/electra-discriminator", "family/deberta"]


@pytest.mark.parametrize("columns", [1, 4, 7])
def test_packing_equals_that_of_the_package(columns):
    import torch
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32

    matrix = np.random.default_rng(columns).normal(size=(3, columns)).astype(np.float32)
    parts = compressed_tensors.pack("m", matrix)
    integers, scales = quantize_rows(matrix)
    np.testing.assert_array_equal(parts["m_packed"], pack_to_int32(torch.from_numpy(integers), 8).numpy())
    np.testing.assert_array_equal(parts["m_scale"][:, 0], scales)
    assert parts["m_shape"].tolist() == [3, columns]
    assert sum(value.nbytes for value in parts.values()) == compressed_tensors.packed_bytes(matrix.shape)


@pytest.mark.parametrize("name", MEMBERS)
def test_transformers_computes_with_the_same_numbers(name, tmp_path):
    import torch
    import transformers

    folder = convert(GOLDEN / name, tmp_path / "out", to="hf", dtype="int8").path
    whole, ours = bert_tf.load(GOLDEN / name), bert_tf.load(folder)
    near = compare_loaded(whole, ours, "int8")
    assert near.passes and near.difference > 1e-5
    # Transformers 5.23 cannot build ModernBERT around packed matrices, so it unpacks them while it loads.
    more = (
        {"quantization_config": transformers.CompressedTensorsConfig(dequantize=True)} if name == "modernbert" else {}
    )
    theirs = transformers.AutoModel.from_pretrained(folder, **more).eval()
    if not more:
        layers = whole.config.num_hidden_layers if name != "family/albert" else len(set(whole.config.layer_groups))
        assert sum(hasattr(module, "quantization_scheme") for module in theirs.modules()) == 6 * layers
    ids = np.arange(5, 17, dtype=np.int32)[None]
    batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    expected = ours.runtime.run(batch, ("sequence_output",))["sequence_output"]
    with torch.no_grad():
        actual = theirs(torch.from_numpy(ids).long()).last_hidden_state.numpy()
    np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_shards_hold_the_parts_of_a_matrix_together_and_a_row_can_be_read(tmp_path):
    from bert_tf.checkpoints.formats.safetensors_folder import open_tensors

    source = GOLDEN / "bert_tiny_random"
    folder = convert(source, tmp_path / "out", to="hf", dtype="int8", max_shard_bytes=20_000).path
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    name = "bert.encoder.layer.0.intermediate.dense.weight"
    matrix = load_file(source / "model.safetensors")[name]
    expected = dequantize_rows(*quantize_rows(matrix))
    stored = open_tensors(folder)[name]
    assert stored.shape == matrix.shape
    np.testing.assert_array_equal(stored.read(slice(2, 4)), expected[2:4])
    np.testing.assert_array_equal(stored.weight().float32(), expected)


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda parts: parts.pop("_scale"), "needs .*_scale and .*_shape"),
        (lambda parts: parts.update(_scale=np.ones((parts["_scale"].shape[0], 2), np.float32)), "only eight bits"),
        (lambda parts: parts.update(_packed=parts["_packed"][:, :-1]), "only eight bits"),
    ],
)
def test_other_packing_is_refused_with_a_sentence(tmp_path, change, says):
    folder = convert(GOLDEN / "bert_tiny_random", tmp_path / "out", to="hf", dtype="int8").path
    name = "bert.encoder.layer.0.intermediate.dense.weight"
    tensors = load_file(folder / "model.safetensors")
    parts = {ending: tensors.pop(name + ending) for ending in ("_packed", "_scale", "_shape")}
    change(parts)
    tensors |= {name + ending: np.ascontiguousarray(value) for ending, value in parts.items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    (folder / "checksums.json").unlink()
    with pytest.raises(CheckpointError, match=says):
        bert_tf.load(folder)
