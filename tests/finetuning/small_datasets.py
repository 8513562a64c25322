"""Small made sets of the families, and a model to learn them: helpers of the tests beside this file."""

from types import SimpleNamespace

import numpy as np

#: Options of every family as the command line gives them by default, for a short training.
OPTIONS = {"length": 48, "metric": None}


def options(**values):
    """Parsed options of a family: `OPTIONS` and the values given."""
    return SimpleNamespace(**{**OPTIONS, **values})


def train(task_type, bert, examples, settings, steps=150, batch_size=16, rate=5e-3, seed=0):
    """A `TaskModel` of a fresh small network that learnt the examples, without files and without dropout.

    `bert` gives its tokenizer and its size.
    """
    import keras

    from bert_tf.finetuning.epoch_feed import EpochFeed
    from bert_tf.finetuning.task_model import TaskModel
    from bert_tf.finetuning.task_network import build_network
    from bert_tf.runtime import Runtime
    from bert_tf.training.optimizers.registry import make_optimizer
    from bert_tf.training.step import Step

    keras.utils.set_random_seed(seed)
    config = bert.config.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.1)
    network = build_network(config, task_type, settings)
    optimizer = make_optimizer(network.trainable_variables, rate, steps, steps // 10)
    step = Step(network, task_type.objective(settings), optimizer)
    feed = EpochFeed(task_type.encode(examples, bert.tokenizer, settings, training=True), batch_size, seed, 1)
    for batch, done in feed.from_step(0):
        step(batch)
        if done == steps:
            break
    return TaskModel(settings, network, bert.tokenizer, Runtime(network.bert))


def scored(model, examples):
    """The family's scores of a `TaskModel` on examples."""
    return model.task_type.score(examples, model.predict(examples), model.settings)


def sentences(seed, count):
    """Word lists of the small vocabulary."""
    rng = np.random.default_rng(seed)
    words = "the cat dog sat on mat ran in park river bank money is was city big small red blue house".split()
    return [[str(word) for word in rng.choice(words, rng.integers(4, 9))] for _ in range(count)]
