"""ELECTRA's generator and discriminator, trained together."""

import json
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

from bert_tf.config import BertConfig
from bert_tf.models import build_pretraining_model, named_variables, view
from bert_tf.pretraining.objectives.electra import (
    ReplacedTokenDetection,
    Replacement,
    generator_config,
    make_generator,
)

TINY = {
    "vocab_size": 40,
    "embedding_size": 12,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 20,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def pair(seed=0):
    keras.utils.set_random_seed(seed)
    discriminator = build_pretraining_model(BertConfig.named("small", "electra", **TINY))
    return discriminator, make_generator(discriminator)


def batch(seed=0, rows=8, tokens=12, masks=3):
    """Every word is followed by the one after it in the vocabulary, so that what is wrong can be told."""
    rng = np.random.default_rng(seed)
    first = rng.integers(5, 20, (rows, 1))
    ids = (first + np.arange(tokens)).astype(np.int32)
    positions = np.stack([rng.choice(np.arange(1, tokens), masks, replace=False) for _ in range(rows)]).astype(np.int32)
    labels = np.take_along_axis(ids, positions, 1)
    masked = ids.copy()
    np.put_along_axis(masked, positions, 4, 1)
    return {
        "token_ids": masked,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.ones_like(ids),
        "mask_positions": positions,
        "mask_labels": labels,
        "mask_weights": np.ones((rows, masks), np.float32),
    }


def test_the_generator_reads_with_the_discriminators_tables():
    discriminator, generator = pair()
    ours, theirs = generator.bert_layers["embeddings"], discriminator.bert_layers["embeddings"]
    for name in ("token_table", "position_table", "segment_table"):
        assert getattr(ours, name) is getattr(theirs, name)
    assert ours.norm is theirs.norm and ours.projection is not theirs.projection
    network = ReplacedTokenDetection().network(discriminator, generator)
    names = [id(variable) for variable in network.trainable_variables]
    assert len(names) == len(set(names))
    shared = 3 + 2
    assert len(names) == len(discriminator.trainable_variables) + len(generator.trainable_variables) - shared


def test_the_generator_is_a_quarter_as_wide():
    config = generator_config(BertConfig.named("base", "electra"))
    assert (config.hidden_size, config.num_attention_heads, config.intermediate_size) == (192, 3, 768)
    assert config.num_hidden_layers == 12 and config.embedding_width == 768
    with pytest.raises(ValueError, match="share is 0"):
        generator_config(config, 0)


def test_a_draw_of_the_original_counts_as_original_and_fillers_write_nothing():
    data = batch(rows=2)
    data["mask_weights"][0, 2] = 0
    data["mask_positions"][0, 2] = 0
    sure = np.full((2, 3, 40), -50, np.float32)
    np.put_along_axis(sure, data["mask_labels"][..., None], 50, 2)
    sure[1, 1] = -50
    sure[1, 1, 7] = 50
    names = ("token_ids", "mask_positions", "mask_labels", "mask_weights")
    written, wrong = map(np.asarray, Replacement()(sure, *(data[name] for name in names)))
    expected = data["token_ids"].copy()
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 2)):
        expected[row, data["mask_positions"][row, column]] = data["mask_labels"][row, column]
    expected[1, data["mask_positions"][1, 1]] = 7
    np.testing.assert_array_equal(written, expected)
    assert wrong.sum() == 1 and wrong[1, data["mask_positions"][1, 1]] == 1


def test_draws_follow_the_generators_probabilities():
    logits = np.log(np.array([0.7, 0.2, 0.1], np.float32)) * np.ones((400, 1, 1), np.float32)
    ids = np.zeros((400, 2), np.int32)
    places, labels = np.ones((400, 1), np.int32), np.zeros((400, 1), np.int32)
    written, _ = Replacement(seed=5)(logits, ids, places, labels, np.ones((400, 1), np.float32))
    shares = np.bincount(np.asarray(written)[:, 1], minlength=3) / 400
    np.testing.assert_allclose(shares, [0.7, 0.2, 0.1], atol=0.08)


def test_the_losses_are_those_of_torch():
    import torch

    objective = ReplacedTokenDetection()
    network, data = objective.network(*pair()), batch()
    data["padding_mask"][0, 9:] = 0
    outputs = network({name: data[name] for name in objective.model_inputs}, training=False)
    actual = {name: float(value) for name, value in objective(outputs, data).items()}
    logits, labels = (torch.tensor(np.asarray(outputs[name])) for name in ("replaced_logits", "replaced_labels"))
    real = torch.tensor(data["padding_mask"]).bool()
    wanted = torch.nn.functional.binary_cross_entropy_with_logits(logits[real], labels[real])
    mlm = torch.nn.functional.cross_entropy(
        torch.tensor(np.asarray(outputs["mlm_logits"])).reshape(-1, 40),
        torch.tensor(data["mask_labels"]).long().reshape(-1),
    )
    assert actual["replaced_loss"] == pytest.approx(float(wanted), rel=1e-4)
    assert actual["loss"] == pytest.approx(float(mlm) + 50 * float(wanted), rel=1e-4)
    caught = ((logits > 0) & (labels == 1))[real].float().mean()
    assert actual["replaced_caught"] == pytest.approx(float(caught), abs=1e-6)
    assert actual["replaced_share"] == pytest.approx(float(labels[real].mean()), abs=1e-6)


