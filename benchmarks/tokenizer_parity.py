"""Compare our tokenizer with Transformers' BertTokenizer on lines of a text file, cased and uncased.

    python benchmarks/tokenizer_parity.py --text FILE [--lines 10000] [--speed] [--folders FOLDER ...]

For every line the ids, pieces, word ids and offsets of `Tokenizer.tokenize` and the ids of the fast batch
path are compared with Transformers' (offsets may be longer by combining marks, see
`bert_tf/tokenizers/wordpiece.py`). With --speed also the throughput of the batch paths beside Transformers' and
the bare Rust library, interleaved, per second of processor time, and as ratios. With --folders the byte-level or
SentencePiece tokenizers of those model folders are compared instead, with RobertaTokenizer or AlbertTokenizer, on the
lines and on the hard strings of tests/golden. Exit code 1 if anything differs.
"""

import argparse
import json
import os
import statistics
import sys
import time
import unicodedata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
MODELS = {"cased": "bert-base-cased-embedded", "uncased": "bert-small-uncased-embedded"}


def spread_lines(path: Path, count: int) -> list[str]:
    """Selects lines that are not blank, spread evenly over the file."""
    with open(path, encoding="utf-8", newline="\n") as file:
        lines = [line.removesuffix("\n") for line in file if line.strip()]
    step = max(1, len(lines) // count)
    return lines[::step][:count]


def offset_agrees(text: str, ours: tuple[int, int], theirs: tuple[int, int]) -> bool:
    """Whether the offsets are equal, or ours also include combining marks."""
    only_marks = all(unicodedata.category(mark) == "Mn" for mark in text[theirs[1] : ours[1]])
    return ours[0] == theirs[0] and ours[1] >= theirs[1] and only_marks


def compare(tokenizer, reference, lines: list[str]) -> dict:
    """Count the lines that differ in each respect."""
    differ = dict.fromkeys(("ids", "pieces", "words", "offsets", "fast_ids"), 0)
    tokens, first = 0, None
    for text, fast in zip(lines, tokenizer.batch_ids(lines, "fast"), strict=True):
        ours = tokenizer.tokenize(text)
        theirs = reference(text, add_special_tokens=False, return_offsets_mapping=True)
        tokens += len(ours)
        spans = theirs["offset_mapping"]
        same = {
            "ids": ours.ids.tolist() == theirs["input_ids"],
            "pieces": list(ours.tokens) == reference.convert_ids_to_tokens(theirs["input_ids"]),
            "words": list(ours.word_ids) == theirs.word_ids(),
            "offsets": len(spans) == len(ours)
            and all(offset_agrees(text, a, b) for a, b in zip(ours.offsets, spans, strict=True)),
            "fast_ids": fast.tolist() == theirs["input_ids"],
        }
        for key, agrees in same.items():
            differ[key] += not agrees
        if first is None and not all(same.values()):
            first = text
    return {"lines": len(lines), "tokens": tokens, "lines_that_differ": differ, "first_difference": first}


def same_words(text: str, mine, theirs: list[int]) -> bool:
    """Whether words of SentencePiece pieces are those of Transformers, split at marks and ideographs as in BERT.

    Transformers' words begin at the spaces of the model: a vertical tab splits only ours, a zero-width space or a
    character that is normalised to a space only theirs.
    """
    if len(theirs) != len(mine):
        return False
    ours, marks = list(mine.word_ids), [_touches_a_mark(text[slice(*span)]) for span in mine.offsets]
    for place in range(1, len(ours)):
        apart, wanted = ours[place] != ours[place - 1], theirs[place] != theirs[place - 1]
        between = text[mine.offsets[place - 1][1] : mine.offsets[place][0]]
        if apart and not wanted and not (marks[place] or marks[place - 1] or between.isspace()):
            return False
        lost = between and not any(letter.isspace() or letter.isalnum() for letter in between)
        if wanted and not apart and not lost:
            return False
    return True


def _touches_a_mark(piece: str) -> bool:
    """Whether a piece has a punctuation mark or an ideograph in it, or no letter at all (a space, an accent)."""
    from bert_tf.tokenizers.base import bert_words

    return not piece.isalnum() or len(bert_words(f"x{piece}x")) > 1


def compare_folder(folder: Path, lines: list[str]) -> dict:
    """Count the texts whose ids, offsets (spaces aside) or words (see `same_words`) differ from Transformers'."""
    import transformers

    from bert_tf.tokenizers import SentencePieceTokenizer, read_tokenizer

    ours = read_tokenizer(folder)
    theirs = getattr(transformers, ours.transformers_class).from_pretrained(folder)
    differ, tokens, first = dict.fromkeys(("ids", "offsets", "words", "batch_ids"), 0), 0, None
    for text, batch in zip(lines, ours.batch_ids(lines), strict=True):
        mine = ours.tokenize(text)
        wanted = theirs(text, add_special_tokens=False, return_offsets_mapping=True)
        tokens += len(mine)
        spans = [text[start:end].strip() for start, end in wanted["offset_mapping"]]
        same = {
            "ids": mine.ids.tolist() == wanted["input_ids"],
            "batch_ids": batch.tolist() == wanted["input_ids"],
            "offsets": len(spans) == len(mine)
            and all(text[slice(*span)].strip().startswith(other) for span, other in zip(mine.offsets, spans)),
            "words": same_words(text, mine, wanted.word_ids())
            if isinstance(ours, SentencePieceTokenizer)
            else list(mine.word_ids) == wanted.word_ids(),
        }
        for key, agrees in same.items():
            differ[key] += not agrees
        if first is None and not all(same.values()):
            first = text
    return {
        "kind": type(ours).__name__,
        "vocabulary": ours.vocab_size,
        "texts": len(lines),
        "tokens": tokens,
        "texts_that_differ": differ,
        "first_difference": first,
    }


def hard_strings() -> list[str]:
    """The hard strings of the golden files."""
    sys.path.insert(0, str(ROOT / "tests" / "golden"))
    from make_tokenizer_golden import TEXTS

    return TEXTS


def speed(tokenizer, reference, lines: list[str], rounds: int = 3) -> dict:
    """Median megabytes of text per second of CPU time."""
    megabytes = sum(len(line.encode()) for line in lines) / 1e6
    rust = reference.backend_tokenizer
    ways = {
        "fast": lambda: tokenizer.batch_ids(lines, "fast"),
        "exact": lambda: tokenizer.batch_ids(lines, "exact"),
        "tokenizers": lambda: rust.encode_batch(lines, add_special_tokens=False),
        "transformers": lambda: reference(lines, add_special_tokens=False),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, run in ways.items():
            start = time.process_time()
            run()
            seconds[way].append(time.process_time() - start)
    rates = {way: megabytes / statistics.median(values) for way, values in seconds.items()}
    ratios = {f"fast_over_{way}": rates["fast"] / rate for way, rate in rates.items() if way != "fast"}
    return {key: round(value, 2) for key, value in (rates | ratios).items()}


def main() -> int:
    """Compares and prints one JSON object. Returns: exit code, 0 if all is equal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, required=True, help="a UTF-8 text file with one paragraph on each line")
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--speed", action="store_true", help="measure throughput too")
    parser.add_argument("--folders", type=Path, nargs="+", help="model folders of other tokenizers to compare")
    arguments = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import tokenizers
    import transformers

    from bert_tf.tokenizers import Tokenizer
    from bert_tf.tokenizers.batch_tokenizer import fast_path_bytes

    lines = spread_lines(arguments.text, arguments.lines)
    if arguments.folders:
        report = {str(folder): compare_folder(folder, lines + hard_strings()) for folder in arguments.folders}
        print(json.dumps(report, indent=2, ensure_ascii=False))
        return int(any(sum(one["texts_that_differ"].values()) for one in report.values()))
    report: dict = {
        "text": arguments.text.name,
        "transformers": transformers.__version__,
        "tokenizers": tokenizers.__version__,
        "share_on_fast_path": round(sum(fast_path_bytes(line) is not None for line in lines) / len(lines), 4),
    }
    for case, folder in MODELS.items():
        folder = ROOT / "assets" / "models" / folder
        ours, theirs = Tokenizer.from_folder(folder), transformers.BertTokenizer.from_pretrained(folder)
        report[case] = compare(ours, theirs, lines)
        if arguments.speed:
            report[case]["megabytes_a_second"] = speed(ours, theirs, lines)
    print(json.dumps(report, indent=2, ensure_ascii=False))
    return int(any(sum(report[case]["lines_that_differ"].values()) for case in MODELS))


if __name__ == "__main__":
    sys.exit(main())
