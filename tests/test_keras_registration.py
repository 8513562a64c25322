"""A saved Keras model is found by Keras after `import bert_tf`, whichever of the two is imported first."""

import subprocess
import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden" / "bert_tiny_random"


@pytest.mark.slow
@pytest.mark.parametrize("first, second", [("bert_tf", "keras"), ("keras", "bert_tf")])
def test_a_saved_model_is_loaded_after_the_import_alone(tmp_path, first, second):
    from bert_tf.checkpoints import read

    path = tmp_path / "model.keras"
    read(GOLDEN)[2].save(path)
    code = f"import {first}, {second}; print(type(keras.saving.load_model({str(path)!r})).__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "BertModel", done.stdout + done.stderr
