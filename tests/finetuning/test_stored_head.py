"""The heads computed in NumPy equal the Keras layers, and predictions of stored models need no TensorFlow."""

import numpy as np
import pytest

from bert_tf.checkpoints.reading import read_stored
from bert_tf.errors import CheckpointError
from bert_tf.finetuning.stored_head import StoredNetwork
from bert_tf.finetuning.task_folder import read_head, save_task
from bert_tf.finetuning.task_network import build_network
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks.registry import task_type
from tests.conftest import randomise

CLASSES = ("bad", "fair", "good")
HEADS = {
    **{
        f"classify by {pooling}": TaskSettings("classify", labels=CLASSES, pooling=pooling)
        for pooling in ("cls", "mean", "max", "attention")
    },
    "regression": TaskSettings("classify", regression=True, metric="pearson"),
    "tag": TaskSettings("tag", labels=CLASSES),
    "tag with a CRF": TaskSettings("tag", labels=CLASSES, extra={"crf": True}),
    "answer": TaskSettings("answer"),
    "choose": TaskSettings("choose"),
}
# The activations of the heads' own layers: DistilBERT's and ELECTRA's.
for model_type, activation in (("distilbert", "relu"), ("electra", "gelu")):
    HEADS[f"classify, {model_type}"] = TaskSettings("classify", labels=CLASSES, extra={"activation": activation})


@pytest.fixture(scope="module", params=HEADS)
def saved(request, tmp_path_factory, tiny_bert):
    """The Keras network with random weights, its folder and its settings."""
    settings, config = HEADS[request.param], tiny_bert.config
    if ", " in request.param:
        changes = {"distilbert": {"type_vocab_size": 0}, "electra": {"embedding_size": config.hidden_size}}
        model_type = request.param.partition(", ")[2]
        config = config.replace(model_type=model_type, **changes[model_type])
    network = build_network(config, task_type(settings.task), settings)
    randomise(network, 5)
    folder = tmp_path_factory.mktemp("head") / "model"
    save_task(folder, config, tiny_bert.tokenizer, network, settings)
    return network, folder, settings


def stored_network(folder, settings):
    _, _, stored = read_stored(folder)
    task = task_type(settings.task)
    return StoredNetwork(stored, read_head(folder, task, settings, stored.bert_config), task, settings)


def test_the_head_equals_its_keras_layer(saved):
    network, folder, settings = saved
    random = np.random.default_rng(0)
    width = network.bert_config.hidden_size
    sequence = random.normal(size=(3, 7, width)).astype(np.float32)
    pooled = np.tanh(random.normal(size=(3, width))).astype(np.float32)
    mask = np.ones((3, 7), np.int32)
    mask[1, 4:] = 0
    ours = stored_network(folder, settings).outputs(sequence, pooled, mask)
    theirs = network.head(sequence, pooled, mask, training=False)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        assert ours[name].dtype == np.float32, name
        np.testing.assert_allclose(ours[name], np.asarray(value), atol=2e-6, err_msg=name)


def test_the_keras_network_has_the_stored_weights(saved):
    network, folder, settings = saved
    again = stored_network(folder, settings)
    assert again.network is again.network
    wanted = network.named_variables()
    for name, variable in again.network.named_variables().items():
        np.testing.assert_array_equal(np.asarray(variable), np.asarray(wanted[name]), name)


@pytest.mark.parametrize("saved", [name for name, settings in HEADS.items() if settings.labels], indirect=True)
def test_a_head_of_other_settings_is_refused(saved):
    network, folder, settings = saved
    fewer = settings.replace(labels=settings.labels[:2])
    with pytest.raises(CheckpointError, match="has shape .*, but its settings ask for"):
        read_head(folder, task_type(settings.task), fewer, network.bert_config)


def test_a_keras_network_first_asked_for_in_a_traced_function_has_the_stored_weights(saved):
    import tensorflow as tf

    network, folder, settings = saved
    again = stored_network(folder, settings)

    @tf.function
    def first_value():
        return tf.reduce_sum(next(iter(again.network.head.named_variables().values())))

    wanted = next(iter(network.head.named_variables().values()))
    assert float(first_value()) == pytest.approx(float(np.asarray(wanted).sum()), abs=1e-5)
