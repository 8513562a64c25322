"""The masked-word evaluation: figures that are known beforehand, and the same every time."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from bert_tf.checkpoints.errors import MissingHead
from bert_tf.cli import main
from bert_tf.pretrain.documents import TextError
from bert_tf.pretrain.evaluate import evaluate_mlm

SENTENCES = (
    "The cat sat on the mat.",
    "It ran in the park.",
    "She played in Paris.",
    "The dog was big and red.",
)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    document = "\n".join(" ".join(SENTENCES) for _ in range(3))
    path.write_text("\n\n".join([document] * 6), encoding="utf-8")
    return str(path)


class _Knowing:
    """A stand-in for `Runtime` that gives each masked token's true id the rank it is told to."""

    def __init__(self, tokenizer, above, is_next_bias):
        self.vocabulary, self.above, self.bias = tokenizer.vocab_size, above, is_next_bias
        self.mask_id, self.asked = tokenizer.mask_id, []

    def run(self, inputs, outputs):
        positions = inputs["mask_positions"]
        masked = np.take_along_axis(inputs["token_ids"], positions, 1)
        self.asked.append((masked, inputs["padding_mask"]))
        # Every token gets the same logit but `above` special ones, which beat whatever the true one is.
        logits = np.zeros((*positions.shape, self.vocabulary), np.float32)
        logits[:, :, : self.above] = 1.0
        return {"mlm_logits": logits, "nsp_logits": np.tile([self.bias, 0.0], (len(positions), 1))}


def _knowing(tiny_bert, above):
    runtime = _Knowing(tiny_bert.tokenizer, above, 1.0)
    return SimpleNamespace(
        tokenizer=tiny_bert.tokenizer, heads=tiny_bert.heads, name="knowing", max_length=128, runtime=runtime
    )


@pytest.mark.parametrize("above, top1, top5", [(0, 1.0, 1.0), (1, 0.0, 1.0), (4, 0.0, 1.0), (5, 0.0, 0.0)])
def test_ranks_losses_and_next_sentence_are_counted_right(tiny_bert, text, above, top1, top5):
    bert = _knowing(tiny_bert, above)
    report = evaluate_mlm(bert, text, length=32)
    assert (report["top1"], report["top5"]) == (top1, top5)
    vocabulary = tiny_bert.tokenizer.vocab_size
    assert report["pseudo_perplexity"] == pytest.approx(vocabulary - above + above * np.e, rel=1e-4)
    # "Always next" is right for half of them, because there are as many true as random pairs.
    assert report["nsp_accuracy"] == 0.5
    share = report["masked_tokens"] / sum(padding.sum() for _, padding in bert.runtime.asked)
    assert 0.1 < share < 0.2


def test_every_chosen_position_is_replaced_by_the_mask(tiny_bert, text):
    bert = _knowing(tiny_bert, 0)
    report = evaluate_mlm(bert, text, length=32, batch_size=1)
    assert (
        sum((masked == tiny_bert.tokenizer.mask_id).sum() for masked, _ in bert.runtime.asked)
        == report["masked_tokens"]
    )


def test_the_figures_do_not_depend_on_the_batch_size_and_do_on_the_seed(tiny_bert, text):
    def figures(**options):
        report = evaluate_mlm(tiny_bert, text, length=48, **options)
        return {name: value for name, value in report.items() if name != "seconds"}

    assert figures() == pytest.approx(figures(batch_size=3), rel=1e-4)
    assert figures()["pseudo_perplexity"] != figures(seed=1)["pseudo_perplexity"]


def test_a_limit_keeps_both_kinds_of_pairs(tiny_bert, text):
    counted = []
    report = evaluate_mlm(
        tiny_bert,
        text,
        length=32,
        limit=8,
        batch_size=4,
        progress=lambda done, total: counted.append((done, total)),
    )
    assert report["sequences"] == 8 < report["pairs"] and counted == [(4, 8), (8, 8)]


def test_one_document_gives_no_next_sentence_accuracy(tiny_bert, tmp_path):
    path = tmp_path / "one.txt"
    path.write_text(" ".join(SENTENCES), encoding="utf-8")
    assert evaluate_mlm(tiny_bert, str(path), length=16)["nsp_accuracy"] is None


def test_what_cannot_be_measured_is_told(tiny_bert, headless_bert, text, tmp_path):
    with pytest.raises(MissingHead):
        evaluate_mlm(headless_bert, text)
    with pytest.raises(ValueError, match="not 129"):
        evaluate_mlm(tiny_bert, text, length=129)
    with pytest.raises(ValueError, match="limit of at least 2"):
        evaluate_mlm(tiny_bert, text, limit=1)
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n")
    with pytest.raises(TextError, match="No text"):
        evaluate_mlm(tiny_bert, str(empty))


def test_the_command_prints_the_figures(tiny_folder, text, capsys):
    assert (
        main(["evaluate", "mlm", "--model", str(tiny_folder), "--text", text, "--length", "32", "--json"])
        == 0
    )
    report = json.loads(capsys.readouterr().out)
    assert {"top1", "top5", "pseudo_perplexity", "nsp_accuracy"} <= set(report)
    assert (
        main(["evaluate", "mlm", "--model", str(tiny_folder), "--text", text, "--limit", "4", "--quiet"]) == 0
    )
    assert "pseudo_perplexity" in capsys.readouterr().out
