"""Speed of `prepare`, from raw text to TFRecord, and of tokenising alone, compared with a Python tokenizer, in MB/s.

    python benchmarks/prepare.py FILE [--vocab bert-small-uncased-embedded] [--megabytes 40] [--python-megabytes 1]
        [--processes 2] [--rounds 3] [--json FILE]

FILE is plain text with a paragraph on each line and a blank line between documents. Measured in interleaved rounds:

- prepare: `python -m bert_tf prepare` from start to end, including the start of the processes;
- prepare, without start: the same minus the time of a run over a quarter of the text;
- tokenising: the paragraphs to ids by `Tokenizer.batch_ids`, in the same number of processes;
- Python tokenising: the same by the Python classes in Transformers that were taken over from google-research/bert
  (`tokenization_bert_legacy`), in the same number of processes. The original program, which uses this tokenizer
  in one process, cannot be faster.

MB/s is by wall-clock time; "per CPU second" divides by the CPU time of all processes, which is more reliable on a
busy machine. Needs requirements-bench.txt.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def main(arguments=None):
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as folder:
        text, quarter, little = (
            _slice(options.file, size, Path(folder) / f"{size}.txt")
            for size in (options.megabytes, options.megabytes / 4, options.python_megabytes)
        )
        measured = {name: [] for name in ("prepare", "prepare, without start", "tokenising", "Python tokenising")}
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(options.processes, context, _start, (options.vocab,)) as pool:
            _check_equal(pool, little)
            for _ in range(options.rounds):
                whole, start = (_prepare(path, folder, options) for path in (text, quarter))
                measured["prepare"].append((text.stat().st_size, *whole))
                rest = [all_ - first for all_, first in zip(whole, start)]
                measured["prepare, without start"].append((text.stat().st_size - quarter.stat().st_size, *rest))
                measured["tokenising"].append(_tokenise(pool, "fast", text, options.processes))
                measured["Python tokenising"].append(_tokenise(pool, "python", little, options.processes))
    report(measured, options)
    return 0


def report(measured, options):
    rates = {
        name: [statistics.median(size / 1e6 / row[kind] for size, *row in rows) for kind in (0, 1)]
        for name, rows in measured.items()
    }
    print(
        f"{options.megabytes} MB of {Path(options.file).name}, {options.processes} processes, median of "
        f"{options.rounds}; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n\n"
        "| | MB/s | MB per CPU second | of Python tokenising, by CPU time |"
    )
    print("|---|---|---|---|")
    for name, (by_clock, by_cpu) in rates.items():
        print(f"| {name} | {by_clock:.2f} | {by_cpu:.2f} | {by_cpu / rates['Python tokenising'][1]:.1f} |")
    if options.json:
        Path(options.json).write_text(
            json.dumps({"rates": rates, "rows": measured, "settings": vars(options)}, indent=1)
        )


def _slice(path, megabytes, target):
    """The first MB of a text, cut at the end of a document."""
    with open(path, "rb") as file:
        data = file.read(int(megabytes * 1e6))
    target.write_bytes(data[: data.rfind(b"\n\n") + 2])
    return target


#: Runs a command, waits for all processes that it started, also those that outlive it briefly, and prints their CPU
#: seconds.
_COUNTED = """
import ctypes, os, resource, subprocess, sys
PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    while True:
        os.wait()
except ChildProcessError:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(used.ru_utime + used.ru_stime)
"""


def _prepare(text, folder, options):
    """(seconds, CPU seconds) of the command."""
    output = tempfile.mkdtemp(dir=folder)
    began = time.perf_counter()
    used = subprocess.check_output(
        [
            sys.executable,
            "-c",
            _COUNTED,
            sys.executable,
            "-m",
            "bert_tf",
            "prepare",
            "--input",
            text,
            "--output",
            output,
            "--vocab",
            options.vocab,
            "--processes",
            str(options.processes),
            "--quiet",
        ],
        cwd=ROOT,
    )
    return time.perf_counter() - began, float(used)


def _tokenise(pool, way, text, processes):
    """(bytes, seconds until all are done, CPU seconds of all)."""
    parts = [pool.submit(_tokenise_part, way, str(text), part, processes) for part in range(processes)]
    done = [part.result() for part in parts]
    # The time of the slowest part, without reading the file.
    return sum(size for size, _, _ in done), max(done, key=lambda row: row[1])[1], sum(row[2] for row in done)


def _start(vocab):
    """Runs in each process: makes both tokenizers and warms them up."""
    os.environ.update(TF_NUM_INTRAOP_THREADS="1", TF_NUM_INTEROP_THREADS="1", CUDA_VISIBLE_DEVICES="-1")
    from transformers.models.bert import tokenization_bert_legacy as legacy

    from bert_tf import checkpoints
    from bert_tf.tokenizers import Tokenizer

    global ours, python
    ours = Tokenizer.from_folder(vocab if os.path.isdir(vocab) else checkpoints.find(vocab))
    ids = {token: index for index, token in enumerate(ours.vocab)}
    basic = legacy.BasicTokenizer(do_lower_case=ours.lower_case)
    pieces = legacy.WordpieceTokenizer(ids, "[UNK]")

    def python(text):
        return [ids[piece] for word in basic.tokenize(text) for piece in pieces.tokenize(word)]

    ours.batch_ids(["Warm up."] * 100, "fast")


def _tokenise_part(way, path, part, parts):
    """(bytes, seconds, CPU seconds) of every `parts`-th paragraph."""
    paragraphs = [line for line in Path(path).read_text(encoding="utf-8").split("\n") if line][part::parts]
    size = sum(len(paragraph.encode()) for paragraph in paragraphs)
    began, cpu = time.perf_counter(), time.process_time()
    if way == "fast":
        ours.batch_ids(paragraphs, "fast")
    else:
        for paragraph in paragraphs:
            python(paragraph)
    return size, time.perf_counter() - began, time.process_time() - cpu


def _check_equal(pool, text):
    equal, count = pool.submit(_compare, str(text)).result()
    if equal < 0.999 * count:
        raise SystemExit(f"Only {equal} of {count} paragraphs have the same ids both ways: not comparable.")


def _compare(path):
    paragraphs = [line for line in Path(path).read_text(encoding="utf-8").split("\n") if line][:500]
    return sum(python(text) == ids.tolist() for text, ids in zip(paragraphs, ours.batch_ids(paragraphs, "fast"))), len(
        paragraphs
    )


def _options(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--vocab", default="bert-small-uncased-embedded")
    parser.add_argument(
        "--megabytes",
        type=float,
        default=40,
        help="at least 36; for less text `prepare` would use a single process for the quarter",
    )
    parser.add_argument("--python-megabytes", type=float, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
