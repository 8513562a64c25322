"""GELU and layer normalisation in one pass: the same values and slopes as layer by layer, and when they are used."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.layers.common import LayerNorm, exact_gelu, normalise
from bert_tf.models import build_pretraining_model
from bert_tf.pretraining.objectives.masked_lm import MaskedLMAndNextSentence
from bert_tf.training import fused_ops
from bert_tf.training.optimizers.registry import make_optimizer
from bert_tf.training.step import Step
from tests.training.distribution_run import batches
from tests.training.test_optimizers import CONFIG


def slopes(function, inputs, weights):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        results = function(*inputs)
        score = tf.reduce_sum(results * weights)
    return [results, *tape.gradient(score, inputs)]


@pytest.mark.parametrize(
    ("ours", "plain", "shapes"),
    [
        (fused_ops.gelu, exact_gelu, [(2, 3, 8)]),
        (lambda *x: fused_ops.normalise(*x, 1e-6), lambda *x: normalise(*x, 1e-6), [(2, 3, 8), (8,), (8,)]),
        (lambda *x: fused_ops.normalise(*x, 1e-6), lambda *x: normalise(*x, 1e-6), [(5, 8), (8,), (8,)]),
    ],
)
def test_one_pass_gives_the_same_values_and_slopes(ours, plain, shapes):
    rng = np.random.default_rng(0)
    inputs = [tf.constant(3 * rng.normal(size=shape), tf.float32) for shape in shapes]
    weights = tf.constant(rng.normal(size=shapes[0]), tf.float32)
    for mine, other in zip(slopes(ours, inputs, weights), slopes(plain, inputs, weights), strict=True):
        np.testing.assert_allclose(mine, other, atol=2e-6)


def test_a_fused_model_learns_as_the_plain_one():
    config = CONFIG.replace(hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    models = [build_pretraining_model(config) for _ in range(2)]
    models[1].set_weights(models[0].get_weights())
    fused_ops.fuse(models[1])
    norms = [layer for layer in models[1]._flatten_layers() if isinstance(layer, LayerNorm)]
    assert len(norms) == 2 * 3 + 2 and all(layer.normalise is fused_ops.normalise for layer in norms)
    losses = []
    for model in models:
        step = Step(model, MaskedLMAndNextSentence(), make_optimizer(model.trainable_variables, 1e-2, 10, 2))
        losses.append([float(step(batch)["loss"]) for batch in batches()])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    for one, other in zip(models[0].get_weights(), models[1].get_weights()):
        np.testing.assert_allclose(one, other, atol=2e-4)


def test_what_xla_or_another_precision_does_is_left_alone():
    assert fused_ops.can_fuse("bfloat16_products", None, False)
    assert not any(fused_ops.can_fuse(precision, None, False) for precision in ("float32", "mixed_bfloat16"))
    assert not fused_ops.can_fuse("bfloat16_products", None, True)
    assert not fused_ops.can_fuse("bfloat16_products", tf.distribute.OneDeviceStrategy("/cpu:0"), False)
