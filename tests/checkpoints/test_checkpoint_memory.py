"""What loading costs: memory at Base size, and large tables assigned in blocks."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from bert_tf.checkpoints import read, save, stored_model

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "load_memory.py"


def test_loading_base_takes_at_most_1_6_times_the_file():
    spec = importlib.util.spec_from_file_location("load_memory", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    measured = script.measure("base", "float32")
    assert measured["file_mb"] == pytest.approx(440, abs=1)
    assert 0.9 < measured["times_the_file"] <= 1.6, measured


@pytest.mark.parametrize("stored", ["float32", "float16", "int8"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_table_assigned_in_blocks_is_the_one_assigned_whole(tiny, tmp_path, monkeypatch, stored, dtype):
    from bert_tf.models import named_variables

    folder = save(tmp_path / "m", tiny.config, tiny.tokenizer, tiny.model, dtype=stored)
    variables = named_variables(read(folder, dtype=dtype)[2])
    monkeypatch.setattr(stored_model, "_BLOCK_VALUES", 32 * 7)  # seven rows; 194 are no multiple of it
    blocks = named_variables(read(folder, dtype=dtype)[2])
    for name, variable in variables.items():
        values = np.asarray(blocks[name]).astype(np.float32)
        np.testing.assert_array_equal(values, np.asarray(variable).astype(np.float32), name)
