"""The training on a GPU, on a CPU: what it draws from a text, what it masks, and whole small runs."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.checkpoints.delta import base_model
from bert_tf.models import named_variables
from bert_tf.pretraining.data.corpus import prepare_corpus
from recipes import gpu, tasks
from tests.conftest import make_bert

ROOT = Path(gpu.__file__).resolve().parent.parent
CLS, SEP, PAD, MASK = 1, 2, 0, 3
SPECIAL = gpu.Special(CLS, SEP, PAD, MASK, np.arange(1000) >= 10, np.arange(10, 1000, dtype=np.int32))


#: JAX runs in processes of its own: it is multithreaded, and other tests fork.
DRAW = """
import sys, jax, numpy as np
from recipes import gpu
from tests.embedded.test_gpu_recipe import SPECIAL

texts = jax.tree.map(jax.device_put, gpu.read_texts([sys.argv[1]]))
for name, length, pairs in (("short", 32, 0.5), ("long", 128, 0.5), ("pairs", 128, 1.0)):
    drawn = gpu.draw(jax.random.key(0), texts, SPECIAL, 2000, length, pairs)
    np.savez(f"{sys.argv[1]}/{name}.npz", **drawn)
    np.savez(f"{sys.argv[1]}/{name}-masked.npz", **gpu.mask(jax.random.key(1), drawn, SPECIAL, 0.2))
"""
#: recipes/gpu.py by itself, and then recipes/gpu_base.py, which needs the same compiled training of Base.
RUN = """
import json, sys
from pathlib import Path

sys.path.insert(0, "recipes")
import gpu, gpu_base
from bert_tf.checkpoints import library

gpu.SHAPES, gpu.TOKENS, gpu_base.LAYERS, gpu_base.FROZEN = {32: (1, 0.25)}, 256, 2, {"student": 1, "discriminator": 1}
models = gpu_base.MODELS = Path(sys.argv[1])
library.embedded_dir = lambda: models
for main, arguments in zip((gpu.main, gpu.main, gpu_base.main), map(json.loads, sys.argv[2:])):
    sys.argv[1:] = arguments
    main()
"""


def _jax(script, *arguments, **more):
    environment = {**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": str(ROOT), **more}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    subprocess.run(command, check=True, env=environment, cwd=ROOT, timeout=300)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Sequences of forty documents of 3 to 60 sentences of 7 tokens; a token names its document and starts or not.

    Returns: a function of a name in `DRAW` to the arrays of 2,000 sequences.
    """
    folder = tmp_path_factory.mktemp("text")
    counts = np.random.default_rng(0).integers(3, 60, 40)
    tokens = [
        10 + 2 * document + (place == 0) for document, n in enumerate(counts) for _ in range(n) for place in range(7)
    ]
    np.save(folder / "tokens.npy", np.array(tokens, np.uint16))
    np.save(folder / "sentence_ends.npy", 7 * np.arange(1, counts.sum() + 1))
    np.save(folder / "document_ends.npy", np.cumsum(counts))
    _jax(DRAW, folder)
    return lambda name: dict(np.load(folder / f"{name}.npz"))


