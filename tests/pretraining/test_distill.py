"""A student learns from its teacher."""

import keras
import numpy as np
import pytest

from bert_tf import checkpoints
from bert_tf.config import BertConfig
from bert_tf.errors import MissingHead
from bert_tf.models import build_pretraining_model, named_variables, view
from bert_tf.pretraining.objectives.distillation import Distillation, alternate_layers, build_student
from bert_tf.pretraining.objectives.masked_lm import MaskedLM, MaskedLMAndNextSentence
from bert_tf.tokenizers import Tokenizer

TINY = {
    "vocab_size": 30,
    "hidden_size": 16,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
}


def model(layers=4, seed=0, heads=("pooler", "mlm", "nsp"), **changes):
    keras.utils.set_random_seed(seed)
    return build_pretraining_model(
        BertConfig(**{**TINY, "num_hidden_layers": layers, "initializer_range": 0.3, **changes}), heads=heads
    )


def batch(rows=3, tokens=9, masks=2, seed=0):
    rng = np.random.default_rng(seed)
    padding = np.ones((rows, tokens), np.int32)
    padding[1, 6:] = 0
    return {
        "token_ids": rng.integers(5, 30, (rows, tokens)).astype(np.int32),
        "segment_ids": np.zeros((rows, tokens), np.int32),
        "padding_mask": padding,
        "mask_positions": rng.integers(1, 6, (rows, masks)).astype(np.int32),
        "mask_labels": rng.integers(5, 30, (rows, masks)).astype(np.int32),
        "mask_weights": np.array([[1, 1], [1, 0], [1, 1]], np.float32),
        "nsp_labels": np.array([0, 1, 0], np.int32),
    }


def values_of(objective, student, teacher, data):
    network = objective.network(student, teacher)
    outputs = network({name: data[name] for name in objective.model_inputs}, training=False)
    return {name: float(value) for name, value in objective(outputs, data).items()}


def outputs_of(one, data, *names):
    seen = view(one, names)
    return seen({name: data[name] for name in seen.input})


def test_alternate_layers_are_those_of_distilbert():
    assert alternate_layers(12, 6) == (0, 2, 4, 7, 9, 11)
    assert alternate_layers(12, 12) == tuple(range(12)) and alternate_layers(4, 1) == (3,)
    with pytest.raises(ValueError, match="give 1 to 4"):
        alternate_layers(4, 5)


def test_a_student_has_the_teachers_layers():
    teacher = model()
    student = build_student(teacher, 2)
    known, own = named_variables(teacher), named_variables(student)
    for ours, theirs in (("layer.0.", "layer.0."), ("layer.1.", "layer.3.")):
        name = "bert.encoder.{}attention.self.query.weight"
        np.testing.assert_array_equal(own[name.format(ours)], known[name.format(theirs)])
    np.testing.assert_array_equal(own["cls.predictions.bias"], known["cls.predictions.bias"])


@pytest.mark.parametrize("way", ["states", "relations"])
def test_the_teacher_as_its_own_student_has_nothing_to_learn_from_itself(way):
    teacher = model()
    actual = values_of(Distillation(MaskedLM(), way), build_student(teacher, 4), teacher, batch())
    parts = {"states": ("soft_loss", "cosine_loss"), "relations": ("attention_loss", "value_loss")}[way]
    for part in parts:
        assert actual[part] == pytest.approx(0, abs=1e-5)
    assert actual["loss"] == pytest.approx(2 * actual["mlm_loss"], rel=1e-5)


