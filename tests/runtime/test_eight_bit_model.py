"""A Keras model in eight bits: Keras saves and loads it, and its rows are those of our folders."""

import keras
import numpy as np

from bert_tf.checkpoints.quantize import quantize_rows
from bert_tf.runtime.eight_bit_model import EightBitModel, eight_bit_copy
from tests.conftest import make_bert


def test_the_rows_are_those_of_our_folders_and_the_file_loads_with_them(tmp_path):
    model = make_bert(layers=1, seed=3).model
    copy = eight_bit_copy(model)
    dense = model.bert_layers["layer_0"].feed_forward.intermediate
    (actual,) = [
        layer for layer in copy._flatten_layers() if layer.path == dense.path and isinstance(layer, keras.layers.Dense)
    ]
    integers, scales = quantize_rows(np.asarray(dense.kernel).T)
    np.testing.assert_array_equal(np.asarray(actual._kernel).T, integers)
    np.testing.assert_allclose(1 / np.asarray(actual.kernel_scale), scales, rtol=1e-5)
    copy.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded) is EightBitModel
    for one, other in zip(loaded.get_weights(), copy.get_weights(), strict=True):
        assert one.dtype == other.dtype and np.array_equal(one, other)
