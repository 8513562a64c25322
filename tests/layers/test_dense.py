"""The dense layer computes what Keras' own does, with and without an update of low rank."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_tf.layers.common import Dense


def both(dtype="float32"):
    """This layer and Keras' own with the same matrix, bias and update, and an input [2, 5, 12]."""
    rng = np.random.default_rng(1)
    layers = [kind(7, activation="gelu", dtype=dtype) for kind in (Dense, keras.layers.Dense)]
    for layer in layers:
        layer.build((None, 5, 12))
        layer.enable_lora(3, lora_alpha=6)
    values = [rng.normal(size=weight.shape).astype(np.float32) for weight in layers[0].weights]
    for layer in layers:
        layer.set_weights(values)
    return *layers, tf.constant(rng.normal(size=(2, 5, 12)).astype(np.float32))


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("mixed_bfloat16", 0.1)])
def test_an_update_of_low_rank_is_that_of_keras(dtype, tolerance):
    ours, keras_own, x = both(dtype)
    results = []
    for layer in (ours, keras_own):
        with tf.GradientTape() as tape:
            y = layer(x)
            loss = tf.reduce_sum(tf.cast(y, tf.float32) ** 2)
        results.append([y, *tape.gradient(loss, [variable.value for variable in layer.trainable_variables])])
    assert results[0][0].dtype == results[1][0].dtype and len(results[0]) == 4
    for one, other in zip(*results):
        one, other = (tf.cast(value, tf.float32).numpy() for value in (one, other))
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())


def test_the_gradient_of_the_frozen_matrix_is_not_computed():
    ours, keras_own, x = both()

    def products(layer):
        """The shapes of the matrix products on which the gradients of the update depend."""

        @tf.function(autograph=False)
        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(layer(x) ** 2)
            return tape.gradient(loss, [layer.lora_kernel_a.value, layer.lora_kernel_b.value])

        graph = step.get_concrete_function().graph
        asked = [output.op.name for output in graph.outputs]
        kept = tf.compat.v1.graph_util.extract_sub_graph(graph.as_graph_def(), asked).node
        return {tuple(graph.get_tensor_by_name(f"{node.name}:0").shape) for node in kept if node.op == "MatMul"}

    assert (12, 7) in products(keras_own) and (12, 7) not in products(ours)


def test_it_is_quantized_as_keras_own():
    ours, keras_own, x = both()
    expected = keras_own(x)
    for layer in (ours, keras_own):
        layer.quantize("int8")
    actual = ours(x)
    np.testing.assert_allclose(actual, keras_own(x), atol=1e-6)
    assert 0 < np.abs(actual - expected).max() < 0.5
