"""The optimisers' formulas, learning rates by layer, warm-up, and rematerialisation."""

import functools
import math

import keras
import numpy as np
import pytest

from bert_tf.config import BertConfig
from bert_tf.finetuning.task_network import build_network
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks.registry import task_type
from bert_tf.models import build_pretraining_model, named_variables
from bert_tf.pretraining.objectives.masked_lm import MaskedLMAndNextSentence
from bert_tf.training.optimizers.registry import make_optimizer
from bert_tf.training.optimizers.schedule import WarmupLinearDecay, layer_factors, warmup_steps
from bert_tf.training.random_state import RandomStates
from bert_tf.training.rematerialization import rematerialise
from bert_tf.training.step import Step
from tests.training.distribution_run import batches

CONFIG = BertConfig(
    vocab_size=40,
    hidden_size=16,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=16,
    hidden_dropout_prob=0.3,
    attention_probs_dropout_prob=0.2,
)


def lamb_by_hand(value, gradients, rates, decay, trusted):
    """You et al. 2020, algorithm 2, in float64."""
    value, m, v = value.astype(np.float64), 0.0, 0.0
    for number, (gradient, rate) in enumerate(zip(gradients, rates), 1):
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        direction = m / (1 - 0.9**number) / (np.sqrt(v / (1 - 0.999**number)) + 1e-6) + decay * value
        trust = np.linalg.norm(value) / np.linalg.norm(direction) if trusted and np.any(value) else 1.0
        value = value - rate * trust * direction
    return value


@pytest.mark.parametrize("zero", [False, True])
def test_lamb_is_the_papers(zero):
    rng = np.random.default_rng(0)
    first = rng.normal(size=(4, 3)).astype("float32") * (not zero)
    kernel, bias = keras.Variable(first, name="kernel"), keras.Variable(first[0], name="bias")
    optimizer = make_optimizer([kernel, bias], 1e-2, total_steps=20, warmup_steps=4, name="lamb")
    gradients = rng.normal(size=(6, 4, 3)).astype("float32")
    rates = [1e-2 * min((step + 1) / 4, (20 - step) / 16, 1) for step in range(6)]
    for gradient in gradients:
        parts = [keras.ops.convert_to_tensor(part) for part in (gradient, gradient[0])]
        optimizer.apply(parts, [kernel, bias])
    expected = lamb_by_hand(first, gradients, rates, 0.01, True)
    np.testing.assert_allclose(np.asarray(kernel), expected, atol=1e-6)
    expected = lamb_by_hand(first[0], gradients[:, 0], rates, 0, False)
    np.testing.assert_allclose(np.asarray(bias), expected, atol=1e-6)


def test_lamb_without_weight_decay_still_scales_its_steps():
    kernel = keras.Variable(np.full((4, 4), 100, "float32"), name="kernel")
    gradient = np.random.default_rng(0).normal(size=(4, 4)).astype("float32")
    optimizer = make_optimizer([kernel], 1e-2, total_steps=20, warmup_steps=0, weight_decay=0, name="lamb")
    optimizer.apply([keras.ops.convert_to_tensor(gradient)], [kernel])
    expected = lamb_by_hand(np.full((4, 4), 100), [gradient], [1e-2], 0, True)
    np.testing.assert_allclose(np.asarray(kernel), expected, rtol=1e-6)