def test_the_parts_are_those_of_the_papers_computed_by_torch():
    import torch
    from torch.nn import functional

    teacher, student, data = model(seed=1), model(layers=2, seed=2), batch()
    actual = values_of(Distillation(MaskedLMAndNextSentence()), student, teacher, data)
    outputs = ("mlm_logits", "sequence_output")
    inputs = {name: data[name] for name in Distillation.model_inputs}
    ours, theirs = (
        {name: torch.tensor(np.asarray(value)) for name, value in view(one, outputs)(inputs).items()}
        for one in (student, teacher)
    )
    chosen = torch.tensor(data["mask_weights"]).bool()
    soft = (
        functional.kl_div(
            functional.log_softmax(ours["mlm_logits"][chosen] / 2, -1),
            functional.softmax(theirs["mlm_logits"][chosen] / 2, -1),
            reduction="batchmean",
        )
        * 4
    )
    real = torch.tensor(data["padding_mask"]).bool()
    cosine = functional.cosine_embedding_loss(
        ours["sequence_output"][real], theirs["sequence_output"][real], torch.ones(int(real.sum()))
    )
    assert actual["soft_loss"] == pytest.approx(float(soft), rel=1e-4)
    assert actual["cosine_loss"] == pytest.approx(float(cosine), rel=1e-4)
    wanted = 5 * actual["soft_loss"] + 2 * actual["mlm_loss"] + actual["cosine_loss"] + actual["nsp_loss"]
    assert actual["loss"] == pytest.approx(wanted, rel=1e-5)


def test_relations_do_not_see_padding_and_take_a_student_of_another_width():
    teacher, student = model(seed=1), model(layers=1, seed=2, hidden_size=8)
    objective, data = Distillation(MaskedLM(), "relations"), batch()
    network = objective.network(student, teacher)
    before = values_of(objective, student, teacher, data)
    data["token_ids"][1, 6:] = 29
    after = values_of(objective, student, teacher, data)
    assert before["value_loss"] == pytest.approx(after["value_loss"], rel=1e-4)
    assert len(network.trainable_variables) == len(
        view(student, ("mlm_logits", "attentions", "values")).trainable_variables
    )


def test_states_of_a_student_of_another_width_are_brought_to_the_teachers():
    teacher, student, data = model(seed=1), model(layers=1, seed=2, hidden_size=8), batch()
    objective = Distillation(MaskedLM())
    network = objective.network(student, teacher)
    # Last, as a checkpoint's first variables are read as the student's.
    matrix, shift = network.trainable_variables[-2:]
    assert matrix.shape == (8, 16)
    assert [id(one) for one in network.trainable_variables[:-2]] == [
        id(one) for one in view(student, ("mlm_logits", "sequence_output")).trainable_variables
    ]
    inputs = {name: data[name] for name in Distillation.model_inputs}
    actual = {name: float(value) for name, value in objective(network(inputs), data).items()}
    ours, theirs = (
        np.asarray(outputs_of(one, data, "sequence_output")["sequence_output"]) for one in (student, teacher)
    )
    ours = ours @ np.asarray(matrix) + np.asarray(shift)
    cosine = (ours * theirs).sum(-1) / np.linalg.norm(ours, axis=-1) / np.linalg.norm(theirs, axis=-1)
    assert actual["cosine_loss"] == pytest.approx((1 - cosine)[data["padding_mask"] == 1].mean(), rel=1e-4)


def test_relations_of_other_heads_are_those_of_minilm_2_computed_by_torch():
    import torch

    teacher, student = model(seed=1, num_attention_heads=4), model(layers=1, seed=2, hidden_size=6)
    objective, data = Distillation(MaskedLM(), "relations"), batch()
    actual = values_of(objective, student, teacher, data)
    names = ("queries", "keys", "values")
    last = [
        {name: torch.tensor(np.asarray(layers[-1])) for name, layers in outputs_of(one, data, *names).items()}
        for one in (student, teacher)
    ]
    real = torch.tensor(data["padding_mask"]).bool()

    def related(vectors):
        # Widths 6 and 16: at most two heads divide both.
        whole = vectors.transpose(1, 2).flatten(2)
        cut = whole.unflatten(2, (2, -1)).transpose(1, 2)
        scores = cut @ cut.transpose(-1, -2) / cut.shape[-1] ** 0.5
        return scores.masked_fill(~real[:, None, None, :], -1e9).log_softmax(-1)

    for name, loss in zip(names, ("query_loss", "key_loss", "value_loss")):
        ours, theirs = (related(one[name]) for one in last)
        apart = (theirs.exp() * (theirs - ours)).sum(-1).mean(1)[real].mean()
        assert actual[loss] == pytest.approx(float(apart), rel=1e-4)
    assert "attention_loss" not in actual


def test_models_that_do_not_fit_are_refused():
    teacher = model()
    with pytest.raises(ValueError, match="30 .*31|31 .*30"):
        Distillation(MaskedLM()).network(model(vocab_size=31), teacher)
    with pytest.raises(ValueError, match="no way 'all'"):
        Distillation(MaskedLM(), "all")


