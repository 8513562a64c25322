"""Weights that are no numbers are refused on reading, whatever the format."""

import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_tf import load
from bert_tf.checkpoints import CheckpointError, convert, read, stored_model
from bert_tf.checkpoints.model_checksums import write_model_checksums

TENSORS = (
    "bert.encoder.layer.1.attention.self.query.weight",
    "cls.predictions.bias",
    "bert.embeddings.word_embeddings.weight",
)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", TENSORS)
def test_a_weight_that_is_no_number_names_its_tensor(tiny_folder, tmp_path, name, value, monkeypatch):
    monkeypatch.setattr(stored_model, "_BLOCK_VALUES", 100)  # so that the table is read in blocks
    folder = shutil.copytree(tiny_folder, tmp_path / "model")
    values = {key: array.copy() for key, array in load_file(folder / "model.safetensors").items()}
    values[name].flat[-1] = value
    save_file(values, folder / "model.safetensors")
    write_model_checksums(folder)  # as a program that computed such weights would
    with pytest.raises(CheckpointError, match=f"model.safetensors: {name} holds values that are not finite"):
        read(folder)
    with pytest.raises(CheckpointError, match=f"model.safetensors: {name} holds values that are not finite"):
        load(folder)


def test_in_eight_bits_a_scale_that_is_no_number_is_noticed(tiny_folder, tmp_path):
    folder = convert(tiny_folder, tmp_path / "model", dtype="int8").path
    values = {key: array.copy() for key, array in load_file(folder / "model.safetensors").items()}
    values[f"{TENSORS[0]}.scale"][3] = np.nan
    save_file(values, folder / "model.safetensors")
    write_model_checksums(folder)  # as a program that computed such weights would
    with pytest.raises(CheckpointError, match=f"{TENSORS[0]} holds values"):
        read(folder)