def test_adamw_is_kerass_own():
    """The fused kernel against Keras' AdamW, with the same decay and schedule."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=(4, 3)).astype("float32")
    ours, theirs = ([keras.Variable(first, name="kernel"), keras.Variable(first[0], name="bias")] for _ in range(2))
    optimizer = make_optimizer(ours, 1e-2, total_steps=20, warmup_steps=4)
    reference = keras.optimizers.AdamW(WarmupLinearDecay(1e-2, 20, 4), weight_decay=0.01, epsilon=1e-6)
    reference.exclude_from_weight_decay(var_names=["bias"])
    for gradient in rng.normal(size=(6, 4, 3)).astype("float32"):
        for one, variables in ((optimizer, ours), (reference, theirs)):
            one.apply([keras.ops.convert_to_tensor(part) for part in (gradient, gradient[0])], variables)
    for mine, other in zip(ours, theirs):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(other), atol=1e-6)


def muon_by_hand(value, gradients, rates, decay):
    """Liu et al. 2025, section 2.2, with the five quintic Newton-Schulz iterations of Jordan et al., in float64."""
    value, momentum = value.astype(np.float64), 0.0
    for gradient, rate in zip(gradients, rates):
        momentum = 0.95 * momentum + gradient
        step = gradient + 0.95 * momentum
        step = step / np.linalg.norm(step)
        for _ in range(5):
            square = step @ step.T
            step = 3.4445 * step + (-4.7750 * square + 2.0315 * square @ square) @ step
        value = value - rate * (0.2 * np.sqrt(max(value.shape)) * step + decay * value)
    return value


@pytest.mark.parametrize(("products", "tolerance"), [("float32", 1e-4), ("bfloat16", 0.05)])
def test_muon_is_the_papers(products, tolerance):
    model = build_pretraining_model(CONFIG)
    actual = {variable.path: variable for variable in model.trainable_variables}
    kernel = actual["layer_1/feed_forward/intermediate/kernel"]
    rng = np.random.default_rng(0)
    first = rng.normal(size=(16, 32)).astype("float32")
    kernel.assign(first)
    optimizer = make_optimizer([kernel], 1e-2, total_steps=20, warmup_steps=4, name="muon", products=products)
    # As small as real gradients are: their size must not cost digits.
    gradients = 1e-6 * rng.normal(size=(6, 16, 32)).astype("float32")
    rates = [1e-2 * min((step + 1) / 4, (20 - step) / 16, 1) for step in range(6)]
    for gradient in gradients:
        optimizer.apply([keras.ops.convert_to_tensor(gradient)], [kernel])
    expected = muon_by_hand(first, gradients, rates, 0.01)
    assert np.linalg.norm(kernel - expected) < tolerance * np.linalg.norm(expected - first)


def test_muon_moves_the_tables_heads_and_biases_as_adamw_does():
    inner = []
    models = [build_pretraining_model(CONFIG) for _ in range(2)]
    rng = np.random.default_rng(0)
    gradients = [rng.normal(size=variable.shape).astype("float32") for variable in models[0].trainable_variables]
    models[1].set_weights(models[0].get_weights())
    for model, name in zip(models, ("adamw", "muon")):
        optimizer = make_optimizer(model.trainable_variables, 1e-2, 20, 4, name=name)
        optimizer.apply([keras.ops.convert_to_tensor(part) for part in gradients], model.trainable_variables)
    for mine, other in zip(*(model.trainable_variables for model in models)):
        same = np.allclose(np.asarray(mine), np.asarray(other), atol=1e-7)
        in_layer = mine.path.startswith("layer_") and mine.name == "kernel"
        assert same != in_layer, mine.path
        inner.append(in_layer)
    assert sum(inner) == 3 * 6


def test_an_unknown_optimizer_is_refused():
    with pytest.raises(ValueError, match="'sgd'; choose from adamw, lamb, muon"):
        make_optimizer([], 1e-3, 10, 1, name="sgd")


@pytest.mark.parametrize(
    "peak, decay, output",
    [
        (0.0, 0.01, "--learning-rate is 0.0; it must be above 0"),
        (-1.0, 0.01, "--learning-rate is -1.0"),
        (math.inf, 0.01, "--learning-rate is inf"),
        (math.nan, 0.01, "--learning-rate is nan"),
        (1e-3, -0.1, "--weight-decay is -0.1; it must be 0 or more"),
        (1e-3, math.nan, "--weight-decay is nan"),
    ],
)
def test_rates_out_of_range_are_refused(peak, decay, output):
    with pytest.raises(ValueError, match=output):
        make_optimizer([], peak, 10, 1, decay)


@pytest.mark.parametrize("name", ["adamw", "lamb", "muon"])
def test_lower_layers_learn_slower(name):
    model = build_pretraining_model(CONFIG)
    factors = layer_factors(model, 0.5)
    actual = {key: factors.get(id(variable), 1.0) for key, variable in named_variables(model).items()}
    assert actual["bert.embeddings.word_embeddings.weight"] == 1 / 16
    layers = [actual[f"bert.encoder.layer.{index}.output.dense.bias"] for index in range(3)]
    assert layers == [1 / 8, 1 / 4, 1 / 2]
    assert actual["bert.pooler.dense.weight"] == actual["cls.predictions.bias"] == 1
    biases = [named_variables(model)[f"{layer}.dense.bias"] for layer in ("bert.encoder.layer.0.output", "bert.pooler")]
    optimizer = make_optimizer(biases, 1e-2, 10, 0, name=name, factors=factors)
    optimizer.apply([keras.ops.ones(16)] * 2, biases)
    assert float(biases[0][0]) == pytest.approx(float(biases[1][0]) / 8, rel=1e-5) and float(biases[0][0]) < 0
    for decay in (0, 1.1):
        with pytest.raises(ValueError, match="above 0 and not above 1"):
            layer_factors(model, decay)


def test_a_head_learns_fastest_and_each_layer_below_half_as_fast():
    settings = TaskSettings("classify", ("a", "b"), max_length=16)
    network = build_network(CONFIG, task_type("classify"), settings)
    factors = layer_factors(network, 0.5)
    actual = {name: factors.get(id(variable), 1.0) for name, variable in network.named_variables().items()}
    assert actual["classifier.weight"] == actual["classifier.bias"] == 1
    for index in range(3):
        layer = {factor for name, factor in actual.items() if f".layer.{index}." in name}
        assert layer == {0.5 ** (3 - index)}
    assert {factor for name, factor in actual.items() if ".embeddings." in name} == {0.5**4}


def test_the_weight_decay_of_a_lower_layer_is_smaller_alike():
    kernels = [keras.Variable(np.ones((2, 2), "float32"), name="kernel") for _ in range(2)]
    optimizer = make_optimizer(kernels, 1e-2, 10, 0, weight_decay=0.5, factors={id(kernels[0]): 0.25})
    optimizer.apply([keras.ops.zeros((2, 2))] * 2, kernels)
    lost = [1 - float(kernel[0, 0]) for kernel in kernels]
    assert lost[1] > 0 and lost[0] == pytest.approx(lost[1] / 4, rel=1e-3)


def test_warm_up_is_a_share_or_a_number_of_steps():
    assert [warmup_steps(value, 200) for value in (0, 0.06, 0.5, 1, 30.0, 200)] == [0, 12, 100, 1, 30, 200]
    for wrong in (-0.1, 2.5, 201, float("nan"), float("inf"), float("-inf")):
        with pytest.raises(ValueError, match="up to 200"):
            warmup_steps(wrong, 200)


@functools.cache
def trained(rematerialised, jit_compile, accumulate):
    """(values of each update, weights, random states, the step) of one training of two layers with dropout."""
    keras.utils.set_random_seed(7)
    model = build_pretraining_model(CONFIG.replace(num_hidden_layers=2))
    model.bert_layers["layer_0"].trainable = False
    if rematerialised:
        rematerialise(model)
    step = Step(
        model,
        MaskedLMAndNextSentence(),
        make_optimizer(model.trainable_variables, 1e-3, 10, 1),
        accumulate=accumulate,
        jit_compile=jit_compile,
    )
    values = [{name: float(value) for name, value in step(batch).items()} for batch in batches()]
    return values, [np.asarray(variable) for variable in model.weights], RandomStates(model).state(), step


@pytest.mark.parametrize("jit_compile, accumulate", [(False, 1), (True, 1)])
def test_rematerialised_layers_have_the_same_gradients_and_dropout(jit_compile, accumulate):
    plain, again = (trained(flag, jit_compile, accumulate) for flag in (False, True))
    for expected, actual in zip(plain[0], again[0]):
        assert actual == pytest.approx(expected, rel=1e-5)
    for expected, actual in zip(plain[1], again[1]):
        np.testing.assert_allclose(actual, expected, atol=1e-6)
    assert plain[2] == again[2]


def test_rematerialised_layers_are_computed_twice():
    def attentions(step):
        graph = step._run.get_concrete_function(next(batches())).graph.as_graph_def()
        return sum(node.op == "Softmax" for node in graph.node)

    assert [attentions(trained(flag, False, 1)[3]) for flag in (False, True)] == [2, 4]


def test_random_states_come_back():
    model = build_pretraining_model(CONFIG)
    states = RandomStates(model)
    before = states.state()
    assert len(before) == 1 + 2 * 3
    batch = next(batches())
    inputs = {name: batch[name] for name in MaskedLMAndNextSentence.model_inputs}
    first = model(inputs, training=True)["nsp_logits"]
    assert states.state() != before
    states.restore(before)
    np.testing.assert_array_equal(model(inputs, training=True)["nsp_logits"], first)