@pytest.mark.parametrize("name", ["short", "long"])
def test_a_sequence_is_one_passage_or_a_pair_of_passages_of_one_document_each(drawn, name):
    batch = drawn(name)
    starts = batch["token_ids"] % 2 == 1
    for ids, segments, padding, label, is_pair, begins in zip(
        *(batch[name] for name in ("token_ids", "segment_ids", "padding_mask", "nsp_labels", "is_pair")), starts
    ):
        real = padding.sum()
        (ends,) = np.nonzero(ids == SEP)
        assert ids[0] == CLS and list(ends) == [ends[0], real - 1][: 1 + is_pair] and (padding[:real] == 1).all()
        assert segments.sum() == (real - 1 - ends[0] if is_pair else 0) and (segments[ends[0] + 1 : real] == 1).all()
        passages = [ids[1 : ends[0]], ids[ends[0] + 1 : real - 1]][: 1 + is_pair]
        documents = [set((passage - 10) // 2) for passage in passages]
        assert all(len(document) == 1 for document in documents) and begins[1]
        if is_pair:
            assert label in (0, 1) and (label == 1 or documents[0] == documents[1])
        elif name == "short":
            assert len(passages[0]) == 7  # a single sentence
    nearby = batch["is_pair"] & (batch["nsp_labels"] == 1)
    assert 0.45 < batch["nsp_labels"][batch["is_pair"]].mean() < 0.6 and nearby.any()


def test_the_length_of_a_pair_does_not_tell_its_label(drawn):
    """A pair may end early whatever its label: one model had learnt that such a pair never follows."""
    batch = drawn("pairs")
    early = batch["padding_mask"].sum(1) < 100
    assert early.mean() > 0.15
    assert 0.25 < (batch["nsp_labels"][early] == 0).mean() < 0.6


def test_the_share_of_the_positions_is_masked_and_the_labels_are_what_was_there(drawn):
    batch = drawn("long-masked")
    before, after = drawn("long")["token_ids"], batch["token_ids"]
    chosen = batch["mask_weights"] == 1
    rows = np.broadcast_to(np.arange(len(after))[:, None], chosen.shape)[chosen]
    columns = batch["mask_positions"][chosen]
    assert len({*zip(rows, columns)}) == len(rows)
    wanted = np.clip(np.rint(0.2 * batch["padding_mask"].sum(1)), 1, 26)
    assert (chosen.sum(1) == wanted).all()
    np.testing.assert_array_equal(batch["mask_labels"][chosen], before[rows, columns])
    assert (before[rows, columns] >= 10).all()
    changed = np.zeros_like(before, bool)
    changed[rows, columns] = True
    np.testing.assert_array_equal(after[~changed], before[~changed])
    replaced = after[rows, columns]
    assert (replaced == MASK).mean() == pytest.approx(0.8, abs=0.01)
    assert ((replaced != MASK) & (replaced != before[rows, columns])).mean() == pytest.approx(0.1, abs=0.01)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder in which the recipes trained a tiny Base and all that lies over it, and the weights before."""
    folder = tmp_path_factory.mktemp("trained")
    bert = make_bert(1, hidden=16)
    base = folder / "models" / "bert-base-cased-embedded"
    checkpoints.save(base, bert.config, bert.tokenizer, bert.model, dtype="int8")
    before = {name: np.array(one) for name, one in named_variables(checkpoints.read(base)[2]).items()}
    (folder / "text.txt").write_text("\n\n".join(["The bunny ate the carrot.\nIt was good.\n" * 20] * 8))
    prepare_corpus([folder / "text.txt"], bert.tokenizer, folder / "ids")
    (folder / "train.tsv").write_text("text\tlabel\n" + "The bunny ate the carrot\tgood\nIt was bad\tbad\n" * 4)
    with pytest.MonkeyPatch.context() as patch:
        run_task_recipe(patch, folder, "--prepare")
    text = ["--corpus", folder / "ids", "--held", folder / "ids"]
    training = [base, folder / "out", *text, "--minutes", 0.04, "--learning-rate", 0.01]
    minutes = ["--minutes", 0.02, "--student-minutes", 0.02, "--discriminator-minutes", 0.02]
    everything = [*text, "--work", folder / "work", *minutes, "--rates", 1e-3, 1e-2, "--steps", 10]
    runs = training, [base, folder / "out", "--write", folder / "model"], everything
    cache = {"JAX_COMPILATION_CACHE_DIR": str(folder / "cache"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    _jax(RUN, folder / "models", *(json.dumps([str(one) for one in arguments]) for arguments in runs), **cache)
    return folder, before


def run_task_recipe(patch, folder, way):
    """Run recipes/tasks.py for sentiment, with small settings, on the models of a folder. Returns: the model's name."""
    kind = dataclasses.replace(tasks.RECIPES["sentiment"], options={"lora": 2, "epochs": 2, "batch-size": 2})
    patch.setitem(tasks.RECIPES, "sentiment", kind)
    patch.setattr("bert_tf.checkpoints.library.embedded_dir", lambda: folder / "models")
    patch.setattr(tasks, "measure", lambda *_: {})  # its process would look for the model in assets/models
    data = str(folder / "train.tsv")
    files = ["--train", data, "--dev", data, "--work", str(folder / "work")]
    patch.setattr("sys.argv", ["tasks.py", "sentiment", *files, "--target", str(folder / "models" / kind.name), way])
    tasks.main()
    return kind.name


def moved(before, folder):
    """The share of the tensors of a model that differ from those before."""
    after = named_variables(checkpoints.read(folder)[2])
    return np.mean([np.abs(np.array(after[name]) - value).max() > 1e-3 for name, value in before.items()])


def test_a_run_lowers_the_loss_and_its_weights_become_a_model(trained):
    folder, before = trained
    log = [json.loads(line) for line in (folder / "out" / "log.jsonl").read_text().splitlines()]
    assert log[-1]["mlm_loss"] < 0.7 * log[0]["mlm_loss"]
    summary = json.loads((folder / "out" / "summary.json").read_text())
    assert summary["updates"] == log[-1]["step"] and summary["tokens"] == 256 * summary["updates"]
    assert checkpoints.read(folder / "model")[2].bert_heads == {"mlm", "nsp", "pooler"}
    assert moved(before, folder / "model") > 0.5


def test_base_and_all_that_lies_over_it_are_trained_in_one_go(trained, monkeypatch):
    folder, before = trained
    models, work = folder / "models", folder / "work"
    name = run_task_recipe(monkeypatch, folder, "--ship")
    facts = json.loads((work / "summary.json").read_text())
    assert facts["base"]["learning_rate"] in (1e-3, 1e-2) and all(one["updates"] >= 10 for one in facts.values())
    assert moved(before, models / "bert-base-cased-embedded") > 0.5
    for over, heads in (
        ("bert-base-cased-student", {"mlm", "nsp", "pooler"}),
        ("electra-base-cased-embedded", {"replaced"}),
    ):
        assert base_model(models / over) == "bert-base-cased-embedded"
        assert checkpoints.read(models / over)[2].bert_heads == heads
    losses = [json.loads(line)["replaced_loss"] for line in (work / "discriminator.jsonl").read_text().splitlines()]
    assert losses[-1] < losses[0]
    assert "| accuracy |" in (models / name / "README.md").read_text()
    assert bert_tf.load(name).task.predict(["It was bad"])[0]["label"] in ("good", "bad")
