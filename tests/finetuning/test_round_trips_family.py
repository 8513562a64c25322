"""Fine-tuned folders of the other family members: Transformers reads ours, and we read its, where the heads are one."""

import json
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.checkpoints.formats.safetensors_folder import open_tensors
from bert_tf.checkpoints.model_checksums import write_model_checksums
from bert_tf.finetuning.data.labelled_sentences import LabelledSentence
from bert_tf.finetuning.data.multiple_choice_examples import MultipleChoiceExample
from bert_tf.finetuning.data.squad import Question
from bert_tf.finetuning.export import export_task
from bert_tf.finetuning.task_folder import save_task
from bert_tf.finetuning.task_network import network_over
from bert_tf.finetuning.task_settings import TaskSettings, transformers_class
from bert_tf.finetuning.tasks import (
    multiple_choice,
    question_answering,
    sequence_classification,
    token_classification,
)

FOLDERS = Path(__file__).parents[1] / "golden" / "family"
CASES = {
    "classify": (
        sequence_classification.TASK,
        {"labels": ("a", "b", "c"), "pair": True},
        [("w1 w2 the", "w3"), ("of", "w4 w5")],
        ("logits",),
    ),
    "tag": (
        token_classification.TASK,
        {"labels": ("O", "B-A", "I-A")},
        [LabelledSentence(("w1", "the", "w2"), None)],
        ("logits",),
    ),
    "answer": (
        question_answering.TASK,
        {},
        [Question("1", "w1 w2", "w3 the w4", ())],
        ("start_logits", "end_logits"),
    ),
    "choose": (multiple_choice.TASK, {}, [MultipleChoiceExample("w1 the", ("w2", "of w3"))], ("logits",)),
}
SHARED = [
    (name, task) for name in ("roberta", "albert", "distilbert", "electra-discriminator", "deberta") for task in CASES
]
OWN_LAYER = [
    (name, task) for name in ("distilbert", "electra-discriminator", "deberta") for task in ("classify", "choose")
]


def trained(name, task, folder, before=False):
    """A member with a random head (and pooler), saved as a fine-tuned model; `before`: as heads were until they brought
    the layer on the first token themselves where the member has no pooler."""
    task_type, settings, *_ = CASES[task]
    bert = bert_tf.load(FOLDERS / name)
    settings = TaskSettings(task, max_length=24, **settings)
    settings = settings if before else settings.on(bert.config.architecture)
    network = network_over(with_pooler(bert) if task_type.needs_pooler(settings) else bert.model, task_type, settings)
    rng = np.random.default_rng(0)
    for variable in network.head.named_variables().values():
        variable.assign(rng.normal(0, 0.3, variable.shape))
    save_task(folder, bert.config, bert.tokenizer, network, settings)
    return folder


def with_pooler(bert):
    """The model, or its encoder with a fresh pooler where it has none."""
    if "pooler" in bert.heads:
        return bert.model
    from bert_tf.models import build_encoder, named_variables

    model, known = build_encoder(bert.config, ("sequence_output", "pooled_output")), named_variables(bert.model)
    for name, variable in named_variables(model).items():
        if name in known:
            variable.assign(known[name])
    return model


def outputs_of(folder, task):
    model = bert_tf.load(folder).task
    rows = model.task_type.encode(
        [model.task_type.example(one, model.settings) if task == "classify" else one for one in CASES[task][2]],
        model._tokenizer,
        model.settings,
    )
    return model, rows, model.outputs(rows, batch_size=2)


@pytest.mark.parametrize("name, task", SHARED)
def test_transformers_and_we_read_one_another(name, task, tmp_path):
    import torch
    import transformers

    folder = trained(name, task, tmp_path / "ours")
    kind = json.loads((folder / "config.json").read_text())["architectures"][0]
    model, message = getattr(transformers, kind).from_pretrained(folder, output_loading_info=True)
    assert not message["missing_keys"] and not message["mismatched_keys"]
    task_model, rows, outputs = outputs_of(folder, task)
    batch = rows.batch(range(len(rows)))
    inputs_of_theirs = {"input_ids": batch["token_ids"], "attention_mask": batch["padding_mask"]}
    if getattr(model.config, "type_vocab_size", 0) > 1:
        inputs_of_theirs["token_type_ids"] = batch["segment_ids"]
    with torch.no_grad():
        actual = model.eval()(**{key: torch.tensor(value, dtype=torch.long) for key, value in inputs_of_theirs.items()})
    for output in CASES[task][3]:
        expected = actual[output].numpy()
        for row, mine in enumerate(outputs):
            length = rows.lengths[row] if task in ("tag", "answer") else None
            np.testing.assert_allclose(mine[output][:length], expected[row][:length], atol=1e-5)
    model.save_pretrained(tmp_path / "theirs")
    task_model._tokenizer.save(tmp_path / "theirs")
    again, _, read = outputs_of(tmp_path / "theirs", task)
    assert (again.settings.task, again.settings.labels) == (task, task_model.settings.labels)
    for mine, same in zip(outputs, read, strict=True):
        for output in CASES[task][3]:
            np.testing.assert_allclose(mine[output], same[output], atol=1e-5)


