"""Keras' other backends: models run there as on TensorFlow, and what needs TensorFlow says so in one sentence."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "golden" / "family" / "deberta"
INSTALLED = [name for name in ("torch", "jax") if importlib.util.find_spec(name)]
SCRIPT = """
import sys
import numpy as np
import pytest
import bert_tf
from bert_tf import checkpoints
from bert_tf.errors import InputError
from bert_tf.explain import logit_lens
from bert_tf.runtime import Runtime
from bert_tf.startup import lean_tensorflow
from tests.conftest import outputs_of

lean_tensorflow()  # as the explorer does
bert = bert_tf.load(sys.argv[1])
config, tokenizer, model = checkpoints.read(sys.argv[1])
trace = bert.trace("the [MASK] of the work")
# OpenVINO, over the weights of the Keras model
assert bert_tf.Bert(config, tokenizer, model).predict("the [MASK]").masks[0].predictions
direct, plain = Runtime(model, engine="tensorflow"), Runtime(model, engine="openvino")
ids = np.stack([trace.token_ids] * 2).astype(np.int32)
batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 1 + 0 * ids, "mask_positions": ids[:, :2] * 0 + 1}
outputs = outputs_of(model.bert_heads)
ours, theirs = direct.run(batch, outputs), plain.run(batch, outputs)
for name in outputs:
    for one, other in zip(ours[name], theirs[name]):
        np.testing.assert_allclose(one, other, atol=2e-5, err_msg=name)
states = theirs["sequence_output"][:, :3]
for answers in ([-1, -1], [7, 9]):
    for one, other in zip(direct.read_mlm(states, answers, 4), plain.read_mlm(states, answers, 4)):
        np.testing.assert_allclose(one, other, atol=2e-5)
with pytest.raises(ValueError, match="token_ids must be 0 to"):
    direct.run({**batch, "token_ids": ids + 10**6}, outputs)
with pytest.raises(InputError, match="KERAS_BACKEND"):
    bert.hooked()
with pytest.raises(ValueError, match="KERAS_BACKEND"):
    model.export("nowhere")
assert "tensorflow" not in sys.modules
"""


@pytest.mark.parametrize("backend", INSTALLED)
def test_a_model_runs_on_another_backend_of_keras(backend):
    environment = {**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-c", SCRIPT, str(FOLDER)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
