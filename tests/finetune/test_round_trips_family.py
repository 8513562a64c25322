"""Fine-tuned folders of the other family members: Transformers reads ours, and we read its, where the heads are one."""

import json
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf.finetune import answers, choice, sequence, tokens
from bert_tf.finetune.choice_data import Choices
from bert_tf.finetune.folder import save_task
from bert_tf.finetune.network import network_over
from bert_tf.finetune.squad_data import Question
from bert_tf.finetune.task import TaskSettings, transformers_class
from bert_tf.finetune.word_data import LabelledWords

FOLDERS = Path(__file__).parents[1] / "golden" / "family"
CASES = {
    "classify": (sequence.FAMILY, {"labels": ("a", "b", "c"), "pair": True}, [("w1 w2 the", "w3"), ("of", "w4 w5")],
                 ("logits",)),
    "tag": (tokens.FAMILY, {"labels": ("O", "B-A", "I-A")}, [LabelledWords(("w1", "the", "w2"), None)], ("logits",)),
    "answer": (answers.FAMILY, {}, [Question("1", "w1 w2", "w3 the w4", ())], ("start_logits", "end_logits")),
    "choose": (choice.FAMILY, {}, [Choices("w1 the", ("w2", "of w3"))], ("logits",)),
}
SHARED = [("roberta", task) for task in CASES] + [("albert", task) for task in CASES]
SHARED += [(name, task) for name in ("distilbert", "electra-discriminator") for task in ("tag", "answer")]
APART = [(name, task) for name in ("distilbert", "electra-discriminator") for task in ("classify", "choose")]


def trained(name, task, folder):
    """A member with a random head (and pooler), saved as a fine-tuned model."""
    family, settings, *_ = CASES[task]
    bert = bert_tf.load(FOLDERS / name)
    settings = TaskSettings(task, max_length=24, **settings)
    network = network_over(with_pooler(bert), family, settings)
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
    rows = model.family.encode([model.family.example(one, model.settings) if task == "classify" else one
                                for one in CASES[task][2]], model._tokenizer, model.settings)
    return model, rows, model.outputs(rows, batch_size=2)


@pytest.mark.parametrize("name, task", SHARED)
def test_transformers_and_we_read_one_another(name, task, tmp_path):
    import torch
    import transformers

    folder = trained(name, task, tmp_path / "ours")
    kind = json.loads((folder / "config.json").read_text())["architectures"][0]
    model, said = getattr(transformers, kind).from_pretrained(folder, output_loading_info=True)
    assert not said["missing_keys"] and not said["mismatched_keys"]
    task_model, rows, outputs = outputs_of(folder, task)
    batch = rows.batch(range(len(rows)))
    given = {"input_ids": batch["token_ids"], "attention_mask": batch["padding_mask"]}
    if getattr(model.config, "type_vocab_size", 0) > 1:
        given["token_type_ids"] = batch["segment_ids"]
    with torch.no_grad():
        found = model.eval()(**{key: torch.tensor(value, dtype=torch.long) for key, value in given.items()})
    for output in CASES[task][3]:
        expected = found[output].numpy()
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


@pytest.mark.parametrize("name, task", APART)
def test_a_head_of_another_form_is_said_and_not_claimed(name, task, tmp_path):
    import transformers

    ours = trained(name, task, tmp_path / "ours")
    assert transformers_class(task, bert_tf.load(ours).config.member) is None
    encoder = json.loads((ours / "config.json").read_text())["architectures"][0]
    assert encoder.endswith("Model")
    assert len(outputs_of(ours, task)[2]) == len(CASES[task][2])
    ending = {"classify": "ForSequenceClassification", "choose": "ForMultipleChoice"}[task]
    kind = getattr(transformers, encoder.removesuffix("Model") + ending)
    theirs = tmp_path / "theirs"
    kind(transformers.AutoConfig.from_pretrained(FOLDERS / name)).save_pretrained(theirs)
    bert = bert_tf.load(FOLDERS / name)
    bert.tokenizer.save(theirs)
    with pytest.raises(ValueError, match="another form.*" + encoder):
        bert_tf.load(theirs)
    config = json.loads((theirs / "config.json").read_text())
    (theirs / "config.json").write_text(json.dumps({**config, "architectures": [encoder]}))
    assert bert_tf.load(theirs).task is None


def test_transformers_has_no_other_pooling():
    from bert_tf.family import MEMBERS

    assert transformers_class("classify", MEMBERS["roberta"], "mean") is None
    assert transformers_class("tag", MEMBERS["left-to-right"]) is None
