"""The recipes' plans, by arithmetic, and what they do to position vectors."""

import json
import lzma
import re
import sys
from argparse import ArgumentParser

import numpy as np
import pytest

from bert_tf import checkpoints
from bert_tf.cli import pretrain
from bert_tf.cli.pretrain.options import set_example_defaults
from bert_tf.models import named_variables
from bert_tf.pretraining.data.corpus import prepare_corpus
from bert_tf.pretraining.phases import plan_phases
from recipes import embedded, positions, registers, tasks
from tests.conftest import make_bert


def _options(parser, stage):
    """The options of `pretrain` that a stage gives."""
    settings = {name: value for name, value in {**embedded.COMMON, **stage}.items() if name != "run"}
    options = map(str, embedded.options_of(settings))
    args = parser.parse_args(["--text", "x", "--init", "x", "--output", "x", *options])
    set_example_defaults(args)
    return args


def test_after_the_gpu_small_reads_pairs_of_all_lengths_and_its_card_says_both(tmp_path, monkeypatch):
    parser = ArgumentParser()
    pretrain.add_arguments(parser)
    args = _options(parser, embedded.ENDING)
    phases = plan_phases(args.phases, args.length, args.steps, 512)
    assert [phase.length for phase in phases] == [32, 64, 128, 256, 512] and args.objective == "mlm+nsp"

    summary = {"updates": 13560, "tokens": 888_668_160, "minutes": 8.2, "learning_rate": 0.0015}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    monkeypatch.setattr(embedded, "training_facts", lambda outputs: {"steps": "300", "tokens": "2.1 million"})
    text = " ".join(embedded.long_training(tmp_path, tmp_path).split())
    for words in (
        "13,560 updates",
        "889 million in 8.2 minutes",
        "warm-up to 0.0015",
        "300 updates (2.1 million tokens)",
    ):
        assert words in text


def test_the_rate_of_the_mixed_stages_falls_to_zero_once():
    """The second stage begins at the rate that the first stopped at, and both read up to 512 tokens."""
    parser = ArgumentParser()
    pretrain.add_arguments(parser)
    *_, bulk, end = (_options(parser, stage) for stage in embedded.MIXED["small"])
    left = 1 - (bulk.stop_after - bulk.warmup) / (bulk.steps - bulk.warmup)
    assert end.learning_rate == pytest.approx(bulk.learning_rate * left, rel=0.05)
    assert (bulk.objective, end.objective, end.stop_after) == ("mlm", "mlm+nsp", None)
    for stage in (bulk, end):
        assert plan_phases(stage.phases, stage.length, stage.steps, 512)[-1].length == 512


def test_a_model_that_loses_more_than_two_points_at_length_is_refused():
    def reports(*shares):
        return [{"length": length, "top1": share} for length, share in zip(embedded.LENGTHS, shares, strict=True)]

    embedded.check_lengths(reports(0.40, 0.42, 0.385))
    for shares in ((0.404, 0.275, 0.40), (0.404, 0.40, 0.38)):
        with pytest.raises(ValueError, match="Not shipped.* 40.4% in those of 128"):
            embedded.check_lengths(reports(*shares))


def test_mixed_text_is_in_one_part_only_and_without_the_benchmarks(tmp_path, monkeypatch):
    documents = {
        "everyday": [f"This is story {number}.\nIt ends." for number in range(200)],
        "news": [f"News of day {number}." for number in range(100)],
        "wiki": [f"Article {number}.\nThe capital of Italy is Rome." for number in range(100)],
    }
    texts = {name: "\n\n".join(actual) + "\n\n" for name, actual in documents.items()}
    for name, content in (("wiki", texts["wiki"]), ("everyday", texts["everyday"] + texts["news"])):
        (tmp_path / f"{name}.txt.xz").write_bytes(lzma.compress(content.encode()))
    sources = [
        registers.Source("stories", len(texts["everyday"]), 0.5, 0.25),
        registers.Source("paper", len(texts["news"]), 0.75, 0.25, "news"),
    ]
    monkeypatch.setattr(registers, "SOURCES", sources)
    monkeypatch.setattr(registers, "WIKI", registers.Source("wiki", 0, 1.0, 0))
    files = {name: [tmp_path / f"{name}.txt.xz"] for name in ("wiki", "everyday")}

    sizes = registers.mix(files["wiki"], [], files["everyday"], tmp_path / "mixed")

    train, news, everyday = (
        (tmp_path / "mixed" / f"{name}.txt").read_text().strip().split("\n\n") for name in ("train", "news", "everyday")
    )
    assert set(news) | {one for one in train if one.startswith("News")} == set(documents["news"])
    assert set(everyday) < set(documents["everyday"]) and not set(train) & {*news, *everyday}
    assert [one for one in train if one.startswith("Article")] == [f"Article {number}." for number in range(100)]
    assert set(sizes) == {"wiki", "stories", "paper"} and 20 < len(everyday) < 80 < len(news) + 70
    monkeypatch.setattr(registers, "SOURCES", sources[:1])
    with pytest.raises(ValueError, match="bytes of text"):
        registers.mix([], [], files["everyday"], tmp_path / "other")