def test_a_student_learns_its_teacher_in_the_one_training_loop(tmp_path):
    from bert_tf.training.loop import Trainer
    from bert_tf.training.optimizers.registry import make_optimizer

    teacher, student = model(layers=2, seed=1, heads=("mlm",)), model(layers=1, seed=2, heads=("mlm",))
    objective = Distillation(MaskedLM())
    network = objective.network(student, teacher)
    before = {name: np.array(variable) for name, variable in named_variables(teacher).items()}
    optimizer = make_optimizer(network.trainable_variables, 5e-3, total_steps=60, warmup_steps=5)
    trainer = Trainer(network, objective, optimizer, tmp_path)
    data = [batch(seed=seed) for seed in range(4)]
    seen = []
    trainer.train(
        ((data[step % 4], step) for step in range(60)), 0, 60, encode_position=int, log_every=10, report=seen.append
    )
    assert seen[-1]["cosine_loss"] < 0.75 * seen[0]["cosine_loss"]
    assert seen[-1]["soft_loss"] < 0.75 * seen[0]["soft_loss"]
    for name, variable in named_variables(teacher).items():
        np.testing.assert_array_equal(np.array(variable), before[name])
    folder = tmp_path / "student"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxy"]
    checkpoints.save(folder, student.bert_config, Tokenizer(words, lower_case=True), student)
    assert checkpoints.read(folder)[0].num_hidden_layers == 1


def test_the_command_makes_a_student_with_half_of_the_layers(tmp_path):
    from argparse import ArgumentParser

    from bert_tf.cli import pretrain
    from tests.conftest import make_bert

    bert = make_bert(layers=2)
    checkpoints.save(tmp_path / "teacher", bert.config, bert.tokenizer, bert.model)
    (tmp_path / "text.txt").write_text("\n\n".join(["The cat sat on the mat. She ran in the park."] * 12))
    parser = ArgumentParser()
    pretrain.add_arguments(parser)

    def run(*extra):
        return pretrain.run(
            parser.parse_args(
                [
                    "--text",
                    str(tmp_path / "text.txt"),
                    "--output",
                    str(tmp_path / "run"),
                    "--batch-size",
                    "4",
                    "--length",
                    "24",
                    "--steps",
                    "4",
                    "--log-every",
                    "2",
                    *extra,
                ]
            )
        )

    with pytest.raises(ValueError, match="needs --teacher"):
        run("--student-layers", "1")
    # The same words in another order.
    Tokenizer([*bert.tokenizer.vocab[:5], *bert.tokenizer.vocab[:4:-1]], lower_case=False).save(tmp_path / "other")
    fresh = ["--teacher", str(tmp_path / "teacher"), "--size", "1x16x2", "--vocab"]
    with pytest.raises(ValueError, match="--teacher .*teacher has another vocabulary than the model or cuts"):
        run(*fresh, str(tmp_path / "other"))
    Tokenizer(bert.tokenizer.vocab, lower_case=not bert.tokenizer.lower_case).save(tmp_path / "cut")
    with pytest.raises(ValueError, match="--teacher .*teacher has another vocabulary than the model or cuts"):
        run(*fresh, str(tmp_path / "cut"))
    with pytest.raises(ValueError, match="--teacher .*teacher takes at most 128 tokens, but the sequences have 200"):
        run(*fresh, str(tmp_path / "teacher"), "--length", "200")
    silent = make_bert(layers=1, with_heads=("pooler",))
    checkpoints.save(tmp_path / "silent", silent.config, silent.tokenizer, silent.model)
    with pytest.raises(MissingHead, match="--teacher .*silent has no masked language model head"):
        run("--teacher", str(tmp_path / "silent"), "--size", "1x16x2", "--vocab", str(tmp_path / "teacher"))
    assert not (tmp_path / "run" / "corpus").exists()
    assert run("--teacher", str(tmp_path / "teacher"), "--student-layers", "1") == 0
    assert checkpoints.read(tmp_path / "run" / "model")[0].num_hidden_layers == 1
    assert "soft_loss" in (tmp_path / "run" / "metrics.jsonl").read_text()