def test_both_learn_and_the_discriminator_beats_the_trivial_guess(tmp_path):
    from bert_tf.training.loop import Trainer
    from bert_tf.training.optimizers.registry import make_optimizer

    discriminator, generator = pair(seed=2)
    objective = ReplacedTokenDetection()
    network = objective.network(discriminator, generator)
    table = np.array(named_variables(discriminator)["bert.embeddings.word_embeddings.weight"])
    optimizer = make_optimizer(network.trainable_variables, 3e-3, total_steps=250, warmup_steps=10)
    trainer = Trainer(network, objective, optimizer, tmp_path)
    seen = []
    trainer.train(
        ((batch(seed=step), step) for step in range(250)), 0, 250, encode_position=int, log_every=25, report=seen.append
    )
    first, last = seen[0], seen[-1]
    assert last["mlm_loss"] < first["mlm_loss"] and last["replaced_loss"] < first["replaced_loss"]
    # To call every token original is right in all but the replaced ones.
    assert last["replaced_accuracy"] > 1 - last["replaced_share"] + 0.02
    # Right are at most all originals and, of the replaced ones, those that were found.
    most = 1 - last["replaced_share"] + last["replaced_share"] * last["replaced_found"]
    assert last["replaced_found"] <= 1 and last["replaced_accuracy"] <= most + 1e-4
    assert not np.allclose(table, np.array(named_variables(discriminator)["bert.embeddings.word_embeddings.weight"]))


def writer_and_judge(seed=0, **settings):
    """A BERT that writes, and a discriminator of its own vocabulary."""
    keras.utils.set_random_seed(seed)
    both = {name: value for name, value in TINY.items() if name != "embedding_size"}
    writer = build_pretraining_model(BertConfig(**{**both, **settings}))
    return writer, build_pretraining_model(BertConfig.named("small", "electra", **TINY))


def test_the_loss_of_a_discriminator_alone_is_that_of_torch():
    import torch

    objective = ReplacedTokenDetection(learning=False)
    writer, judge = writer_and_judge()
    network, data = objective.network(judge, writer), batch()
    data["padding_mask"][0, 9:] = 0
    outputs = network({name: data[name] for name in objective.model_inputs}, training=True)
    actual = {name: float(value) for name, value in objective(outputs, data).items()}
    # What was written, found out anew: the tokens that the discriminator must have read.
    asked = {name: data[name] for name in ("token_ids", "segment_ids", "padding_mask", "mask_positions")}
    logits = np.asarray(view(writer, ("mlm_logits",))(asked)["mlm_logits"])
    np.testing.assert_allclose(np.asarray(outputs["mlm_logits"]), logits, atol=1e-5)
    real = torch.tensor(data["padding_mask"]).bool()
    judged, labels = (torch.tensor(np.asarray(outputs[name])) for name in ("replaced_logits", "replaced_labels"))
    wanted = torch.nn.functional.binary_cross_entropy_with_logits(judged[real], labels[real])
    assert actual["loss"] == actual["replaced_loss"] == pytest.approx(float(wanted), rel=1e-4)
    assert actual["mlm_accuracy"] == pytest.approx(np.mean(logits.argmax(-1) == data["mask_labels"]))
    assert "mlm_loss" not in actual


