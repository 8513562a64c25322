"""Fine-tuned models written for other programs."""

import shutil

import numpy as np
import pytest

import bert_tf
from bert_tf.cli import main
from bert_tf.finetune.errors import TaskError
from bert_tf.finetune.export import export_task
from bert_tf.finetune.families import family
from bert_tf.finetune.folder import save_task
from bert_tf.finetune.network import build_network
from bert_tf.finetune.task import TaskSettings

TEXTS = ["The cat sat on the mat, and she ran.", "big", "a dog " * 20]
SECOND = ["It was small.", "the river bank of Paris, in London and China " * 3, "big"]


@pytest.fixture(scope="module")
def pair_folder(tiny_bert, tmp_path_factory):
    """A pair classifier with random weights that reads 24 tokens."""
    folder = tmp_path_factory.mktemp("pair") / "pair"
    settings = TaskSettings("classify", ("a", "b", "c"), "mean", pair=True, max_length=24)
    network = build_network(tiny_bert.config, family("classify"), settings)
    for variable in network.trainable_variables:
        variable.assign(np.random.default_rng(len(variable.shape)).normal(1.0, 0.2, variable.shape))
    save_task(folder, tiny_bert.config, tiny_bert.tokenizer, network, settings)
    return folder


def shares(predictions):
    return [list(one["probabilities"].values()) for one in predictions]


def test_a_saved_model_takes_ids_or_raw_text(trained, tmp_path):
    import tensorflow as tf

    assert main(["convert", str(trained[0]), str(tmp_path / "served"), "--to", "savedmodel"]) == 0
    bert = bert_tf.load(trained[0])
    served = tf.saved_model.load(str(tmp_path / "served")).signatures
    expected = shares(bert.task.predict(TEXTS))
    found = served["text"](text_a=tf.constant(TEXTS))["probabilities"]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    rows = bert.task.family.encode(
        [bert.task.family.example(TEXTS[0], bert.task.settings)], bert.tokenizer, bert.task.settings
    )
    batch = {
        name: tf.constant(rows.batch([0])[name]) for name in ("token_ids", "segment_ids", "padding_mask")
    }
    np.testing.assert_allclose(served["serving_default"](**batch)["probabilities"], expected[:1], atol=1e-5)


def test_raw_pairs_are_cut_as_the_tokenizer_cuts_them(pair_folder, tmp_path):
    import tensorflow as tf

    export_task(pair_folder, tmp_path / "served", "savedmodel")
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["text"]
    found = served(text_a=tf.constant(TEXTS), text_b=tf.constant(SECOND))["probabilities"]
    task = bert_tf.load(pair_folder).task
    np.testing.assert_allclose(found, shares(task.predict(list(zip(TEXTS, SECOND)))), atol=1e-5)


def test_a_folder_is_written_again_and_refused_where_something_lies(pair_folder, tmp_path):
    export_task(pair_folder, tmp_path / "copy", "own", "float16")
    first, second = (
        bert_tf.load(folder).task.predict(list(zip(TEXTS, SECOND)))
        for folder in (pair_folder, tmp_path / "copy")
    )
    np.testing.assert_allclose(shares(first), shares(second), atol=5e-3)
    with pytest.raises(TaskError, match="is there already and not empty"):
        export_task(pair_folder, tmp_path / "copy")
    with pytest.raises(TaskError, match="written as own, hf, savedmodel, not 'google'"):
        export_task(pair_folder, tmp_path / "other", "google")
    assert not (tmp_path / "other").exists()
    shutil.rmtree(tmp_path / "copy")
