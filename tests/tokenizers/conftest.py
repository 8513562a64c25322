"""Tokenizers of the two embedded vocabularies, Transformers' own beside them, and its golden results."""

import json
from pathlib import Path

import pytest

from bert_tf.tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "cased": ROOT / "assets" / "models" / "bert-base-cased-embedded",
    "uncased": ROOT / "assets" / "models" / "bert-small-uncased-embedded",
}


@pytest.fixture(scope="session")
def tokenizers():
    """Our tokenizers by "cased" and "uncased"."""
    return {case: Tokenizer.from_folder(folder) for case, folder in FOLDERS.items()}


@pytest.fixture(scope="session")
def reference_tokenizers():
    """Transformers' tokenizers by "cased" and "uncased"."""
    from transformers import BertTokenizer

    return {case: BertTokenizer.from_pretrained(folder) for case, folder in FOLDERS.items()}


@pytest.fixture(params=["cased", "uncased"])
def case(request):
    """Run the test for both vocabularies."""
    return request.param


@pytest.fixture
def tokenizer(tokenizers, case):
    """Our tokenizer."""
    return tokenizers[case]


@pytest.fixture
def reference(reference_tokenizers, case):
    """Transformers' tokenizer of the same vocabulary."""
    return reference_tokenizers[case]


@pytest.fixture(scope="session")
def golden():
    """What Transformers said; see tests/golden/make_tokenizer_golden.py."""
    return json.loads((ROOT / "tests" / "golden" / "tokenizer.json").read_text(encoding="ascii"))
