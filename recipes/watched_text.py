"""Makes the text and the vocabulary of the shipped training run: plain English from Wikipedia.

    python recipes/watched_text.py wiki-0.txt wiki-1.txt wiki-2.txt --output build

A model of a million weights learns fastest from short sentences of common words. So only articles with mostly common
words and short sentences are selected. They are written to `build/text.txt`, in their order; `build/vocab.txt` is a
lower-case WordPiece vocabulary trained on them.
"""

import argparse
import re
from collections import Counter
from pathlib import Path

from tokenizers import BertWordPieceTokenizer

COMMON_WORDS, LEAST_SHARE, WORDS_A_SENTENCE, LEAST_CHARACTERS = 4000, 0.86, 20, 600
VOCABULARY = 4096
_WORD, _END = re.compile(r"[a-z]+|[0-9]+"), re.compile(r"[.!?](?:\s|$)")


def documents(paths):
    """Yields each document's text: paragraphs a line, a blank line between documents."""
    for path in paths:
        for document in Path(path).read_text(encoding="utf-8").split("\n\n"):
            if len(document) >= LEAST_CHARACTERS:
                yield document.strip()


def common_words(paths):
    """The commonest words of the first file, counted in every third document."""
    counts = Counter()
    for number, document in enumerate(documents(paths[:1])):
        if number % 3 == 0:
            counts.update(_WORD.findall(document.lower()))
    return {word for word, _ in counts.most_common(COMMON_WORDS)}


def is_plain(document, common):
    """Whether a document has common words and short sentences."""
    words = _WORD.findall(document.lower())
    sentences = len(_END.findall(document)) or 1
    return len(words) / sentences <= WORDS_A_SENTENCE and sum(word in common for word in words) >= LEAST_SHARE * len(
        words
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", nargs="+", help="files of Wikipedia text")
    parser.add_argument("--output", required=True, type=Path)
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    common = common_words(args.text)
    chosen = [document for document in documents(args.text) if is_plain(document, common)]
    text = args.output / "text.txt"
    text.write_text("\n\n".join(chosen) + "\n", encoding="utf-8")
    trainer = BertWordPieceTokenizer(lowercase=True)
    trainer.train([str(text)], vocab_size=VOCABULARY, min_frequency=20, limit_alphabet=72, show_progress=False)
    trainer.save_model(str(args.output))
    print(f"{len(chosen):,} documents, {text.stat().st_size / 1e6:.1f} MB, {trainer.get_vocab_size():,} tokens")


if __name__ == "__main__":
    main()