def test_a_target_is_named_from_the_folder_of_the_user(tmp_path, monkeypatch):
    """The commands that measure it run in another one."""
    monkeypatch.chdir(tmp_path)
    parser, shipped = ArgumentParser(), []
    embedded.add_arguments(parser)
    assert parser.parse_args(["--text", "x", "--eval", "x", "--target", "model"]).target == tmp_path.resolve() / "model"

    monkeypatch.setattr(tasks, "report", lambda *_: tmp_path)
    monkeypatch.setattr(tasks, "ship", lambda kind, trained, target, dev: shipped.append(target))
    kind = next(iter(tasks.RECIPES))
    monkeypatch.setattr(sys, "argv", ["tasks.py", kind, "--train", "x", "--ship", "--target", "model"])
    tasks.main()
    assert shipped == [tmp_path.resolve() / "model"]


def test_the_hundred_sentences_are_not_the_thirty():
    from benchmarks.cloze import SENTENCES
    from benchmarks.everyday import read_sentences

    sentences = [sentence for sentence, _ in read_sentences()]
    assert len(set(sentences)) == 100 and all(sentence.count("[MASK]") == 1 for sentence in sentences)
    assert not set(sentences) & {sentence for rows in SENTENCES.values() for sentence, _ in rows}


def test_an_average_is_the_weighted_mean_of_every_weight(tmp_path):
    models = {name: make_bert(seed) for name, seed in (("first", 1), ("second", 2))}
    for name, one in models.items():
        checkpoints.save(tmp_path / name, one.config, one.tokenizer, one.model)

    folder = embedded.average({tmp_path / "first": 0.25, tmp_path / "second": 0.75}, tmp_path / "mean")

    _, _, mean = checkpoints.read(folder)
    parts = (one.model.get_weights() for one in models.values())
    for actual, first, second in zip(mean.get_weights(), *parts, strict=True):
        np.testing.assert_allclose(actual, 0.25 * first + 0.75 * second, atol=1e-7)


def test_untrained_position_vectors_follow_what_training_did_to_the_others():
    rng = np.random.default_rng(0)
    start = 3 * rng.normal(size=(512, 16))
    change, shift = rng.normal(size=(16, 16)), rng.normal(size=16)
    wanted = start @ change + shift
    trained = np.where(np.arange(512)[:, None] < 128, wanted, start)
    trained[0] += 5  # place 0 has [CLS] alone and follows no rule

    table = positions.regressed(start, trained)

    np.testing.assert_array_equal(table[: positions.LAST], trained[: positions.LAST])
    np.testing.assert_allclose(table[positions.LAST :], wanted[positions.LAST :], atol=0.05)


def test_lost_position_vectors_continue_the_curve_of_the_others():
    places, speeds = np.arange(512)[:, None], np.linspace(0.01, 0.5, 6)
    circles = np.concatenate([np.cos(places * speeds), np.sin(places * speeds)], axis=1)  # one rotation a step
    rng = np.random.default_rng(0)
    wanted = circles @ np.linalg.qr(rng.normal(size=(64, 12)))[0].T + rng.normal(size=64)
    lost = np.array(wanted)
    lost[0], lost[384:] = 9, 0.01 * rng.normal(size=(128, 64))

    table = positions.continued(lost, 384)

    np.testing.assert_array_equal(table[:384], lost[:384])
    new, right = (rows[384:] - wanted.mean(axis=0) for rows in (table, wanted))
    assert (np.sum(new * right, axis=1) / np.linalg.norm(new, axis=1) / np.linalg.norm(right, axis=1)).min() > 0.95