@pytest.mark.parametrize("name, task", OWN_LAYER)
def test_a_head_on_a_pooler_from_before_is_read_and_not_claimed(name, task, tmp_path):
    folder = trained(name, task, tmp_path / "before", before=True)
    assert "activation" not in json.loads((folder / "task.json").read_text())["extra"]
    encoder = json.loads((folder / "config.json").read_text())["architectures"][0]
    assert encoder.endswith("Model")
    model, rows, outputs = outputs_of(folder, task)
    batch = rows.batch(range(len(rows)))
    flat = {key: batch[key].reshape(-1, batch[key].shape[-1]) for key in ("token_ids", "segment_ids", "padding_mask")}
    bert, stored = bert_tf.load(FOLDERS / name), open_tensors(folder)
    dense, last = (
        [stored[f"{part}.{end}"].read() for end in ("weight", "bias")]
        for part in (f"{bert.config.architecture.prefix}.pooler.dense", "classifier")
    )
    first = bert.runtime.run(flat, ("sequence_output",))["sequence_output"][:, 0]
    expected = np.tanh(first @ dense[0].T + dense[1]) @ last[0].T + last[1]
    logits = np.stack([one["logits"] for one in outputs]).reshape(expected.shape)
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    with pytest.raises(ValueError, match="Transformers has no class with this head.*layer on the first token"):
        export_task(folder, tmp_path / "hf", "hf")


@pytest.mark.usefixtures("few_updates")
@pytest.mark.parametrize("name, task", OWN_LAYER)
def test_a_training_makes_the_head_that_transformers_has(name, task, tmp_path):
    from bert_tf.finetuning.data.sentence_examples import SentenceExample
    from bert_tf.finetuning.fit import FitSettings, fit

    examples = {
        "classify": [SentenceExample("w1 w2", target="a"), SentenceExample("w3", target="b")],
        "choose": [MultipleChoiceExample("w1", ("w2", "w3"), 1), MultipleChoiceExample("w2", ("w4", "w5"), 0)],
    }[task]
    settings = TaskSettings(task, ("a", "b") if task == "classify" else (), max_length=16)
    how = FitSettings(epochs=1, batch_size=2, strategy="one", lengths=1)
    fit(CASES[task][0], FOLDERS / name, examples, [], settings, how, tmp_path / "new", say=lambda line: None)
    member = bert_tf.load(FOLDERS / name).config.architecture
    activation, *names = member.sentence_heads[task]
    assert bert_tf.load(tmp_path / "new").task.settings.extra == {"activation": activation}
    assert {f"{part}.weight" for part in names} <= set(open_tensors(tmp_path / "new"))
    export_task(tmp_path / "new", tmp_path / "hf", "hf")


@pytest.mark.parametrize("name", ["distilbert", "electra-discriminator"])
def test_a_class_is_explained_through_the_layer_on_the_first_token(name, tmp_path):
    from bert_tf.explain import class_target, gradient_x_input, occlusion
    from bert_tf.explain.models.architecture import parts, task_head_activations

    bert = bert_tf.load(trained(name, "classify", tmp_path / "ours"))
    trace, (output,) = bert.trace("w1 w2 the", "w3"), bert.task.predict([("w1 w2 the", "w3")])
    target = class_target(bert, trace)
    assert occlusion(bert, trace, target).log_probability == pytest.approx(np.log(output["probability"]), abs=1e-5)
    assert len(gradient_x_input(bert, trace, target).words) == 4
    (row,) = outputs_of(tmp_path / "ours", "classify")[2][:1]
    np.testing.assert_allclose(task_head_activations(bert, trace)["logits"], row["logits"], atol=1e-5)
    head, width = parts(bert.model, trace.length, task=bert.task)[-1], bert.config.hidden_size
    assert head.parameters == (width + 1) * width + 3 * (width + 1)
    assert head.flops == 2 * width * (width + 3)


def test_a_chooser_of_transformers_with_another_layer_is_refused(tmp_path):
    folder = trained("electra-discriminator", "choose", tmp_path / "ours")
    (folder / "task.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "summary_activation": "tanh"}))
    write_model_checksums(folder)
    with pytest.raises(ValueError, match="a form that is not supported.*summary_activation 'tanh'.*ElectraModel"):
        bert_tf.load(folder)
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["ElectraModel"]}))
    write_model_checksums(folder)
    assert bert_tf.load(folder).task is None


def test_a_task_with_a_layer_that_the_member_has_not_is_refused(tmp_path):
    folder = trained("distilbert", "classify", tmp_path / "ours")
    task = json.loads((folder / "task.json").read_text())
    (folder / "task.json").write_text(json.dumps({**task, "extra": {"activation": "gelu"}}))
    write_model_checksums(folder)
    with pytest.raises(ValueError, match="no head of the task 'classify' on a DistilBERT.*'gelu'"):
        bert_tf.load(folder)


def test_transformers_has_no_other_pooling():
    from bert_tf.architectures import ARCHITECTURES

    assert transformers_class(TaskSettings("classify", pooling="mean"), ARCHITECTURES["roberta"]) is None
    assert transformers_class(TaskSettings("tag"), ARCHITECTURES["left-to-right"]) is None
