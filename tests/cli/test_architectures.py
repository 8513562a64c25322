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
    code, said = run(capsys, "electra-discriminator", "w1 w2 w3", "--json")
    answer = json.loads(said.out)
    assert code == 0 and answer["tokens"] == ["[CLS]", "w1", "w2", "w3", "[SEP]"]
    assert len(answer["replaced"]) == 5 and all(0 <= score <= 1 for score in answer["replaced"])
    code, said = run(capsys, "electra-discriminator", "w1 w2 w3")
    lines = said.out.splitlines()
    assert code == 0 and [line.split()[0] for line in lines[-5:]] == answer["tokens"]


def test_sentence_order_is_scored(capsys):
    code, said = run(capsys, "albert", "the work", "the license", "--json")
    order = json.loads(said.out)["sop"]
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
    code, said = run(capsys, name, text, "--json", "--top-k", "2")
    answer = json.loads(said.out)
    assert code == 0 and len(answer["masks"][0]["predictions"]) == 2
    assert "replaced" not in answer and "sop" not in answer


@pytest.mark.parametrize(
    "name, arguments, said",
    [
        ("roberta", ("a work", "a license"), "no next-sentence head"),
        ("electra-discriminator", ("w1 [MASK]",), "no masked language model head"),
    ],
)
def test_what_is_missing_is_told_in_one_line(capsys, name, arguments, said):
    code, told = run(capsys, name, *arguments)
    assert code == 2 and said in told.err and len(told.err.strip().splitlines()) == 1 and not told.out
