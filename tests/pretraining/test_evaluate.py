"""The evaluation of the pre-training heads: figures that are known beforehand, and the same every time."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bert_tf.cli import main
from bert_tf.errors import MissingHead
from bert_tf.pretraining.data.documents import TextError
from bert_tf.pretraining.evaluate import evaluate_mlm
from tests.conftest import make_bert

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


def test_a_model_whose_logits_are_not_numbers_predicts_nothing(tiny_bert, text):
    bert = _knowing(tiny_bert, 0)
    run = bert.runtime.run
    bert.runtime.run = lambda inputs, outputs: {
        name: value * np.nan if name == "mlm_logits" else value for name, value in run(inputs, outputs).items()
    }
    assert evaluate_mlm(bert, text, length=32)["top1"] == 0


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


class _KnowsTheStart(_Knowing):
    """A stand-in for `Runtime` that knows the masked tokens before place 40 and no others."""

    def run(self, inputs, outputs):
        results = super().run(inputs, outputs)
        results["mlm_logits"] = np.zeros_like(results["mlm_logits"])
        results["mlm_logits"][..., 0] = np.where(inputs["mask_positions"] < 40, 0.0, 1.0)
        return results


def test_the_accuracy_at_each_place_is_that_of_the_tokens_there(tiny_bert, text):
    bert = _knowing(tiny_bert, 0)
    bert.runtime = _KnowsTheStart(tiny_bert.tokenizer, 0, 1.0)
    report = evaluate_mlm(bert, text, length=80, by_position=True)
    first, second, third = report["by_position"]
    assert [(group["first"], group["last"]) for group in (first, second, third)] == [(0, 31), (32, 63), (64, 95)]
    assert first["top1"] == 1 and 0 < second["top1"] < 1 and third["top1"] == 0
    groups = (first, second, third)
    assert sum(group["masked_tokens"] for group in groups) == report["masked_tokens"]
    right = sum(group["top1"] * group["masked_tokens"] for group in groups)
    assert right == pytest.approx(report["top1"] * report["masked_tokens"])
    assert "by_position" not in evaluate_mlm(bert, text, length=80)


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


def test_texts_and_batches_without_a_known_word(tiny_bert, text, tmp_path):
    unknown = tmp_path / "unknown.txt"
    unknown.write_text("\n\n".join(["猫\n犬"] * 4))
    with pytest.raises(TextError, match="holds no word that tiny-cased knows"):
        evaluate_mlm(tiny_bert, str(unknown))
    mixed = tmp_path / "mixed.txt"
    mixed.write_text(Path(text).read_text() + "\n\n猫\n犬" * 3)
    figures = [evaluate_mlm(tiny_bert, str(mixed), length=32, batch_size=size) for size in (1, 32)]
    for name in ("top1", "top5", "nsp_accuracy", "masked_tokens"):
        assert figures[0][name] == figures[1][name]


def test_the_command_prints_the_figures(tiny_folder, text, capsys):
    assert main(["evaluate", "mlm", "--model", str(tiny_folder), "--text", text, "--length", "32", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {"top1", "top5", "pseudo_perplexity", "nsp_accuracy"} <= set(report)
    assert main(["evaluate", "mlm", "--model", str(tiny_folder), "--text", text, "--limit", "4", "--quiet"]) == 0
    assert "pseudo_perplexity" in capsys.readouterr().out


def test_an_empty_text_shows_no_empty_progress_bar(tiny_folder, tmp_path, capsys):
    (tmp_path / "empty.txt").write_text("")
    assert main(["evaluate", "mlm", "--model", str(tiny_folder), "--text", str(tmp_path / "empty.txt")]) == 2
    assert "sequence" not in capsys.readouterr().err


def test_the_command_measures_several_lengths_and_draws_the_places(tiny_folder, text, tmp_path, capsys):
    command = ["evaluate", "mlm", "--model", str(tiny_folder), "--text", text, "--limit", "8", "--quiet"]
    alone = []
    for length in ("24", "48"):
        assert main([*command, "--length", length, "--json"]) == 0
        alone.append(json.loads(capsys.readouterr().out))
    page = tmp_path / "places.html"
    asked = ["--length", "24", "48", "--by-position", "--html", str(page)]
    assert main([*command, *asked, "--json"]) == 0
    both = json.loads(capsys.readouterr().out)
    assert [report["length"] for report in both["lengths"]] == [24, 48] and both["model"] == alone[0]["model"]
    for report, single in zip(both["lengths"], alone, strict=True):
        assert report["top1"] == single["top1"] and report["by_position"][0]["first"] == 0
    assert "place in the sequence" in page.read_text(encoding="utf-8")
    assert main([*command, *asked]) == 0
    output = capsys.readouterr().out
    assert "top1 by position, sequences of 48 tokens" in output and "32 to 63" in output
    assert main([*command, "--html", str(page)]) == 2 and "--by-position" in capsys.readouterr().err


def test_the_command_reads_json_lines_and_splits_by_the_language(tiny_folder, tmp_path, capsys):
    """German writes ordinals with a full stop: only the German splitter knows that no sentence ends there."""
    output = "The cat sat on the 3. mat in the park."
    (tmp_path / "text.jsonl").write_text("\n".join(json.dumps({"body": output}) for _ in range(20)))

    def measured(*options):
        text = ["--text", str(tmp_path / "text.jsonl"), "--field", "body", "--length", "32", "--json", "--quiet"]
        assert main(["evaluate", "mlm", "--model", str(tiny_folder), *text, *options]) == 0
        return json.loads(capsys.readouterr().out)

    # One sentence a document cannot be cut into the two segments of a pair of its own.
    assert measured()["nsp_accuracy"] is not None and measured("--language", "de")["nsp_accuracy"] is None


class _Judge:
    """A stand-in for the `Runtime` of a model with other heads: every pair has logits, every token a score."""

    def __init__(self, swapped=0.0, scores=None):
        self.swapped, self.scores, self.asked = swapped, scores, []

    def run(self, inputs, outputs):
        self.asked.append(inputs)
        if outputs == ("sop_logits",):
            return {"sop_logits": np.tile([0.0, self.swapped], (len(inputs["token_ids"]), 1))}
        if outputs == ("replaced_logits",):
            return {"replaced_logits": self.scores(inputs["token_ids"])}
        return {"mlm_logits": np.zeros((*inputs["mask_positions"].shape, 300), np.float32)}


def _judging(tiny_bert, heads, **known):
    return SimpleNamespace(
        tokenizer=tiny_bert.tokenizer, heads=frozenset(heads), name="judge", max_length=128, runtime=_Judge(**known)
    )


@pytest.mark.parametrize("swapped", [-1.0, 1.0])
def test_sentence_order_has_as_many_pairs_in_order_as_swapped(tiny_bert, text, swapped):
    report = evaluate_mlm(_judging(tiny_bert, {"mlm", "sop"}, swapped=swapped), text, length=32)
    assert report["sop_accuracy"] == 0.5 and report["order_pairs"] > 10
    assert report["nsp_accuracy"] is None and "top1" in report


def test_a_text_of_lone_sentences_has_no_order(tiny_bert, tmp_path):
    (tmp_path / "lone.txt").write_text("\n\n".join(SENTENCES), encoding="utf-8")
    report = evaluate_mlm(_judging(tiny_bert, {"mlm", "sop"}), str(tmp_path / "lone.txt"), length=16)
    assert report["sop_accuracy"] is None and report["order_pairs"] == 0


def test_replaced_tokens_are_counted(tiny_bert, text):
    """A judge that calls everything original is right in all but the replaced; one that calls nothing so, in them."""
    none = _judging(tiny_bert, {"replaced"}, scores=lambda ids: np.full(ids.shape, -1.0))
    report = evaluate_mlm(none, text, length=32)
    assert report["replaced_accuracy"] == pytest.approx(1 - report["replaced_share"]) and report["replaced_found"] == 0
    assert report["replaced_auc"] == 0.5 and 0.08 < report["replaced_share"] < 0.16 and "top1" not in report
    mask = tiny_bert.tokenizer.mask_id
    assert not any((inputs["token_ids"] == mask).any() for inputs in none.runtime.asked)
    every = _judging(tiny_bert, {"replaced"}, scores=lambda ids: np.ones(ids.shape))
    assert evaluate_mlm(every, text, length=32)["replaced_accuracy"] == pytest.approx(report["replaced_share"])
    # A generator that writes one word, which the text has not, is found out by who knows that word.
    china = tiny_bert.tokenizer.token_to_id("China")
    sure = np.zeros(tiny_bert.tokenizer.vocab_size, np.float32)
    sure[china] = 99
    writer = _judging(tiny_bert, {"mlm"})
    writer.runtime.run = lambda inputs, outputs: {"mlm_logits": np.tile(sure, (*inputs["mask_positions"].shape, 1))}
    knows = _judging(tiny_bert, {"replaced"}, scores=lambda ids: np.where(ids == china, 1.0, -1.0))
    actual = evaluate_mlm(knows, text, length=32, generator=writer)
    assert actual["replaced_accuracy"] == actual["replaced_found"] == actual["replaced_auc"] == 1


@pytest.mark.parametrize("batch_size", [1, 7])
def test_replacements_do_not_depend_on_the_batch_size(tiny_bert, text, batch_size):
    judge = _judging(tiny_bert, {"replaced"}, scores=lambda ids: np.sin(ids * 7.0))
    reports = [evaluate_mlm(judge, text, length=32, batch_size=size) for size in (32, batch_size)]
    assert all(reports[0][name] == reports[1][name] for name in reports[0] if name != "seconds")


def test_a_generator_must_fit(tiny_bert, other_bert, text):
    judge = _judging(tiny_bert, {"replaced"})
    with pytest.raises(ValueError, match="different vocabularies or cut text otherwise"):
        evaluate_mlm(judge, text, generator=other_bert)
    with pytest.raises(MissingHead):
        evaluate_mlm(tiny_bert, text, generator=tiny_bert)
    short = SimpleNamespace(tokenizer=tiny_bert.tokenizer, heads={"mlm"}, name="short", max_length=16)
    with pytest.raises(ValueError, match="The generator short reads at most 16 tokens, and the sequences have 32"):
        evaluate_mlm(judge, text, length=32, generator=short)


def test_the_command_measures_a_discriminator_with_its_generator(text, tmp_path, capsys):
    family = Path(__file__).parents[1] / "golden" / "family"
    words = [word for word in (family / "electra-generator" / "vocab.txt").read_text().split() if word.isalnum()]
    (tmp_path / "known.txt").write_text("\n\n".join(" ".join(words[start : start + 20]) for start in (0, 10, 20)))
    options = [
        "evaluate",
        "mlm",
        "--model",
        str(family / "electra-discriminator"),
        "--length",
        "24",
        "--limit",
        "4",
        "--quiet",
        "--generator",
        str(family / "electra-generator"),
        "--text",
    ]
    assert main([*options, str(tmp_path / "known.txt")]) == 0
    assert "replaced_auc" in capsys.readouterr().out
    assert main([*options, text]) == 2 and "no word that electra-discriminator knows" in capsys.readouterr().err
    assert (
        main(
            [
                "evaluate",
                "mlm",
                "--model",
                str(family / "albert"),
                "--text",
                text,
                "--length",
                "24",
                "--limit",
                "4",
                "--quiet",
            ]
        )
        == 0
    )
    assert "sop_accuracy" in capsys.readouterr().out


def test_the_default_length_is_no_longer_than_the_model_reads(tmp_path, text, capsys):
    from bert_tf import checkpoints

    bert = make_bert(positions=64)
    checkpoints.save(tmp_path / "short", bert.config, bert.tokenizer, bert.model)
    command = ["evaluate", "mlm", "--model", str(tmp_path / "short"), "--text", str(text), "--quiet", "--json"]
    assert main(command) == 0 and json.loads(capsys.readouterr().out)["length"] == 64
    assert main([*command, "--length", "65"]) == 2
    assert "must be 8 to 64 tokens" in capsys.readouterr().err
    train = ["pretrain", "--init", str(tmp_path / "short"), "--text", str(text), "--output", str(tmp_path / "run")]
    assert main([*train, "--steps", "1", "--batch-size", "2"]) == 0
    assert json.loads((tmp_path / "run" / "settings.json").read_text())["settings"]["length"] == 64