def test_only_the_lost_position_vectors_are_trained(tmp_path):
    bert = make_bert(with_heads=("mlm",))
    before = {name: np.array(variable.numpy()) for name, variable in named_variables(bert.model).items()}
    table = positions.table_of(bert.model)
    (tmp_path / "text.txt").write_text("\n\n".join(["The bunny ate the carrot. It was good.\n" * 40] * 8))
    corpus = prepare_corpus([tmp_path / "text.txt"], bert.tokenizer, tmp_path / "ids")
    positions.train_rows(bert.model, bert.tokenizer, corpus, 20, updates=3, batch=2, say=lambda line: None)

    for name, variable in named_variables(bert.model).items():
        if variable is not table:
            np.testing.assert_array_equal(variable.numpy(), before[name], err_msg=name)
    (old,) = (value for name, value in before.items() if "position_embeddings" in name)
    new = np.array(table.numpy())
    np.testing.assert_array_equal(new[:20], old[:20])
    assert (np.abs(new[20:100] - old[20:100]).max(axis=1) > 1e-5).all()  # the last places may be padding


@pytest.mark.parametrize("kind", ["base", "small"])
def test_every_figure_of_a_card_is_filled_in(kind, tmp_path, monkeypatch):
    scores = {"first": 17, "among_five": 45, "repeats": 30}
    monkeypatch.setattr(embedded, "run", lambda *command, capture: json.dumps(scores))
    monkeypatch.setattr(embedded, "training_facts", lambda outputs: {"steps": "1", "tokens": "2", "hours": "3"})
    figures = {"top5": 0.6, "pseudo_perplexity": 30.0, "nsp_accuracy": 0.9}
    lengths = [{"length": length, "top1": length / 1000, **figures} for length in embedded.LENGTHS]
    by_register = {"encyclopaedia": 0.41, "news": 0.37, "everyday": 0.29}
    facts = embedded.facts_of([], tmp_path, {"top1": 0.127, **figures}, lengths, by_register)
    text = embedded.card(kind, facts)
    front = text.split("---\n")[1]
    assert "{" not in text
    for field in ("license", "base_model", "pipeline_tag", "datasets", "metrics", "model-index"):
        assert f"\n{field}:" in "\n" + front
    assert re.findall(r"      value: (.+)", front) == ["0.128", "0.512", "30.0"]
    for row in ("| 0.128 | 0.256 | 0.512 |", "2019 and 2020 | 0.370 |", "17 right at once, 45 among"):
        assert row in " ".join(text.split("\n"))
    assert ("CoNLL-2003" in text) == (kind == "base")


def test_a_model_of_masked_words_alone_gets_back_the_heads_it_had(tmp_path):
    before, after = make_bert(1), make_bert(2, with_heads=("mlm",))
    for name, one in (("before", before), ("run/model", after)):
        checkpoints.save(tmp_path / name, one.config, one.tokenizer, one.model)

    folder = embedded.with_lost_heads(tmp_path / "run" / "model", tmp_path / "before")

    _, _, actual = checkpoints.read(folder)
    weights, old, new = (named_variables(model) for model in (actual, before.model, after.model))
    assert actual.bert_heads == before.model.bert_heads and set(new) < set(old)
    for name, variable in weights.items():
        np.testing.assert_array_equal(variable, (new if name in new else old)[name])
    assert embedded.with_lost_heads(folder, tmp_path / "before") == folder


def test_the_card_of_a_task_has_the_figures_of_the_stored_model():
    body = "| metric | value |\n|---|---|\n| accuracy | 0.9128 |\n| examples | 872.0000 |\n| macro_f1 | 0.9127 |"
    assert tasks.with_figures(body, {"accuracy": 0.91399, "model": "x", "macro_f1": 0.9138}) == body.replace(
        "0.9128", "0.9140"
    ).replace("0.9127", "0.9138")
