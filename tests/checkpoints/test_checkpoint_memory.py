"""What loading costs: memory at Base size, large tables assigned in blocks, and memory that is given back."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bert_tf import load
from bert_tf.checkpoints import read, save, stored_model
from bert_tf.checkpoints.stored_model import StoredModel
from bert_tf.checkpoints.stored_tensor import Weight

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


def test_a_weight_of_another_shape_is_refused(tiny, tmp_path):
    stored = load(save(tmp_path / "m", tiny.config, tiny.tokenizer, tiny.model)).weights
    name = next(name for name in stored.weights if name.endswith("query.weight"))
    wrong = StoredModel(stored.bert_config, stored.bert_heads, {**stored.weights, name: Weight(np.ones((1, 3)))})
    with pytest.raises(ValueError, match=r"query.*\(\d+, \d+\), and its weight is \(1, 3\)"):
        _ = wrong.model


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_memory_of_a_keras_model_goes_back_to_the_system():
    command = """
import bert_tf
from bert_tf.resources.memory_budget import resident_bytes
from ui.server.allocator import give_back
bert_tf.load("bert-small-uncased-embedded").model  # the framework is imported
give_back()
before = resident_bytes()
bert = bert_tf.load("bert-small-uncased-embedded")
held = 4 * bert.model.count_params()
with_model = resident_bytes()
del bert
give_back()
print((with_model - before) / held, (resident_bytes() - before) / held)
"""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", command], cwd=root, capture_output=True, text=True, check=True)
    with_model, after = map(float, done.stdout.split()[-2:])
    assert with_model > 0.9 and after < 0.25, (with_model, after)
