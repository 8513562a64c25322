"""Lines of any length are read in bounded memory, and words that no tokenizer reads are left out of a vocabulary."""

import gzip
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bert_tf.pretraining.data import documents
from bert_tf.pretraining.data.documents import TextError, read_documents, read_parts
from bert_tf.pretraining.data.train_vocabulary import train_vocabulary
from tests.pretraining.test_corpus_and_feed import most_held

ROOT = Path(__file__).resolve().parents[2]
WORDS = [f"{first}{second}{third}" for first in "abcdefgh" for second in "aeiou" for third in "klmnopqrst"]


def one_line(path, characters):
    """A compressed line of so many characters of common words."""
    block = " ".join(random.Random(3).choices(WORDS, k=25_000)) + " "  # 100,000 characters
    with gzip.open(path, "wt", compresslevel=1) as file:
        for _ in range(characters // len(block)):
            file.write(block)
    return path


def test_a_long_line_is_read_in_bounded_memory(tmp_path):
    path = one_line(tmp_path / "line.txt.gz", 30_000_000)

    def read():
        return sum(len(paragraph) for _, part in read_parts([path], 1 << 20) for paragraph in part)

    total, peak = most_held(read)
    assert total > 29_900_000 and peak < 8_000_000, f"{peak:,} bytes"


def test_the_memory_of_vocab_does_not_grow_with_a_line(tmp_path):
    code = (
        "import resource, sys; from bert_tf.cli import main\n"
        "assert main(['vocab', '--input', sys.argv[1], '--output', sys.argv[2], '--size', '600', '--quiet']) == 0\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    held = {}
    for size in (1_500_000, 12_000_000):
        path = one_line(tmp_path / f"{size}.txt.gz", size)
        command = [sys.executable, "-c", code, path, tmp_path / f"vocabulary-{size}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=True)
        held[size] = int(done.stdout.split()[-1]) / 1024
    assert held[12_000_000] - held[1_500_000] < 25, f"MB: {held}"


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_line_is_cut_at_spaces_and_no_word_is_lost(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(documents, "LONGEST_LINE", 10)
    text = [
        "one two three four five six",
        "",
        "short",
        "x" * 25,
        f"end{' ' * 40}of it{' ' * 30}",
        " " * 40,
        "last words in it",
    ]
    path = tmp_path / "text.txt"
    path.write_bytes(ending.join(text).encode())
    read = list(read_documents([path]))
    assert [" ".join(document).split() for document in read] == [
        text[0].split(),
        ["short", "x" * 10, "x" * 10, "x" * 5, "end", "of", "it"],
        text[-1].split(),
    ]
    assert all(len(paragraph) <= 20 for document in read for paragraph in document)


def test_a_long_line_of_json_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "LONGEST_JSON_LINE", 100)
    path = tmp_path / "text.jsonl"
    path.write_text(json.dumps({"text": "short"}) + "\n" + json.dumps({"text": "x" * 100}) + "\n")
    with pytest.raises(TextError, match="line 2, has over 100 characters: write its documents on lines of their own"):
        list(read_documents([path]))


def test_words_that_the_tokenizer_never_reads_are_left_out():
    words = ["the cat ran"] * 20
    chinese = "日本語" * 50
    plain = train_vocabulary(lambda: [*words, chinese], 300)
    assert {"日", "cat"} <= set(plain)
    assert train_vocabulary(lambda: [*words, chinese, "cat" * 1000, "z" * 101], 300) == plain
    assert "##z" in train_vocabulary(lambda: [*words, chinese, "z" * 100, "z" * 100], 300)
