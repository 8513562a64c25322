"""`--objective sop` trains the sentence-order head, and saves, exports and tells it as such."""

import json
import shutil

import numpy as np
import pytest

from bert_tf import checkpoints
from bert_tf.models import named_variables, view
from bert_tf.pretraining import export_run
from tests.conftest import make_bert
from tests.pretraining.test_export_runs import GOLDEN_FOLDERS, pretrain

FRESH = ["--size", "2x16x4", "--vocab", "{folder}/teacher", "--objective", "sop"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A text and a BERT."""
    folder = tmp_path_factory.mktemp("order")
    (folder / "text.txt").write_text("\n\n".join(["The cat sat on the mat.\nShe ran in the park. It was big."] * 20))
    bert = make_bert()
    checkpoints.save(folder / "teacher", bert.config, bert.tokenizer, bert.model)
    return folder


@pytest.fixture(scope="module")
def run(folder):
    """A run from ALBERT's weights, at a rate that hardly moves them."""
    pretrain(
        folder,
        folder / "run",
        "--init",
        GOLDEN_FOLDERS / "albert",
        "--objective",
        "sop",
        "--learning-rate",
        "1e-7",
        "--log-every",
        "1",
    )
    return folder / "run"


def test_alberts_own_head_goes_on_learning(run):
    _, _, before = checkpoints.read(GOLDEN_FOLDERS / "albert")
    _, _, after = checkpoints.read(run / "model")
    assert after.bert_heads == before.bert_heads == {"pooler", "mlm", "sop"}
    for name, variable in named_variables(after).items():
        np.testing.assert_allclose(np.asarray(variable), np.asarray(named_variables(before)[name]), atol=1e-5)
    head = "sop_classifier.classifier.weight"
    assert (np.asarray(named_variables(after)[head]) != np.asarray(named_variables(before)[head])).any()


def test_the_log_tells_sentence_order(folder, tmp_path, capsys):
    pretrain(folder, tmp_path / "run", *FRESH, "--log-every", "1")
    assert "sop 0." in capsys.readouterr().out
    record = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert {"sop_loss", "sop_accuracy"} <= set(record) and not any(name.startswith("nsp") for name in record)


def test_transformers_reads_the_head_as_alberts_own(run, tmp_path):
    import torch
    from transformers import AlbertForPreTraining

    export_run.export(run, 2, tmp_path / "hf", "hf")
    config, _, ours = checkpoints.read(run / "model")
    theirs, loading = AlbertForPreTraining.from_pretrained(tmp_path / "hf", output_loading_info=True)
    assert not loading["missing_keys"] and not loading["unexpected_keys"]
    ids = np.random.default_rng(0).integers(5, config.vocab_size, (2, 12)).astype(np.int32)
    batch = {
        "token_ids": ids,
        "segment_ids": np.repeat([[0] * 6 + [1] * 6], 2, axis=0).astype(np.int32),
        "padding_mask": np.ones_like(ids),
    }
    actual = view(ours, ("mlm_logits_all", "sop_logits"))(batch)
    with torch.no_grad():
        wanted = theirs.eval()(
            input_ids=torch.tensor(ids).long(), token_type_ids=torch.tensor(batch["segment_ids"]).long()
        )
    np.testing.assert_allclose(np.asarray(actual["sop_logits"]), wanted.sop_logits, atol=1e-5)
    np.testing.assert_allclose(np.asarray(actual["mlm_logits_all"]), wanted.prediction_logits, atol=1e-5)


def test_a_fresh_model_for_it_is_an_albert_and_bert_is_refused(folder, tmp_path):
    pretrain(folder, tmp_path / "run", *FRESH)
    config, _, model = checkpoints.read(tmp_path / "run" / "model")
    assert config.model_type == "albert" and "sop" in model.bert_heads
    with pytest.raises(ValueError, match="sentence-order head, which a BERT model does not have.*albert"):
        pretrain(folder, tmp_path / "bert", "--init", "{folder}/teacher", "--objective", "sop")
    with pytest.raises(ValueError, match="sentence-order head, which a BERT model does not have"):
        pretrain(folder, tmp_path / "bert", *FRESH, "--model-type", "bert")


def test_runs_of_earlier_versions_are_read_and_not_gone_on_with(folder, tmp_path):
    """They had a BERT's next-sentence head learn the order."""
    pretrain(folder, tmp_path / "run", "--size", "2x16x4", "--vocab", "{folder}/teacher", "--objective", "mlm+nsp")
    path = tmp_path / "run" / "settings.json"
    actual = json.loads(path.read_text())
    actual["settings"].update(objective="sop", model_type="bert")
    path.write_text(json.dumps(actual))
    shutil.rmtree(tmp_path / "run" / "model")
    assert export_run.export(tmp_path / "run", 2, tmp_path / "out").heads == {"pooler", "mlm", "nsp"}
    with pytest.raises(ValueError, match="learnt sentence order in the next-sentence head"):
        pretrain(folder, tmp_path / "run", *FRESH)


def test_a_run_with_the_default_type_written_out_goes_on(folder, tmp_path):
    options = ["--size", "1x16x2", "--vocab", "{folder}/teacher", "--objective", "mlm"]
    pretrain(folder, tmp_path / "run", *options, "--stop-after", "1")
    path = tmp_path / "run" / "settings.json"
    actual = json.loads(path.read_text())
    actual["settings"]["model_type"] = "bert"
    path.write_text(json.dumps(actual))
    pretrain(folder, tmp_path / "run", *options)
    with pytest.raises(ValueError, match="another --model-type"):
        pretrain(folder, tmp_path / "run", *options, "--model-type", "roberta")
