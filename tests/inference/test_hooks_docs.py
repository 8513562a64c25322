"""The examples of docs/how-to/hooks.md run, each in at most ten lines, and its table is that of the code."""

import re
from pathlib import Path

import pytest

import bert_tf
from bert_tf.layers.hook_points import HOOK_POINTS

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "hooks.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^## (.+?)\n.*?```python\n(.*?)```", TEXT, re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="module")
def small():
    return bert_tf.load("bert-small-uncased-embedded")


def test_there_are_the_six_things_done_first():
    assert len(EXAMPLES) == 6


@pytest.mark.parametrize("title", EXAMPLES)
def test_an_example_runs(title, small, monkeypatch, capsys):
    monkeypatch.setattr("bert_tf.inference.bert.load", lambda: small)
    lines = [line for line in EXAMPLES[title].splitlines() if line.strip()]
    assert len(lines) <= 10
    exec(compile(EXAMPLES[title], title, "exec"), {})
    assert capsys.readouterr().out.strip()


def test_the_table_names_every_hook_point_with_its_shape():
    rows = re.findall(r"^\| (`.+?) \| ([A-Z ]+) \|", TEXT, re.MULTILINE)
    actual = [(name, shape.replace(" ", "")) for names, shape in rows for name in re.findall(r"`(\w+)`", names)]
    assert actual == [(point.name, point.shape) for point in HOOK_POINTS]