def test_a_model_that_only_writes_has_no_dropout_and_keeps_its_weights(tmp_path):
    from bert_tf.training.loop import Trainer
    from bert_tf.training.optimizers.registry import make_optimizer

    writer, judge = writer_and_judge(hidden_dropout_prob=0.5)
    objective = ReplacedTokenDetection(learning=False)
    network = objective.network(judge, writer)
    assert {id(one) for one in network.trainable_variables} == {id(one) for one in judge.trainable_variables}
    inputs = {name: batch()[name] for name in objective.model_inputs}
    first, second = (np.asarray(network(inputs, training=True)["mlm_logits"]) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    before = {name: np.array(variable) for name, variable in named_variables(writer).items()}
    start = {name: np.array(variable) for name, variable in named_variables(judge).items()}
    optimizer = make_optimizer(network.trainable_variables, 1e-3, total_steps=3, warmup_steps=1)
    trainer = Trainer(network, objective, optimizer, tmp_path)
    trainer.train(((batch(seed=step), step) for step in range(3)), 0, 3, encode_position=int)
    for name, variable in named_variables(writer).items():
        np.testing.assert_array_equal(np.asarray(variable), before[name], err_msg=name)
    assert all((np.asarray(variable) != start[name]).any() for name, variable in named_variables(judge).items())


def test_a_discriminator_learns_from_a_model_that_only_writes(tmp_path):
    from bert_tf.training.loop import Trainer
    from bert_tf.training.optimizers.registry import make_optimizer

    writer, judge = writer_and_judge(seed=2)
    objective = ReplacedTokenDetection(learning=False)
    network = objective.network(judge, writer)
    optimizer = make_optimizer(network.trainable_variables, 3e-3, total_steps=120, warmup_steps=10)
    seen = []
    Trainer(network, objective, optimizer, tmp_path).train(
        ((batch(seed=step), step) for step in range(120)), 0, 120, encode_position=int, log_every=20, report=seen.append
    )
    last = seen[-1]
    assert last["loss"] < 0.6 * seen[0]["loss"]
    # To call every token original is right in all but the replaced ones, and finds none of them.
    assert last["replaced_accuracy"] > 1 - last["replaced_share"] + 0.05 and last["replaced_found"] > 0.4
    # What was taken for replaced is right: batches that were never seen.
    data = batch(seed=1000)
    outputs = network({name: data[name] for name in objective.model_inputs}, training=False)
    taken, wrong = (np.asarray(outputs["replaced_logits"]) > 0, np.asarray(outputs["replaced_labels"]) == 1)
    assert np.mean(taken == wrong) > 1 - wrong.mean() + 0.05


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """A text, a BERT, one of another vocabulary, and one without a head for masked words."""
    from bert_tf import checkpoints
    from tests.conftest import make_bert

    folder = tmp_path_factory.mktemp("electra")
    (folder / "text.txt").write_text("\n\n".join(["The cat sat on the mat. She ran in the park."] * 12))
    for name, bert in (("bert", make_bert(layers=3)), ("silent", make_bert(with_heads=("pooler", "nsp")))):
        checkpoints.save(folder / name, bert.config, bert.tokenizer, bert.model)
    return folder


def out_of_bert(folder, output, *extra, steps=2, generator="bert", init="bert", kind=("--model-type", "electra")):
    from argparse import ArgumentParser

    from bert_tf.cli import pretrain

    parser = ArgumentParser()
    pretrain.add_arguments(parser)
    written = ["--generator", str(folder / generator)] if generator else []
    return pretrain.run(
        parser.parse_args(
            [
                "--text",
                str(folder / "text.txt"),
                "--output",
                str(output),
                "--batch-size",
                "4",
                "--length",
                "24",
                "--init",
                str(folder / init),
                "--objective",
                "mlm",
                "--learning-rate",
                "1e-2",
                "--steps",
                "4",
                "--stop-after",
                str(steps),
                "--log-every",
                "1",
                *kind,
                *written,
                *extra,
            ]
        )
    )


def test_a_discriminator_begins_with_the_encoder_of_a_bert(started, tmp_path):
    from bert_tf import checkpoints

    assert out_of_bert(started, tmp_path / "run", "--freeze-layers", "1") == 0
    config, tokenizer, actual = checkpoints.read(tmp_path / "run" / "model")
    its_config, its_tokenizer, start = checkpoints.read(started / "bert")
    assert actual.bert_heads == {"replaced"} and tokenizer.vocab == its_tokenizer.vocab
    assert config == its_config.replace(model_type="electra", embedding_size=its_config.hidden_size)
    assert not (tmp_path / "run" / "generator").exists()
    known, ours = named_variables(start), named_variables(actual)
    assert {name for name in known if name not in ours} == {
        name for name in known if name.startswith(("cls.", "bert.pooler."))
    }
    kept = {name for name in ours if name in known and np.array_equal(ours[name], known[name])}
    lowest = {name for name in ours if name.startswith(("bert.embeddings.", "bert.encoder.layer.0."))}
    assert kept == lowest
    # It goes on with what it was begun with, and with nothing else.
    assert out_of_bert(started, tmp_path / "run", "--freeze-layers", "1", steps=4) == 0
    shares = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [record["step"] for record in shares] == [1, 2, 3, 4] and all("mlm_accuracy" in one for one in shares)
    shutil.copytree(started / "bert", tmp_path / "other")
    for other in (str(tmp_path / "other"), "0.5"):
        with pytest.raises(ValueError, match="another --generator"):
            out_of_bert(started, tmp_path / "run", "--freeze-layers", "1", "--generator", other, generator=None)


def test_it_begins_as_the_bert_reads(started):
    from argparse import Namespace

    from bert_tf import checkpoints
    from bert_tf.pretraining.initialization import initialize, start

    config, _, source = start(
        Namespace(
            init=str(started / "bert"),
            model_type="electra",
            generator="x",
            embedding_size=None,
            vocab=None,
            positions=None,
            student_layers=None,
            add_tokens=None,
        )
    )
    judge = build_pretraining_model(config)
    initialize(judge, source)
    ids = np.random.default_rng(0).integers(5, 30, (2, 9)).astype(np.int32)
    data = {"token_ids": ids, "segment_ids": (ids > 15).astype(np.int32), "padding_mask": np.ones_like(ids)}
    ours, theirs = (
        np.asarray(view(one, ("sequence_output",))(data)["sequence_output"])
        for one in (judge, checkpoints.read(started / "bert")[2])
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_every_place_is_hidden_from_a_model_that_only_writes(started, tmp_path, monkeypatch):
    from bert_tf import checkpoints
    from bert_tf.cli import pretrain

    seen, feed = [], pretrain._feed

    def watched(*arguments):
        made = feed(*arguments)
        seen.append(made.masks)
        return made

    monkeypatch.setattr(pretrain, "_feed", watched)
    out_of_bert(started, tmp_path / "run")
    assert [(masks.rate, masks.mask_share, masks.random_share) for masks in seen] == [(0.15, 1.0, 0.0)]
    assert checkpoints.read(tmp_path / "run" / "model")[2].bert_heads == {"replaced"}


def test_what_cannot_write_or_be_begun_with_is_told(started, tmp_path):
    def fails(match, *extra, **changes):
        with pytest.raises(ValueError, match=match):
            out_of_bert(started, tmp_path / "run", *extra, **changes)

    family = Path(__file__).parents[1] / "golden" / "family"
    fails("silent has no masked language model head", generator="silent")
    fails("another vocabulary than the model", generator=family / "electra-generator")
    fails("called .*nowhere", generator="nowhere")
    fails("--init .*bert is a BERT model, without the head that --generator trains; --model-type electra", kind=())
    fails("is a DistilBERT model, and an electra can start only from a BERT's encoder", init=family / "distilbert")
    fails("learns only with --generator", generator=None)
    fails(
        "deberta is a DeBERTa.* model, and --generator 0.25, a share of the width, is made for an ELECTRA only; "
        "give --generator MODEL",
        "--generator",
        "0.25",
        init=family / "deberta",
        kind=(),
        generator=None,
    )
    fails("share is 0.0", "--generator", "0", generator=None)
    fails("share is nan", "--generator", "nan", generator=None)


def test_the_command_writes_both_models_and_resumes(tmp_path, capsys):
    from argparse import ArgumentParser

    from bert_tf import checkpoints
    from bert_tf.cli import pretrain
    from tests.conftest import make_bert

    make_bert().tokenizer.save(tmp_path / "words", model_max_length=64)
    (tmp_path / "text.txt").write_text("\n\n".join(["The cat sat on the mat. She ran in the park."] * 12))
    parser = ArgumentParser()
    pretrain.add_arguments(parser)

    def run(steps, *extra):
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
                    "--size",
                    "1x16x4",
                    "--positions",
                    "64",
                    "--vocab",
                    str(tmp_path / "words"),
                    "--steps",
                    "4",
                    "--stop-after",
                    str(steps),
                    "--log-every",
                    "1",
                    *extra,
                ]
            )
        )

    with pytest.raises(ValueError, match="--objective mlm"):
        run(2, "--generator", "0.25")
    assert run(2, "--generator", "0.25", "--objective", "mlm", "--dropout", "0") == 0
    assert run(4, "--generator", "0.25", "--objective", "mlm", "--dropout", "0") == 0
    actual = checkpoints.read(tmp_path / "run" / "model")[2]
    assert actual.bert_heads == {"replaced"} and actual.bert_config.model_type == "electra"
    generator = checkpoints.read(tmp_path / "run" / "generator")[2]
    assert generator.bert_heads == {"mlm"} and generator.bert_config.num_attention_heads == 1
    assert actual.bert_config.hidden_dropout_prob == generator.bert_config.hidden_dropout_prob == 0.1
    np.testing.assert_array_equal(
        *(np.asarray(named_variables(one)["bert.embeddings.word_embeddings.weight"]) for one in (actual, generator))
    )
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    output = [line for line in capsys.readouterr().out.splitlines() if "  loss " in line]
    assert len(output) == len(records) == 4
    for line, record in zip(output, records):
        assert f"  replaced {record['replaced_accuracy']:.3f}  found {record['replaced_found']:.3f}  " in line
