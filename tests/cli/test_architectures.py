"""`predict` with the other family members: each says what its heads give."""

import json
from pathlib import Path

import pytest

from bert_tf.cli import main

GOLDEN_FOLDERS = Path(__file__).parent.parent / "golden" / "family"


def run(capsys, name, *arguments):
    code = main(["predict", *arguments, "--model", str(GOLDEN_FOLDERS / name)])
    return code, capsys.readouterr()


def test_a_discriminator_scores_every_token(capsys):
    code, output = run(capsys, "electra-discriminator", "w1 w2 w3", "--json")
    answer = json.loads(output.out)
    assert code == 0 and answer["tokens"] == ["[CLS]", "w1", "w2", "w3", "[SEP]"]
    assert len(answer["replaced"]) == 5 and all(0 <= score <= 1 for score in answer["replaced"])
    code, output = run(capsys, "electra-discriminator", "w1 w2 w3")
    lines = output.out.splitlines()
    assert code == 0 and [line.split()[0] for line in lines[-5:]] == answer["tokens"]


def test_sentence_order_is_scored(capsys):
    code, output = run(capsys, "albert", "the work", "the license", "--json")
    order = json.loads(output.out)["sop"]
    assert code == 0 and order["in_order"] + order["swapped"] == pytest.approx(1)
    assert "in the right order" in run(capsys, "albert", "the work", "the license")[1].out


@pytest.mark.parametrize(
    "name, text",
    [
        ("roberta", "the <mask> of work"),
        ("roberta", "the [MASK] of work"),
        ("distilbert", "w1 [MASK] w3"),
        ("electra-generator", "w1 [MASK] w3"),
    ],
)
def test_masks_are_filled(capsys, name, text):
    code, output = run(capsys, name, text, "--json", "--top-k", "2")
    answer = json.loads(output.out)
    assert code == 0 and len(answer["masks"][0]["predictions"]) == 2
    assert "replaced" not in answer and "sop" not in answer


@pytest.mark.parametrize(
    "name, arguments, output",
    [
        ("roberta", ("a work", "a license"), "no next-sentence head"),
        ("electra-discriminator", ("w1 [MASK]",), "no masked language model head"),
    ],
)
def test_what_is_missing_is_told_in_one_line(capsys, name, arguments, output):
    code, messages = run(capsys, name, *arguments)
    assert code == 2 and output in messages.err and len(messages.err.strip().splitlines()) == 1 and not messages.out
