"""Mixes the text that Small is trained further on, and holds text of each kind back for its validation.

    python recipes/registers.py --wiki wiki-*.txt.xz --books books.txt.xz --everyday everyday-*.txt.xz --output mixed

Writes `train.txt`, `long.txt`, `news.txt` and `everyday.txt`. The first is about 55% encyclopaedia, 19% novels and 26%
news and everyday English. The second is ten times as long, for the training on a GPU: 68%, 8% and 24%. The other two
were held back. A document goes where the hash of its text says, so that the same text
is never on both sides, and the same files always give the same parts. Lines that are a sentence of
`benchmarks/everyday.tsv` or `benchmarks/cloze.py` with its words filled in are left out. The files of everyday English
have no marks between their sources: `SOURCES` names the sources in the order of the files, with their bytes.
"""

import argparse
import dataclasses
import hashlib
import lzma
import re
import sys
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


@dataclasses.dataclass(frozen=True)
class Source:
    """A part of the everyday text.

    Attributes:
        size: int. The bytes that it takes.
        train, long: float. The shares of it in `train.txt` and in `long.txt`.
        held: float. The share that is held back.
        register: str. The kind of text.
    """

    name: str
    size: int
    train: float
    held: float = 0.005
    register: str = "everyday"
    long: float = 1.0


SOURCES = [
    Source("tatoeba", 11_326_425, 0.45, 0.03),
    Source("commonvoice", 2_311_964, 0.8, 0.05),
    Source("stories", 1_288_885, 0.95, 0.05),
    Source("recipes", 421_787, 0.95, 0.05),
    Source("assistants", 1_345_275, 0.6, 0.05),
    Source("selfdialogue", 18_526_501, 0.1, long=0.5),
    Source("taskmaster", 850_181, 0.1),
    Source("casino", 1_115_573, 0.2),
    Source("multidogo", 1_009_604, 0.2),
    Source("topicalchat", 4_850_089, 0.2),
    Source("sgd", 13_549_591, 0.05, long=0.3),
    Source("stackexchange", 5_217_967, 0.2),
    Source("wikinews", 1_184_803, 0.75, 0.25, "news"),
    Source("meetings", 6_455_542, 0.02, long=0.2),
    Source("podcasts", 29_149_478, 0.04, long=0.25),
    Source("wordnet", 9_132_349, 0.3),
    Source("health", 7_659_669, 0.05, long=0.7),
    Source("usgov", 11_015_013, 0.05, long=0.7),
    Source("openstax", 3_924_944, 0.1),
    Source("textbooks", 6_870_392, 0.1),
]
WIKI = Source("wiki", 0, 0.105, 0, long=0.57)
BOOKS = Source("books", 0, 0.2, 0, long=0.4)


def documents(paths):
    """Yields the documents of files one after the other: bytes, with the line breaks."""
    for path in paths:
        with lzma.open(path) as lines:
            for is_text, group in groupby(lines, key=lambda line: bool(line.strip())):
                if is_text:
                    yield b"".join(group)


def with_sources(paths):
    """Yields (`Source`, document) of the everyday files.

    Raises: ValueError if the files have another size than the sources together.
    """
    ends, end = [], 0
    for source in SOURCES:
        end += source.size
        ends.append(end)
    place = number = 0
    for path in paths:
        with lzma.open(path) as lines:
            for is_text, group in groupby(lines, key=lambda line: bool(line.strip())):
                text = b"".join(group)
                while number < len(ends) and place >= ends[number]:
                    number += 1
                if is_text and number < len(ends):
                    yield SOURCES[number], text
                place += len(text)
    if place != end:
        raise ValueError(f"The everyday files hold {place:,} bytes of text, not the {end:,} of SOURCES.")


def words_of(line):
    """A line as its words in lower case, to compare lines by."""
    return " ".join(re.findall(r"[a-z0-9]+", line.lower()))


def benchmark_lines():
    """The sentences of the two lists with each of their correct words filled in, as `words_of` gives them."""
    from benchmarks.cloze import SENTENCES
    from benchmarks.everyday import read_sentences

    cloze = [(sentence, right.split()) for rows in SENTENCES.values() for sentence, right in rows]
    return {
        words_of(sentence.replace("[MASK]", word)) for sentence, right in [*cloze, *read_sentences()] for word in right
    }


def without(text, lines):
    """A document less the lines that are in a set. Args: text: bytes. lines: as from `benchmark_lines`."""
    kept = [line for line in text.strip().split(b"\n") if words_of(line.decode("utf-8")) not in lines]
    return b"\n".join(kept)


def place_of(text):
    """A number from 0 to 1 that depends only on the text."""
    return int.from_bytes(hashlib.sha256(text.strip()).digest()[:8], "big") / 2**64


def mix(wiki, books, everyday, output):
    """Writes the four files. Returns: dict name of a source -> its bytes in `train.txt` and in `long.txt`."""
    output.mkdir(parents=True, exist_ok=True)
    sizes, tested = {}, benchmark_lines()
    with (
        open(output / "train.txt", "wb") as train,
        open(output / "long.txt", "wb") as long,
        open(output / "news.txt", "wb") as news,
        open(output / "everyday.txt", "wb") as held_everyday,
    ):
        held = {"news": news, "everyday": held_everyday}
        parts = [
            ((WIKI, text) for text in documents(wiki)),
            ((BOOKS, text) for text in documents(books)),
            with_sources(everyday),
        ]
        for source, text in (pair for part in parts for pair in part):
            place = place_of(text)
            if place < source.held:
                held[source.register].write(text.strip() + b"\n\n")
                continue
            bytes_of = sizes.setdefault(source.name, [0, 0])
            for index, (file, share) in enumerate(((train, source.train), (long, source.long))):
                if place >= 1 - share:
                    file.write(without(text, tested) + b"\n\n")
                    bytes_of[index] += len(text)
    return sizes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("wiki", "books", "everyday"):
        parser.add_argument(f"--{name}", nargs="+", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    sizes = mix(args.wiki, args.books, args.everyday, args.output)
    totals = [sum(both) for both in zip(*sizes.values())]
    for name, both in sizes.items():
        print(f"{name:14}" + "".join(f"{size / 1e6:8.1f} MB{size / all_:8.1%}" for size, all_ in zip(both, totals)))


if __name__ == "__main__":
    main()
