"""A process of its own for `test_distribution.py`, as TensorFlow's devices are set once a process.

A case is written STRATEGY-DEVICES-K, with `-jit` or `-remat` behind where wanted, and done with the same
model and the same batches; the output holds every case's losses, gradient norms and weights. With `-poison`
the second half of the second batch has an infinite gradient, and with `-seeds` the output holds the random
states.
"""

import functools

import keras
import numpy as np
import tensorflow as tf

from bert_tf.config import BertConfig
from bert_tf.models import build_pretraining_model, named_variables
from bert_tf.pretraining.objectives.masked_lm import MaskedLMAndNextSentence
from bert_tf.training.optimizers.registry import make_optimizer
from bert_tf.training.precision import with_loss_scale
from bert_tf.training.random_state import RandomStates
from bert_tf.training.rematerialization import rematerialise
from bert_tf.training.step import Step
from bert_tf.training.strategy import make_strategy, scope

CONFIG = BertConfig(
    vocab_size=40,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=16,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
BATCH, TOKENS, POSITIONS, UPDATES, CLIP = 16, 12, 4, 3, 0.4


def batches():
    """Batches whose sequences have very different numbers of real masks: a mean of means would show."""
    rng = np.random.default_rng(5)
    for _ in range(UPDATES):
        real = np.repeat([4, 4, 4, 3, 1, 1, 0, 1], 2)
        yield {
            "token_ids": rng.integers(1, 40, (BATCH, TOKENS), np.int32),
            "segment_ids": np.repeat([[0] * 6 + [1] * 6], BATCH, 0).astype(np.int32),
            "padding_mask": (np.arange(TOKENS) < rng.integers(6, 13, (BATCH, 1))).astype(np.int32),
            "mask_positions": np.sort(rng.integers(0, 6, (BATCH, POSITIONS), np.int32)),
            "mask_labels": rng.integers(1, 40, (BATCH, POSITIONS), np.int32),
            "mask_weights": (np.arange(POSITIONS) < real[:, None]).astype(np.float32),
            "nsp_labels": rng.integers(0, 2, BATCH, np.int32),
        }


def make(strategy):
    """A model with the same weights every time, one of its layers frozen, and AdamW."""
    rng = np.random.default_rng(3)
    with scope(strategy):
        model = build_pretraining_model(CONFIG)
        for variable in named_variables(model).values():
            variable.assign(rng.normal(0, 0.3, variable.shape))
        model.bert_layers["layer_0"].attention.query.trainable = False
        optimizer = make_optimizer(model.trainable_variables, 1e-3, total_steps=10, warmup_steps=2)
    return model, optimizer


@functools.cache
def strategy_of(name):
    """Machines and devices are connected once a process."""
    return make_strategy(name)


def run(case):
    """Trains as the case says. Returns: dict of losses [updates], norms [updates] and every weight."""
    name, devices, accumulate, *extra = case.split("-")
    strategy = strategy_of(name)
    assert (strategy.num_replicas_in_sync if strategy else 1) == int(devices)
    if "seeds" in extra:
        return {"seeds": seeds(strategy)}
    model, optimizer = make(strategy)
    if "poison" in extra:
        return poisoned(strategy, model, optimizer)
    if "remat" in extra:
        rematerialise(model)
    before = {f"before/{name}": np.asarray(variable) for name, variable in named_variables(model).items()}
    step = Step(model, MaskedLMAndNextSentence(), optimizer, CLIP, strategy, int(accumulate), "jit" in extra)
    values = [step(batch) for batch in batches()]
    return {
        "losses": [[float(value[key]) for key in ("loss", "mlm_loss", "nsp_loss", "mlm_accuracy")] for value in values],
        "norms": [float(value["gradient_norm"]) for value in values],
        **before,
        **{name: np.asarray(variable) for name, variable in named_variables(model).items()},
    }


class Poisoned(MaskedLMAndNextSentence):
    """The loss times what the batch says, which may be infinite."""

    def __call__(self, outputs, batch, counts=None):
        values = super().__call__(outputs, batch, counts)
        return {**values, "loss": values["loss"] * keras.ops.max(batch["poison"])}


def poisoned(strategy, model, optimizer):
    """Three updates with a loss scale. Returns: dict of scales and updates done [updates], and one weight as
    every replica has it [updates, replicas, ...]."""
    with scope(strategy):
        optimizer = with_loss_scale(optimizer, model.trainable_variables, "mixed_float16", initial_scale=8.0)
    step = Step(model, Poisoned(), optimizer, CLIP, strategy)
    variable = named_variables(model)["cls.seq_relationship.weight"].value
    results = {"scales": [], "done": [], "weight": []}
    for number, batch in enumerate(batches()):
        poison = np.ones(BATCH, np.float32)
        poison[BATCH // 2 :] = np.inf if number == 1 else 1
        step({**batch, "poison": poison})
        results["scales"].append(float(np.asarray(optimizer.dynamic_scale)))
        results["done"].append(int(np.asarray(optimizer.iterations)))
        results["weight"].append([copy.numpy() for copy in getattr(variable, "values", [variable])])
    return results


def seeds(strategy):
    """The seeds of a model with dropout on every replica: [generators, replicas]."""
    with scope(strategy):
        model = build_pretraining_model(CONFIG.replace(hidden_dropout_prob=0.1))
    RandomStates(model, strategy).restore(RandomStates(model, strategy).state())
    weights = {id(variable) for variable in model.weights}
    states = [variable.value for variable in model.variables if id(variable) not in weights]
    return [[int(copy[0]) for copy in getattr(state, "values", [state])] for state in states]


def main(output, *cases):
    devices = max(int(case.split("-")[1]) if case.startswith("mirrored") else 1 for case in cases)
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * devices
    )
    results = {}
    for case in cases:
        keras.utils.set_random_seed(0)
        results.update({f"{case}/{name}": value for name, value in run(case).items()})
    np.savez(output, **results)
