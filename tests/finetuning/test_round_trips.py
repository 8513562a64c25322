"""Folders of tagging, answering and choosing models: Transformers reads ours, and we read its."""

import json

import numpy as np
import pytest

from bert_tf.errors import TaskError
from bert_tf.finetuning.data.labelled_sentences import LabelledSentence
from bert_tf.finetuning.data.multiple_choice_examples import MultipleChoiceExample
from bert_tf.finetuning.data.squad import Question
from bert_tf.finetuning.export import export_task
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks import multiple_choice, question_answering, token_classification

WORDS = tuple("the cat sat on a mat in the river".split())
CASES = {
    "tag": (
        token_classification.TASK,
        TaskSettings("tag", ("O", "B-A", "I-A"), max_length=32),
        [LabelledSentence(WORDS, None), LabelledSentence(WORDS[:3], None)],
        ("logits",),
    ),
    "answer": (
        question_answering.TASK,
        TaskSettings("answer", max_length=32),
        [Question("1", "the cat", " ".join(WORDS), ()), Question("2", "is red", "a mat", ())],
        ("start_logits", "end_logits"),
    ),
    "choose": (
        multiple_choice.TASK,
        TaskSettings("choose", max_length=32),
        [
            MultipleChoiceExample("the cat", ("sat on a mat", "ran")),
            MultipleChoiceExample("red", ("house", "is in the river")),
        ],
        ("logits",),
    ),
}


@pytest.fixture(scope="module", params=list(CASES))
def saved(request, tiny_bert, tmp_path_factory):
    """(folder of ours, the same of Transformers', examples, names of the outputs)"""
    import transformers

    from bert_tf.finetuning.task_folder import save_task
    from bert_tf.finetuning.task_network import network_over

    task_type, settings, examples, names = CASES[request.param]
    network = network_over(tiny_bert.model, task_type, settings)
    rng = np.random.default_rng(0)
    for variable in network.head.named_variables().values():
        variable.assign(rng.normal(0, 0.3, variable.shape))
    ours = tmp_path_factory.mktemp("tasks") / request.param
    save_task(ours, tiny_bert.config, tiny_bert.tokenizer, network, settings)
    kind = json.loads((ours / "config.json").read_text())["architectures"][0]
    model = getattr(transformers, kind).from_pretrained(ours).eval()
    theirs = ours.parent / f"{request.param}-transformers"
    model.save_pretrained(theirs)
    tiny_bert.tokenizer.save(theirs)
    return ours, theirs, model, examples, names


def outputs_of(folder, examples):
    """(rows, outputs of each) of the model in a folder."""
    import bert_tf

    task = bert_tf.load(folder).task
    rows = task.task_type.encode(examples, task._tokenizer, task.settings)
    return task, rows, task.outputs(rows, batch_size=2)


def test_transformers_computes_the_same_logits(saved):
    import torch

    folder, _, model, examples, names = saved
    _, rows, outputs = outputs_of(folder, examples)
    batch = rows.batch(range(len(rows)))
    with torch.no_grad():
        theirs = model(
            torch.tensor(batch["token_ids"], dtype=torch.long),
            attention_mask=torch.tensor(batch["padding_mask"]),
            token_type_ids=torch.tensor(batch["segment_ids"], dtype=torch.long),
        )
    for name in names:
        for row, output in enumerate(outputs):
            length = 2 if name == "logits" and len(output[name].shape) == 1 else rows.lengths[row]
            expected = getattr(theirs, name)[row].numpy()[:length]
            assert np.abs(output[name][:length] - expected).max() <= 1e-5


def test_a_folder_that_transformers_wrote_is_read_with_the_same_predictions(saved):
    ours, theirs, _, examples, names = saved
    assert not (theirs / "task.json").exists()
    assert json.loads((theirs / "config.json").read_text())["architectures"]
    first, _, expected = outputs_of(ours, examples)
    second, _, actual = outputs_of(theirs, examples)
    assert second.settings.task == first.settings.task and second.settings.labels == first.settings.labels
    for before, after in zip(expected, actual):
        for name in names:
            assert np.abs(before[name] - after[name]).max() <= 1e-5
    assert len(second.predict(examples)) == len(examples)


def test_a_saved_model_computes_the_same(saved, tmp_path):
    import tensorflow as tf

    from bert_tf.finetuning.export import export_task

    folder, _, _, examples, names = saved
    _, rows, expected = outputs_of(folder, examples)
    module = tf.saved_model.load(str(export_task(folder, tmp_path / "serving", "savedmodel")))
    batch = rows.batch(range(len(rows)))
    actual = module.signatures["serving_default"](
        **{name: tf.constant(batch[name]) for name in ("token_ids", "segment_ids", "padding_mask")}
    )
    for name in names:
        for row, output in enumerate(expected):
            length = len(output[name]) if output[name].ndim == 1 and name == "logits" else rows.lengths[row]
            assert np.abs(actual[name][row].numpy()[:length] - output[name][:length]).max() <= 1e-5


def test_the_transitions_of_a_chain_are_kept(tiny_bert, tmp_path):
    import bert_tf
    from bert_tf.finetuning.task_folder import save_task
    from bert_tf.finetuning.task_network import network_over

    task_type, settings, examples, _ = CASES["tag"]
    settings = settings.replace(extra={"crf": True})
    network = network_over(tiny_bert.model, task_type, settings)
    transitions = np.arange(15, dtype=np.float32).reshape(5, 3)
    network.head.named_variables()["crf.transitions"].assign(transitions)
    save_task(tmp_path / "chain", tiny_bert.config, tiny_bert.tokenizer, network, settings)
    _, _, outputs = outputs_of(tmp_path / "chain", examples)
    assert np.array_equal(outputs[0]["transitions"], transitions)
    assert bert_tf.load(tmp_path / "chain").task.settings.extra["crf"]
    # Transformers has no transitions: its tags would be others.
    config = json.loads((tmp_path / "chain" / "config.json").read_text())
    assert "TokenClassification" not in str(config.get("architectures"))
    with pytest.raises(TaskError, match="Transformers has no class with this head .'tag', with a CRF"):
        export_task(tmp_path / "chain", tmp_path / "hf", "hf")
