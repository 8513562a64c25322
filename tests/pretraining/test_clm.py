"""Causal language modelling: every token a target, none masked, and only for readers that cannot see them."""

import json

import numpy as np
import pytest

from bert_tf.cli import main
from bert_tf.pretraining.data.corpus import MemoryCorpus, tokenize_documents
from bert_tf.pretraining.data.packing import make_pairs, pack_pairs
from bert_tf.pretraining.objectives.masking import MaskSettings, choose_targets
from bert_tf.tokenizers import Tokenizer
from tests.conftest import small_vocabulary

TOKENIZER = Tokenizer(small_vocabulary())
DOCUMENTS = [["The cat sat on the mat.", "A dog ran in the park."], ["Paris is the capital of France."]]


@pytest.fixture(scope="module")
def packed():
    corpus = MemoryCorpus(tokenize_documents(DOCUMENTS, TOKENIZER))
    pairs = make_pairs("clm", corpus, range(2), np.random.default_rng(0), TOKENIZER, 16)
    return pack_pairs(pairs, TOKENIZER, 16)


def test_every_ordinary_token_is_a_target_and_stays_in_the_text(packed):
    batch = choose_targets("clm", packed, TOKENIZER, np.random.default_rng(0))
    np.testing.assert_array_equal(batch["token_ids"], packed["token_ids"])
    for row in range(len(packed["token_ids"])):
        ids, real = packed["token_ids"][row], packed["padding_mask"][row].astype(bool)
        wanted = [place for place in np.flatnonzero(real) if ids[place] not in TOKENIZER.special_ids]
        chosen = batch["mask_weights"][row] == 1
        assert batch["mask_positions"][row][chosen].tolist() == wanted
        assert batch["mask_labels"][row][chosen].tolist() == ids[wanted].tolist()


def test_fewer_targets_are_a_draw_of_the_same(packed):
    settings = MaskSettings(most=3)
    drawn = [choose_targets("clm", packed, TOKENIZER, np.random.default_rng(seed), settings) for seed in (1, 1, 2)]
    assert drawn[0]["mask_positions"].shape == (len(packed["token_ids"]), 3)
    np.testing.assert_array_equal(drawn[0]["mask_positions"], drawn[1]["mask_positions"])
    assert (drawn[0]["mask_positions"] != drawn[2]["mask_positions"]).any()
    rows = np.arange(len(packed["token_ids"]))[:, None]
    labels = packed["token_ids"][rows, drawn[0]["mask_positions"]]
    np.testing.assert_array_equal(drawn[0]["mask_labels"], labels)
    assert not np.isin(labels[drawn[0]["mask_weights"] == 1], TOKENIZER.special_ids).any()


@pytest.fixture
def files(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join("\n".join(document) for document in DOCUMENTS * 20))
    TOKENIZER.save(tmp_path / "vocab")
    return tmp_path


def pretrain(files, *options):
    return main(
        [
            "pretrain",
            "--text",
            str(files / "text.txt"),
            "--vocab",
            str(files / "vocab"),
            "--output",
            str(files / "run"),
            "--batch-size",
            "8",
            "--length",
            "24",
            "--positions",
            "64",
            "--dropout",
            "0",
            "--strategy",
            "one",
            "--log-every",
            "20",
            *options,
        ]
    )


@pytest.mark.parametrize("model_type", ["left-to-right", "two-one-way"])
def test_a_reader_learns_in_the_one_training_loop(files, model_type):
    assert (
        pretrain(
            files,
            "--size",
            "2x32x4",
            "--model-type",
            model_type,
            "--objective",
            "clm",
            "--steps",
            "120",
            "--learning-rate",
            "5e-3",
        )
        == 0
    )
    records = [json.loads(line) for line in (files / "run" / "metrics.jsonl").read_text().splitlines()]
    assert records[-1]["mlm_loss"] < 0.5 * records[0]["mlm_loss"]

    import bert_tf

    bert = bert_tf.load(files / "run" / "model")
    assert bert.config.model_type == model_type and bert.heads == {"mlm"}
    # Three sentences are all it knows: what comes after "capital of" is no question.
    answer = bert.fill_mask(bert.trace("Paris is the capital of [MASK]."))[0]
    assert answer.predictions[0].token == "France" and answer.predictions[0].probability > 0.5


def test_a_model_that_sees_every_token_is_not_asked_to_predict_them_all(files, capsys):
    assert pretrain(files, "--size", "1x16x2", "--objective", "clm", "--steps", "2") != 0
    assert "needs a model that reads one way" in capsys.readouterr().err
