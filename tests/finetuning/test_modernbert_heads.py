"""The task heads of ModernBERT: Transformers reads ours and we read its, with both poolings; they are trained here."""

import json

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints.formats.safetensors_folder import open_tensors
from bert_tf.finetuning.data.sentence_examples import SentenceExample
from bert_tf.finetuning.export import export_task
from bert_tf.finetuning.fit import FitSettings, fit
from bert_tf.finetuning.task_folder import save_task
from bert_tf.finetuning.task_network import network_over
from bert_tf.finetuning.task_settings import TaskSettings
from tests.architectures.test_modernbert import FOLDER
from tests.finetuning.test_round_trips_family import CASES, outputs_of

HEADS = [("classify", "cls"), ("classify", "mean"), ("tag", "cls"), ("answer", "cls"), ("choose", "cls")]


def trained(task, pooling, folder):
    """The golden model with a random head, saved as a fine-tuned model."""
    task_type, settings, *_ = CASES[task]
    bert = bert_tf.load(FOLDER)
    settings = TaskSettings(task, pooling=pooling, max_length=64, **settings).on(bert.config.architecture)
    network, rng = network_over(bert.model, task_type, settings), np.random.default_rng(0)
    for variable in network.head.named_variables().values():
        variable.assign(rng.normal(0, 0.3, variable.shape))
    save_task(folder, bert.config, bert.tokenizer, network, settings)
    return folder


@pytest.mark.parametrize("task, pooling", HEADS)
def test_transformers_and_we_read_one_another(task, pooling, tmp_path):
    import torch
    import transformers

    folder = trained(task, pooling, tmp_path / "ours")
    config = json.loads((folder / "config.json").read_text())
    assert config.get("classifier_pooling", "cls") == pooling
    kind = getattr(transformers, config["architectures"][0])
    model, message = kind.from_pretrained(folder, output_loading_info=True)
    assert not message["missing_keys"] and not message["mismatched_keys"] and not message["unexpected_keys"]
    task_model, rows, outputs = outputs_of(folder, task)
    batch = rows.batch(range(len(rows)))
    theirs = {"input_ids": batch["token_ids"], "attention_mask": batch["padding_mask"]}
    with torch.no_grad():
        actual = model.eval()(**{key: torch.tensor(value, dtype=torch.long) for key, value in theirs.items()})
    keras_outputs = task_model.network({key: batch[key] for key in ("token_ids", "segment_ids", "padding_mask")})
    for output in CASES[task][3]:
        expected = actual[output].numpy()
        for row, mine in enumerate(outputs):
            length = rows.lengths[row] if task in ("tag", "answer") else None
            np.testing.assert_allclose(mine[output][:length], expected[row][:length], atol=1e-5)
            np.testing.assert_allclose(
                np.asarray(keras_outputs[output])[row][:length], expected[row][:length], atol=1e-5
            )
    model.save_pretrained(tmp_path / "theirs")
    task_model._tokenizer.save(tmp_path / "theirs")
    again, _, read = outputs_of(tmp_path / "theirs", task)
    assert (again.settings.task, again.settings.pooling) == (task, pooling)
    assert again.settings.max_length == 2304
    for mine, same in zip(outputs, read, strict=True):
        for output in CASES[task][3]:
            np.testing.assert_allclose(mine[output], same[output], atol=1e-5)


@pytest.mark.slow
def test_a_training_makes_the_head_that_transformers_has(tmp_path):
    examples = [SentenceExample("a good day", target="a"), SentenceExample("a bad one", target="b")] * 4
    settings = TaskSettings("classify", ("a", "b"), max_length=16)
    how = FitSettings(epochs=8, batch_size=4, learning_rate=1e-2, strategy="one", lengths=1, delta=True)
    fit(CASES["classify"][0], FOLDER, examples, examples, settings, how, tmp_path / "new", say=lambda line: None)
    bert = bert_tf.load(tmp_path / "new")
    assert [output["label"] for output in bert.task.predict(["a good day", "a bad one"])] == ["a", "b"]
    assert bert.heads == frozenset()
    export_task(tmp_path / "new", tmp_path / "hf", "hf")
    assert {"head.dense.weight", "head.norm.weight", "classifier.weight"} <= set(open_tensors(tmp_path / "hf"))
    again = bert_tf.load(tmp_path / "hf")
    assert again.task.predict(["a good day"]) == bert.task.predict(["a good day"])


def test_a_class_is_explained(tmp_path):
    from bert_tf.explain import class_lens, class_target, gradient_x_input, occlusion
    from bert_tf.explain.models.architecture import parts, task_head_activations

    bert = bert_tf.load(trained("classify", "mean", tmp_path / "ours"))
    trace, (output,) = bert.trace("one two the", "three"), bert.task.predict([("one two the", "three")])
    target = class_target(bert, trace)
    assert occlusion(bert, trace, target).log_probability == pytest.approx(np.log(output["probability"]), abs=1e-5)
    assert len(gradient_x_input(bert, trace, target).words) == 4
    assert class_lens(bert, trace).values[-1].max() == pytest.approx(output["probability"], abs=1e-5)
    head, width = parts(bert.model, trace.length, task=bert.task)[-1], bert.config.hidden_size
    assert head.parameters == width * width + width + 3 * (width + 1)
    assert head.flops == 2 * width * (width + 3)
    assert task_head_activations(bert, trace)["logits"].shape == (3,)
