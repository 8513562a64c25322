"""Commands that only need forward passes import neither TensorFlow nor Keras."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.family_models import GOLDEN_FOLDERS, MODERN_FOLDER

ROOT = Path(__file__).parents[2]
PROGRAM = """
import contextlib, io, json, sys
from bert_tf.cli import main
imported = {}
for name, arguments in json.loads(sys.argv[1]).items():
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        code = main(arguments)
    imported[name] = [code, [module for module in ("tensorflow", "keras") if module in sys.modules], output.getvalue()]
print(json.dumps(imported))
"""


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """{command: (exit code, which of the two libraries are imported after it, what it printed)}, in one process."""
    folder = tmp_path_factory.mktemp("files")
    texts, plain = folder / "texts.jsonl", folder / "plain.txt"
    texts.write_text('{"text_a": "Paris is a city in [MASK]."}\n{"text_a": "The cat sat on the [MASK]."}\n')
    plain.write_text("The cat sat on the mat in the old house. It was a big cat.\n\nParis is a city.\n")
    small = ["--model", "bert-small-uncased-embedded"]
    text, masked = "Paris is a city in [MASK].", "the [MASK] of the work"
    commands = {
        "predict": ["predict", text],
        "predict a pair": ["predict", "They passed a law.", "It changed the [MASK].", *small],
        "predict a file": ["predict", "--input", str(texts), "--output", str(folder / "out.jsonl"), *small],
        "predict in int8": ["predict", text, *small, "--precision", "int8"],
        "predict in bfloat16": ["predict", text, *small, "--precision", "bfloat16"],
        "classify": ["predict", "--model", "sentiment-base-cased", "A fine film."],
        "tag": ["predict", "--model", "parts-of-speech-base-cased", "It rains."],
        "answer": ["predict", "--model", "questions-small-uncased", "Where is it?", "It is in the old barn."],
        "replaced tokens": ["predict", "--model", "electra-base-cased-embedded", "She drank a war of tea."],
        "one way": ["predict", text, "--model", "reader-left-to-right"],
        "two one-way": ["predict", text, "--model", "reader-two-one-way"],
        "directionality": ["explain", "directionality", "Paris is a big city.", "--hide", "city"],
        "features": ["features", "--input", str(plain), "--output", str(folder / "v.npy"), *small],
        "evaluate": ["evaluate", "mlm", "--text", str(plain), "--length", "32", *small],
        "attention": ["explain", "attention", text, *small],
        "neuron": ["explain", "neuron", text, *small],
        "input-embeddings": ["explain", "input-embeddings", text, *small],
        "nearest-words": ["explain", "nearest-words", text, *small],
        "logit-lens": ["explain", "logit-lens", text, *small],
        "logit lens of a one-way model": ["explain", "logit-lens", text, "--model", "reader-two-one-way"],
        "ablation in a one-way model": ["explain", "ablation", text, "--model", "reader-two-one-way"],
        "ablation in ModernBERT": ["explain", "ablation", masked, "--model", str(MODERN_FOLDER)],
        "ablation in DeBERTa": ["explain", "ablation", masked, "--model", str(GOLDEN_FOLDERS / "deberta")],
        "ablation of all heads": ["explain", "ablation", text, *small],
        "ablation": ["explain", "ablation", text, "--heads", "0.1", "--tokens", "2", *small],
        "patching": ["explain", "patching", text, "--corrupted", "Rome is a city in [MASK].", *small],
        "contributions": ["explain", "contributions", text, *small],
        "architecture": ["explain", "architecture", text, *small],
        "an activation": ["explain", "architecture", text, "--show", "queries", *small],
        "path-patching": ["explain", "path-patching", text, "--corrupted", "Rome is a city in [MASK].", *small],
    }
    program = [sys.executable, "-c", PROGRAM, json.dumps(commands)]
    result = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_forward_passes_import_neither_tensorflow_nor_keras(imported):
    assert {name: code for name, (code, _, _) in imported.items() if code} == {}
    assert {name: modules for name, (_, modules, _) in imported.items() if modules} == {}


def test_the_commands_answer(imported):
    assert "France" in imported["predict"][2]
    assert "positive" in imported["classify"][2]
    assert "barn" in imported["answer"][2]
